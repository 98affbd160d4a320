"""One compiled graph, many customers: a session for each, whoever serves the next message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from framework_agents import LangChainAgent

from sopilot.machine.replay import whole_events
from sopilot.messages.errors import LeaseLost, UserMistake
from sopilot.protocols import Message, ModelReply, ToolCall
from sopilot.records.store import Store
from sopilot.runner.conversations import Conversations
from sopilot.runner.hook import ProcedureHook, conversation_id
from sopilot.runner.sources import open_source
from sopilot.session.opening import resume_session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named

VIEW = view_named("pg")


def briefing() -> Briefing:
    return open_source("bank").briefing(language="en")


async def reply(dialog: Sequence[Message], slot: str, names: Sequence[str]) -> ModelReply:
    """Call one tool about whoever speaks, and be done."""
    last = dialog[-1]
    if last.role == "tool":
        return ModelReply("done")
    return ModelReply("", (ToolCall("look-1", "read_case", json.dumps({"who": last.content})),))


def look(who: str) -> str:
    """Looks somebody up."""
    return f"{who} is known"


def graph(hook: ProcedureHook | Conversations) -> Any:
    return LangChainAgent(hook, [LangChainAgent.tool(look, "read_case")], reply).agent


def message(who: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": who}]}


def thread(who: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": who}}


async def calls_of(store: Store, who: str) -> list[str]:
    """With the values that stand beside the trace: the desk has secrets, and no such argument."""
    name = conversation_id("bank", who)
    events = whole_events(await store.events(name), await store.payloads(name))
    return [str(one.payload["arguments"]["who"]) for one in events if one.kind == "domain_call"]


@pytest.mark.parametrize("turns", [1, 2])
async def test_each_thread_has_a_session_of_its_own(tmp_path: Path, turns: int) -> None:
    store = SQLiteStore(tmp_path / "s.db")
    conversations = Conversations(store, briefing(), VIEW, most=4)
    agent = graph(conversations)
    people = [f"p{number}" for number in range(12)]
    for _ in range(turns):
        await asyncio.gather(*(agent.ainvoke(message(one), thread(one)) for one in people))
    for one in people:
        assert await calls_of(store, one) == [one] * turns
    await conversations.close()
    assert await store.records.count_sessions() == len(people)
    await store.close()


def test_the_same_without_an_event_loop(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "s.db")
    agent = graph(Conversations(store, briefing(), VIEW))
    people = [f"p{number}" for number in range(20)]

    def serve(who: str) -> None:
        agent.invoke(message(who), thread(who))

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(serve, people))

    async def look_at() -> Sequence[list[str]]:
        found = [await calls_of(store, one) for one in people]
        await store.close()
        return found

    assert asyncio.run(look_at()) == [[one] for one in people]


async def test_a_hook_is_one_conversation_and_refuses_a_second() -> None:
    store = MemoryStore()
    hook = await ProcedureHook.open(store, briefing(), VIEW)
    agent = graph(hook)
    await agent.ainvoke(message("anna"), thread("anna"))
    with pytest.raises(UserMistake, match="not `bert`"):
        await agent.ainvoke(message("bert"), thread("bert"))
    with pytest.raises(UserMistake, match="thread_id"):
        await graph(Conversations(store, briefing(), VIEW)).ainvoke(message("x"))


async def test_another_process_goes_on_with_the_conversation() -> None:
    store = MemoryStore()
    first = await ProcedureHook.open(store, briefing(), VIEW, conversation="anna")
    await first.step({"op": "start", "goal": "close_account", "arguments": {}})
    stood = first.frame_message()
    await first.close()
    second = await ProcedureHook.open(store, briefing(), VIEW, conversation="anna")
    assert second.session.id == first.session.id
    assert second.frame_message() == stood
    other = await ProcedureHook.open(store, briefing(), VIEW, conversation="bert")
    assert other.session.id != first.session.id


async def test_a_slot_is_never_an_old_one() -> None:
    store = MemoryStore()
    hook = await ProcedureHook.open(store, briefing(), VIEW, conversation="anna")
    taken = await resume_session(store, hook.session.id, take_over=True)
    await taken.user_said("somebody else is here")
    with pytest.raises(LeaseLost):
        await hook.session.user_said("hello")
    with pytest.raises(LeaseLost):
        hook.frame_message()
    await taken.release()
    await hook.ready()
    assert hook.session.head == taken.head
    hook.frame_message()


async def test_calls_are_spans_of_their_session_without_words() -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from sopilot.integrations.telemetry import CONVERSATION, TOOL, Telemetry

    spans = InMemorySpanExporter()
    provider = trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    telemetry = Telemetry(provider.get_tracer("test"))
    conversations = Conversations(MemoryStore(), briefing(), VIEW, telemetry=telemetry)
    await graph(conversations).ainvoke(message("anna"), thread("anna"))
    with pytest.raises(KeyError), telemetry.tool("look", "s:c"):
        raise KeyError("anna")
    made, failed = spans.get_finished_spans()
    session = conversation_id("bank", "anna")
    assert (made.name, made.attributes[TOOL]) == ("execute_tool read_case", "read_case")
    assert (made.attributes[CONVERSATION], made.status.is_ok) == (session, True)
    assert (failed.attributes["error.type"], failed.status.is_ok) == ("KeyError", False)
    assert failed.attributes["gen_ai.tool.call.id"] == "c"
    assert "anna" not in made.to_json() + failed.to_json()
