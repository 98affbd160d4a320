"""A PostgreSQL role with the rights of a runtime alone."""

from __future__ import annotations

import asyncio

from postgres_here import PostgresHere
from sopilot.stores.postgres import PostgresStore


def runtime_dsn(server: PostgresHere, schema: str) -> str:
    """A role that may read, insert and update, and make nothing, on tables that are there."""
    import psycopg

    with psycopg.connect(server.dsn, autocommit=True) as db:
        if db.execute("SELECT 1 FROM pg_roles WHERE rolname = 'runner'").fetchone() is None:
            db.execute("CREATE ROLE runner LOGIN")

    async def prepare() -> None:
        owner = PostgresStore(server.dsn, schema=schema)
        await owner.migrate()
        await owner.grant(runtime=["runner"])
        await owner.close()

    asyncio.run(prepare())
    return psycopg.conninfo.make_conninfo(server.dsn, user="runner")
