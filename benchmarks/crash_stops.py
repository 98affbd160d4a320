"""Immediate stops of PostgreSQL under running sessions."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from counter_desk import COUNTER
from crash_work import SETTINGS, Acknowledged, JournalTools, Judge, Tally, one_move
from postgres_here import PostgresHere, postgres_here
from sopilot.messages.errors import StoreUnavailable
from sopilot.records.store import Store
from sopilot.session.opening import open_session, resume_session
from sopilot.session.session import Session
from sopilot.stores.postgres import PostgresStore

RUNNERS = 4


def postgres_stops(stops: int, seed: int, folder: Path) -> Tally:
    with postgres_here() as server:
        return asyncio.run(_storm(server, stops, seed, folder / "postgres-journal"))


async def _storm(server: PostgresHere, stops: int, seed: int, journal: Path) -> Tally:
    source = random.Random(seed)
    judge = Judge(PostgresStore(server.dsn), journal)
    over = asyncio.Event()
    seeds = [source.getrandbits(32) for _ in range(RUNNERS)]
    runners = [
        asyncio.create_task(_run(server, judge, journal, random.Random(one), over)) for one in seeds
    ]
    try:
        for number in range(stops):
            await _work_going_on(judge)
            await asyncio.sleep(source.uniform(0.0, 0.2))
            await asyncio.to_thread(server.stop_immediately)
            await asyncio.to_thread(server.start)
            judge.tally.crashes += 1
            if number % 10 == 9 or number == stops - 1:
                await judge.check()
            for task in runners:
                if task.done():
                    task.result()
    finally:
        over.set()
        await asyncio.wait(runners)
    await judge.check()
    await judge.close()
    return judge.finish()


async def _work_going_on(judge: Judge) -> None:
    """A stop before anybody reconnected would test nothing."""
    before = judge.tally.acknowledgements
    for _ in range(1000):
        if judge.tally.acknowledgements > before:
            return
        await asyncio.sleep(0.005)


async def _run(
    server: PostgresHere,
    judge: Judge,
    journal: Path,
    source: random.Random,
    over: asyncio.Event,
) -> None:
    """Sessions one after the other. After a loss it goes on with the same object, or as a new
    process would, with the stored session."""
    store = PostgresStore(server.dsn)
    tools = JournalTools(journal)
    session: Session | None = None
    left: str | None = None
    while not over.is_set():
        try:
            if session is None:
                session = await _session(store, tools, left)
                left = session.id
            judge.heard(Acknowledged.of(session))
            if not await one_move(session, source):
                await session.release()
                session = left = None
        except StoreUnavailable:
            await asyncio.sleep(0.005)
            if source.random() < 0.5:
                session = None
    await store.close()


async def _session(store: Store, tools: JournalTools, left: str | None) -> Session:
    if left is not None:
        return await resume_session(store, left, tools=tools, programs=COUNTER, take_over=True)
    return await open_session(store, COUNTER, tools=tools, settings=SETTINGS)
