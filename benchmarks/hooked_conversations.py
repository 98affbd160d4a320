"""Many conversations through the LangGraph hook in one process, beside the same without it.

    python benchmarks/hooked_conversations.py [--conversations 300] [--views pg fused guard]
        [--latency-ms 2.7] [--json FILE]

A model that takes a second, one tool call and an answer: two model calls per conversation, under
each view. The store
is PostgreSQL behind a proxy that delays every packet, with one pool of ten connections. Times are
medians of three rounds, with the hook and without in turn: one alone is the machine's. The same
graph is invoked without an event loop from twenty threads. The floor is a middleware that adds
two messages and does nothing else.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from campaign import main
from postgres_here import postgres_here
from sopilot.integrations.langchain import SopilotMiddleware
from sopilot.machine.replay import whole_events
from sopilot.runner.conversations import Conversations
from sopilot.runner.hook import conversation_id
from sopilot.runner.sources import open_source
from sopilot.stores.postgres import PostgresStore
from sopilot.views.catalogue import view_named

MOST_RATIO = 1.15
THREADS = 20
ROUNDS = 3
POOL = 10


class SlowModel(BaseChatModel):
    seconds: float = 1.0

    @property
    def _llm_type(self) -> str:
        return "slow"

    def bind_tools(self, tools: Any, **named: Any) -> Any:
        return self

    def _reply(self, messages: list[BaseMessage]) -> ChatResult:
        spoken = [message for message in messages if not isinstance(message, SystemMessage)]
        answer = AIMessage("done")
        if not isinstance(spoken[-1], ToolMessage):
            call = {"name": "look", "args": {"who": spoken[-1].text}, "id": "look-1"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _generate(self, messages: list[BaseMessage], *rest: Any, **named: Any) -> ChatResult:
        time.sleep(self.seconds)
        return self._reply(messages)

    async def _agenerate(self, messages: list[BaseMessage], *rest: Any, **named: Any) -> ChatResult:
        await asyncio.sleep(self.seconds)
        return self._reply(messages)


class Idle(AgentMiddleware[Any, Any, Any]):
    """The least middleware: it shows something and wraps calls."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        first, last = SystemMessage("instructions"), SystemMessage("slot")
        shown = [*request.messages, last]
        return await handler(request.override(system_message=first, messages=shown))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


@tool
def look(who: str) -> str:
    """Looks somebody up."""
    return f"{who} is known"


def invocation(who: str) -> tuple[dict[str, Any], dict[str, Any]]:
    message = {"messages": [{"role": "user", "content": who}]}
    return message, {"configurable": {"thread_id": who}}


async def together(agent: Any, people: list[str]) -> tuple[float, float]:
    """Seconds by the clock, and of this process's work: those are the same on a busy machine."""
    began, worked = time.perf_counter(), time.process_time()
    await asyncio.gather(*(agent.ainvoke(*invocation(name)) for name in people))
    return time.perf_counter() - began, time.process_time() - worked


