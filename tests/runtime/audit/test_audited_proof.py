"""The audit's own reading of the proof, on sessions: grades, coverage, decisions, reading again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, go_on, next_move, walk
from sopilot.adapters.memory_store import MemoryStore
from sopilot.language.handbook.cel import judge
from sopilot.runtime.audit import Report, audit_trace
from sopilot.runtime.audit.text_report import render_text
from sopilot.runtime.session import CallStatus, Session, open_session
from sopilot.runtime.trace import SealedEvent
from sopilot.runtime.vm import Call, Event, Return, SelectBranch, Start

TRANSFER = ERRANDS["transfer"]


def audited(play: Callable[[Session, CountingTools], Awaitable[None]]) -> tuple[Report, Session]:
    async def case() -> Session:
        tools = CountingTools()
        session = await open_session(MemoryStore(), COUNTER, tools=tools, clock=HandClock())
        await play(session, tools)
        return session

    session = asyncio.run(case())
    return read_again(session, session.events), session


def read_again(session: Session, events: Any, **options: Any) -> Report:
    given = {"judge": judge, **options}
    return audit_trace(session.programs.programs, events, ended=False, **given)


async def claim_everything(session: Session, tools: CountingTools) -> None:
    await session.operate(Start("transfer", TRANSFER))
    for _ in range(100):
        move = next_move(session.machine, session.configuration)
        if isinstance(move, tuple):
            if move[0] == "transfer":
                return
            await session.operate(Return(True))
        else:
            assert isinstance(move, Call | Return | SelectBranch)
            await session.operate(move)


async def conform(session: Session, tools: CountingTools) -> None:
    await walk(session, "transfer")


def altered(session: Session, kind: str, **fields: Any) -> list[Event]:
    """The events with some fields of the payload of every one of a kind replaced."""
    found = []
    for sealed in session.events:
        event = sealed.event if isinstance(sealed, SealedEvent) else sealed
        if event.kind == kind and fields.keys() <= event.payload.keys():
            event = event._replace(payload={**event.payload, **fields})
        found.append(event)
    return found


def test_every_verdict_of_a_conforming_run_is_proven() -> None:
    report, _ = audited(conform)
    assert report.clean
    assert {check.grade for check in report.checks} == {"proven"}
    assert report.score_card.grades == {"proven": len(report.checks)}
    assert report.as_json()["score_card"]["grades"] == report.score_card.grades
    assert all(check["grade"] == "proven" for check in report.as_json()["checks"])


def test_coverage_is_never_complete_for_claims() -> None:
    report, _ = audited(claim_everything)
    assert report.score_card.evidence_coverage == 0.0
    assert "claimed" in report.score_card.grades
    shown = render_text(report)
    assert "evidence for 0 of the 3 that need it" in shown
    assert "(claimed)" in shown


@pytest.mark.parametrize(("recorded", "severity"), [("perfect", "error"), ("claimed", "warning")])
def test_a_grade_that_says_otherwise_is_found(recorded: str, severity: str) -> None:
    _, session = audited(conform)
    report = read_again(session, altered(session, "return", grade=recorded))
    assert {(one.code, str(one.severity)) for one in report.findings} == {
        ("guard-disagrees", severity)
    }


def test_a_licence_that_names_other_leaves_is_found() -> None:
    _, session = audited(conform)
    other = {"grade": "proven", "leaves": [{"predicate": "small", "holds": True}, "nonsense"]}
    report = read_again(session, altered(session, "domain_call", licence=other))
    assert [one.code for one in report.findings] == ["guard-disagrees"]


def test_a_call_that_no_guard_held_is_found_unproven() -> None:
    """The same events as those of a run whose guard lets everything through."""
    _, session = audited(conform)
    answered = [one.event for one in session.events if one.event.kind == "domain_result"]
    balance = next(one for one in answered if one.payload["action"] == "read_balance")
    events = [
        one.event
        if one.event.seq != balance.seq
        else balance._replace(payload={**balance.payload, "value": {"balance": 1}})
        for one in session.events
    ]
    report = read_again(session, events)
    at_the_act = [one for one in report.findings if "ran unproven" in one.explanation]
    assert [one.code for one in at_the_act] == ["evidence-contradicts-verdict"]
    assert at_the_act[0].predicate == "funds_cover"
    assert "guard-disagrees" in report.score_card.counts


def test_what_a_person_let_through_unproven_is_no_finding_about_proof() -> None:
    async def decided(session: Session, tools: CountingTools) -> None:
        await claim_everything(session, tools)
        await session.call_tool("transfer", TRANSFER, "c")
        await session.decide("approve", "c", by="dana", role="operator")
        assert (await session.run_held("c")).status is CallStatus.DONE

    report, session = audited(decided)
    assert not [one for one in report.findings if "ran unproven" in one.explanation]
    assert "guard-disagrees" not in report.score_card.counts
    # Without the decision it is one, whatever the record calls it.
    events = [one.event for one in session.events]
    nobody = [
        one._replace(payload={**one.payload, "by": ""}) if one.kind == "decision" else one
        for one in events
    ]
    found = [one for one in read_again(session, nobody).findings if "unproven" in one.explanation]
    assert found
    assert all(str(one.severity) == "error" for one in found)


def test_reading_again_at_the_act_is_no_violation() -> None:
    async def again(session: Session, tools: CountingTools) -> None:
        await walk(session, "transfer", stop_at_action="transfer")
        username = TRANSFER["username"]
        await session.call_tool("read_balance", {"username": username}, "again")
        await session.call_tool("find_account", {"username": "a stranger"}, "other")
        await go_on(session)

    report, _ = audited(again)
    assert [(one.code, one.details["action"]) for one in report.findings] == [
        ("unlicensed-call", "find_account")
    ]


def test_without_a_judge_only_gates_are_compared() -> None:
    _, session = audited(conform)
    events = altered(session, "return", grade="perfect")
    assert len({one.predicate for one in read_again(session, events).findings}) > 1
    found = read_again(session, events, judge=None).findings
    assert {one.predicate for one in found if one.code == "guard-disagrees"} == {"logged_in"}


def test_a_program_of_the_first_format_gets_a_note() -> None:
    _, session = audited(conform)
    old = {
        goal: replace(program, format=1, actions={}, types={})
        for goal, program in session.programs.programs.items()
    }
    report = audit_trace(old, session.events, judge=judge, ended=False)
    assert report.clean
    assert [one.code for one in report.findings] == ["old-format"]
