"""What the reference executor reads from a text is what the text was rendered from."""

from __future__ import annotations

from dataclasses import replace

import pytest
from desk_runs import briefing_of
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.agent.reference.reading import active_frame, read_condition, read_functions, scan_call
from sopilot.messages.scaffold import words
from sopilot.program.model import (
    Always,
    Arguments,
    Branch,
    Condition,
    Every,
    Holds,
    Literal,
    Local,
    Some,
    Step,
    Unknown,
)
from sopilot.tasks.examples.example import bundled_names
from sopilot.views.frame import call_text, render_frame
from sopilot.views.program_text import render_flat
from sopilot.views.sentences import condition_text

LANGUAGES = ["en", "zh"]
names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("true", "false", "null", "not", "and", "or")
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.text(max_size=30))
terms = st.one_of(names.map(Local), names.map(Unknown), scalars.map(Literal))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("desk", bundled_names())
def test_whole_programs(desk: str, language: str) -> None:
    for program in briefing_of(desk).programs.values():
        text = render_flat(program, language).text
        read = {frame.function.name: frame.function for frame in read_functions(text)}
        assert list(read) == [f for f in read if f in program.functions]
        assert read.keys() == program.functions.keys()
        for name, function in program.functions.items():
            assert read[name].steps == tuple(map(_unsaid, function.steps))
            assert len(read[name].fallbacks) == len(function.fallbacks)


@pytest.mark.parametrize("language", LANGUAGES)
def test_frames_with_values(language: str) -> None:
    program = briefing_of("bank").programs["transfer"]
    known = {"username": 'o"; to = "x', "to": "後藤", "amount": 2.5}
    text = render_frame(program, "transfer", "act", {}, known, language)
    frame = active_frame(text)
    assert frame is not None
    assert frame.known == known
    assert frame.step is not None
    assert frame.step.label == "act"


@settings(deadline=None)
@given(
    name=names,
    arguments=st.lists(st.tuples(names, terms), max_size=4),
    language=st.sampled_from(LANGUAGES),
)
def test_calls(name: str, arguments: list[tuple[str, Local]], language: str) -> None:
    given_: Arguments = tuple(dict(arguments).items())
    text = call_text(name, given_, words(language))
    read, back, rest = scan_call(text + "; must be")
    assert (read, rest) == (name, "; must be")
    assert [p for p, _ in back] == [p for p, _ in given_]
    for (_, one), (_, other) in zip(back, given_, strict=True):
        assert _same_term(one, other)


conditions = st.recursive(
    st.one_of(st.builds(Holds, names, st.booleans()), st.builds(Always, st.booleans())),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Every(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Some(tuple(parts))),
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(condition=conditions, language=st.sampled_from(LANGUAGES))
def test_conditions(condition: Condition, language: str) -> None:
    table = words(language)
    assert read_condition(condition_text(condition, table), table) == condition


def _unsaid(step: Step) -> Step:
    return step if isinstance(step, Branch) else replace(step, says="")


def _same_term(one: object, other: object) -> bool:
    # Text that no reader can see is shown as an escape, which reads back as itself.
    return one == other or (isinstance(other, Literal) and isinstance(other.value, str))
