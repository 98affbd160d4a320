"""The cost of a step: here, against LangGraph, and many at once.

    python benchmarks/steps.py here [--rounds 200] [--json FILE]
    python benchmarks/steps.py langgraph [--rounds 7] [--json FILE]
    python benchmarks/steps.py concurrent [--sessions 500] [--latency 1.0] [--json FILE]

The walk is 199 operations through a program of 49 checks. `here` prints microseconds per step for
the machine alone, for sealing and replay, and for a session in memory with and without a guarded
goal: processor time of the best round, since a shared machine only ever adds.

`langgraph` needs the extra `bench-peers`. A step here is one operation of a session: checked,
sealed into the chain and, where durable, committed before it is acknowledged. A step there is one
node of a graph with its checkpoint (`durability="sync"`); its state only counts, which is the
least it can store. The durable session as it ships (FULL) is compared with the SQLite checkpointer
as it ships, and like with like. Rounds alternate, and a ratio is the median of the rounds' wall
times; processor time leaves out waiting for the disk (`chrt -f 5` spares a busy machine that). The
floor of a durable step is a bare commit of one row of an event's length.

`concurrent` runs sessions at once in one process, each waiting for a slow model, and compares
their time with the ideal of one session alone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from campaign import parts
from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.loop import open_run, run_programs, run_session
from sopilot.agent.reference.executor import Reference
from sopilot.agent.result import Ending, SessionResult
from sopilot.machine.machine import Machine
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.replay import replay
from sopilot.program.model import (
    Act,
    Check,
    CompleteStep,
    FailStep,
    Function,
    Guarded,
    Kind,
    Local,
    Program,
    ReturnStep,
    Source,
    Step,
)
from sopilot.protocols import Model, ModelReply, ModelRequest
from sopilot.records.store import Store
from sopilot.runner.sources import open_source
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from sopilot.tasks.examples.example import load_example
from sopilot.trace.chain import genesis, seal_line
from sopilot.trace.events import Call, DomainCall, DomainResult, Event, Operation, Start
from sopilot.trace.events import Complete as CompleteOperation
from sopilot.trace.events import Return as ReturnOperation
from sopilot.views.catalogue import VIEWS

CHECKS = 49


def program() -> Program:
    user = ("username", Local("username"))
    both = (user, ("n", Local("n")))
    reading = (Act("read", "read", both), ReturnStep("done"))
    rule = Function("rule", Kind.RULE, ("username", "n"), reading, predicate="rule")
    steps: list[Step] = [
        Check(f"check_{index}", "rule", both, f"slot_{index}", unmet="refuse")
        for index in range(CHECKS)
    ]
    steps += [Act("act", "goal", (user,), goal=True), CompleteStep("finish"), FailStep("refuse")]
    main = Function("main", Kind.PROCESS, ("username", "n"), tuple(steps))
    return Program("main", {"main": main, "rule": rule}, Source("bench", "main", ""), "hand")


def operations() -> list[Operation]:
    walk: list[Operation] = [Start("main", {"username": "bob", "n": 5})]
    for index in range(CHECKS):
        walk += [
            Call(),
            DomainCall(f"c{index}", "read", {"username": "bob", "n": 5}),
            DomainResult(f"c{index}", True, {"balance": 120.5, "currency": "EUR"}),
            ReturnOperation(True),
        ]
    walk += [
        DomainCall("goal", "goal", {"username": "bob"}),
        DomainResult("goal", True, "done"),
        CompleteOperation("done"),
    ]
    return walk


STEPS = len(operations())
Taken = tuple[float, float]
"""Wall and processor microseconds per step."""


async def timed(walk: Callable[[], Awaitable[None]], steps: int = STEPS) -> Taken:
    wall, cpu = time.perf_counter(), time.process_time()
    await walk()
    spent = time.perf_counter() - wall, time.process_time() - cpu
    return spent[0] / steps * 1e6, spent[1] / steps * 1e6


async def machine_walk() -> tuple[Taken, list[Event]]:
    machine, walk = Machine({"main": program()}), operations()
    events: list[Event] = []

    async def run() -> None:
        configuration = machine.initial()
        for each in walk:
            outcome = machine.step(configuration, each, at=0.0)
            configuration = outcome.configuration
            events.extend(outcome.events)
        assert configuration.active is None

    return await timed(run), events


async def session_walk(store: Store, *, guarded: bool = False) -> Taken:
    source = program()
    if guarded:
        source = dataclasses.replace(source, guarded=(Guarded("goal"),))
    session = await open_session(store, ProgramSet.of({"main": source}))
    walk = operations()

    async def run() -> None:
        for each in walk:
            assert (await session.operate(each)).accepted

    taken = await timed(run)
    assert session.configuration.active is None
    await session.release()
    return taken


# --- here -----------------------------------------------------------------


def here(rounds: int) -> dict[str, Any]:
    """Time a step of the machine and of a session in memory."""
    return asyncio.run(_here(rounds))


async def _here(rounds: int) -> dict[str, Any]:
    best: dict[str, float] = {}

    def keep(name: str, taken: Taken) -> None:
        best[name] = min(best.get(name, taken[1]), taken[1])

    machine = Machine({"main": program()})
    for number in range(rounds):
        taken, events = await machine_walk()
        keep("machine", taken)

        async def seal(events: list[Event] = events) -> None:
            previous = genesis("bench")
            for event in events:
                previous = seal_line(event, previous)[0].hash

        async def replayed(events: list[Event] = events) -> None:
            assert replay(machine, events).active is None

        keep("seal and encode", await timed(seal))
        keep("replay", await timed(replayed))
        if number % 5 == 0:
            keep("session", await session_walk(MemoryStore()))
            keep("guarded session", await session_walk(MemoryStore(), guarded=True))
    figures = {name: round(taken, 2) for name, taken in best.items()}
    return {"steps": STEPS, "rounds": rounds, "microseconds": figures}


# --- LangGraph ------------------------------------------------------------------------

LEAST_IN_MEMORY, LEAST_DURABLE = 10.0, 5.0
Synchronous = Literal["FULL", "NORMAL"]
MODES: tuple[Synchronous, ...] = ("NORMAL", "FULL")
WARMING = 3
"""Rounds that load everything and let the write-ahead logs reach their size."""
LINE = 415
"""Bytes of an event of the walk."""


class Counting(TypedDict):
    n: int


async def bare_commit(connection: sqlite3.Connection) -> Taken:
    async def run() -> None:
        for _ in range(STEPS):
            connection.execute("INSERT INTO bare (line) VALUES (?)", ("x" * LINE,))

    return await timed(run)


def bare_store(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, line TEXT NOT NULL)")
    return connection


async def peer_walk(saver: Any, *, thread: str) -> Taken:
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(Counting)
    graph.add_node("count", lambda state: {"n": state["n"] + 1})
    graph.add_edge(START, "count")
    graph.add_conditional_edges("count", lambda state: "count" if state["n"] < STEPS else END)
    app = graph.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": thread}, "recursion_limit": STEPS + 10}

    async def run() -> None:
        assert app.invoke({"n": 0}, config, durability="sync")["n"] == STEPS

    return await timed(run)


def peer_store(synchronous: Synchronous, path: Path) -> Any:
    from langgraph.checkpoint.sqlite import SqliteSaver

    connection = sqlite3.connect(path, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    return saver


# Name, ours, the peer's, and how many times cheaper ours must be.
PAIRS: tuple[tuple[str, str, str, float | None], ...] = (
    ("durable to its SQLite, both as shipped", "FULL", "peer FULL", LEAST_DURABLE),
    ("memory to memory", "memory", "peer memory", LEAST_IN_MEMORY),
    ("NORMAL to NORMAL", "NORMAL", "peer NORMAL", LEAST_DURABLE),
    ("floor: a bare FULL commit to FULL", "bare commit", "peer FULL", None),
)


async def peer_rounds(rounds: int, folder: Path) -> dict[str, list[Taken]]:
    """Stores stay open over all rounds, as they do in a service."""
    from langgraph.checkpoint.memory import InMemorySaver

    taken: dict[str, list[Taken]] = {}
    stores = {mode: SQLiteStore(folder / f"{mode}.db", synchronous=mode) for mode in MODES}
    peers = {mode: peer_store(mode, folder / f"peer-{mode}.db") for mode in MODES}
    bare = bare_store(folder / "bare.db")
    for number in range(-WARMING, rounds):
        os.sync()
        taken_now = {
            "bare commit": await bare_commit(bare),
            "memory": await session_walk(MemoryStore()),
            "peer memory": await peer_walk(InMemorySaver(), thread="walk"),
        }
        for mode, store in stores.items():
            os.sync()
            taken_now[mode] = await session_walk(store)
            os.sync()
            taken_now[f"peer {mode}"] = await peer_walk(peers[mode], thread=str(number))
        if number >= 0:
            for name, spent in taken_now.items():
                taken.setdefault(name, []).append(spent)
    bare.close()
    for store in stores.values():
        await store.close()
    for saver in peers.values():
        saver.conn.close()
    return taken


def langgraph(rounds: int) -> dict[str, Any]:
    """Walk here and in LangGraph, in memory and durable, in alternating rounds."""
    with tempfile.TemporaryDirectory() as scratch:
        taken = asyncio.run(peer_rounds(rounds, Path(scratch)))
    microseconds = {
        name: {
            "wall": round(statistics.median(each[0] for each in spent), 1),
            "cpu": round(statistics.median(each[1] for each in spent), 1),
        }
        for name, spent in taken.items()
    }
    ratios = {
        name: {
            clock: round(
                statistics.median(
                    b[index] / a[index] for a, b in zip(taken[mine], taken[peer], strict=True)
                ),
                2,
            )
            for index, clock in enumerate(("wall", "cpu"))
        }
        for name, mine, peer, _ in PAIRS
    }
    met = {name: ratios[name]["wall"] >= least for name, _, _, least in PAIRS if least}
    return {
        "passed": all(met.values()),
        "steps": STEPS,
        "rounds": rounds,
        "load": round(os.getloadavg()[0], 1),
        "real time": os.sched_getscheduler(0) != os.SCHED_OTHER,
        "microseconds": microseconds,
        "ratios": ratios,
        "wanted": {name: least for name, _, _, least in PAIRS if least},
        "met": met,
    }


# --- many at once ---------------------------------------------------------------------

EXAMPLE, TASK, ARM = "bank", "dispute-electronics", "pg"
MOST_TIMES, MOST_BYTES = 1.2, 2 * 1024**3


class SlowReplay:
    """Replay the reference executor's replies after a while: a provider costs time, not CPU."""

    name = "slow replay"

    def __init__(self, replies: Sequence[ModelReply], latency: float) -> None:
        self._replies = iter(replies)
        self._latency = latency

    async def complete(self, request: ModelRequest) -> ModelReply:
        await asyncio.sleep(self._latency)
        return next(self._replies)


