"""`make evidence` runs what depends on something that has changed, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from depends import Sources
from evidence import CAMPAIGNS, documents, marked, stale


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
    return tmp_path


def names(project: Path, script: str) -> set[str]:
    return {str(path.relative_to(project)) for path in Sources(project).behind(script)}


def test_imports_scripts_and_data_are_followed(project: Path) -> None:
    found = names(project, "pay.py")
    assert {"src/shop/rooms/till.py", "src/shop/stock/prices.yaml", "benchmarks/work.py"} <= found
    assert "src/shop/rooms/window.py" not in found
    # A name of a room stands for all of it: commands are loaded so.
    assert "src/shop/rooms/window.py" in names(project, "look.py")


def test_only_a_change_of_its_sources_makes_a_campaign_stale(project: Path) -> None:
    def digests() -> tuple[str, str]:
        sources = Sources(project)
        return sources.digest("pay.py"), sources.digest("look.py")

    pay, look = digests()
    assert digests() == (pay, look)
    (project / "src/shop/rooms/window.py").write_text("changed = 1")
    assert digests()[0] == pay
    assert digests()[1] != look
    (project / "src/shop/stock/prices.yaml").write_text("a: 2")
    assert digests()[0] != pay


def test_modules_of_tests_are_followed() -> None:
    found = {path.name for path in Sources().behind("proposition_1.py")}
    assert {"test_proposition_1.py", "test_guard_closure.py"} <= found


def test_documents_mark_stale_evidence() -> None:
    sources = Sources()
    names = {name for name in CAMPAIGNS if stale(name, sources)}
    for document in documents():
        text = document.read_text("utf-8")
        current = set(re.findall(r"`evidence/([\w-]+)\.json`(?! \(stale\))", text))
        cure = "run `python benchmarks/evidence.py --stale`"
        assert not current & names, f"{document.name} cites stale evidence as current: {cure}"


def test_a_mark_comes_and_goes() -> None:
    text = "a (`evidence/frames.json`), b `evidence/tamper.json` (stale)."
    assert (
        marked(text, {"frames"}) == "a (`evidence/frames.json` (stale)), b `evidence/tamper.json`."
    )
    assert marked(marked(text, {"tamper"}), {"tamper"}) == text


def test_a_campaign_of_ours_depends_on_its_packages() -> None:
    sources = Sources()
    found = {path.name for path in sources.behind("mcp_conformance.py")}
    assert {"everything_upstream.py", "serve.py"} <= found
    assert "recorded.py" in {path.name for path in sources.behind("study/__main__.py")}
    assert "serve.py" not in {path.name for path in sources.behind("compile_speed.py")}
