"""Documents name only modules, functions and files that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = (ROOT, ROOT / "src", ROOT / "src" / "sopilot", ROOT / "benchmarks", ROOT / "tests")
DOCUMENTS = sorted(
    (*ROOT.glob("design/*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "CONTRIBUTING.md")
)
FILE = re.compile(r"`((?:[\w-]+/)+[\w-]+\.py)`")
DOTTED = re.compile(r"`(sopilot(?:_lab)?(?:\.(?!toml)\w+)+)`")
NAME = re.compile(r"`([A-Za-z]\w*_\w+|(?:[A-Z][a-z]+){2,})(?:\([^`]*\))?`")
"""Identifiers that can't be mistaken for words: snake case, and camel case with two parts."""


def resolves(dotted: str) -> bool:
    """A package, a module, or a name that a module defines."""
    parts = dotted.split(".")
    folder = ROOT / "src"
    for at, part in enumerate(parts):
        if (folder / part).is_dir():
            folder = folder / part
            continue
        module = folder / f"{part}.py"
        inner = parts[at + 1 :] if module.exists() else parts[at:]
        source = module if module.exists() else folder / "__init__.py"
        if len(inner) == 0:
            return True
        tree = ast.parse(source.read_text(encoding="utf-8"))
        names = {
            getattr(node, "name", None) or getattr(node, "id", None) for node in ast.walk(tree)
        }
        return inner[0] in names
    return True


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    missing = [
        name for name in FILE.findall(text) if not any((place / name).exists() for place in PLACES)
    ] + [name for name in DOTTED.findall(text) if not resolves(name)]
    assert missing == []


@pytest.fixture(scope="module")
def words() -> frozenset[str]:
    """Every word of the source and of the benchmarks."""
    files = (
        file
        for folder in ("src", "benchmarks")
        for ending in ("py", "yaml", "json")
        for file in (ROOT / folder).rglob(f"*.{ending}")
    )
    return frozenset(
        word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("page", sorted(ROOT.glob("design/*.md")), ids=lambda path: path.name)
def test_a_design_page_names_only_what_the_source_has(page: Path, words: frozenset[str]) -> None:
    named = set(NAME.findall(page.read_text(encoding="utf-8")))
    assert sorted(named - words) == []
