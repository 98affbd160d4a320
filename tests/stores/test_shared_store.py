"""One store for many: threads, event loops, roles, and few round trips."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from store_parts import LEASE, Closing, StoreFactory, Writer, opening

from postgres_here import PostgresHere
from sopilot.messages.errors import LeaseLost, UserMistake
from sopilot.records.store import Store
from sopilot.stores.postgres import PostgresStore

THREADS, STEPS = 12, 15


async def conversation(store: Store, name: str) -> None:
    writer = await Writer.begin(store, opening(name, programs={"ab": "text"}))
    for number in range(STEPS):
        await writer.append(number)
        await store.record(name)


def test_synchronous_agents_share_one_store(open_store: StoreFactory) -> None:
    """Each has an event loop of its own, some have several, one after the other."""
    store = open_store()
    problems: list[BaseException] = []

    def agent(number: int) -> None:
        try:
            asyncio.run(conversation(store, f"agent-{number}"))
            asyncio.run(store.events(f"agent-{number}"))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=agent, args=(number,)) for number in range(THREADS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert problems == []

    async def look() -> list[int]:
        lengths = [len(await store.events(f"agent-{number}")) for number in range(THREADS)]
        await store.close()
        return lengths

    assert asyncio.run(look()) == [STEPS] * THREADS
    log = asyncio.run(open_store().records.log())
    assert len({entry.number for entry in log}) == THREADS


async def test_many_conversations_share_few_connections(
    postgres: PostgresHere, closing: Closing
) -> None:
    store = closing(PostgresStore(postgres.dsn, schema="few", pool_size=3))
    await asyncio.gather(*(conversation(store, f"c-{n}") for n in range(20)))
    with psycopg.connect(postgres.dsn) as db:
        row = db.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()",
            ("%few.%",),
        ).fetchone()
    assert row is not None
    assert 1 <= row[0] <= 3


async def test_a_step_is_one_round_trip(
    server_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[str] = []
    own = psycopg.AsyncConnection.wait

    async def counted(self: Any, gen: Any, *rest: Any, **named: Any) -> Any:
        waited.append("")
        return await own(self, gen, *rest, **named)

    monkeypatch.setattr(psycopg.AsyncConnection, "wait", counted)
    writer = await Writer.begin(server_store, opening("s"))
    waited.clear()
    await writer.append({}, payloads={"r": 1}, summary={"status": "running"})
    assert len(waited) == 1
    waited.clear()
    await server_store.events("s")
    await server_store.renew(writer.lease, **LEASE)
    await Writer.take(server_store, "s", "x")
    assert len(waited) == 3
    with pytest.raises(LeaseLost):
        await writer.append({})


def as_role(server: PostgresHere, role: str) -> str:
    with psycopg.connect(server.dsn, autocommit=True) as db:
        found = db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
        if found is None:
            db.execute(f"CREATE ROLE {role} LOGIN".encode())
    return psycopg.conninfo.make_conninfo(server.dsn, user=role)


def test_who_may_not_make_tables_is_told_who_must(postgres: PostgresHere) -> None:
    store = PostgresStore(as_role(postgres, "nobody_much"), schema="not_there")
    with pytest.raises(UserMistake, match="store migrate"):
        asyncio.run(store.sessions())


def test_commands_run_audit_and_refuse_by_role(
    postgres: PostgresHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A role without CREATE runs sessions; one with SELECT alone audits them, and changes none."""
    from sopilot.cli.main import main

    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path))
    runner, auditor = as_role(postgres, "few_runs"), as_role(postgres, "few_audits")

    def ran(dsn: str, *arguments: str) -> tuple[int, str]:
        code = main([*arguments, "--store", f"postgres:{dsn}"])
        said = capsys.readouterr()
        return code, said.out + said.err

    roles = ("--runtime", "few_runs", "--auditor", "few_audits")
    assert ran(runner, "sessions")[0] == 2  # there are no tables, and it may not make any
    assert ran(postgres.dsn, "store", "migrate", *roles) == (0, "schema 1\n")
    assert ran(runner, "run", "bank")[0] == 0
    listed = json.loads(ran(auditor, "sessions", "list", "--json")[1])["sessions"]
    session_id = listed[0]["id"]
    assert ran(auditor, "audit", session_id)[0] == 0
    assert "1 of 1 action" in ran(auditor, "records", "actions")[1]
    assert ran(auditor, "approvals", "list", session_id) == (0, "no calls are waiting\n")
    code, said = ran(auditor, "run", "bank")
    assert (code, "permission denied" in said) == (1, True)
    assert "--runtime to run sessions" in said
    code, said = ran(postgres.dsn, "store", "migrate", "--runtime", "nobody_made_it")
    assert (code, "make it first: CREATE ROLE" in said) == (1, True)
