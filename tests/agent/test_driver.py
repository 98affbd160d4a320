"""What a model was asked with can be told again from the trace, to the byte, whatever happened."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from desk_runs import (
    RecordingModel,
    ScriptedModel,
    briefing_of,
    calls,
    play,
    reference,
    user_of,
)

from sopilot.agent.budgets import Budgets
from sopilot.agent.driver import Driver
from sopilot.agent.loop import open_run, run_session
from sopilot.agent.result import Ending, SessionResult
from sopilot.machine.call_ledger import HeldCall
from sopilot.protocols import Model, ModelReply, ModelRequest, ToolCall
from sopilot.records.entitlements import Vote
from sopilot.records.store import Settings
from sopilot.session.opening import resume_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.tasks.examples.example import load_example
from sopilot.views.catalogue import VIEWS
from sopilot.views.view import View
from sopilot_lab.experiments.misbehaviour import Misbehaviour

READABLE = (
    "pg", "fused", "flat", "full-cursor", "flat-protocol", "flat-state", "chunk", "state-only"
)  # fmt: skip
FAULTY = Misbehaviour(
    skip_check=0.3, act_early=0.3, over_verify=0.3, return_without_evidence=0.3, ignore_frame=0.2
)


@dataclass
class ToldAgain:
    """Asks another driver on the same trace what it would have asked."""

    inner: Model
    session: Session
    view: View
    budgets: Budgets
    example: str
    asked: int = 0

    @property
    def name(self) -> str:
        return self.inner.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        other = Driver(self.session, briefing_of(self.example), self.view, budgets=self.budgets)
        await other.catch_up()
        again = other.request()
        assert again.messages == list(request.messages)
        assert list(again.tools) == list(request.tools)
        self.asked += 1
        return await self.inner.complete(request)


async def run(
    example: str, task: str, view: View, *, least: int = 5, **options: Any
) -> tuple[SessionResult, Session]:
    asked: list[ToldAgain] = []

    def again(inner: Model, session: Session) -> Model:
        budgets = options.get("budgets") or Budgets()
        asked.append(ToldAgain(inner, session, view, budgets, example))
        return asked[-1]

    run = await play(example, task, view, wrap=again, **options)
    assert asked[0].asked >= least
    return run.result, run.session


@pytest.mark.parametrize("view", READABLE)
@pytest.mark.parametrize(
    ("example", "task"),
    [
        ("bank", "transfer-instead-of-closing"),
        ("bank", "close-and-pay-out"),
        ("it", "wipe-lost-tablet"),
    ],
)
async def test_a_faultless_run(example: str, task: str, view: str) -> None:
    result, _ = await run(example, task, VIEWS[view])
    assert result.ending is Ending.EXECUTED


@pytest.mark.parametrize("view", ["pg", "fused", "flat"])
@pytest.mark.parametrize("seed", range(6))
async def test_a_run_with_faults(seed: int, view: str) -> None:
    task = random.Random(seed).choice(load_example("bank").tasks)
    faulty = reference("bank", replace(FAULTY, seed=seed))
    await run("bank", task.id, VIEWS[view], model=faulty, least=2)


START = (
    "pg_program_step",
    '{"operation":"start","goal":"transfer","arguments":{"username":"anna"}}',
)
ODD: Sequence[ModelReply] = (
    ModelReply("  \n"),
    ModelReply(),
    calls(("transfer", '{"username": "anna", "to": "ben", "amount": 10}')),
    calls(("no_such_tool", "{}"), ("login", "not JSON"), ("login", '{"user": 1}')),
    calls(("pg_program_step", '{"operation": "return", "holds": true}')),
    ModelReply("One moment.", calls(START, ("read_ledger", "{}"), START).tool_calls),
    calls(("pg_program_step", '{"operation": "dance"}'), ("read_ledger", "{}")),
    ModelReply("Wer sind Sie – bitte?"),
    ModelReply("", (ToolCall("", "read_ledger", "{}"), ToolCall("", "read_ledger", ""))),
    calls(("pg_program_step", '{"operation":"fail","reason":"' + "long " * 8_000 + '"}')),
)


@pytest.mark.parametrize("view", ["pg", "fused", "chunk", "flat", "checklist", "retrieval"])
async def test_a_model_that_does_everything_wrong(view: str) -> None:
    result, session = await run(
        "bank",
        "transfer-rent-share",
        VIEWS[view],
        model=ScriptedModel(ODD),
        budgets=Budgets(agent_turns=len(ODD) + 1),
    )
    names = {s.event.payload["name"] for s in session.events if s.event.kind == "note"}
    assert {"malformed_call", "model_request"} <= names
    assert result.agent_turns >= len(ODD)


@pytest.mark.parametrize("view", ["pg", "fused"])
async def test_a_context_that_is_refreshed(view: str) -> None:
    budgets = Budgets(refresh_actions=4)
    result, session = await run("bank", "close-and-pay-out", VIEWS[view], budgets=budgets)
    names = [s.event.payload["name"] for s in session.events if s.event.kind == "note"]
    assert result.ending is Ending.EXECUTED
    assert "refresh" in names


async def test_values_that_stay_out_of_the_trace_are_still_told() -> None:
    settings = Settings(by_reference=frozenset({"password"}))
    result, session = await run("bank", "transfer-rent-share", VIEWS["pg"], settings=settings)
    secret = load_example("bank").task("transfer-rent-share").inputs["password"]
    assert result.ending is Ending.EXECUTED
    asked = [call.arguments for message in result.messages for call in message.tool_calls]
    assert any(f'"password": "{secret}"' in arguments for arguments in asked)
    done = [s.event.payload for s in session.events if s.event.kind != "user_said"]
    assert not any(secret in str(payload) for payload in done)


class Rejects:
    async def decide(self, held: HeldCall) -> Sequence[Vote]:
        return [Vote("reject", "the boss", held.roles[0], reason="not today")]


class Undecided:
    async def decide(self, held: HeldCall) -> Sequence[Vote]:
        return [Vote("approve", "the first", held.roles[0])]


async def test_a_call_that_was_rejected() -> None:
    result, _ = await run("bank", "close-empty", VIEWS["pg"], operator=Rejects())
    assert result.ending is Ending.REFUSED
    assert any("was rejected" in message.content for message in result.messages)


async def test_a_call_that_waits_is_answered_where_somebody_goes_on() -> None:
    """In the loop the run ends there; a player and another driver read the same answer."""
    result, session = await run("it", "wipe-lost-tablet", VIEWS["pg"], operator=Undecided())
    assert result.ending is Ending.WAITING
    assert "1 of 2" in result.messages[-1].content
    other = Driver(session, briefing_of("it"), VIEWS["pg"])
    await other.catch_up()
    assert (other.first, *other.dialog) == tuple(result.messages)


async def test_a_message_that_the_user_had_not_answered_is_answered_first() -> None:
    example = load_example("bank")
    task = example.task("transfer-rent-share")
    briefing = briefing_of("bank")
    model = ScriptedModel([ModelReply("Goodbye.")])

    session = await open_run(
        MemoryStore(), briefing, VIEWS["pg"], tools=example.make_tools(task), unguarded=True
    )
    await session.user_said(task.request)
    await session.note("model_request", {"tool_calls": 0})
    await session.assistant_said("Please tell me: `username`?")
    await run_session(session, briefing, view=VIEWS["pg"], model=model, user=user_of(task))
    told = [(message.role, message.content) for message in model.requests[0].messages]
    assert told[1:3] == [("user", task.request), ("assistant", "Please tell me: `username`?")]
    assert told[3][0] == "user"
    assert "username: " in told[3][1]


@pytest.mark.parametrize("view", ["pg", "fused", "flat"])
async def test_a_resumed_run_asks_what_the_whole_one_asked(view: str, tmp_path: Path) -> None:
    """Stopped after every turn: each request is the one of a run that was never stopped."""
    example = load_example("bank")
    task = example.task("transfer-at-the-limit")
    briefing = briefing_of("bank")
    whole, pieces = (RecordingModel(reference("bank")) for _ in range(2))
    await play("bank", task.id, view, model=whole)

    store = SQLiteStore(tmp_path / "s.db", synchronous="NORMAL")
    world = example.make_tools(task)
    session = await open_run(store, briefing, VIEWS[view], tools=world, unguarded=True)
    for turns in range(1, 200):
        result = await run_session(
            session,
            briefing,
            view=VIEWS[view],
            model=pieces,
            user=user_of(task),
            budgets=Budgets(agent_turns=turns),
        )
        if result.ending is not Ending.BUDGET:
            break
        await session.release()
        session = await resume_session(store, session.id, tools=world)
    await session.release()
    await store.close()

    def without_numbers(asked: list[ModelRequest]) -> list[list[str]]:
        # Between the results stand the notes of every interruption, so results count otherwise.
        return [
            [re.sub(r"#\d+", "#", f"{m.role} {m.content} {m.tool_calls}") for m in one.messages]
            for one in asked
        ]

    assert without_numbers(pieces.requests) == without_numbers(whole.requests)
