"""A module whose name begins with an underscore belongs to its room alone."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"
LONGEST_FILE = 400
FOLDERS = ("src", "benchmarks", "examples")
TESTS = ("tests", 600)
MOST_LINES_OF_COMMANDS = 3_500
ROOM_DEPTH = 3
"""`sopilot.wing.room`; a wing's own modules are a room by themselves."""


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> tuple[str, ...]:
    return tuple(module.split(".")[:ROOM_DEPTH])


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{each.name}", node.lineno) for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.name, node.lineno) for each in node.names)


def trespasses(module: str, text: str) -> list[str]:
    return [
        f"{module}:{line} imports {name}"
        for name, line in imported(ast.parse(text))
        if name.startswith("sopilot.")
        and any(part.startswith("_") for part in name.split(".")[ROOM_DEPTH:])
        and room_of(name) != room_of(module)
        and (SOURCES / Path(*name.split("."))).with_suffix(".py").exists()
    ]


def test_no_room_reaches_into_another() -> None:
    found = [
        line
        for path in SOURCES.rglob("*.py")
        for line in trespasses(module_name(path), path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_trespass_is_seen() -> None:
    private = next(
        module_name(path)
        for path in SOURCES.rglob("_*.py")
        if path.name != "__init__.py" and len(path.relative_to(SOURCES).parts) > ROOM_DEPTH
    )
    package, _, name = private.rpartition(".")
    assert trespasses("sopilot.doors.cli.main", f"from {package} import {name}\n")
    assert trespasses("sopilot.doors.cli.main", f"from {private} import anything\n")
    assert trespasses(private, f"from {private} import anything\n") == []


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


def test_no_document_sends_people_into_a_private_module() -> None:
    root = SOURCES.parent
    documents = [
        *root.glob("*.md"),
        *(root / "docs").rglob("*.md"),
        *(root / "examples").rglob("*.py"),
    ]
    private = re.compile(r"sopilot(?:\.[a-z]\w*)*\._[a-z]\w*")
    found = {
        f"{path.relative_to(root)}: {name}"
        for path in documents
        for name in private.findall(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_no_file_is_longer_than_one_sitting() -> None:
    root = SOURCES.parent
    long = {
        str(path.relative_to(root)): lines
        for folder, longest in (*((one, LONGEST_FILE) for one in FOLDERS), TESTS)
        for path in (root / folder).rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > longest
    }
    assert long == {}


def test_commands_stay_options_printing_and_wiring() -> None:
    """What else a command needs stands in a room of the library, where others can use it."""
    commands = (SOURCES / "sopilot" / "doors" / "cli").glob("*.py")
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in commands)
    assert lines <= MOST_LINES_OF_COMMANDS


def test_no_two_files_of_tests_have_one_name() -> None:
    """The folders are no packages: of two with one name only one can be loaded."""
    names = Counter(file.name for file in (SOURCES.parent / "tests").rglob("test_*.py"))
    assert [name for name, files in names.items() if files > 1] == []
