"""The Chat Completions client against a server on loopback, good and bad."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from chat_server import Plan, calling, saying, serving

from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.loop import open_run, run_session
from sopilot.agent.providers import Attempts, ProviderError, Retries, complete_with_retries
from sopilot.agent.result import Ending, SessionResult
from sopilot.compiler.pipeline import compile_handbook
from sopilot.models.http import HttpModel
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall, ToolSchema, Usage
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import load_example
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS

TOOL = ToolSchema("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
HELLO = ModelRequest(
    [
        Message("system", "Be brief."),
        Message("user", "Hello"),
        Message("assistant", tool_calls=(ToolCall("c1", "look", '{"at": "it"}'),)),
        Message("tool", "#1 (ok): 3", tool_call_id="c1", name="look"),
        Message("system", "slot"),
    ],
    [TOOL],
    timeout_seconds=3.0,
)
QUICK = Retries(attempts=3, first_seconds=0.01)


def ask(plans: Sequence[Plan], *, retries: Retries = QUICK) -> tuple[ModelReply, int]:
    attempts = Attempts()

    async def run() -> ModelReply:
        async with serving(*plans) as server:
            model = HttpModel(server.url, "m", key="secret")
            try:
                return await complete_with_retries(model, HELLO, retries, attempts=attempts)
            finally:
                await model.close()

    return asyncio.run(run()), attempts.made


def test_a_plain_reply() -> None:
    reply, attempts = ask([saying("Good morning, 世界.")])
    assert (reply.content, reply.tool_calls, attempts) == ("Good morning, 世界.", (), 1)
    assert reply.usage == Usage(120, 64, 9)


def test_parallel_tool_calls() -> None:
    reply, _ = ask([calling(("look", '{"at": "this"}'), ("look", '{"at": '))])
    assert reply.tool_calls == (
        ToolCall("call_0", "look", '{"at": "this"}'),
        ToolCall("call_1", "look", '{"at": '),
    )


async def test_what_is_sent() -> None:
    async with serving(saying("ok")) as server:
        model = HttpModel(server.url, "m", key="secret")
        await model.complete(replace(HELLO, seed=7, reply_tokens=50))
        await model.close()
        (body,) = server.requests
        assert (body["model"], body["temperature"]) == ("m", 0.0)
        assert (body["seed"], body["max_tokens"]) == (7, 50)
        assert [m["role"] for m in body["messages"]] == [
            "system",
            "user",
            "assistant",
            "tool",
            "system",
        ]
        assert body["messages"][2]["tool_calls"][0]["function"]["arguments"] == '{"at": "it"}'
        assert body["messages"][3]["tool_call_id"] == "c1"
        assert body["tools"][0]["function"]["name"] == "look"
        assert server.headers[0]["authorization"] == "Bearer secret"


FAILURES = {
    "429": Plan(status=429, headers={"retry-after": "0"}),
    "500": Plan(status=500),
    "503": Plan(status=503),
    "wrong JSON": Plan(raw="{not json"),
    "no choice": Plan(raw="{}"),
    "no object": Plan(raw="[]"),
    "dropped": Plan(drop=True),
    "breaks off": Plan({"role": "assistant", "content": "a long answer " * 20}, cut=True),
    "timeout": Plan({"content": "late"}, delay=6.0),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_passing_failures_are_retried(failure: str) -> None:
    reply, attempts = ask([FAILURES[failure], saying("after all")])
    assert (reply.content, attempts) == ("after all", 2)


@pytest.mark.parametrize("status", [400, 401, 404])
def test_lasting_failures_are_not(status: int) -> None:
    with pytest.raises(Exception, match=f"HTTP {status}") as caught:
        ask([Plan(status=status), saying("never")])
    assert getattr(caught.value, "attempts", 0) == 1


def test_retry_after_is_obeyed() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def run() -> None:
        async with serving(Plan(status=429, headers={"retry-after": "17"}), saying("ok")) as server:
            model = HttpModel(server.url, "m")
            await complete_with_retries(model, HELLO, Retries(), sleep=sleep)
            await model.close()

    asyncio.run(run())
    assert waited == [17.0]


def test_nobody_listens() -> None:
    async def run() -> None:
        model = HttpModel("http://127.0.0.1:9/v1", "m")
        try:
            await model.complete(HELLO)
        finally:
            await model.close()

    with pytest.raises(ProviderError, match="connection failed"):
        asyncio.run(run())


def session_with(plans: Sequence[Plan]) -> SessionResult:
    """A whole session over the wire."""

    async def run() -> SessionResult:
        example = load_example("bank")
        task = example.task("dispute-electronics")
        programs = {
            goal: one.program
            for goal, one in compile_handbook(example.handbook).items()
            if goal == task.goal
        }
        briefing = Briefing(example.handbook, programs)
        session = await open_run(
            MemoryStore(), briefing, VIEWS["official"], tools=example.make_tools(task)
        )
        async with serving(*plans) as server:
            model = HttpModel(server.url, "m")
            result = await run_session(
                session,
                briefing,
                view=VIEWS["official"],
                model=model,
                user=ScriptedUser(task.request, task.inputs),
                retries=QUICK,
            )
            await model.close()
        return result

    return asyncio.run(run())


def test_a_session_over_the_wire() -> None:
    login = json.dumps({"username": "anna", "password": "heron-42"})
    pay = json.dumps({"username": "anna", "payment_id": "P-1001"})
    plans = [
        saying("What is your password?"),
        Plan(status=500),
        calling(("login", login), ("login", "{broken"), ("find_payment", pay)),
        Plan(drop=True),
        calling(("dispute_payment", pay)),
        calling(("end_session", '{"outcome": "executed"}')),
    ]
    result = session_with(plans)
    assert result.ending is Ending.EXECUTED
    assert [one.attempts for one in result.requests] == [1, 2, 2, 1]
    assert result.usage == Usage(4 * 120, 4 * 64, 4 * 9)
    assert result.domain_calls == 3
