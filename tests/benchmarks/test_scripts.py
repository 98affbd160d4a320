"""Every campaign imports, and takes the arguments with which the evidence is made."""

from __future__ import annotations

import argparse
import ast
import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from evidence import CAMPAIGNS

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    "script", sorted(BENCHMARKS.rglob("*.py")), ids=lambda path: str(path.relative_to(BENCHMARKS))
)
def test_imports_from_the_product_exist(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    # An import that failed may fall back on the layout of an old release.
    fallbacks = {node for handler in handlers for node in ast.walk(handler)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node in fallbacks:
            continue
        if not (node.module or "").startswith("sopilot"):
            continue
        module = import_module(node.module or "")
        for alias in node.names:
            if not hasattr(module, alias.name):
                import_module(f"{node.module}.{alias.name}")


class Parsed(Exception):
    """A campaign has read its arguments; it ends here."""


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_the_command_of_a_campaign_starts(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The script is executed as far as its arguments, which must all be known."""
    script, *arguments = CAMPAIGNS[name].command.split()
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(parser: argparse.ArgumentParser, *given: Any, **more: Any) -> Any:
        parse(parser, *given, **more)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
    monkeypatch.setattr(sys, "path", [str((BENCHMARKS / script).parent), *sys.path])
    filled = [part.format(file=tmp_path / f"{name}.json") for part in arguments]
    monkeypatch.setattr(sys, "argv", [script, *filled])
    with pytest.raises(Parsed):
        runpy.run_path(str(BENCHMARKS / script), run_name="__main__")


def test_the_smallest_run_of_proposition_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "small.json"
    monkeypatch.setattr(sys, "argv", ["proposition_1.py", "--cases", "20", "--json", str(file)])
    runpy.run_path(str(BENCHMARKS / "proposition_1.py"), run_name="__main__")
    assert '"differences": 0' in file.read_text("utf-8")
