"""A campaign that is run once in a while finds what it imports from the product."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    "script", sorted(BENCHMARKS.rglob("*.py")), ids=lambda path: str(path.relative_to(BENCHMARKS))
)
def test_what_a_script_imports_is_there(script: Path) -> None:
    for node in ast.parse(script.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("sopilot"):
            continue
        module = import_module(node.module or "")
        for alias in node.names:
            if not hasattr(module, alias.name):
                import_module(f"{node.module}.{alias.name}")
