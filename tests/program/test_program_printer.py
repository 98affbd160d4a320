"""Golden listings. ``SOPILOT_REGOLD=1`` rewrites them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sopilot.program.codec import program_from_yaml, program_to_yaml
from sopilot.program.model import Always, Condition, Every, Holds, Some
from sopilot.program.printer import print_condition, print_program

CASES = sorted((Path(__file__).parent / "listings").glob("*.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_listing(case: Path) -> None:
    listing = print_program(program_from_yaml(case.read_text(encoding="utf-8"), case.name))
    golden = case.with_suffix(".txt")
    if os.environ.get("SOPILOT_REGOLD"):
        golden.write_text(listing, encoding="utf-8")
    assert listing == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_the_files_are_in_the_form_the_writer_gives(case: Path) -> None:
    text = case.read_text(encoding="utf-8")
    assert program_to_yaml(program_from_yaml(text)) == text


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Holds("a"), "a"),
        (Holds("a", False), "not a"),
        (Every((Holds("a"), Some((Holds("b"), Holds("c", False))))), "a and (b or not c)"),
        (Some((Every((Holds("a"),)), Always(True))), "a or always"),
        (Every(()), "always"),
        (Some(()), "never"),
    ],
)
def test_conditions_in_words(condition: Condition, words: str) -> None:
    assert print_condition(condition) == words
