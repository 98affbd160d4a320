"""Tasks played move by move, from other processes, scored as a run would be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from looped import looped

from sopbench_checkout import MISSING
from sopilot.messages.errors import UserMistake
from sopilot.protocols import Message, ModelReply, SystemClock, ToolCall
from sopilot.records.people import change_people
from sopilot.runner.play import Player, PlayScore, resume_play, start_play
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot_lab.experiments.sweep import make_configuration
from sopilot_lab.experiments.trial import Trial, TrialRunner
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reference import DOMAINS, TaskReference


@asynccontextmanager
async def gone_on_with(path: Path, session_id: str) -> AsyncIterator[Player]:
    """A play with its own store, simulator and session, as another process has."""
    store = SQLiteStore(path)
    play = await resume_play(store, session_id)
    yield play
    await play.close()
    await store.close()


async def in_pieces(path: Path, task: str, replies: Sequence[ModelReply], view: str) -> PlayScore:
    store = SQLiteStore(path)
    play = await start_play(store, task, view=view)
    await play.close()
    await store.close()
    for reply in replies:
        async with gone_on_with(path, play.id) as again:
            await again.reply(reply)
    async with gone_on_with(path, play.id) as again:
        return await again.finish()


def replies_of(messages: Sequence[Message]) -> list[ModelReply]:
    return [
        ModelReply(message.content, message.tool_calls)
        for message in messages
        if message.role == "assistant"
    ]


@pytest.mark.parametrize("view", ["pg", "flat"])
async def test_a_play_ends_in_a_store_that_requires_privacy(view: str, tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "s.db")
    details = {"what": "privacy", "on": True}
    await change_people(store, "demanded", details, who=None, clock=SystemClock())
    await store.close()
    task = "bank/transfer-wrong-password"
    replies = replies_of((await asyncio.to_thread(looped, task, view)).result.messages)
    score = await in_pieces(tmp_path / "s.db", task, replies, view)
    assert (score.passed, score.ending) == (True, "refused")


async def test_a_hasty_transfer_fails_the_task(tmp_path: Path) -> None:
    hasty = ToolCall("", "transfer", '{"username": "anna", "to": "ben", "amount": 200}')
    replies = [ModelReply("", (hasty,))]
    score = await in_pieces(tmp_path / "s.db", "bank/transfer-rent-share", replies, "pg")
    assert not score.passed
    assert score.ending == "abandoned"
    assert "premature-goal" in [finding.code for finding in score.findings]
    assert score.calls == ["transfer"]


async def bench_run(domain: str, view: str, *, should_succeed: bool) -> Trial:
    """The domain's first task of the kind, as `sopilot lab run` runs it."""
    upstream = shared_upstream()
    goal, index = next(
        (name, place)
        for name, answers in upstream.scoring(domain).items()
        for place, answer in enumerate(answers)
        if answer is should_succeed
    )
    # Without a refresh the messages tell every move; the moves are the same either way.
    configuration = make_configuration(
        upstream, arm=view, model="reference", tools="official", budgets={"refresh_actions": 10_000}
    )
    return await TrialRunner(configuration, upstream).run(TaskReference(domain, goal, index))


EVERYDAY = (("library", "pg"), ("library", "flat"))
# Of the others the reference executor cannot read the text.
VIEWS_PLAYED = ("pg", "flat", "full-cursor", "flat-protocol", "fused")


@pytest.mark.parametrize("should_succeed", [True, False])
@pytest.mark.parametrize(
    ("domain", "view"),
    [
        pytest.param(domain, view, marks=[] if (domain, view) in EVERYDAY else [pytest.mark.slow])
        for domain in DOMAINS
        for view in (VIEWS_PLAYED if domain in ("bank", "library") else ("pg", "flat"))
    ],
)
@pytest.mark.sopbench
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
async def test_a_sopbench_task_scores_as_bench_run_does(
    domain: str, view: str, should_succeed: bool, tmp_path: Path
) -> None:
    trial = await bench_run(domain, view, should_succeed=should_succeed)
    assert trial.result is not None
    replies = replies_of(trial.result.messages)
    score = await in_pieces(tmp_path / "s.db", trial.record.task, replies, view)
    assert (score.task, score.ending) == (trial.record.task, trial.record.ending)
    assert (score.verdict, score.calls) == (trial.record.verdict, [*trial.record.calls])
    codes = [finding.code for finding in score.findings]
    assert codes == [finding.code for finding in trial.findings]


async def test_a_play_that_is_over_takes_no_more_moves(tmp_path: Path) -> None:
    store = MemoryStore()
    play = await start_play(store, "bank/transfer-rent-share")
    await play.finish()
    with pytest.raises(UserMistake, match="is over"):
        await play.call("read_ledger", {})
    await play.close()
    again = await resume_play(store, play.id)
    assert (await again.finish()).ending == "abandoned"
    await again.close()


async def test_findings_of_an_view_without_a_machine_name_events_of_the_trace() -> None:
    store = MemoryStore()
    play = await start_play(store, "bank/transfer-wrong-password", view="flat")
    moved = {"username": "anna", "to": "ben", "amount": 10}
    await play.call("transfer", moved)
    score = await play.finish()
    events = {one.event.seq: one.event.kind for one in await store.events(play.id)}
    calls = [seq for seq, kind in events.items() if kind == "domain_call"]
    assert score.findings
    assert {finding.seq for finding in score.findings} <= set(events)
    assert calls[0] in {finding.seq for finding in score.findings}
    assert calls[0] > 1
    await play.close()
