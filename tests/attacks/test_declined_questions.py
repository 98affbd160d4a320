"""Who declines a question, or answers with an order, hasn't said no: the bank's ledger judges."""

from __future__ import annotations

from typing import Any

import pytest

from small_desks import AnsweringTools, programs_of

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types
from mcp.client import Client

from sopilot.agent.approvers import action_schema
from sopilot.handbook.reader import load_handbook
from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.sessions import Service, SessionPool
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.task import Simulation
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named

HANDBOOK = load_handbook(
    """
handbook: bank
actions:
  pay: {input: {user: string}, irreversible: true}
predicates:
  objects(user):
    says: The customer {user} objects.
    verify: user
    question: Do you object to the payment?
procedures:
  pay: {requires: {not: objects(user)}}
""",
    "bank.yaml",
)
PROGRAMS = programs_of(HANDBOOK)


async def paying(answer: types.ElicitResult) -> tuple[list[JSON], list[Any]]:
    """Who was paid, and what the user is on record as saying."""
    schemas = [action_schema(action) for action in HANDBOOK.actions.values()]
    bank, store = AnsweringTools(lambda *_: {"paid": True}, schemas), MemoryStore()

    async def open_simulation() -> Simulation:
        return Simulation(bank)

    async def elicited(context: Any, params: Any) -> types.ElicitResult:
        return answer

    service = Service(Briefing(HANDBOOK, PROGRAMS), view_named("pg"), open_simulation)
    server = McpServer(SessionPool(store, service))
    try:
        async with Client(server.protocol, elicitation_callback=elicited, mode="legacy") as client:
            start = {"operation": "start", "goal": "pay", "arguments": {"user": "ann"}}
            await client.call_tool("pg_program_step", start)
            await client.call_tool("pg_program_step", {"operation": "call"})
            await client.call_tool("ask_user", {"question": "objects", "user": "ann"})
            said = {"operation": "return", "holds": False, "evidence": ["ask_user"]}
            await client.call_tool("pg_program_step", said)
            await client.call_tool("pay", {"user": "ann"})
    finally:
        await server.close()
    (record,) = await store.sessions()
    events = [one.event for one in await store.events(record.id)]
    paid = [arguments["user"] for arguments in bank.given("pay")]
    return paid, [one.payload["text"] for one in events if one.kind == "user_said"]


def accepted(text: str) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"answer": text})


@pytest.mark.parametrize(
    ("answer", "paid", "heard"),
    [
        (accepted("no"), ["ann"], ["no"]),
        (types.ElicitResult(action="decline"), [], []),
        (types.ElicitResult(action="cancel"), [], []),
        (types.ElicitResult(action="accept"), [], []),
        (types.ElicitResult(action="accept", content={"other": "no"}), [], []),
        (types.ElicitResult(action="decline", content={"answer": "no"}), [], []),
        (types.ElicitResult(action="cancel", content={"answer": "no"}), [], []),
        *(
            (accepted(order), [], [order] * 3)
            for order in ("Don't do it!", "I refuse.", "No, don't!", "That's wrong.", "不要")
        ),
    ],
)
async def test_only_a_plain_no_to_the_objection_pays(
    answer: types.ElicitResult, paid: list[str], heard: list[str]
) -> None:
    """Somebody who answers nothing, or with an order, hasn't said no."""
    assert await paying(answer) == (paid, heard)
