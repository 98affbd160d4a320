"""The Chat Completions client against a server on loopback, good and bad."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from chat_server import Plan, calling, saying, serving

from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.loop import open_run, run_session
from sopilot.agent.result import Ending
from sopilot.agent.retries import (
    Attempts,
    InfrastructureFailure,
    ProviderError,
    Retries,
    complete_with_retries,
)
from sopilot.models.http import HttpModel
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall, ToolSchema, Usage
from sopilot.runner.sources import open_source
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import load_example
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


async def ask(*plans: Plan) -> tuple[ModelReply, int]:
    attempts = Attempts()
    with serving(*plans) as server:
        model = HttpModel(server.url, "m", key="secret")
        try:
            reply = await complete_with_retries(model, HELLO, QUICK, attempts=attempts)
        finally:
            await model.close()
    return reply, attempts.made


async def test_a_plain_reply() -> None:
    reply, attempts = await ask(saying("Good morning, 世界."))
    assert (reply.content, reply.tool_calls, attempts) == ("Good morning, 世界.", (), 1)
    assert reply.usage == Usage(120, 64, 9)


async def test_parallel_tool_calls() -> None:
    reply, _ = await ask(calling(("look", '{"at": "this"}'), ("look", '{"at": ')))
    assert reply.tool_calls == (
        ToolCall("call_0", "look", '{"at": "this"}'),
        ToolCall("call_1", "look", '{"at": '),
    )


async def test_the_request_on_the_wire() -> None:
    with serving(saying("ok")) as server:
        model = HttpModel(server.url, "m", key="secret")
        await model.complete(replace(HELLO, seed=7, reply_tokens=50))
        await model.close()
    (body,) = server.requests
    sampling = {"model": "m", "temperature": 0.0, "seed": 7, "max_tokens": 50}
    assert body.items() >= sampling.items()
    assert [message["role"] for message in body["messages"]] == [
        "system", "user", "assistant", "tool", "system",
    ]  # fmt: skip
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
async def test_passing_failures_are_retried(failure: str) -> None:
    reply, attempts = await ask(FAILURES[failure], saying("after all"))
    assert (reply.content, attempts) == ("after all", 2)


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_lasting_failures_are_not(status: int) -> None:
    with pytest.raises(InfrastructureFailure, match=f"HTTP {status}") as caught:
        await ask(Plan(status=status), saying("never"))
    assert caught.value.attempts == 1


async def test_retry_after_is_obeyed() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    with serving(Plan(status=429, headers={"retry-after": "17"}), saying("ok")) as server:
        model = HttpModel(server.url, "m")
        await complete_with_retries(model, HELLO, Retries(), sleep=sleep)
        await model.close()
    assert waited == [17.0]


async def test_a_closed_port_is_a_failed_connection() -> None:
    model = HttpModel("http://127.0.0.1:9/v1", "m")
    with pytest.raises(ProviderError, match="connection failed"):
        await model.complete(HELLO)
    await model.close()


async def test_a_session_over_the_wire() -> None:
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
    task = load_example("bank").task("dispute-electronics")
    briefing, view = open_source("bank").briefing(task.goal), VIEWS["official"]
    tools = load_example("bank").make_tools(task)
    session = await open_run(MemoryStore(), briefing, view, tools=tools)
    with serving(*plans) as server:
        model, user = HttpModel(server.url, "m"), ScriptedUser(task.request, task.inputs)
        result = await run_session(
            session, briefing, view=view, model=model, user=user, retries=QUICK
        )
        await model.close()
    assert result.ending is Ending.EXECUTED
    assert [request.attempts for request in result.requests] == [1, 2, 2, 1]
    assert result.usage == Usage(4 * 120, 4 * 64, 4 * 9)
    assert result.domain_calls == 3
