"""In a store that requires identity, every session has a requester, who cannot approve it.

The judge is the system behind the tools: whether it was told to pay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mcp_servers import bank_pool

import sopilot as product
from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.protocols import SystemClock
from sopilot.records.people import change_people, issue_token
from sopilot.records.store import Store
from sopilot.runner.conversations import Conversations
from sopilot.runner.play import start_play
from sopilot.runner.sign_in import sign_in
from sopilot.session.opening import attach_session
from sopilot.stores.sqlite import SQLiteStore

HANDBOOK = """
handbook: till
actions:
  look_up: {input: {customer: string}}
  pay: {input: {customer: string, amount: number}, irreversible: true, approval: boss}
predicates:
  known(customer):
    says: "{customer} is known."
    verify: look_up(customer)
    verdict: result.known
procedures:
  pay: {requires: known(customer)}
"""
INPUTS = {"customer": "c-7", "amount": 900}
LOCAL = "local"


class Till:
    def __init__(self) -> None:
        self.paid: list[float] = []

    def look_up(self, customer: str) -> dict[str, Any]:
        return {"known": True}

    def pay(self, customer: str, amount: float) -> dict[str, Any]:
        self.paid.append(amount)
        return {"paid": amount}


class Office:
    """A store that requires identity; Ann and Bo are bosses with a token each."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = folder / "sessions.db"
        self.book = folder / "till.yaml"
        self.book.write_text(HANDBOOK, "utf-8")
        self.tokens: dict[str, str] = {}
        self.till = Till()
        monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{self.path}")
        monkeypatch.setenv("SOPILOT_HOME", str(folder))
        monkeypatch.delenv("SOPILOT_TOKEN", raising=False)

    def store(self) -> Store:
        return SQLiteStore(self.path)  # type: ignore[return-value]

    async def prepare(self) -> Office:
        store, clock = self.store(), SystemClock()
        for name in ("ann", "bo"):
            person = {"person": name, "roles": ["boss"], "aliases": [], "subjects": []}
            await change_people(store, "person_added", person, who=None, clock=clock)
            said = {"person": name, "token": name, "expires_at": None}
            self.tokens[name] = await issue_token(
                store, "token_issued", said, who=None, clock=clock
            )
        await require_identity(store, on=True)
        await store.close()
        return self

    async def sessions(self) -> list[tuple[str, str]]:
        store = self.store()
        found = [(one.id, str(one.metadata.get("requester"))) for one in await store.sessions()]
        await store.close()
        return found


async def require_identity(store: Store, *, on: bool) -> None:
    details = {"what": "identity", "on": on}
    await change_people(store, "demanded", details, who=None, clock=SystemClock())


@pytest.fixture
async def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    return await Office(tmp_path, monkeypatch).prepare()


async def by_python(office: Office, token: str) -> None:
    runner = product.load(office.book, store=office.store())
    result = await runner.run("pay", tools=office.till, inputs=INPUTS, goal="pay", token=token)
    assert result.ending == "waiting"
    await runner.close()


async def by_hook(office: Office, token: str) -> None:
    runner = product.load(office.book, store=office.store())
    async with runner.hook(token=token):
        pass
    await runner.close()


async def by_conversations(office: Office, token: str) -> None:
    many = Conversations.of(office.book, view="pg", store=office.store(), token=token)
    async with many.using("thread 1"):
        pass
    await many.close()


async def by_mcp(office: Office, token: str) -> None:
    """Standard streams, and loopback without a client's token: who runs the server asks."""
    pool = bank_pool(office.store())
    with pytest.MonkeyPatch.context() as here:
        here.setenv("SOPILOT_TOKEN", token)
        try:
            await pool.connect(LOCAL, None)
        finally:
            await pool.close()


async def by_play(office: Office, token: str) -> None:
    with pytest.MonkeyPatch.context() as here:
        here.setenv("SOPILOT_TOKEN", token)
        play = await start_play(office.store(), "bank/transfer-wrong-password")
        await play.close()


@pytest.mark.parametrize("start", [by_python, by_hook, by_conversations, by_mcp, by_play])
async def test_no_session_without_a_requester(
    office: Office, start: Callable[[Office, str], Awaitable[None]]
) -> None:
    with pytest.raises(UserMistake, match="no-requester"):
        await start(office, "")
    assert await office.sessions() == []
    await start(office, office.tokens["ann"])
    assert [requester for _, requester in await office.sessions()] == ["ann"]


