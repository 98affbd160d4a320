"""`make evidence` runs what depends on something that has changed, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from depends import Sources


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "src/shop/__init__.py": "",
        "src/shop/rooms/__init__.py": "",
        "src/shop/rooms/till.py": "def pay():\n    from shop.stock import count\n",
        "src/shop/rooms/window.py": "",
        "src/shop/stock/__init__.py": "",
        "src/shop/stock/count.py": "",
        "src/shop/stock/prices.yaml": "a: 1",
        "benchmarks/pay.py": "import tally\nfrom shop.rooms import till\n",
        "benchmarks/tally.py": "WORK = 'work.py'\n",
        "benchmarks/work.py": "",
        "benchmarks/look.py": "ROOM = 'shop.rooms'\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *command], cwd=tmp_path, check=True, timeout=60)
    return tmp_path


def names(project: Path, script: str) -> set[str]:
    return {str(path.relative_to(project)) for path in Sources(project, "shop").behind(script)}


def test_imports_scripts_and_data_are_followed(project: Path) -> None:
    found = names(project, "pay.py")
    assert {"src/shop/rooms/till.py", "src/shop/stock/prices.yaml", "benchmarks/work.py"} <= found
    assert "src/shop/rooms/window.py" not in found
    # A name of a room stands for all of it: commands are loaded so.
    assert "src/shop/rooms/window.py" in names(project, "look.py")


def test_only_what_is_depended_on_makes_stale(project: Path) -> None:
    sources = Sources(project, "shop")
    assert not sources.changed_since("HEAD", "pay.py")
    (project / "src/shop/rooms/window.py").write_text("changed = 1")
    assert not sources.changed_since("HEAD", "pay.py")
    assert sources.changed_since("HEAD", "look.py")
    (project / "src/shop/stock/prices.yaml").write_text("a: 2")
    assert sources.changed_since("HEAD", "pay.py")
    assert sources.changed_since("no-such-commit", "look.py")


def test_a_campaign_of_ours_depends_on_its_rooms() -> None:
    sources = Sources()
    found = {path.name for path in sources.behind("mcp_conformance.py")}
    assert {"everything_upstream.py", "_passing.py", "keeping.py", "bench_run.py"} <= found
    stats = {path.name for path in sources.behind("compile_speed.py")}
    assert "_passing.py" not in stats