async def many(sessions: int, latency: float) -> tuple[list[SessionResult], float]:
    example = load_example(EXAMPLE)
    task = example.task(TASK)
    briefing = open_source(EXAMPLE).briefing()
    programs = run_programs(briefing, VIEWS[ARM])
    store = MemoryStore()

    async def run(model: Model) -> SessionResult:
        session = await open_run(
            store, briefing, VIEWS[ARM], tools=example.make_tools(task), programs=programs
        )
        user = ScriptedUser(task.request, task.inputs, goal=task.goal)
        return await run_session(session, briefing, view=VIEWS[ARM], model=model, user=user)

    first = await run(Reference(example.reader))
    replies = [
        ModelReply(message.content, message.tool_calls)
        for message in first.messages
        if message.role == "assistant"
    ]
    begun = time.perf_counter()
    results = await asyncio.gather(*(run(SlowReplay(replies, latency)) for _ in range(sessions)))
    return list(results), time.perf_counter() - begun


def concurrent(sessions: int, latency: float) -> dict[str, Any]:
    """Run sessions at once, each waiting for a slow model."""
    results, seconds = asyncio.run(many(sessions, latency))
    wrong = sum(result.ending is not Ending.EXECUTED for result in results)
    ideal = results[0].agent_turns * latency
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "passed": seconds / ideal <= MOST_TIMES and peak < MOST_BYTES and not wrong,
        "sessions": sessions,
        "latency": latency,
        "requests_each": results[0].agent_turns,
        "ideal_seconds": round(ideal, 3),
        "seconds": round(seconds, 3),
        "times_ideal": round(seconds / ideal, 3),
        "peak_bytes": peak,
        "wrong": wrong,
    }


if __name__ == "__main__":
    parts(
        __doc__,
        here=(here, {"rounds": 200}),
        langgraph=(langgraph, {"rounds": 7}),
        concurrent=(concurrent, {"sessions": 500, "latency": 1.0}),
    )