@pytest.mark.parametrize(
    "words",
    [
        ("run", "bank", "--task", "wire-rent-lyon"),
        ("chat", "bank", "--goal", "transfer"),
        ("lab", "play", "start", "bank/transfer-wrong-password"),
    ],
)
def test_no_command_starts_one(office: Office, words: tuple[str, ...]) -> None:
    def run(**environment: str) -> Any:
        return CliRunner().invoke(sopilot, list(words), env=environment)

    assert "no-requester" in str(run().exception)
    assert asyncio.run(office.sessions()) == []
    run(SOPILOT_TOKEN=office.tokens["ann"])
    assert [requester for _, requester in asyncio.run(office.sessions())] == ["ann"]


async def test_an_owner_of_a_token_of_the_server_must_be_a_person(office: Office) -> None:
    pool = bank_pool(office.store())
    with pytest.raises(UserMistake, match="isn't one of its people"):
        await pool.connect("gateway-7", None)
    await pool.connect("ann", None)
    await pool.close()
    assert [requester for _, requester in await office.sessions()] == ["ann"]


async def test_the_author_cannot_approve_and_nothing_is_paid(office: Office) -> None:
    await by_python(office, office.tokens["ann"])
    ((session_id, _),) = await office.sessions()
    store = office.store()
    for name in ("ann", "bo"):
        who = await sign_in(store, office.tokens[name])
        async with await attach_session(store, session_id) as session:
            (held,) = session.held_calls
            if name == "ann":
                with pytest.raises(UserMistake, match="who asked for it"):
                    await session.decide("approve", held.call_id, by="ann", role="boss", who=who)
            else:
                await session.decide("approve", held.call_id, by="bo", role="boss", who=who)
    await store.close()
    assert office.till.paid == []
    runner = product.load(office.book, store=office.store())
    with pytest.raises(UserMistake, match="no-requester"):
        await runner.resume(session_id, tools=office.till)
    assert office.till.paid == []
    await runner.resume(session_id, tools=office.till, token=office.tokens["ann"])
    assert office.till.paid == [900]
    await runner.close()


async def test_a_person_who_takes_a_session_up_cannot_approve_it_either(office: Office) -> None:
    await by_python(office, office.tokens["ann"])
    ((session_id, _),) = await office.sessions()
    runner = product.load(office.book, store=office.store())
    await runner.resume(session_id, tools=office.till, token=office.tokens["bo"])
    for name in ("ann", "bo"):
        with pytest.raises(UserMistake, match="who asked for it"):
            await runner.decide(session_id, by=name, role="boss", token=office.tokens[name])
    assert office.till.paid == []
    await runner.close()


async def test_a_person_who_joins_a_conversation_under_way_cannot_approve_it(
    office: Office,
) -> None:
    """The session is open already, so nothing is resumed."""
    guard = product.guard(office.book, store=office.store())
    look_up, pay = guard(office.till.look_up), guard(office.till.pay)
    with product.conversation("c-1", token=office.tokens["ann"]):
        look_up("c-7")
        with product.conversation("c-1"), pytest.raises(UserMistake, match="no-requester"):
            look_up("c-7")
        look_up("c-7")
        bo = product.conversation("c-1", token=office.tokens["bo"])
        with bo, pytest.raises(product.Waiting):
            pay("c-7", 900)
    ((session_id, _),) = await office.sessions()
    runner = product.load(office.book, store=office.store())
    with pytest.raises(UserMistake, match="who asked for it"):
        await runner.decide(session_id, by="bo", role="boss", token=office.tokens["bo"])
    assert office.till.paid == []
    await runner.close()


async def test_a_session_from_before_can_be_rejected_and_not_approved(office: Office) -> None:
    """It was started when the store did not require identity: nobody knows who asked for it."""
    store = office.store()
    await require_identity(store, on=False)
    await by_python(office, "")
    await require_identity(store, on=True)
    ((session_id, _),) = await office.sessions()
    runner = product.load(office.book, store=store)
    bo = {"by": "bo", "role": "boss", "token": office.tokens["bo"]}
    with pytest.raises(UserMistake, match="no known requester"):
        await runner.decide(session_id, **bo)
    held = await runner.decide(session_id, "reject", **bo)
    assert held.state == "rejected"
    assert office.till.paid == []
    await runner.close()
