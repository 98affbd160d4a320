"""Proof that renderings quote the same sentences of the SOP, byte for byte.

The official family (text, code, text with recipes) must quote the handbook's
leaves one by one in the same order; the compiled family (whole program, prose,
the frames of all functions) the program's checks. Both hold in every language.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sopilot.language.handbook import Handbook, Procedure, leaves, sentence
from sopilot.language.handbook.translated import in_language
from sopilot.language.program import Check, Program
from sopilot.language.render._flat import reading_order, render_flat
from sopilot.language.render._official import render_official, requirements
from sopilot.language.render._official_code import render_official_code
from sopilot.language.render._official_recipes import render_official_recipes
from sopilot.language.render._prose import render_prose
from sopilot.language.render._quoted import Quote, Rendered
from sopilot.language.render._scaffold import LANGUAGES
from sopilot.language.render.frame import rendered_function
from sopilot.language.render.sentences import check_saying


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Leaf number ``position`` of a rendering is not what the source says."""

    rendering: str
    position: int
    expected: str | None
    found: str | None

    def __str__(self) -> str:
        expected = "nothing" if self.expected is None else f"`{self.expected}`"
        found = "nothing" if self.found is None else f"`{self.found}`"
        return f"{self.rendering}, leaf {self.position + 1}: expected {expected}, found {found}"


@dataclass(frozen=True, slots=True)
class Correspondence:
    """``leaves`` sentences of the official text and ``checks`` of the program were compared
    in every rendering that quotes them, ``compared`` comparisons in all."""

    leaves: int
    checks: int
    compared: int
    mismatches: tuple[Mismatch, ...]


def correspondence(
    handbook: Handbook, procedure: Procedure | str, program: Program
) -> Correspondence:
    """Compare every rendering with its source."""
    if isinstance(procedure, str):
        procedure = handbook.procedures[procedure]
    compared = 0
    mismatches: list[Mismatch] = []
    for language in LANGUAGES:
        official = [
            (action, in_language(sentence(handbook, leaf), language))
            for action, tree in requirements(handbook, procedure)
            for leaf in leaves(tree)
        ]
        checks = list(_checked(program, language))
        for name, expected, rendered in (
            ("official", official, render_official(handbook, procedure, language)),
            ("official-code", official, render_official_code(handbook, procedure, language)),
            ("official-recipes", official, render_official_recipes(handbook, procedure, language)),
            ("flat", checks, render_flat(program, language)),
            ("prose", checks, render_prose(program, language)),
            ("frames", checks, _all_frames(program, language)),
        ):
            compared += len(expected)
            mismatches += compare(f"{name} ({language})", expected, rendered)
    return Correspondence(len(official), len(checks), compared, tuple(mismatches))


def _checked(program: Program, language: str) -> Iterator[tuple[str, str]]:
    for function in reading_order(program):
        for step in function.steps:
            if isinstance(step, Check):
                saying = check_saying(step, program, language)
                if saying is not None and saying.quoted:
                    yield step.function, saying.text


def compare(
    rendering: str, expected: Sequence[tuple[str, str]], rendered: Rendered
) -> list[Mismatch]:
    """``expected`` are (owner, sentence) in order; what the text really says is taken from
    the text, never from what its author meant to quote."""
    found = [(quote.owner, rendered.text[quote.start : quote.end]) for quote in rendered.quotes]
    mismatches = [
        Mismatch(rendering, position, wanted[1], got[1])
        for position, (wanted, got) in enumerate(zip(expected, found, strict=False))
        if wanted[0] != got[0] or wanted[1].encode() != got[1].encode()
    ]
    common = min(len(expected), len(found))
    mismatches += [
        Mismatch(rendering, common + extra, wanted[1], None)
        for extra, wanted in enumerate(expected[common:])
    ]
    mismatches += [
        Mismatch(rendering, common + extra, None, got[1])
        for extra, got in enumerate(found[common:])
    ]
    return mismatches


def _all_frames(program: Program, language: str) -> Rendered:
    """The frames of every function behind one another, as one rendering."""
    text = ""
    quotes: list[Quote] = []
    for function in reading_order(program):
        one = rendered_function(function, program, language)
        quotes += [
            Quote(q.start + len(text), q.end + len(text), q.sentence, q.owner) for q in one.quotes
        ]
        text += one.text
    return Rendered(text, tuple(quotes))
