"""Every rendering quotes the same sentences, byte for byte, in every language."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from random_handbooks import handbooks, random_handbook

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.grammar import in_language
from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.requirements import leaves
from sopilot.handbook.wording import sentence
from sopilot.messages.scaffold import LANGUAGES
from sopilot.program.model import Kind
from sopilot.views.official import (
    render_official,
    render_official_code,
    render_official_recipes,
    requirements,
)
from sopilot.views.program_text import compare, correspondence, render_flat, render_prose
from sopilot.views.quoting import Rendered

SMALL = load_handbook((Path(__file__).parent / "small.yaml").read_text(encoding="utf-8"))


def _sentences(rendered: Rendered) -> list[str]:
    return [rendered.text[quote.start : quote.end] for quote in rendered.quotes]


def test_counts_of_the_small_handbook() -> None:
    program = compile_procedure(SMALL, "redirect").program
    result = correspondence(SMALL, SMALL.procedures["redirect"], program)
    assert result.mismatches == ()
    # 8 leaves of the goal, 1 of the other goal, 2 of guarded actions; 1 hoisted login.
    assert (result.leaves, result.checks) == (11, 9)
    assert result.compared == len(LANGUAGES) * 3 * (11 + 9)


@settings(deadline=None, max_examples=35)
@given(handbooks())
@example(random_handbook(770))  # requirements that contradict each other
@example(random_handbook(2136))  # null for an optional parameter
def test_renderings_of_any_handbook_correspond(handbook: Handbook) -> None:
    _renderings_correspond(handbook)


@pytest.mark.slow
@settings(deadline=None, max_examples=1000)
@given(handbooks())
def test_renderings_of_any_handbook_correspond_at_length(handbook: Handbook) -> None:
    _renderings_correspond(handbook)


def _renderings_correspond(handbook: Handbook) -> None:
    compiled = compile_procedure(handbook, "goal")
    program, procedure = compiled.program, handbook.procedures["goal"]
    assert correspondence(handbook, procedure, program).mismatches == ()
    for language in LANGUAGES:
        official = [
            in_language(sentence(handbook, leaf), language)
            for _, tree in requirements(handbook, procedure)
            for leaf in leaves(tree)
        ]
        assert _sentences(render_official(handbook, procedure, language)) == official
        assert _sentences(render_official_code(handbook, procedure, language)) == official
        prose = render_prose(program, language)
        assert _sentences(render_flat(program, language)) == _sentences(prose)
    # Each predicate that the program checks is quoted with the values of one of its leaves. A
    # leaf behind requirements that contradict each other decides nothing, and isn't quoted.
    quoted = set(_sentences(render_flat(program)))
    checked = {function.judges for function in program.functions.values()}
    said: dict[str, set[str]] = {}
    for leaf in leaves(compiled.explanation.tree):
        other = type(leaf)(leaf.predicate, leaf.arguments, not leaf.wanted)
        both = {str(sentence(handbook, leaf)), str(sentence(handbook, other))}
        said.setdefault(leaf.predicate, set()).update(both)
    assert [name for name, texts in said.items() if name in checked and not quoted & texts] == []


@settings(deadline=None, max_examples=20)
@given(handbooks())
def test_recipes_are_appended_to_the_unmodified_text(handbook: Handbook) -> None:
    procedure = handbook.procedures["goal"]
    official = render_official(handbook, procedure)
    assert render_official_recipes(handbook, procedure).text.startswith(official.text)


def test_a_changed_byte_a_lost_and_an_added_leaf_are_found() -> None:
    rendered = render_official(SMALL, SMALL.procedures["redirect"])
    expected = [(quote.owner, quote.sentence) for quote in rendered.quotes]
    assert compare("x", expected, rendered) == []
    third = rendered.quotes[2]
    changed = rendered.text[: third.start] + "t" + rendered.text[third.start + 1 :]
    found = compare("x", expected, Rendered(changed, rendered.quotes))
    assert [(one.position, one.actual) for one in found] == [(2, "t" + third.sentence[1:])]
    lost = compare("x", expected, Rendered(rendered.text, rendered.quotes[:-1]))
    assert [(one.position, one.actual) for one in lost] == [(len(expected) - 1, None)]
    added = compare("x", expected[:-1], rendered)
    assert [(one.position, one.expected) for one in added] == [(len(expected) - 1, None)]
    moved = compare("x", [("other", expected[0][1]), *expected[1:]], rendered)
    assert [one.position for one in moved] == [0]


def test_a_program_holds_its_author_s_words_alone() -> None:
    """What the compiler would say is a word of the scaffold, which has it in every language: so
    an author's sentence that happens to be spelled like one is never taken for it."""
    for name in SMALL.procedures:
        for function in compile_procedure(SMALL, name).program.functions.values():
            assert function.kind is not Kind.GROUP or not function.says
            assert [step for step in function.steps if getattr(step, "says", "")] == []
