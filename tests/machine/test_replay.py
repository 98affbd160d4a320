"""Events made again, one by one: with withheld values, with contradictions, under any limits."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from vm_programs import PROGRAMS
from vm_runs import ARGUMENTS, Run, decided

from sopilot.machine.layout import Limits
from sopilot.machine.replay import Replay, Step
from sopilot.trace.events import Complete, Event, SelectBranch, Start
from sopilot.trace.redaction import redact


def carried_out() -> Run:
    run = decided()
    run.ok(SelectBranch())
    run.tool("transfer", True, **ARGUMENTS)
    run.ok(Complete("done"))
    return run


def replayed(events: list[Event]) -> tuple[Replay, list[Step]]:
    replay = Replay(PROGRAMS)
    return replay, [replay.step(event) for event in events]


@pytest.mark.parametrize("names", [(), ("username",), ("amount", "to"), ("password", "username")])
def test_an_honest_trace_differs_nowhere_whatever_is_withheld(names: tuple[str, ...]) -> None:
    run = carried_out()
    events = [redact(event, names=frozenset(names))[0] for event in run.events]
    replay, steps = replayed(events)
    assert [step.difference for step in steps] == [""] * len(events)
    assert all(one.after is other.before for one, other in pairwise(steps))
    made = run.configuration.processes["p1"]
    again = replay.configuration.processes["p1"]
    assert (again.status, again.ending, again.steps) == (made.status, made.ending, made.steps)


def test_a_value_that_is_withheld_in_one_place_alone_contradicts_nothing() -> None:
    run = carried_out()
    call = next(one for one in run.events if one.kind == "domain_call")
    hidden = redact(call, names=frozenset({"username"}))[0]
    events = [hidden if one is call else one for one in run.events]
    _, steps = replayed(events)
    assert not any(step.difference for step in steps)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("call", {"resolved": {"username": "eve"}}),
        ("call", {"slot": "other"}),
        ("return", {"opened": 99}),
        ("domain_result", {"moved": "elsewhere"}),
        ("select_branch", {"target": "refuse"}),
        ("complete", {"accepting": 1}),
    ],
)
def test_what_the_program_does_not_make_is_a_difference(kind: str, changed: Any) -> None:
    run = carried_out()
    event = next(one for one in run.events if one.kind == kind)
    forged = event._replace(payload={**event.payload, **changed})
    replay, steps = replayed([forged if one is event else one for one in run.events])
    assert [step.event.seq for step in steps if step.difference] == [event.seq]
    assert replay.configuration.active is None


def test_the_limits_of_a_session_are_not_the_replay_s() -> None:
    run = Run(PROGRAMS, Limits(depth=100))
    for number in range(70):
        run.ok(Start("errand", {"what": str(number)}))
    _, steps = replayed(run.events)
    assert not any(step.difference for step in steps)
