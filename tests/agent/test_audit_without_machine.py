"""Views without a machine: their sessions are judged by calls and results, chain included."""

from __future__ import annotations

import pytest
from desk_runs import Played, play, some_tasks

from sopilot.audit.findings import Finding
from sopilot.audit.report import Report
from sopilot.audit.transcripts import audit_untracked
from sopilot.handbook.expressions import judge
from sopilot.tasks.examples.example import load_example
from sopilot.trace.chain import SealedEvent
from sopilot.trace.events import Event
from sopilot_lab.experiments.misbehaviour import SWITCHES, Misbehaviour

EXAMPLES = ("bank", "clinic", "it")
NAMED = {
    "skip_check": "skipped-check",
    "act_early": "premature-goal",
    "over_verify": "calls-after-goal",
}
# One task each whose misbehaviour spoils the result, and which no known cause excuses.
SPOILED = [("bank", "transfer-rent-share"), ("bank", "wire-boat-yard"),
           ("clinic", "specialist-dermatology"), ("it", "replace-phone")]  # fmt: skip


async def audited(
    run: Played,
    example: str,
    goal: str | None,
    *,
    chain: list[SealedEvent] | None = None,
    events: list[Event] | None = None,
) -> Report:
    """As a closing audit sees the events: secrets masked, all else restored."""
    return audit_untracked(
        load_example(example).handbook,
        await run.session.shown_events() if events is None else events,
        goal=goal,
        chain=list(run.session.events) if chain is None else chain,
        session_id=run.session.id,
        judge=judge,
        head=run.session.head,
    )


async def flat(
    example: str, task: str, misbehaviour: Misbehaviour | None = None
) -> tuple[Played, Report]:
    run = await play(example, task, "flat", misbehaviour=misbehaviour)
    return run, await audited(run, example, load_example(example).task(task).goal)


def beside_approvals(example: str, found: Report) -> list[Finding]:
    """Nobody is asked for an approval where there is no machine; each action that needs one and
    ran is told, and nothing else may be."""
    needing = {name for name, one in load_example(example).handbook.actions.items() if one.approval}
    told = [one for one in found.findings if one.code == "approval-missing"]
    assert all(one.explanation.split("`")[1] in needing for one in told)
    return [one for one in found.findings if one not in told]


@pytest.mark.parametrize("example", EXAMPLES)
async def test_a_conforming_run_is_clean_whatever_becomes_of_the_goal(example: str) -> None:
    outcomes = set()
    for _, task in some_tasks(7, example):
        _, found = await flat(example, task)
        assert found.score_card.chain
        assert beside_approvals(example, found) == [], task
        outcomes.add(found.score_card.outcome)
    assert "completed" in outcomes
    assert len(outcomes) > 1


async def test_a_changed_goal_is_judged_in_its_turn() -> None:
    changing = [
        (example, task)
        for example in EXAMPLES
        for task in load_example(example).tasks
        if task.follow_ups
    ]
    assert changing
    for example, task in changing:
        run, found = await flat(example, task.id)
        assert beside_approvals(example, found) == []
        # Also as an export has them, where the user's words are withheld with the password.
        exported = [sealed.event for sealed in run.session.events]
        found = await audited(run, example, task.goal, events=exported)
        assert beside_approvals(example, found) == []


async def test_a_touched_trace_is_told() -> None:
    run, _ = await flat("bank", "transfer-rent-share")
    chain = list(run.session.events)
    chain[3] = chain[3]._replace(event=chain[2].event)
    found = await audited(run, "bank", "transfer", chain=chain)
    assert [finding.code for finding in found.findings] == ["tampering"]
    assert found.score_card.chain is False


async def test_without_a_known_goal_and_without_an_attempt_nothing_is_claimed() -> None:
    run, _ = await flat("bank", "transfer-rent-share")
    events = [one.event for one in run.session.events if one.event.kind != "domain_call"]
    found = await audited(run, "bank", None, chain=[], events=events)
    assert found.clean
    assert found.score_card.outcome == "abandoned"


@pytest.mark.parametrize("switch", SWITCHES)
async def test_every_misbehaviour_leaves_a_finding(switch: str) -> None:
    """Those that leave something out are named, with the event of a call."""
    wrong = Misbehaviour(**{switch: 1.0})  # type: ignore[arg-type]
    for example, task in SPOILED:
        run, found = await flat(example, task, wrong)
        assert beside_approvals(example, found), (example, task, run.judgement.reasons)
        if switch in NAMED and task == "transfer-rent-share":
            assert NAMED[switch] in {finding.code for finding in found.findings}
            kinds = {sealed.event.seq: sealed.event.kind for sealed in run.session.events}
            assert {kinds[finding.seq] for finding in found.findings} == {"domain_call"}


async def test_a_goal_held_back_by_its_guard_was_still_tried() -> None:
    run = await play("bank", "wire-boat-yard", misbehaviour=Misbehaviour(act_early=1.0))
    assert run.notes("held_call")
    assert [one.code for one in run.audit().findings].count("premature-goal") == 1
