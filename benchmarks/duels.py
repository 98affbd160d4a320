"""Races for one session: of 2 to 8 resumers exactly one becomes its owner.

    python benchmarks/crashes.py duels [--races 1000] [--json FILE]

Resumers are processes with a store handle of their own. A released session is
resumed by all of them at the same moment; then a session whose owner died, with an
expired lease; then all take it over by force, where every one succeeds in turn and
only the last may write. Each owner appends an event: a second writer would be seen
as a second event or a broken chain.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import tempfile
import time
from collections import Counter
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

from counter_desk import COUNTER, HandClock
from sopilot.messages.errors import LeaseHeld, LeaseLost, RunEnded
from sopilot.session.opening import open_session, resume_session
from sopilot.session.session import Session
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.chain import verify_chain

MOST = 8
KINDS = ("released", "expired", "forced")


def resumer(path: Path, number: int, pipe: Connection, barrier: Barrier) -> None:
    asyncio.run(_resumer(path, number, pipe, barrier))


async def _resumer(path: Path, number: int, pipe: Connection, barrier: Barrier) -> None:
    store = SQLiteStore(path, busy_seconds=60)
    while True:
        order = pipe.recv()
        if order is None:
            return
        session_id, kind, now = order
        session: Session | None = None
        barrier.wait()
        if session_id:
            try:
                session = await resume_session(
                    store,
                    session_id,
                    clock=HandClock(now),
                    programs=COUNTER,
                    take_over=kind == "forced",
                    owner=f"resumer {number}",
                )
            except (LeaseHeld, LeaseLost) as problem:
                answer = type(problem).__name__
        barrier.wait()
        if session is not None:
            try:
                await session.note("mine", {"by": number})
                answer = "owner"
            except LeaseLost:
                answer = "fenced"
        pipe.send(answer if session_id else "idle")


async def race(
    store: SQLiteStore, kind: str, pipes: list[Connection], contenders: set[int]
) -> tuple[Counter[str], str]:
    """The answers, and what is wrong with the outcome."""
    clock = HandClock()
    session = await open_session(store, COUNTER, clock=clock)
    events = len(session.events)
    if kind == "released":
        await session.release()
    elif kind == "expired":
        clock.advance(session.settings.lease_seconds + 1)
    for number, pipe in enumerate(pipes):
        pipe.send((session.id if number in contenders else "", kind, clock.now()))
    answers = Counter(pipe.recv() for pipe in pipes)
    stored = await store.events(session.id)
    if answers["owner"] != 1:
        return answers, f"{answers['owner']} owners"
    if len(stored) != events + 1 or verify_chain(stored, session_id=session.id) is not None:
        return answers, "the trace is not the one owner's"
    if kind != "forced" and answers["LeaseHeld"] != len(contenders) - 1:
        return answers, f"others were not refused: {dict(answers)}"
    try:
        await session.user_said("I was the owner")
    except RunEnded:  # fenced off, or released before
        return answers, ""
    return answers, "the former owner could still write"


async def duels(races: int, seed: int, path: Path, pipes: list[Connection]) -> dict[str, object]:
    source = random.Random(seed)
    store = SQLiteStore(path, busy_seconds=60)
    faults: list[str] = []
    total: Counter[str] = Counter()
    sizes: Counter[int] = Counter()
    for number in range(races):
        size = 2 + number % (MOST - 1)
        contenders = set(source.sample(range(MOST), size))
        kind = KINDS[number % len(KINDS)]
        answers, fault = await race(store, kind, pipes, contenders)
        total.update(answers)
        sizes[size] += 1
        if fault:
            faults.append(f"race {number} ({kind}, {size}): {fault}")
    await store.close()
    return {
        "races": races,
        "contenders": dict(sorted(sizes.items())),
        "answers": dict(total),
        "one_owner": races - len(faults),
        "faults": faults[:20],
    }


def campaign(races: int, seed: int) -> dict[str, object]:
    """Let 2 to 8 processes resume one session: exactly one becomes its owner."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(MOST)
    pipes, processes = [], []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sopilot-duels-") as folder:
        path = Path(folder, "sessions.db")
        for number in range(MOST):
            ours, theirs = context.Pipe()
            arguments = (path, number, theirs, barrier)
            process = context.Process(target=resumer, args=arguments, daemon=True)
            process.start()
            pipes.append(ours)
            processes.append(process)
        try:
            report = asyncio.run(duels(races, seed, path, pipes))
            for pipe in pipes:
                pipe.send(None)
            for process in processes:
                process.join(10)
        finally:
            for process in processes:
                process.kill()
    passed = report["one_owner"] == races
    return {"passed": passed, **report, "seconds": round(time.monotonic() - begun, 1)}