def delay(source: str, target: str, seconds: float) -> None:
    """A proxy between two sockets, in a process of its own."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await reader.read(65536):
            loop.call_later(seconds / 2, writer.write, data)
        loop.call_later(seconds, writer.close)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_unix_connection(target)
        await asyncio.gather(pump(reader, outer), pump(inner, writer), return_exceptions=True)

    async def run() -> None:
        server = await asyncio.start_unix_server(serve, source)
        await server.serve_forever()

    asyncio.run(run())


async def count(store: PostgresStore, people: list[str]) -> int:
    good = 0
    for who in people:
        name = conversation_id("bank", who)
        # Arguments that the handbook does not declare stand beside the trace, as do their values.
        events = whole_events(await store.events(name), await store.payloads(name))
        calls = [each for each in events if each.kind == "domain_call"]
        good += [each.payload["arguments"] for each in calls] == [{"who": who}]
    return good


def behind_a_proxy(
    dsn: str, folder: str, conversations: int, latency: float, views: list[str]
) -> dict[str, Any]:
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    target = f"{parts['host']}/.s.PGSQL.{parts.get('port', 5432)}"
    source = f"{folder}/.s.PGSQL.5432"
    proxy = multiprocessing.Process(target=delay, args=(source, target, latency), daemon=True)
    proxy.start()
    while not Path(source).exists():
        time.sleep(0.05)
    try:
        far = psycopg.conninfo.make_conninfo(dsn, host=folder, port=5432)
        asyncio.run(PostgresStore(dsn).migrate())
        return figures(far, conversations, views)
    finally:
        proxy.terminate()
        proxy.join()


def in_rounds(agents: dict[str, Any], conversations: int) -> dict[str, Any]:
    """Medians of wall and processor seconds, the agents in turns."""
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in agents}
    for number in range(ROUNDS):
        for name, agent in agents.items():
            people = [person(name, number, place) for place in range(conversations)]
            rounds[name].append(asyncio.run(together(agent, people)))
    return {
        name: tuple(map(statistics.median, zip(*taken, strict=True)))
        for name, taken in rounds.items()
    }


def person(agent: str, number: int, place: int) -> str:
    return f"{agent} person {number}.{place}"


def figures(dsn: str, conversations: int, views: list[str]) -> dict[str, Any]:
    store = PostgresStore(dsn, pool_size=POOL)
    briefing = open_source("bank").briefing(language="en")
    guarded = [name for name, item in briefing.handbook.actions.items() if item.is_guarded]
    # A handbook's guarded actions need their tools. Nobody calls them here.
    tools = [look, *(look.model_copy(update={"name": name}) for name in guarded)]
    agents: dict[str, Any] = {
        "bare": create_agent(SlowModel(), tools),
        "idle": create_agent(SlowModel(), tools, middleware=[Idle()]),
    }
    for view in views:
        hooks = Conversations(store, briefing, view_named(view), most=10_000)
        agents[view] = create_agent(SlowModel(), tools, middleware=[SopilotMiddleware(hooks)])
    for name, agent in agents.items():  # what is loaded and made once counts for nobody
        asyncio.run(together(agent, [f"{name} first"]))
    taken = in_rounds(agents, conversations)
    rows = {}
    for view in views:
        threaded = [f"{view} thread {place}" for place in range(conversations)]
        began = time.perf_counter()
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda who, agent=agents[view]: agent.invoke(*invocation(who)), threaded))
        synchronous = time.perf_counter() - began
        people = [
            person(view, number, place)
            for number in range(ROUNDS)
            for place in range(conversations)
        ]

        async def whole(*groups: list[str]) -> list[int]:
            return [await count(store, group) for group in groups]

        seconds = asyncio.run(whole(people, threaded))
        rows[view] = {
            "seconds": round(taken[view][0], 2),
            "ratio": round(taken[view][0] / taken["bare"][0], 3),
            "cpu_milliseconds_each": round(taken[view][1] / conversations * 1000, 2),
            "whole": seconds[0] // ROUNDS,
            "synchronous_seconds": round(synchronous, 2),
            "synchronous_whole": seconds[1],
        }
    return {
        "conversations": conversations,
        "unhooked_seconds": round(taken["bare"][0], 2),
        "unhooked_cpu_milliseconds_each": round(taken["bare"][1] / conversations * 1000, 2),
        "idle_middleware_cpu_milliseconds_each": round(taken["idle"][1] / conversations * 1000, 2),
        "views": rows,
        "rounds": ROUNDS,
        "connections": store.pool.opened,
        "threads": THREADS,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
    }


def measure(conversations: int, latency_ms: float, views: list[str]) -> dict[str, Any]:
    with postgres_here() as server, tempfile.TemporaryDirectory() as folder:
        results = behind_a_proxy(server.dsn, folder, conversations, latency_ms / 1000, views)
    passed = results["connections"] <= POOL and all(
        row["whole"] == row["synchronous_whole"] == conversations and row["ratio"] <= MOST_RATIO
        for row in results["views"].values()
    )
    return {"passed": passed, **results, "latency_ms": latency_ms}


if __name__ == "__main__":
    main(__doc__, measure, conversations=300, latency_ms=2.7, views=["pg", "fused", "guard"])
