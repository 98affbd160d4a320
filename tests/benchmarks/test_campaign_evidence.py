"""Figures on record: each has a campaign whose command starts, and changed sources show."""

from __future__ import annotations

import argparse
import ast
import json
import re
import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import evidence
from depends import Sources
from evidence import CAMPAIGNS, documents, figures_of, keep, marked, stale

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
SCRIPTS = sorted(BENCHMARKS.rglob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(BENCHMARKS)))
def test_imports_from_the_product_exist(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sopilot"):
            module = import_module(node.module or "")
            for alias in node.names:
                if not hasattr(module, alias.name):
                    import_module(f"{node.module}.{alias.name}")


class Parsed(Exception):
    """A campaign has read its arguments; it ends here."""


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_campaign_has_figures_and_a_command_that_starts(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The script is executed as far as its arguments, which must all be known."""
    campaign, figures = CAMPAIGNS[name], figures_of(name)
    assert campaign.tried(figures) > 0
    assert figures["passed"] or figures["explanation"]
    script, *arguments = campaign.command.split()
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(parser: argparse.ArgumentParser, *given: Any, **more: Any) -> Any:
        parse(parser, *given, **more)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
    monkeypatch.setattr(sys, "path", [str((BENCHMARKS / script).parent), *sys.path])
    monkeypatch.setattr(sys, "argv", [script, *arguments, "--json", str(tmp_path / "f.json")])
    with pytest.raises(Parsed):
        runpy.run_path(str(BENCHMARKS / script), run_name="__main__")


def test_every_file_belongs_to_a_campaign() -> None:
    names = {name.partition("/")[0] for name in CAMPAIGNS}
    assert {file.stem for file in (ROOT / "evidence").glob("*.json")} == names


def test_the_smallest_run_of_proposition_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "small.json"
    monkeypatch.setattr(sys, "argv", ["proposition_1.py", "--cases", "20", "--json", str(file)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(BENCHMARKS / "proposition_1.py"), run_name="__main__")
    assert ended.value.code == 0
    assert json.loads(file.read_text("utf-8"))["differences"] == 0


def test_a_smaller_run_never_replaces_a_larger_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "EVIDENCE", tmp_path)
    name = "audit/labelled-traces"
    assert keep(name, {"traces": 120_000, "from": "large"})
    assert keep("audit/agreement", {"domains": ["bank"]})
    assert not keep(name, {"traces": 400, "from": "small"})
    assert figures_of(name)["from"] == "large"
    assert keep(name, {"traces": 120_000, "from": "again", "passed": True})
    assert figures_of(name)["from"] == "again"
    assert figures_of("audit/agreement") == {"domains": ["bank"]}


def test_a_fresh_sample_of_mutants_replaces_a_record_joined_from_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "EVIDENCE", tmp_path)
    evidence.write(
        {"mutants": 4138, "batches": {"21": {"mutants": 125}}}, tmp_path / "mutants.json"
    )
    assert keep("mutants", {"mutants": 200, "packages": {}})
    assert figures_of("mutants") == {"mutants": 200, "packages": {}}
    assert not keep("mutants", {"mutants": 20, "packages": {}})


@pytest.mark.parametrize("name", evidence.EXPLAINED)
def test_a_failure_is_explained_in_its_own_figures(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = {**figures_of(name), "passed": False}
    assert figures.pop("explanation") == evidence.EXPLAINED[name](figures)
    monkeypatch.setattr(evidence, "EVIDENCE", tmp_path)
    assert keep(name, figures)
    assert figures_of(name)["explanation"] == evidence.EXPLAINED[name](figures)


# --- stale evidence -------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "src/shop/__init__.py": """from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from shop.till.pay import pay
    from shop.till.window import open
""",
        "src/shop/till/__init__.py": "",
        "src/shop/till/pay.py": "def pay():\n    from shop.stock import count\n",
        "src/shop/till/window.py": "",
        "src/shop/stock/__init__.py": "",
        "src/shop/stock/README.md": "",
        "src/shop/stock/count.py": "",
        "src/shop/stock/prices.yaml": "a: 1",
        "src/shop/cli/__init__.py": "",
        "src/shop/cli/main.py": "C = {'Sell': {'open': ('window.open', ''), 'count': 'Count.'}}",
        "src/shop/cli/window.py": "from shop.till import window",
        "src/shop/cli/count.py": "",
        "tests/till/test_pay.py": "",
        "benchmarks/pay.py": "import shop, test_pay, tally\nshop.pay()\n",
        "benchmarks/tally.py": "WORK = 'work.yaml'\n",
        "benchmarks/work.yaml": "",
        "benchmarks/look.py": "COMMAND = '-m', 'shop.cli.main', 'open'\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def behind(project: Path, script: str) -> set[str]:
    return {str(path.relative_to(project)) for path in Sources(project).behind(script)}


def test_imports_and_data_are_followed_and_nothing_else(project: Path) -> None:
    assert behind(project, "pay.py") == {
        "benchmarks/pay.py",
        "benchmarks/tally.py",
        "benchmarks/work.yaml",
        "src/shop/__init__.py",
        "src/shop/stock/__init__.py",
        "src/shop/stock/count.py",
        "src/shop/stock/prices.yaml",
        "src/shop/till/__init__.py",
        "src/shop/till/pay.py",
        "tests/till/test_pay.py",
    }


def test_a_command_counts_if_the_script_says_its_name(project: Path) -> None:
    assert behind(project, "look.py") == {
        "benchmarks/look.py",
        "src/shop/__init__.py",
        "src/shop/cli/__init__.py",
        "src/shop/cli/main.py",
        "src/shop/cli/window.py",
        "src/shop/till/__init__.py",
        "src/shop/till/window.py",
    }


def test_only_a_change_of_its_sources_makes_a_campaign_stale(project: Path) -> None:
    def digests() -> tuple[str, str]:
        sources = Sources(project)
        return sources.digest("pay.py"), sources.digest("look.py")

    pay, look = digests()
    assert digests() == (pay, look)
    window = project / "src/shop/till/window.py"
    window.write_text('"""What is said about it."""\n\n# A remark.\n')
    assert digests() == (pay, look)
    window.write_text("changed = 1")
    assert digests()[0] == pay
    assert digests()[1] != look
    (project / "src/shop/stock/prices.yaml").write_text("a: 2")
    assert digests()[0] != pay


@pytest.fixture(scope="module")
def sources() -> Sources:
    """Reads each file of the project once."""
    return Sources()


def test_a_safety_campaign_depends_on_what_it_runs(sources: Sources) -> None:
    reached = {str(path.relative_to(ROOT)) for path in sources.behind("safety.py")}
    assert {"tests/adversary/guard_play.py", "src/sopilot/proof/guard.py"} <= reached
    assert not [path for path in reached if "/cli/" in path or "/web/" in path or "_lab" in path]
    conformance = {path.name for path in sources.behind("mcp_conformance.py")}
    assert {"everything_upstream.py", "serve.py"} <= conformance


def test_documents_mark_stale_evidence(sources: Sources) -> None:
    names = {name for name in {n.partition("/")[0] for n in CAMPAIGNS} if stale(name, sources)}
    for document in documents():
        text = document.read_text("utf-8")
        current = set(re.findall(r"`evidence/([\w-]+)\.json`(?! \(stale\))", text))
        cure = "run `python benchmarks/evidence.py --documents`"
        assert not current & names, f"{document.name} cites stale evidence as current: {cure}"


def test_a_mark_comes_and_goes() -> None:
    text = "a (`evidence/frames.json`), b `evidence/tamper.json` (stale)."
    assert (
        marked(text, {"frames"}) == "a (`evidence/frames.json` (stale)), b `evidence/tamper.json`."
    )
    assert marked(marked(text, {"tamper"}), {"tamper"}) == text
