"""The probe: cursors of real sessions, what is shown of them, how answers are graded."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace

import pytest
from gate_records import perfect
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.program.model import Program
from sopilot.protocols import ModelReply, ToolCall
from sopilot.tasks.task import Task
from sopilot.values.json import JSON
from sopilot_lab.qualification.plan import RehearsedCases
from sopilot_lab.qualification.probe import (
    Cursor,
    answer_text,
    grade,
    probe_request,
    probe_score,
    scores_by_depth,
    spread,
)
from sopilot_lab.sopbench.tasks import own_references


@pytest.fixture(scope="module")
def cursors(rehearsal: RehearsedCases) -> list[Cursor]:
    return spread(rehearsal.cursors, 40)


def program_of(cursor: Cursor, cases: list[Task]) -> Program:
    case = next(case for each, case in own_references(cases).items() if str(each) == cursor.case)
    return case.briefing.programs[cursor.goal]


def test_cursors_reach_every_depth(cursors: list[Cursor]) -> None:
    assert {cursor.depth for cursor in cursors} == {1, 2, 3}
    assert len({(c.function, c.step, c.callers) for c in cursors}) == len(cursors) == 40
    assert any(cursor.results for cursor in cursors)
    operations = {operation for c in cursors for operation, _ in c.licensed}
    assert operations >= {"call", "tool", "ask", "return"}


def test_a_perfect_reconstruction_scores_one(cursors: list[Cursor]) -> None:
    for cursor in cursors:
        found = grade(cursor, json.dumps(perfect(cursor)))
        assert (found.score, found.localised, found.whole) == (1.0, True, True)
        fenced = f"```json\n{json.dumps(perfect(cursor))}\n```"
        assert grade(cursor, fenced).score == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"function": "nothing"},
        {"step": "nothing"},
        {"results": {"nothing": True}},
        {"results": None, "callers": "nothing"},
        {"callers": ["nothing"]},
        {"next": {"operation": "call", "name": "nothing"}},
        {"next": {"operation": "nothing", "name": ""}},
        {"next": "call"},
        {"next": {"operation": "call", "name": ["f"]}},
        {"next": {"operation": {"call": "f"}, "name": ""}},
    ],
)
def test_each_error_scores_below_one(cursors: list[Cursor], wrong: dict[str, JSON]) -> None:
    for cursor in cursors:
        found = grade(cursor, json.dumps({**perfect(cursor), **wrong}))
        assert 0.0 <= found.score < 1.0
        assert found.localised is not bool({"function", "step"} & set(wrong))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
PARTS = dict.fromkeys(("function", "step", "results", "callers"), ANYTHING)
NEXT = st.fixed_dictionaries({}, optional={"operation": ANYTHING, "name": ANYTHING})


@settings(deadline=None)
@given(answer=ANYTHING | st.fixed_dictionaries({}, optional={**PARTS, "next": ANYTHING | NEXT}))
def test_whatever_json_can_be_is_graded(cursors: list[Cursor], answer: JSON) -> None:
    for cursor in cursors[::10]:
        assert 0.0 <= grade(cursor, json.dumps(answer)).score < 1.0


def test_turned_missing_and_surplus_results_score_below_one(cursors: list[Cursor]) -> None:
    cursor = next(one for one in cursors if len(one.results) > 1)
    slot = next(iter(cursor.results))
    for results in (
        {**cursor.results, slot: not cursor.results[slot]},
        {name: holds for name, holds in cursor.results.items() if name != slot},
        {**cursor.results, "another": True},
        {**cursor.results, slot: 1},
    ):
        assert grade(cursor, json.dumps({**perfect(cursor), "results": results})).score < 1.0


def test_callers_in_the_wrong_order_are_wrong(cursors: list[Cursor]) -> None:
    cursor = next(one for one in cursors if one.depth == 3)
    answer = {**perfect(cursor), "callers": list(reversed(cursor.callers))}
    assert grade(cursor, json.dumps(answer)).callers == 0.0


def test_the_prompt_says_no_position(cursors: list[Cursor], few_cases: list[Task]) -> None:
    """Neither a place nor the machine's answers, and nothing a grader would take as an answer."""
    for cursor in cursors:
        request = probe_request(cursor, program_of(cursor, few_cases))
        text = "\n".join(message.content for message in request.messages)
        history = request.messages[1].content
        assert "@" not in history
        assert "/".join((*cursor.callers, cursor.function)) not in text or not cursor.callers
        assert not re.search(rf"\b{cursor.step}\b", history)
        assert "fits" not in history


