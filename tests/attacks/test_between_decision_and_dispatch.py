"""A decision is bound to the agent, the tool, the arguments and the approval until the dispatch.

Everything is proven when the runtime asks the user; what changes before the answer counts. The
judge is the simulator's own record.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")
pytest.importorskip("mcp", reason="needs the extra `mcp`")

from attacks_on_values import Given, State
from every_interface import INTERFACES, guarding_gateway, over_mcp
from scripted_moves import Case, RecordingTools, Script, call

from sopilot.integrations.mcp.server import McpServer
from sopilot.session.opening import attach_session
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON

HANDBOOK = """
handbook: orders
actions:
  find_order: {input: {order: string}, read_only: true}
  refund: {input: {order: string, amount: number}, irreversible: true, recheck: true,
           confirm: CONFIRM}
predicates:
  delivered(order):
    says: The order {order} was delivered.
    verify: find_order(order)
    verdict: result.state == 'delivered'
procedures:
  refund: {requires: delivered(order)}
"""


def _orders(name: str, given: Given, state: State) -> JSON:
    return {"state": state.get("state", "delivered")} if name == "find_order" else {"paid": True}


def asked(confirm: str, *replies: str) -> Case:
    handbook = HANDBOOK.replace("CONFIRM", confirm)
    return Case(0, "", handbook, _orders, unled=True, replies=replies)


LOOK = call("find_order", order="o-1")
REFUND = call("refund", order="o-1", amount=50)
PAID = [("refund", dict(REFUND.arguments))]
GUARDED = (
    "plain", "langchain", "openai_agents", "pydantic_ai", "decisions", "gateway",
    "gateway over http",
)  # fmt: skip


@pytest.mark.parametrize(("reply", "paid"), [("yes", PAID), ("no", [])])
@pytest.mark.parametrize("view", ["guard", "guard-auto"])
@pytest.mark.parametrize("interface", GUARDED)
async def test_the_user_is_asked_with_a_closed_choice(
    interface: str, view: str, reply: str, paid: list[object]
) -> None:
    """A default client of MCP among them, over standard streams and over HTTP."""
    case = asked("Paid back.", reply)
    tools = RecordingTools(case)
    async with INTERFACES[interface](case, tools, view) as follow:
        await follow(Script([LOOK, REFUND]), "c-1")
    assert tools.carried_out == paid


@pytest.mark.parametrize("interface", GUARDED)
async def test_evidence_that_changes_meanwhile(interface: str) -> None:
    case = asked("Paid back.", "yes")
    tools = RecordingTools(case)

    async def lose_the_order() -> None:
        tools.state["state"] = "lost"

    case, script = replace(case, meanwhile=lose_the_order), Script([LOOK, REFUND])
    async with INTERFACES[interface](case, tools, "guard") as follow:
        await follow(script, "c-1")
    assert tools.carried_out == []
    assert "Refused: `refund` must not be called. Not true: " in script.answers[-1]


@pytest.mark.parametrize("interface", GUARDED)
async def test_an_approval_is_for_the_call_and_the_conversation_that_were_shown(
    interface: str,
) -> None:
    if interface.startswith("gateway"):
        # Each connection is a session of its own: nothing that was approved is there.
        calls = [("c-1", REFUND)]
    else:
        dearer = call("refund", order="o-1", amount=51)
        calls = [("c-1", dearer), ("c-2", REFUND)]
    store, case = MemoryStore(), asked("false, approval: {roles: [boss]}")
    tools = RecordingTools(case)
    async with INTERFACES[interface](case, tools, "guard", store=store) as follow:
        await follow(Script([LOOK, REFUND]), "c-1")
        (record,) = await store.sessions()
        async with await attach_session(store, record.id) as session:
            (held,) = session.held_calls
            await session.decide("approve", held.call_id, by="Mia", role="boss")
        for conversation, act in calls:
            await follow(Script([LOOK, act]), conversation)
            if interface != "gateway":  # on standard streams it is the same conversation
                assert tools.carried_out == []
        if not interface.startswith("gateway"):
            await follow(Script([REFUND, REFUND]), "c-1")
            assert tools.carried_out == PAID


@pytest.mark.parametrize("http", [False, True])
async def test_a_connection_that_is_lost_meanwhile(http: bool) -> None:
    """The next one has another state: nothing that was read on the first counts there."""
    case = asked("Paid back.", "yes")
    case = replace(case, handbook=case.handbook.replace(", recheck: true", ""))
    tools, servers = RecordingTools(case), list[McpServer]()

    async def lose_the_connection() -> None:
        (live,) = servers[0].pool.live
        (upstream,) = live.session.tools._upstreams.values()  # type: ignore[union-attr]
        await upstream._drop()

    @asynccontextmanager
    async def remembered(*arguments: Any, **options: Any) -> AsyncIterator[McpServer]:
        async with guarding_gateway(*arguments, **options) as server:
            servers.append(server)
            yield server

    case = replace(case, meanwhile=lose_the_connection)
    interface = partial(over_mcp, server=remembered, http=http)
    async with interface(case, tools, "guard") as follow:
        await follow(Script([LOOK, REFUND]), "c-1")
    assert tools.carried_out == []
