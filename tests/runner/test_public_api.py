"""What ``import sopilot`` offers: frozen, lazy, quick."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sopilot

LISTED = Path(__file__).with_name("public_api.txt")
DOCUMENTS = Path(__file__).parents[2] / "docs" / "how-to"


def signature(value: object) -> str:
    assert callable(value)
    text = str(inspect.signature(value, follow_wrapped=True)).replace("'", "")
    return re.sub(r"<function (\w+) at \w+>", r"\1", text)


def listed(name: str) -> list[str]:
    """The name with its signature, and the public members of a class of ours."""
    value = getattr(sopilot, name)
    if not inspect.isclass(value):
        return [f"{name}{signature(value)}"]
    lines = [f"class {name}"]
    for member in sorted(vars(value)):
        found = inspect.getattr_static(value, member)
        if member.startswith("_") or inspect.ismemberdescriptor(found):
            continue
        shown = signature(found) if inspect.isroutine(found) else ""
        lines.append(f"  {member}{shown}")
    if hasattr(value, "__dataclass_fields__"):
        lines += [f"  {field}:" for field in value.__dataclass_fields__]
    return lines


def test_the_public_names_are_as_they_were() -> None:
    text = "\n".join(line for name in sopilot.__all__ for line in listed(name)) + "\n"
    if os.environ.get("SOPILOT_REGOLD"):
        LISTED.write_text(text, encoding="utf-8")
    assert text == LISTED.read_text(encoding="utf-8")


def test_names_are_sorted_and_documented() -> None:
    assert sopilot.__all__ == sorted(sopilot.__all__)
    assert set(sopilot.__all__) <= set(dir(sopilot))
    pages = ("embed.md", "guard-functions.md")
    text = "".join((DOCUMENTS / page).read_text(encoding="utf-8") for page in pages)
    absent = [name for name in sopilot.__all__ if f"`{name}" not in text]
    assert absent == [], "the how-to pages show every public name"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute `serve`"):
        importlib.import_module("sopilot").serve  # noqa: B018 - reading it is the test


def best_milliseconds(code: str) -> float:
    """Of the processor: a busy machine makes nothing slower that way."""
    measure = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
    command = [sys.executable, "-c", measure]
    done = [subprocess.run(command, capture_output=True, check=True) for _ in range(5)]
    return min(float(one.stdout.split()[-1]) for one in done) * 1000


def test_the_import_is_lazy_and_quick() -> None:
    code = "import sys, sopilot; print(sorted(m for m in sys.modules if m.startswith('sopilot.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert best_milliseconds("import sopilot") <= 60


def test_help_is_instant() -> None:
    code = (
        "import contextlib, io, sopilot.cli.main as m\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    m.main(['--help'])\n"
    )
    assert best_milliseconds(f"exec({code!r})") <= 200


def test_a_library_that_reads_annotations_as_it_runs_reads_json() -> None:
    from pydantic import TypeAdapter

    read = TypeAdapter(sopilot.ToolSchema).validate_python(
        {"name": "a", "description": "b", "parameters": {"type": ["object", {"x": [None, 1.5]}]}}
    )
    assert read.parameters["type"] == ["object", {"x": [None, 1.5]}]
