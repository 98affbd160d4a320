"""Around the guard over MCP: calls at once, `_meta`, and tools that the handbook does not name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from attack_table import CASES
from attacks_on_evidence import READ_AGAIN
from attacks_on_values import BALANCE, COVERED
from every_interface import guarding_gateway, serving_tools
from mcp.client import Client
from over_mcp import send, texts
from scripted_moves import Case, Move, RecordingTools, Script, say, start

from sopilot.integrations.mcp.content import SESSION_META
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.values.json import JSON

(BALANCES,) = (case for case in CASES if case.handbook == BALANCE and case.number == 6)
TRANSFER: dict[str, JSON] = {"user": "ann", "amount": 80, "to": "x"}
CHECKED = (start("transfer", **TRANSFER), *COVERED)
Connect = Callable[[Case, RecordingTools], AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def direct(case: Case, tools: RecordingTools) -> AsyncIterator[Client]:
    async with serving_tools(case, tools, "pg") as server, Client(server.protocol) as client:
        yield client


@asynccontextmanager
async def gateway(case: Case, tools: RecordingTools, **options: Any) -> AsyncIterator[Client]:
    async with (
        guarding_gateway(case, tools, "pg", **options) as server,
        Client(server.protocol) as client,
    ):
        yield client


BOTH = pytest.mark.parametrize("connect", [direct, gateway])


class MoreTools(RecordingTools):
    """Beside those of the handbook, tools of these names."""

    def __init__(self, case: Case, *unnamed: str) -> None:
        super().__init__(case)
        self._unnamed = tuple(ToolSchema(name, "", {"type": "object"}) for name in unnamed)

    def schemas(self) -> tuple[ToolSchema, ...]:
        return (*super().schemas(), *self._unnamed)


class WaitingTools(RecordingTools):
    """Look-ups are answered when ``answer`` is set."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        if name == "read_account":
            self.asked.set()
            await self.answer.wait()
        return await super().call(name, arguments, key=key)


async def transfer(client: Client, meta: JSON = None, **changed: JSON) -> str:
    return texts(await client.call_tool("transfer", {**TRANSFER, **changed}, meta=meta))[0]


@BOTH
async def test_four_acts_at_once_are_one(connect: Connect) -> None:
    tools = RecordingTools(BALANCES)
    async with connect(BALANCES, tools) as client:
        await send(client, Script(CHECKED))
        answers = await asyncio.gather(*(transfer(client) for _ in range(4)))
    assert tools.carried_out == [("transfer", TRANSFER)]
    assert sum(answer.startswith("Not called: ") for answer in answers) == 3


async def test_an_act_while_its_evidence_is_awaited() -> None:
    tools = WaitingTools(BALANCES)
    begin, enter, read, _ = CHECKED
    async with direct(BALANCES, tools) as client:
        await send(client, Script((begin, enter)))
        reading = asyncio.create_task(client.call_tool(read.tool, dict(read.arguments)))
        await tools.asked.wait()
        # One that cites the answer does not fit before there is one.
        await send(client, Script((say(True),)))
        assert "has no answer yet" in await transfer(client)
        assert tools.carried_out == []
        tools.answer.set()
        await reading
        assert "(ok): " in await transfer(client)
    assert tools.carried_out == [("transfer", TRANSFER)]


@pytest.mark.parametrize("named", ["nobody's", "", 5, None])
async def test_what_a_client_writes_beside_a_call_proves_nothing(named: JSON) -> None:
    """Another amount than the checked one; ``_meta`` says that it is all right."""
    meta = {SESSION_META: named, "sopilot/runtime": True, "sopilot/licence": {"grade": "proven"}}

    tools = RecordingTools(BALANCES)
    async with direct(BALANCES, tools) as client:
        await send(client, Script(CHECKED))
        answer = await transfer(client, meta, amount=90)
        assert "a different `amount`" in answer or "no such session" in answer
        assert tools.carried_out == []
        assert "(ok): " in await transfer(client)
    assert tools.carried_out == [("transfer", TRANSFER)]


@BOTH
async def test_a_tool_that_the_handbook_does_not_name_may_change_everything(
    connect: Connect,
) -> None:
    """It passes, for nobody guards it; but what was read before it proves nothing after it."""

    tools = MoreTools(BALANCES, "tidy_up")
    async with connect(BALANCES, tools) as client:
        await send(client, Script((*CHECKED, Move("tidy_up", {"amount": 0}))))
        answer = await transfer(client)
        assert "`tidy_up`" in answer
        assert "must be called again" in answer
        assert tools.carried_out == []
        await send(client, Script(COVERED[1:2]))
        assert "(ok): " in await transfer(client)
    assert tools.carried_out == [("transfer", TRANSFER)]


@BOTH
async def test_another_case_is_another_tool(connect: Connect) -> None:
    """An upstream with both has two tools, and the guarded one is made by its own name alone."""

    tools = RecordingTools(BALANCES)
    async with connect(BALANCES, tools) as client:
        await send(client, Script(CHECKED))
        for name in ("Transfer", "TRANSFER", "transfer ", "other.transfer"):
            answer = texts(await client.call_tool(name, TRANSFER))[0]
            assert answer.startswith("Not done: there is no tool ")
    assert [name for name, _ in tools.made] == ["read_account"]


@BOTH
@pytest.mark.parametrize(("amount", "held"), [(80, True), (40, False)])
async def test_two_sessions_on_one_balance(connect: Connect, amount: int, held: bool) -> None:
    """What another session changed is no event of this one: it is read again, just before."""
    case = replace(BALANCES, handbook=READ_AGAIN.handbook)
    wanted = {**TRANSFER, "amount": amount}
    checked = (start("transfer", **wanted), *COVERED)

    tools = RecordingTools(case)
    async with connect(case, tools) as first, connect(case, tools) as second:
        for client in (first, second):
            await send(client, Script(checked))
        assert "(ok): " in await transfer(first, amount=amount)
        answer = await transfer(second, amount=amount)
    assert tools.carried_out == [("transfer", wanted)] * (1 if held else 2)
    assert ("`covered` must be true, but is false" in answer) == held


KEPT_BACK = replace(
    BALANCES,
    handbook=BALANCE.replace(
        "actions:\n", "actions:\n  wipe: {input: {user: string}, offered: false}\n"
    ),
)


async def test_what_the_handbook_does_not_offer_is_neither_listed_nor_called() -> None:
    tools = MoreTools(KEPT_BACK, "tidy_up", "read_other")
    async with gateway(KEPT_BACK, tools, pass_through=["tidy_up"]) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        for name in ("wipe", "read_other"):
            answer = texts(await client.call_tool(name, {"user": "ann"}))[0]
            assert answer.startswith(f"Not done: there is no tool `{name}`")
        await client.call_tool("tidy_up", {})
    assert listed == {"pg_program_step", "read_account", "transfer", "tidy_up"}
    assert [name for name, _ in tools.made] == ["tidy_up"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("wipe", "the handbook says that `wipe` is not offered"),
        ("tidy-up", "no upstream has a tool `tidy-up`"),
    ],
)
async def test_only_what_is_there_and_not_forbidden_passes(name: str, says: str) -> None:
    tools = MoreTools(KEPT_BACK, "tidy_up")
    with pytest.raises(UserMistake, match=says):
        async with gateway(KEPT_BACK, tools, pass_through=[name]):
            pass
