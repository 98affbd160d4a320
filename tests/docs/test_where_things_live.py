"""Where things live: one definition of each, and every test module by its own name."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"


def test_json_is_a_type_and_is_defined_once() -> None:
    said = [
        line.strip()
        for path in sorted(SOURCES.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*JSON(: TypeAlias)? = ", line)
    ]

    assert len(said) == 2, "what a type checker reads, and what there is at run time"
    assert said[0].startswith("JSON: TypeAlias = ")
    assert "Any" not in said[0]


def test_a_library_that_reads_annotations_as_it_runs_reads_json() -> None:
    from pydantic import TypeAdapter

    from sopilot import ToolSchema

    read = TypeAdapter(ToolSchema).validate_python(
        {"name": "a", "description": "b", "parameters": {"type": ["object", {"x": [None, 1.5]}]}}
    )
    assert read.parameters["type"] == ["object", {"x": [None, 1.5]}]


def test_no_two_files_of_tests_have_one_name() -> None:
    """The folders are no packages: of two with one name only one can be loaded."""
    names = Counter(file.name for file in (SOURCES.parent / "tests").rglob("test_*.py"))
    assert [name for name, files in names.items() if files > 1] == []
