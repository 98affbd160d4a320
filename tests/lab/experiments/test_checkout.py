from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sopilot.messages.errors import UserMistake
from sopilot_lab.sopbench.checkout import checkout_home, find_checkout


def make_checkout(home: Path) -> Path:
    for name in ("env/domains/x.py", "env/task.py", "env/evaluator.py", "data/bank_tasks.json"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("")
    return home


def test_home_is_named_then_cached_then_default() -> None:
    assert checkout_home({"SOPBENCH_HOME": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert checkout_home({"XDG_CACHE_HOME": "/b"}) == Path("/b/sopilot/sopbench")
    assert checkout_home({}) == Path.home() / ".cache" / "sopilot" / "sopbench"


def test_a_missing_checkout_says_how_to_get_it(tmp_path: Path) -> None:
    home = tmp_path / "nowhere"
    with pytest.raises(UserMistake) as caught:
        find_checkout({"SOPBENCH_HOME": str(home)})
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "sopbench-missing"
    assert diagnostic.message == f"no SOPBench checkout: `{home}` does not exist"
    assert diagnostic.place.source == str(home)
    for said in ("https://github.com/Leezekun/SOPBench", "830", "e786bed", "SOPBENCH_HOME"):
        assert said in diagnostic.help
    (make_checkout(home) / "env/evaluator.py").unlink()
    with pytest.raises(UserMistake, match=r"lacks `env/evaluator\.py`"):
        find_checkout({"SOPBENCH_HOME": str(home)})


def test_the_commit_is_that_of_the_checkout_and_of_nothing_around_it(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", *who, "-C", str(tmp_path / "real"), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    home = make_checkout(tmp_path / "real")
    git("init", "-q")
    assert find_checkout({"SOPBENCH_HOME": str(home)}).commit is None
    git("commit", "-q", "--allow-empty", "-m", "first")
    commit = git("rev-parse", "HEAD")
    assert find_checkout({"SOPBENCH_HOME": str(home)}).commit == commit
    linked = tmp_path / "linked"
    git("worktree", "add", "-q", str(linked))
    make_checkout(linked)
    assert find_checkout({"SOPBENCH_HOME": str(linked)}).commit == commit
    inside = make_checkout(home / "inside")
    assert find_checkout({"SOPBENCH_HOME": str(inside)}).commit is None
