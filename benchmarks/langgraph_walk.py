"""A walk of 200 steps here and in LangGraph, in memory and durable, in one run.

    python benchmarks/langgraph_walk.py [--rounds N] [--json FILE]

Needs the extra `bench-peers`. A step here is one operation of a session: checked, sealed into
the chain and, where durable, committed before it is acknowledged. A step there is one node of
a graph with its checkpoint (`durability="sync"`). The peer's state only counts, which is the
least it can store; walks with a state that keeps its log, as a trace does, stand beside it.

Two kinds of comparison. Against the SQLite checkpointer as it ships (write-ahead log,
synchronous FULL): the session in memory, and the durable one as it ships (FULL as well). And
like against like: memory with memory, NORMAL with NORMAL, FULL with FULL. Rounds alternate, so
that whoever else uses the machine disturbs both alike; what the walk before has left unwritten is
on the disk before the next begins, and a ratio is the median of the rounds' wall times. CPU time
leaves out waiting for the disk. On a busy machine a process that slept for the disk waits for a
core afterwards, which hides what is measured: `chrt -f 5` spares it that.

The floor of a durable step is a bare commit: one row of an event's length, inserted with
nothing around it. What the peer's step takes, divided by that, is the most any FULL store could
reach on this disk. Exit 1 when a bound is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import operator
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from sopilot.machine.machine import Machine
from sopilot.machine.program_set import ProgramSet
from sopilot.records.store import Store
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.stores.sqlite import SQLiteStore
from vm_step import operations, program

STEPS = len(operations())
LEAST_IN_MEMORY, LEAST_DURABLE = 10.0, 3.5
Synchronous = Literal["FULL", "NORMAL"]
MODES: tuple[Synchronous, ...] = ("NORMAL", "FULL")
WARMING = 3
"""Rounds that load everything and let the write-ahead logs reach their size."""
LINE = 415
"""Bytes of an event of the walk."""
Taken = tuple[float, float]
"""Wall and CPU microseconds a step."""


class Counting(TypedDict):
    n: int


class Logging(TypedDict):
    n: int
    log: Annotated[list[dict[str, Any]], operator.add]


def timed(walk: Callable[[], None]) -> Taken:
    wall, cpu = time.perf_counter(), time.process_time()
    walk()
    spent = time.perf_counter() - wall, time.process_time() - cpu
    return spent[0] / STEPS * 1e6, spent[1] / STEPS * 1e6


# --- here -----------------------------------------------------------------------------


def machine_alone() -> Taken:
    machine, walk = Machine({"main": program()}), operations()

    def run() -> None:
        configuration = machine.initial()
        for operation in walk:
            configuration = machine.step(configuration, operation, at=0.0).configuration
        assert configuration.active is None

    return timed(run)


async def session_walk(store: Store) -> Taken:
    session = await open_session(store, ProgramSet.of({"main": program()}))
    wall, cpu = time.perf_counter(), time.process_time()
    for operation in operations():
        outcome = await session.operate(operation)
        assert outcome.accepted
    spent = time.perf_counter() - wall, time.process_time() - cpu
    assert session.configuration.active is None
    await session.release()
    return spent[0] / STEPS * 1e6, spent[1] / STEPS * 1e6


def bare_commit(connection: sqlite3.Connection) -> Taken:
    """The floor: an event's length in one row a commit."""

    def run() -> None:
        for _ in range(STEPS):
            connection.execute("INSERT INTO bare (line) VALUES (?)", ("x" * LINE,))

    return timed(run)


def bare_store(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, line TEXT NOT NULL)")
    return connection


async def stored_bytes(times: int, folder: Path) -> int:
    """Bytes of the event lines that one session stores after so many walks."""
    path = folder / f"bytes-{times}.db"
    store = SQLiteStore(path, synchronous="NORMAL")
    session = await open_session(store, ProgramSet.of({"main": program()}))
    for _ in range(times):
        for operation in operations():
            assert (await session.operate(operation)).accepted
    await session.release()
    await store.close()
    with sqlite3.connect(path) as db:
        return int(db.execute("SELECT sum(length(line)) FROM events").fetchone()[0])


# --- there ----------------------------------------------------------------------------


def peer_graph(*, keeps_log: bool, steps: int = STEPS) -> Any:
    from langgraph.graph import END, START, StateGraph

    def count(state: Any) -> dict[str, Any]:
        number = state["n"]
        step: dict[str, Any] = {"n": number + 1}
        if keeps_log:
            # What an event of the walk here holds, without hashes.
            payload = {"call_id": f"c{number}", "action": "read", "arguments": {"n": 5}}
            step["log"] = [{"seq": number, "kind": "domain_call", "payload": payload}]
        return step

    graph = StateGraph(Logging if keeps_log else Counting)
    graph.add_node("count", count)
    graph.add_edge(START, "count")
    graph.add_conditional_edges("count", lambda state: "count" if state["n"] < steps else END)
    return graph


def peer_walk(saver: Any, *, keeps_log: bool, thread: str, steps: int = STEPS) -> Taken:
    app = peer_graph(keeps_log=keeps_log, steps=steps).compile(checkpointer=saver)
    config = {"configurable": {"thread_id": thread}, "recursion_limit": steps + 10}
    first: dict[str, Any] = {"n": 0, "log": []} if keeps_log else {"n": 0}

    def run() -> None:
        assert app.invoke(first, config, durability="sync")["n"] == steps

    return timed(run)


