"""The audit's own reading of the proof, on sessions: grades, coverage, decisions, reading again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from counter_desk import COUNTER, ERRANDS, CountingTools, HandClock, walk
from counter_sessions import claim_every_check, opened, programs_of, replying
from small_desks import AnsweringTools
from sopilot.audit.audit import audit_trace
from sopilot.audit.report import Report
from sopilot.audit.text import render_text
from sopilot.handbook.expressions import judge
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.chain import SealedEvent
from sopilot.trace.events import Call, Event, Return, Start
from sopilot.trace.redaction import is_reference
from sopilot.views.step_answers import CallStatus

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
    await claim_every_check(session, "transfer")


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


def test_a_licence_that_names_other_leaves_is_found() -> None:
    _, session = audited(conform)
    other = {"grade": "proven", "leaves": [{"predicate": "small", "holds": True}, "nonsense"]}
    report = read_again(session, altered(session, "domain_call", licence=other))
    assert [one.code for one in report.findings] == ["guard-disagrees"]


def test_what_a_person_let_through_unproven_is_no_finding_about_proof() -> None:
    async def decided(session: Session, tools: CountingTools) -> None:
        await claim_everything(session, tools)
        await session.call_tool("transfer", TRANSFER, "c")
        await session.decide("approve", "c", by="dana", role="operator")
        assert (await session.run_held("c")).status is CallStatus.DONE

    report, session = audited(decided)
    (let_through,) = json.loads(json.dumps(report.as_json()))["overrides"]
    assert (let_through["action"], let_through["by"]) == ("transfer", ["dana"])
    assert any("`logged_in` must be true" in why for why in let_through["unproven"])
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


def test_without_a_judge_only_gates_are_compared() -> None:
    _, session = audited(conform)
    events = altered(session, "return", grade="perfect")
    assert len({one.predicate for one in read_again(session, events).findings}) > 1
    found = read_again(session, events, judge=None).findings
    assert {one.predicate for one in found if one.code == "guard-disagrees"} == {"logged_in"}


WIRE = ERRANDS["wire"]
TWO = ["approve:ann:supervisor", "approve:bo:auditor"]


async def approved(session: Session, tools: CountingTools) -> None:
    await walk(session, "wire", stop_at_action="wire")
    await session.call_tool("wire", WIRE, "w")
    for number in range(3):
        await session.decide("approve", "w", by=f"p{number}", role="supervisor")
    await session.decide("approve", "w", by="q", role="auditor")
    assert (await session.run_held("w")).status is CallStatus.DONE


@pytest.fixture(scope="module")
def wired() -> Session:
    return audited(approved)[1]


@pytest.mark.parametrize(
    ("decisions", "late", "found"),
    [
        (TWO, 0, ""),
        (TWO, 3600, ""),
        (TWO, 3601, "0 of 2"),
        ([], 0, "0 of 2"),
        (["approve:ann:supervisor", "approve:ANN :auditor"], 0, "1 of 2"),
        (["approve:ann:supervisor", "approve:bo:supervisor"], 0, "1 of 2"),
        (["approve:ann:supervisor", "approve:bo:supervisor", "approve:ann:officer"], 0, ""),
        (["approve:ann:supervisor", "approve:bo:clerk"], 0, "1 of 2"),
        (["approve:ann:supervisor", "approve::auditor"], 0, "1 of 2"),
        (["approve:ann:supervisor", "amend:bo:auditor"], 0, "1 of 2"),
        (["amend:bo:auditor", "approve:ann:supervisor"], 0, ""),
        ([*TWO, "reject:cy:officer"], 0, "was rejected"),
        ([*TWO, "expire::"], 0, "was expired"),
    ],
)
def test_who_had_approved_what_was_done(
    wired: Session, decisions: list[str], late: int, found: str
) -> None:
    """The decisions of a run exchanged for these: the audit counts people and roles itself."""
    left = list(decisions)
    events: list[Event] = []
    asked = 0.0
    for sealed in wired.events:
        event = sealed.event
        if event.payload.get("name") == "held_call":
            asked = event.at
        if event.kind == "decision":
            word, by, role = left.pop(0).split(":") if left else ("note", "", "")
            said = {"decision": word, "by": by, "role": role, "arguments": dict(WIRE)}
            event = event._replace(payload={**event.payload, **said}, at=asked)
        elif asked:
            event = event._replace(at=asked + late)
            if event.payload.get("name") == "held_call":
                event = event._replace(at=asked)
        events.append(event)
    told = [
        one.explanation
        for one in read_again(wired, events).findings
        if one.code.startswith("approval-")
    ]
    assert len(told) == bool(found)
    assert found in "".join(told)


CONFIRMED = programs_of("""
handbook: parcels
actions:
  scrap: {input: {box: string}, irreversible: true, confirm: "Box {box} will be destroyed."}
predicates:
  named(box): {says: N., verify: arguments, verdict: box != ''}
procedures:
  scrap: {requires: named(box)}
""")


@pytest.mark.parametrize("withheld", [False, True])
async def test_a_yes_is_a_message_that_the_user_sent_after_the_question(withheld: bool) -> None:
    """Also where the user's words are withheld from the reader."""
    kept = frozenset({"said"} if withheld else ())
    session = await opened(programs=CONFIRMED, settings=Settings(guard="auto", by_reference=kept))
    await replying(session, "yes")
    early = session.own_events[-1].seq
    assert (await session.call_tool("scrap", {"box": "b-1"})).status is CallStatus.DONE
    events = [sealed.event for sealed in session.events]
    assert read_again(session, events).clean
    [answer] = [event for event in events if "answer" in dict(event.payload.get("value") or {})]
    said: Any = answer.payload["value"]
    assert is_reference(said["said"]) is withheld
    forged = answer._replace(payload={**answer.payload, "value": {**said, "message": early}})
    report = read_again(session, [forged if item is answer else item for item in events])
    assert {finding.code for finding in report.findings} == {
        "guard-disagrees",
        "evidence-superseded",
    }


GATED = programs_of("""
handbook: tickets
actions:
  login: {input: {user: string}, changes: []}
  pay: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  known(user): {says: Known., established_by: login(user)}
procedures:
  pay: {requires: known(user)}
""")


@pytest.mark.parametrize("holds", [True, False, None])
@pytest.mark.parametrize(
    "answer",
    [{"status": "error"}, {"status": "fine"}, {"success": False}, {"result": True}],
    ids=str,
)
async def test_a_gate_whose_answer_is_withheld_is_not_judged(
    answer: dict[str, Any], holds: bool | None
) -> None:
    """Nobody is blamed for what a reader can't see, whatever the agent returned."""
    settings = Settings(by_reference=frozenset({"status", "success", "result"}))
    tools = AnsweringTools(lambda *_: answer)
    session = await opened(programs=GATED, tools=tools, settings=settings)
    for operation in (Start("pay", {"user": "u"}), Call()):
        await session.operate(operation)
    await session.call_tool("login", {"user": "u"}, "l")
    await session.operate(Return(undecided=True) if holds is None else Return(holds))
    await session.call_tool("pay", {"user": "u"}, "p")
    whole = read_again(session, session.own_events)
    withheld = read_again(session, [sealed.event for sealed in session.events])
    assert codes(withheld) <= codes(whole)


def codes(report: Any) -> set[str]:
    return {finding.code for finding in report.findings}
