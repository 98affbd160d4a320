"""Arms without a machine: their sessions are judged by calls and results, chain included."""

from __future__ import annotations

import pytest
from desk_runs import Played, played

from sopilot.agent import Misbehaviour
from sopilot.audit import Report
from sopilot.audit.untracked import audit_untracked
from sopilot.bundled import load_desk
from sopilot.handbook.verdict import judge
from sopilot.vm import SealedEvent


def audited(run: Played, desk: str, goal: str | None, chain: list[SealedEvent]) -> Report:
    return audit_untracked(
        load_desk(desk).handbook,
        [sealed.event for sealed in run.session.events],
        goal=goal,
        chain=chain,
        session_id=run.session.id,
        judge=judge,
        head=run.session.head,
    )


def report(desk: str, task: str, **options: object) -> Report:
    run = played(desk, task, "flat", **options)
    return audited(run, desk, load_desk(desk).task(task).goal, list(run.session.events))


@pytest.mark.parametrize("desk", ["bank-desk", "clinic-desk", "it-desk"])
def test_a_conforming_run_is_clean_whatever_becomes_of_the_goal(desk: str) -> None:
    tasks = load_desk(desk).tasks[::7]
    found = {task.id: report(desk, task.id) for task in tasks}
    assert all(one.clean and one.score_card.chain for one in found.values())
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
    found = report("bank-desk", "transfer-rent-share", misbehaviour=misbehaviour)
    assert code in {finding.code for finding in found.findings}
    run = played("bank-desk", "transfer-rent-share", "flat", misbehaviour=misbehaviour)
    kinds = {sealed.event.seq: sealed.event.kind for sealed in run.session.events}
    assert {kinds[finding.seq] for finding in found.findings} == {"domain_call"}


def test_a_changed_goal_is_judged_in_its_turn() -> None:
    changing = [
        (desk, task)
        for desk in ("bank-desk", "clinic-desk", "it-desk")
        for task in load_desk(desk).tasks
        if task.follow_ups
    ]
    assert changing
    for desk, task in changing:
        assert report(desk, task.id).clean


def test_a_touched_trace_is_told() -> None:
    run = played("bank-desk", "transfer-rent-share", "flat")
    chain = list(run.session.events)
    chain[3] = chain[3]._replace(event=chain[2].event)
    found = audited(run, "bank-desk", "transfer", chain)
    assert [finding.code for finding in found.findings] == ["tampering"]
    assert found.score_card.chain is False


def test_without_a_known_goal_and_without_an_attempt_nothing_is_claimed() -> None:
    run = played("bank-desk", "transfer-rent-share", "flat")
    events = [one for one in run.session.events if one.event.kind != "domain_call"]
    found = audit_untracked(
        load_desk("bank-desk").handbook, [one.event for one in events], goal=None, chain=[]
    )
    assert found.clean
    assert found.score_card.outcome == "abandoned"
