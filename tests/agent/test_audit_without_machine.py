"""Views without a machine: their sessions are judged by calls and results, chain included."""

from __future__ import annotations

import asyncio

import pytest
from desk_runs import Played, played

from sopilot.agent.reference.misbehaviour import SWITCHES, Misbehaviour
from sopilot.audit.audit import audit_trace
from sopilot.audit.findings import Finding
from sopilot.audit.report import Report
from sopilot.audit.transcripts import audit_untracked
from sopilot.handbook.expressions import judge
from sopilot.tasks.examples.example import load_example
from sopilot.trace.chain import SealedEvent
from sopilot.trace.events import Event


def audited(
    run: Played,
    example: str,
    goal: str | None,
    chain: list[SealedEvent],
    events: list[Event] | None = None,
) -> Report:
    """As a closing audit sees the events: secrets masked, all else restored."""
    return audit_untracked(
        load_example(example).handbook,
        asyncio.run(run.session.shown_events()) if events is None else events,
        goal=goal,
        chain=chain,
        session_id=run.session.id,
        judge=judge,
        head=run.session.head,
    )


def report(example: str, task: str, **options: object) -> Report:
    run = played(example, task, "flat", **options)
    return audited(run, example, load_example(example).task(task).goal, list(run.session.events))


def beside_approvals(example: str, found: Report) -> list[Finding]:
    """Nobody is asked for an approval where there is no machine; each action that needs one and
    ran is told, and nothing else may be."""
    needing = {name for name, one in load_example(example).handbook.actions.items() if one.approval}
    told = [one for one in found.findings if one.code == "approval-missing"]
    assert all(one.explanation.split("`")[1] in needing for one in told)
    return [one for one in found.findings if one not in told]


@pytest.mark.parametrize("example", ["bank", "clinic", "it"])
def test_a_conforming_run_is_clean_whatever_becomes_of_the_goal(example: str) -> None:
    tasks = load_example(example).tasks[::7]
    found = {task.id: report(example, task.id) for task in tasks}
    assert all(one.score_card.chain for one in found.values())
    assert {task: beside_approvals(example, one) for task, one in found.items()} == {
        task: [] for task in found
    }
    outcomes = {one.score_card.outcome for one in found.values()}
    assert "completed" in outcomes
    assert len(outcomes) > 1


@pytest.mark.parametrize(
    ("switch", "code"),
    [
        ("skip_check", "skipped-check"),
        ("act_early", "premature-goal"),
        ("over_verify", "calls-after-goal"),
    ],
)
def test_what_a_careless_run_leaves_out_is_named_with_its_event(switch: str, code: str) -> None:
    misbehaviour = Misbehaviour(**{switch: 1.0})  # type: ignore[arg-type]
    found = report("bank", "transfer-rent-share", misbehaviour=misbehaviour)
    assert code in {finding.code for finding in found.findings}
    run = played("bank", "transfer-rent-share", "flat", misbehaviour=misbehaviour)
    kinds = {sealed.event.seq: sealed.event.kind for sealed in run.session.events}
    assert {kinds[finding.seq] for finding in found.findings} == {"domain_call"}


def test_a_changed_goal_is_judged_in_its_turn() -> None:
    changing = [
        (example, task)
        for example in ("bank", "clinic", "it")
        for task in load_example(example).tasks
        if task.follow_ups
    ]
    assert changing
    for example, task in changing:
        run = played(example, task.id, "flat")
        chain = list(run.session.events)
        # Also as an export has them, where the user's words are withheld with the password.
        for events in (None, [sealed.event for sealed in chain]):
            found = audited(run, example, task.goal, chain, events)
            assert beside_approvals(example, found) == []


def test_a_touched_trace_is_told() -> None:
    run = played("bank", "transfer-rent-share", "flat")
    chain = list(run.session.events)
    chain[3] = chain[3]._replace(event=chain[2].event)
    found = audited(run, "bank", "transfer", chain)
    assert [finding.code for finding in found.findings] == ["tampering"]
    assert found.score_card.chain is False


def test_without_a_known_goal_and_without_an_attempt_nothing_is_claimed() -> None:
    run = played("bank", "transfer-rent-share", "flat")
    events = [one for one in run.session.events if one.event.kind != "domain_call"]
    found = audited(run, "bank", None, [], [one.event for one in events])
    assert found.clean
    assert found.score_card.outcome == "abandoned"


# One task each whose misbehaviour spoils the result, and which no known cause excuses.
SPOILED = [("bank", "transfer-rent-share"), ("bank", "wire-boat-yard"),
           ("clinic", "specialist-dermatology"), ("it", "replace-phone")]  # fmt: skip


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_misbehaviour_leaves_a_finding(switch: str) -> None:
    misbehaviour = Misbehaviour(**{switch: 1.0})  # type: ignore[arg-type]
    for example, task in SPOILED:
        run = played(example, task, "flat", misbehaviour=misbehaviour)
        goal = load_example(example).task(task).goal
        found = beside_approvals(example, audited(run, example, goal, list(run.session.events)))
        assert found, (example, task, run.judgement.reasons)


def test_a_goal_held_back_by_its_guard_was_still_tried() -> None:
    run = played("bank", "wire-boat-yard", "pg", misbehaviour=Misbehaviour(act_early=1.0))
    assert run.notes("held_call")
    programs = run.session.programs.programs
    found = audit_trace(programs, run.session.events, session_id=run.session.id)
    assert [one.code for one in found.findings].count("premature-goal") == 1
