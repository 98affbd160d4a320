"""Golden diagnostics. ``SOPILOT_REGOLD=1`` rewrites the expectations."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sopilot.handbook.reader import load_handbook, read_handbook
from sopilot.messages.diagnostic import Severity, render_diagnostics
from sopilot.messages.errors import UserMistake

MISTAKES = sorted((Path(__file__).parent / "mistakes").glob("*.yaml"))


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.stem)
def test_mistake(path: Path) -> None:
    data = path.read_bytes()
    handbook, diagnostics = read_handbook(data, path.name)
    said = render_diagnostics(diagnostics) + "\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("SOPILOT_REGOLD") == "1":
        golden.write_text(said, encoding="utf-8")
    assert said == golden.read_text(encoding="utf-8")
    errors = [one for one in diagnostics if one.severity is Severity.ERROR]
    assert (handbook is None) == bool(errors)
    for one in diagnostics:
        assert one.place.line >= 1
        assert one.place.column >= 1
        assert one.message[0] in '`"' or not one.message[0].isupper()
        assert not re.search(r"NoneType|\bdict\b|<class|Traceback", one.message)
    if errors:
        with pytest.raises(UserMistake) as caught:
            load_handbook(data, path.name)
        assert list(caught.value.diagnostics) == diagnostics


def test_every_code_is_pinned_by_a_case() -> None:
    """A diagnostic without a case may never be reported."""
    source = Path(__file__).parents[2] / "src" / "sopilot" / "handbook"
    raised = {
        word
        for path in source.glob("*.py")
        for line in path.read_text(encoding="utf-8").split("\n")
        for word in line.split('"')[1::2]
        if "report.error(" in line or "report.warning(" in line or "Problem(" in line
    }
    codes = {word for word in raised if word.replace("-", "").isalnum() and "-" in word}
    text = "".join(path.with_suffix(".txt").read_text(encoding="utf-8") for path in MISTAKES)
    elsewhere = {"not-utf8", "control-character", "file-too-large", "too-many-recipes"}
    assert {code for code in codes if f"[{code}]" not in text} <= elsewhere
    assert len(codes) >= 30
