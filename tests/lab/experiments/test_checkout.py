from __future__ import annotations

from pathlib import Path

import pytest

from sopilot.messages.errors import UserMistake
from sopilot_lab.sopbench.checkout import checkout_home, find_checkout

COMMIT = "e786bed" + "0" * 33


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


def test_an_incomplete_checkout_names_what_is_missing(tmp_path: Path) -> None:
    home = make_checkout(tmp_path)
    (home / "env/evaluator.py").unlink()
    with pytest.raises(UserMistake, match=r"lacks `env/evaluator\.py`"):
        find_checkout({"SOPBENCH_HOME": str(home)})


def test_commit_is_read_from_gits_own_files(tmp_path: Path) -> None:
    home = make_checkout(tmp_path)
    environment = {"SOPBENCH_HOME": str(home)}
    assert find_checkout(environment).commit is None
    git = home / ".git"
    git.mkdir()
    (git / "HEAD").write_text(f"{COMMIT}\n")
    assert find_checkout(environment).commit == COMMIT
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert find_checkout(environment).commit is None
    (git / "packed-refs").write_text(f"# pack-refs\n{'1' * 40} refs/x\n{COMMIT} refs/heads/main\n")
    assert find_checkout(environment).commit == COMMIT
    (git / "refs/heads").mkdir(parents=True)
    (git / "refs/heads/main").write_text("2" * 40 + "\n")
    assert find_checkout(environment).commit == "2" * 40


def test_a_linked_work_tree_is_followed(tmp_path: Path) -> None:
    home = make_checkout(tmp_path / "tree")
    (tmp_path / "real").mkdir()
    (tmp_path / "real/HEAD").write_text(COMMIT)
    (home / ".git").write_text("gitdir: ../real\n")
    assert find_checkout({"SOPBENCH_HOME": str(home)}).commit == COMMIT