def peer_in_memory(*, keeps_log: bool) -> Taken:
    from langgraph.checkpoint.memory import InMemorySaver

    return peer_walk(InMemorySaver(), keeps_log=keeps_log, thread="walk")


def peer_store(synchronous: Synchronous, path: Path) -> Any:
    from langgraph.checkpoint.sqlite import SqliteSaver

    connection = sqlite3.connect(path, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    return saver


def peer_bytes(steps: int, folder: Path) -> int:
    from langgraph.checkpoint.sqlite import SqliteSaver

    path = folder / f"peer-bytes-{steps}.db"
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        peer_walk(SqliteSaver(connection), keeps_log=True, thread="bytes", steps=steps)
        stored = "SELECT (SELECT coalesce(sum(length(checkpoint) + length(metadata)), 0)"
        stored += " FROM checkpoints) + (SELECT coalesce(sum(length(value)), 0) FROM writes)"
        return int(connection.execute(stored).fetchone()[0])
    finally:
        connection.close()


# --- the table ------------------------------------------------------------------------

# What is compared, ours, the peer's, and how many times cheaper ours must be.
PAIRS: tuple[tuple[str, str, str, float | None], ...] = (
    ("in memory to its SQLite as shipped", "memory", "peer FULL", LEAST_IN_MEMORY),
    ("durable to its SQLite, both as shipped", "FULL", "peer FULL", LEAST_DURABLE),
    ("memory to memory", "memory", "peer memory", LEAST_IN_MEMORY),
    ("NORMAL to NORMAL", "NORMAL", "peer NORMAL", LEAST_DURABLE),
    ("memory to memory, peer keeps its log", "memory", "peer memory, log", None),
    ("NORMAL to NORMAL, peer keeps its log", "NORMAL", "peer NORMAL, log", None),
    ("FULL to FULL, peer keeps its log", "FULL", "peer FULL, log", None),
    ("machine alone to memory", "machine", "peer memory", None),
    ("floor: a bare FULL commit to FULL", "bare commit", "peer FULL", None),
)


async def walks(rounds: int, folder: Path) -> dict[str, list[Taken]]:
    """Stores stay open over all rounds, as they do in a service."""
    taken: dict[str, list[Taken]] = {}
    stores = {mode: SQLiteStore(folder / f"{mode}.db", synchronous=mode) for mode in MODES}
    peers = {
        (mode, keeps_log): peer_store(mode, folder / f"peer-{mode}-{keeps_log}.db")
        for mode in MODES
        for keeps_log in (False, True)
    }
    bare = bare_store(folder / "bare.db")
    for number in range(-WARMING, rounds):
        os.sync()
        one = {
            "bare commit": bare_commit(bare),
            "machine": machine_alone(),
            "memory": await session_walk(MemoryStore()),
            "peer memory": peer_in_memory(keeps_log=False),
            "peer memory, log": peer_in_memory(keeps_log=True),
        }
        for mode, store in stores.items():
            os.sync()
            one[mode] = await session_walk(store)
            for keeps_log, name in ((False, f"peer {mode}"), (True, f"peer {mode}, log")):
                saver = peers[mode, keeps_log]
                os.sync()
                one[name] = peer_walk(saver, keeps_log=keeps_log, thread=str(number))
        if number >= 0:
            for name, spent in one.items():
                taken.setdefault(name, []).append(spent)
    bare.close()
    for store in stores.values():
        await store.close()
    for saver in peers.values():
        saver.conn.close()
    return taken


def measure(rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        taken = asyncio.run(walks(rounds, folder))
        here = [asyncio.run(stored_bytes(times, folder)) for times in (1, 2, 4)]
        there = [peer_bytes(STEPS * times, folder) for times in (1, 2, 4)]
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
    return {
        "steps": STEPS,
        "rounds": rounds,
        "load": round(os.getloadavg()[0], 1),
        "real time": os.sched_getscheduler(0) != os.SCHED_OTHER,
        "microseconds": microseconds,
        "ratios": ratios,
        "wanted": {name: least for name, _, _, least in PAIRS if least},
        "stored_bytes": {"steps": [STEPS, 2 * STEPS, 4 * STEPS], "here": here, "peer": there},
        "met": {
            **{name: ratios[name]["wall"] >= least for name, _, _, least in PAIRS if least},
            # Sequence numbers grow by a digit now and then.
            "stored bytes linear": here[2] <= 4.1 * here[0],
        },
    }


def say(figures: dict[str, Any]) -> None:
    wanted = figures["wanted"]
    print(
        f"a walk of {figures['steps']} steps, medians of {figures['rounds']} rounds,"
        f" {os.cpu_count()} cores with a load of {figures['load']}"
        + (", at real-time priority" if figures["real time"] else "")
    )
    print(f"{'microseconds a step':<42} {'wall':>9} {'cpu':>9}")
    for name, spent in figures["microseconds"].items():
        print(f"{name:<42} {spent['wall']:>9.1f} {spent['cpu']:>9.1f}")
    print(f"\n{'times cheaper':<42} {'wall':>9} {'cpu':>9}  wanted")
    for name, ratio in figures["ratios"].items():
        print(
            f"{name:<42} {ratio['wall']:>9.2f} {ratio['cpu']:>9.2f}"
            + (f"  {wanted[name]:g} (wall)" if name in wanted else "")
        )
    stored = figures["stored_bytes"]
    print(f"\nstored bytes after {stored['steps']} steps: {stored['here']}, peer {stored['peer']}")
    print(f"met: {figures['met']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.rounds)
    say(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    if not all(figures["met"].values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
