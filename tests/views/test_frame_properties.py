"""What frames say is what programs do, for any handbook. All of SOPBench's programs:
``python benchmarks/frames.py``."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_handbooks import handbooks

from frames import problems
from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.model import Handbook
from sopilot.messages.scaffold import LANGUAGES
from sopilot.program.model import Always, Check, Every, Function, Holds, Kind, ReturnStep, Some
from sopilot.views.frame import render_function


def _holds(handbook: Handbook) -> None:
    held: Counter[str] = Counter()
    program = compile_procedure(handbook, "goal").program
    for language in LANGUAGES:
        assert list(problems(program, language, held)) == []


@settings(deadline=None, max_examples=40)
@given(handbooks())
def test_frames_of_any_handbook_say_what_it_means(handbook: Handbook) -> None:
    _holds(_plainly_worded(handbook))


@pytest.mark.slow
@settings(deadline=None, max_examples=3500)
@given(handbooks())
def test_frames_of_any_handbook_say_what_it_means_at_length(handbook: Handbook) -> None:
    _holds(_plainly_worded(handbook))


def _plainly_worded(handbook: Handbook) -> Handbook:
    """Two sentences that nobody can mistake for each other, for every second predicate only.
    The sentence of a deed speaks of its call, so a reader takes it for a move."""
    predicates = {
        name: replace(
            predicate,
            says=f"{name} is so {' '.join(f'{{{one}}}' for one in predicate.parameters)} now.",
            says_not=f"{name} is otherwise for {{limit}} now." if index % 2 else "",
            tool_free=predicate.tool_free or predicate.done is not None,
            done=None,
        )
        for index, (name, predicate) in enumerate(handbook.predicates.items())
    }
    actions = {name: replace(one, offered=True) for name, one in handbook.actions.items()}
    return replace(handbook, actions=actions, predicates=predicates)


SLOTS = ("a", "b", "c")
CONDITIONS = st.recursive(
    st.builds(Holds, st.sampled_from(SLOTS), st.booleans()) | st.builds(Always, st.booleans()),
    lambda inner: (
        st.builds(Every, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(Some, st.lists(inner, min_size=1, max_size=3).map(tuple))
    ),
    max_leaves=6,
)


@st.composite
def groups(draw: st.DrawFn) -> Function:
    """Checks that jump forward as they like, written by hand."""
    labels = [*SLOTS, "yes", "no", "result"]
    steps: list[Check | ReturnStep] = []
    for position, slot in enumerate(SLOTS):
        ahead = st.none() | st.sampled_from(labels[position + 1 :])
        steps.append(Check(slot, slot, (), slot, draw(st.booleans()), draw(ahead), draw(ahead)))
    # Every slot that the last condition reads must be bound on the way there.
    asked = all(
        step.met is None and step.unmet is None for step in steps if isinstance(step, Check)
    )
    value = draw(CONDITIONS) if asked else Always(draw(st.booleans()))
    steps += [
        ReturnStep("result", value),
        ReturnStep("yes", Always(True)),
        ReturnStep("no", Always(False)),
    ]
    return Function("some_group", Kind.GROUP, (), tuple(steps))


@settings(deadline=None, max_examples=300)
@given(groups())
def test_the_sentence_of_a_group_has_its_truth_table(group: Function) -> None:
    from frames import truth_table

    program = compile_procedure(_ANY, "goal").program
    held: Counter[str] = Counter()
    for language in LANGUAGES:
        lines = render_function(group, program, language).splitlines()
        assert list(truth_table(group, lines, language, held)) == []
    assert held["rows of truth tables"] == 2 * 2 ** len(SLOTS)


def _any_handbook() -> Handbook:
    from sopilot.handbook.model import Action, Procedure

    return Handbook(
        "any", actions={"goal": Action("goal")}, procedures={"goal": Procedure("goal", "goal")}
    )


_ANY = _any_handbook()


def test_the_reader_notices_what_is_wrong() -> None:
    """The properties can fail: words that say the opposite, twice, or what the machine does."""
    from frames import machine_moves, truth_table, twice

    group = Function(
        "g",
        Kind.GROUP,
        (),
        (
            Check("a", "a", (), "a"),
            Check("b", "b", (), "b"),
            ReturnStep("r", Some((Holds("a"), Holds("b")))),
        ),
    )
    held: Counter[str] = Counter()
    assert list(truth_table(group, ["True if: a and b"], "en", held))
    assert list(truth_table(group, ["For: one of these must hold"], "en", held))
    assert not list(truth_table(group, ["True if: a or b"], "en", held))
    program = compile_procedure(_ANY, "goal").program
    assert list(machine_moves(group, program, ["  a: call a(); must be true"], "en", held))
    ways = ["  verify: tool look(x)", "    or instead: read(x)", "    or instead: read(x)"]
    assert list(twice(group, program, ways, held))
