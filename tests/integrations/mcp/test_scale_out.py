"""Several servers over one store: any of them goes on with any request."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpx2
import pytest
from mcp_servers import ACCEPT, HELLO, RecordingMeter, bank_pool, failing, serving

from sopilot.files.settings import filled, read_settings
from sopilot.integrations.mcp.health import Health
from sopilot.integrations.mcp.options import HttpSettings, ServerOptions
from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.services import source_service
from sopilot.integrations.mcp.sessions import SessionPool
from sopilot.integrations.metrics import metered
from sopilot.messages.errors import (
    LeaseLost,
    StoreCorrupt,
    StoreUnavailable,
    UnknownSession,
    UserMistake,
)
from sopilot.records.store import Lease, Store
from sopilot.runner.sources import open_source
from sopilot.session.opening import resume_session
from sopilot.stores.memory import MemoryStore
from sopilot.views.catalogue import view_named
from sopilot.views.view import View

TOKENS = {"anna": "a" * 20}
PG = view_named("pg")
OTHER = {"bert": "b" * 20}


@asynccontextmanager
async def server(
    store: Store, settings: HttpSettings, view: View = PG, **options: Any
) -> AsyncIterator[str]:
    service = source_service(open_source("bank"), view)
    pool = SessionPool(store, service, linger_seconds=0.0 if settings.stateless else 20.0)
    procedures = McpServer(pool)
    async with serving(procedures, settings, **options) as bound:
        yield f"http://127.0.0.1:{bound.port}"
    await procedures.close()


class Talker:
    """A client of the protocol whose every request goes to the next server."""

    def __init__(self, http: httpx2.AsyncClient, urls: list[str]) -> None:
        self.http, self.urls, self.number = http, urls, 0
        self.headers = dict(ACCEPT)

    async def post(self, method: str, parameters: dict[str, Any]) -> httpx2.Response:
        self.number += 1
        url = f"{self.urls[self.number % len(self.urls)]}/mcp"
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters}
        return await self.http.post(url, json=body, headers=self.headers)

    async def initialize(self) -> httpx2.Response:
        answer = await self.post("initialize", HELLO)
        if answer.status_code == 200:
            self.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        return answer

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = await self.post("tools/call", {"name": name, "arguments": arguments})
        assert answer.status_code == 200, answer.text
        # The answer alone, or as the last event of a stream.
        lines = [one.removeprefix("data: ") for one in answer.text.splitlines()]
        found: dict[str, Any] = json.loads(next(one for one in lines if one[:1] == "{"))["result"]
        return found


@asynccontextmanager
async def two_servers(
    store: Store, settings: HttpSettings, view: View = PG
) -> AsyncIterator[tuple[httpx2.AsyncClient, list[str]]]:
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(server(store, settings, view)) for _ in range(2)]
        http = await stack.enter_async_context(httpx2.AsyncClient(timeout=20))
        yield http, urls


STEP = "pg_program_step"
START = {"operation": "start", "goal": "close_account", "arguments": {"username": "carla"}}


async def test_a_session_goes_on_at_whichever_server_is_reached() -> None:
    store = MemoryStore()
    async with two_servers(store, HttpSettings(port=0, stateless=True)) as (http, urls):
        talker = Talker(http, urls)
        await talker.initialize()
        session_id = talker.headers["mcp-session-id"]
        started = await talker.call(STEP, START)
        assert started["isError"] is False
        begun = time.monotonic()
        for _ in range(6):
            found = await talker.call("find_account", {"username": "carla"})
            assert found["_meta"]["sopilot/session"] == session_id
        assert time.monotonic() - begun < 5
        events = await store.events(session_id)
        calls = [one for one in events if one.event.kind == "domain_call"]
        assert len(calls) == 6
        assert [one.event.seq for one in events] == list(range(len(events)))
        assert await store.records.count_sessions() == 1
        # Coming back, as a client that was started again does.
        again = Talker(http, urls)
        again.headers["sopilot-session"] = session_id
        await again.initialize()
        assert again.headers["mcp-session-id"] == session_id
        assert await store.records.count_sessions() == 1
        # What is nobody's is not opened by surprise.
        stranger = Talker(http, urls)
        stranger.headers["mcp-session-id"] = "f" * 32
        assert (await stranger.post("tools/list", {})).status_code == 404
        stranger.headers = {**ACCEPT, "sopilot-session": "f" * 32}
        assert (await stranger.initialize()).status_code == 404
        assert await store.records.count_sessions() == 1


async def test_somebody_elses_session_is_no_session() -> None:
    store, tokens = MemoryStore(), {**TOKENS, **OTHER}
    settings = HttpSettings(port=0, stateless=True, tokens=tokens)
    async with two_servers(store, settings) as (http, urls):
        anna, bert = Talker(http, urls), Talker(http, urls)
        for talker, token in ((anna, "a" * 20), (bert, "b" * 20)):
            talker.headers["authorization"] = f"Bearer {token}"
        await anna.initialize()
        bert.headers["mcp-session-id"] = anna.headers["mcp-session-id"]
        assert (await bert.post("tools/list", {})).status_code == 404


async def test_health_readiness_and_a_name_for_every_request() -> None:
    # The row of the newest session is damaged, and others are not.
    store = failing(sessions=StoreCorrupt("the row is damaged"))
    health = Health(store)
    settings = HttpSettings(port=0, admin=("127.0.0.1", 0))
    async with server(store, settings, health=health) as url, httpx2.AsyncClient() as http:
        assert (await http.get(f"{url}/healthz")).text == "ok\n"
        assert (await http.get(f"{url}/readyz")).status_code == 200
        vars(store)["record"] = failing(record=StoreUnavailable("at 10.0.0.7")).record
        health._checked_at = -1e9
        answer = await http.get(f"{url}/readyz")
        assert (answer.status_code, answer.text) == (503, "not ready\n")
        assert (await http.get(f"{url}/healthz")).status_code == 200
        named = await http.post(f"{url}/mcp", headers={"x-request-id": "mine"})
        assert named.headers["x-request-id"] == "mine"
        assert len((await http.post(f"{url}/mcp")).headers["x-request-id"]) == 16
        health.stopping.set()
        assert (await http.get(f"{url}/readyz")).status_code == 503


async def test_nothing_is_kept_of_sessions_that_there_are_not() -> None:
    hub = bank_pool()
    for number in range(50):
        with pytest.raises(UnknownSession):
            await hub.get("anna", "key", f"{number}")
    assert len(hub._opening) == 0
    # Of those who come at once, one opens, and the others have the same.
    seats = await asyncio.gather(*(hub.get("anna", "key") for _ in range(5)))
    assert len({seat.session.id for seat in seats}) == 1
    assert len(hub._opening) == 0
    await hub.close()


async def test_a_session_of_another_handbook_is_no_session() -> None:
    store = MemoryStore()
    bank = bank_pool(store)
    clinic = SessionPool(store, source_service(open_source("clinic"), PG))
    session_id = await bank.connect("anna", None)
    await bank.close()
    with pytest.raises(UnknownSession):
        await clinic.connect("anna", session_id)
    assert await bank.connect("anna", session_id) == session_id
    await bank.close()


async def test_calls_left_open_are_looked_for_again_whatever_went_wrong() -> None:
    store = failing(unresolved=KeyError("a row that no release of ours wrote"))
    meter = RecordingMeter()
    health = Health(store, meter, sweep_seconds=0.01)
    looking = asyncio.create_task(health.watch(AsyncMock(), lambda: 0))
    await asyncio.sleep(0.2)
    assert not looking.done()
    looking.cancel()
    assert meter.counted["sweep_failures"] > 1


async def test_without_the_store_a_client_is_told_to_come_again() -> None:
    meter = RecordingMeter()
    store = failing(record=StoreUnavailable("PostgreSQL at 10.0.0.7 is not available"))
    health = Health(store, meter)
    settings = HttpSettings(port=0, stateless=True)
    async with (
        server(health.store, settings, health=health) as url,
        httpx2.AsyncClient() as http,
    ):
        named = {**ACCEPT, "mcp-session-id": "f" * 32}
        answer = await http.post(f"{url}/mcp", headers=named, content="{}")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "PostgreSQL" not in answer.text
    assert meter.counted["requests 503"] == 1


async def test_streams_end_with_the_server() -> None:
    store = MemoryStore()
    health = Health(store)
    async with (
        server(store, HttpSettings(port=0), health=health) as url,
        httpx2.AsyncClient(timeout=20) as http,
    ):
        talker = Talker(http, [url])
        await talker.initialize()
        async with http.stream("GET", f"{url}/mcp", headers=talker.headers) as stream:
            assert stream.status_code == 200
            asyncio.get_running_loop().call_later(0.2, health.stopping.set)
            assert [line async for line in stream.aiter_lines()] == []


async def test_tokens_are_read_again_on_hangup(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"anna {TOKENS['anna']}\n")
    tokens.chmod(0o600)

    def read() -> HttpSettings:
        found = ServerOptions(
            source="x", address="127.0.0.1:0", token_file=tokens, lease_seconds=3
        ).http()
        assert found is not None
        return found

    async with server(MemoryStore(), read(), reread=read) as url, httpx2.AsyncClient() as http:

        async def status(token: str) -> int:
            headers = {**ACCEPT, "authorization": f"Bearer {token}"}
            return (await http.post(f"{url}/mcp", headers=headers, content="{}")).status_code

        assert (await status("a" * 20), await status("b" * 20)) == (400, 401)
        tokens.write_text(f"bert {OTHER['bert']}\n")
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.1)
        assert (await status("a" * 20), await status("b" * 20)) == (401, 400)
        tokens.write_text("broken line of tokens\n")
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.1)
        assert await status("b" * 20) == 400


async def test_models_read_nothing_of_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sopilot.integrations.mcp.sessions.PATIENCE_SECONDS", 0.3)

    store = MemoryStore()
    settings = HttpSettings(port=0, stateless=True)
    async with two_servers(store, settings) as (http, urls):
        talker = Talker(http, urls)
        await talker.initialize()
        session_id = talker.headers["mcp-session-id"]
        held = await resume_session(store, session_id, owner="host-9:4711", take_over=True)
        async with held.keep_alive():
            answer = await talker.call(STEP, START)
        text = json.dumps(answer)
        assert answer["isError"]
        assert "under way" in text
        assert not any(word in text for word in ("owner", "host-9", "lease", "take it over"))
        await held.release()
        assert (await talker.call(STEP, START))["isError"] is False


async def test_what_nobody_uses_gives_its_connections_back() -> None:
    hub = bank_pool(idle_seconds=0.05)
    await hub.get("anna", "k")
    assert len(hub.live) == 1
    await asyncio.sleep(0.1)
    await hub.tidy()
    assert hub.live == ()


def test_settings_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sopilot.toml"
    url = "postgres://${DB_USER}:${DB_PASSWORD:-none}@db/sopilot"
    path.write_text(f'store = "{url}"\nworkers = 3\n')
    monkeypatch.setenv("DB_USER", "runner")
    assert read_settings(path) == {"store": "postgres://runner:none@db/sopilot", "workers": 3}
    assert read_settings(path, fill=False)["store"] == url
    with pytest.raises(UserMistake, match="NOT_SET"):
        filled({"a": ["${NOT_SET}"]}, "x", {})


async def test_a_store_is_timed_and_its_failures_are_counted() -> None:
    meter = RecordingMeter()
    store = metered(failing(record=StoreUnavailable("gone"), release=LeaseLost("x")), meter)
    assert await store.sessions() == []
    assert await store.records.count_sessions() == 0
    with pytest.raises(StoreUnavailable):
        await store.record("x")
    with pytest.raises(LeaseLost):
        await store.release(Lease("x", "me", 1, 0.0))
    # What has not failed yet is there as 0: a first failure is an increase. That a session
    # is another's is an answer of the store, and no failure.
    counted = {"sessions": 0, "record": 1, "release": 0}
    assert meter.counted == {f"store_failures {name}": n for name, n in counted.items()}


async def test_a_state_that_no_session_is_in_any_more_is_counted_as_none() -> None:
    meter = RecordingMeter()
    health = Health(MemoryStore(), meter)
    for states in ({"waiting": 2, "running": 1, "journal": 4}, {"completed": 3}):
        vars(health.store)["states"] = AsyncMock(return_value=states)
        await health._count()
    states = {name: n for name, n in meter.gauges.items() if name.startswith("sessions ")}
    assert states == {"sessions waiting": 0, "sessions running": 0, "sessions completed": 3}