def test_copying_the_prompt_satisfies_nobody(cursors: list[Cursor], few_cases: list[Task]) -> None:
    for cursor in cursors:
        request = probe_request(cursor, program_of(cursor, few_cases))
        whole = "\n".join(message.content for message in request.messages)
        objects = re.findall(r"\{[^{}]*\}", whole)
        for copied in (whole, request.messages[0].content, cursor.history[-1], *objects):
            found = grade(cursor, copied)
            assert found.score < 0.5
            assert not found.localised


def test_listing_everything_or_the_last_words_is_no_reconstruction(
    cursors: list[Cursor], few_cases: list[Task]
) -> None:
    """The best copying strategies: everything at once; the names that stand last."""
    everything, last = [], []
    chance = random.Random(27)
    for cursor in cursors:
        program = program_of(cursor, few_cases)
        steps = [(f.name, s.label) for f in program.functions.values() for s in f.steps]
        names = list(program.functions)
        answer: dict[str, JSON] = {
            "function": ", ".join(names),
            "step": ", ".join(label for _, label in steps),
            "results": dict.fromkeys(names, True),
            "callers": names,
            "next": {"operation": "call, tool, return", "name": ", ".join(names)},
        }
        everything.append(grade(cursor, json.dumps(answer)))
        spoken = [n for n in names if any(f" {n}(" in line for line in cursor.history)]
        function = spoken[-1] if spoken else names[0]
        labels = [label for name, label in steps if name == function]
        answer = {
            "function": function,
            "step": chance.choice(labels),
            "results": {},
            "callers": spoken[:-1],
            "next": {"operation": "call", "name": function},
        }
        last.append(grade(cursor, json.dumps(answer)))
    assert max(one.score for one in everything) < 0.34
    localised = sum(one.localised for one in last) / len(last)
    assert localised < 0.5
    assert not any(one.whole for one in last)


@pytest.mark.parametrize("text", ["", "no idea", "[]", "3", '{"function": ', "{} {}", "[" * 9_000])
def test_no_answer_scores_nothing(cursors: list[Cursor], text: str) -> None:
    for cursor in cursors[:5]:
        found = grade(cursor, text)
        assert (found.score, found.answered) == (0.0, False)
    assert {grade(cursor, "{}").score for cursor in cursors} == {0.0}


def test_the_report_tool_is_an_answer() -> None:
    call = ToolCall("1", "report_position", '{"function": "f"}')
    assert answer_text(ModelReply("said", (call,))) == '{"function": "f"}'
    assert answer_text(ModelReply("said", (call, replace(call, id="2")))) == "said"
    assert answer_text(ModelReply("said")) == "said"


def test_scores_by_depth(cursors: list[Cursor]) -> None:
    deep = [one.depth == 3 for one in cursors]
    grades = [
        grade(one, "{}" if wrong else json.dumps(perfect(one)))
        for one, wrong in zip(cursors, deep, strict=True)
    ]
    depths = scores_by_depth(grades)
    assert (depths[1].localisation, depths[3].localisation, depths[3].score) == (1.0, 0.0, 0.0)
    assert probe_score(grades).localisation == pytest.approx(1 - sum(deep) / len(deep))
    assert probe_score([]).questions == 0
