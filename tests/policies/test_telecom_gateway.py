"""Honest requests through the gateway, in front of the small telephone company."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types
from mcp.client import Client
from mcp_servers import gateway_to
from over_mcp import upstream_url
from telecom import HANDBOOK, PROGRAMS, Telecom

from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.reference.executor import Reference
from sopilot.agent.reference.judging import VerdictJudge
from sopilot.audit.audit import audit_trace
from sopilot.audit.report import Report
from sopilot.handbook.expressions import judge
from sopilot.integrations.mcp.options import UpstreamSpec
from sopilot.integrations.mcp.server import FRAME_URI
from sopilot.integrations.mcp.sessions import SessionPool
from sopilot.machine.replay import whole_events
from sopilot.messages.diagnostic import Severity
from sopilot.protocols import Message, ModelRequest, ToolSchema
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON

LOOK_UPS: list[tuple[str, dict[str, JSON]]] = [
    ("find_by_phone", {"phone": "555-1"}),
    ("list_bills", {"customer_id": "C1"}),
    ("read_line", {"line_id": "L1"}),
]


async def through_the_gateway(
    goal: str, inputs: Mapping[str, JSON], *, look_ups: int = 0
) -> tuple[Report, str]:
    """Some look-ups without a running procedure, then the request. Returns audit and status."""
    store = MemoryStore()
    async with (
        upstream_url(Telecom()) as url,
        gateway_to(HANDBOOK, UpstreamSpec("telecom", url=url), store=store) as server,
        Client(server.protocol) as client,
    ):
        for _ in range(look_ups):
            for name, arguments in LOOK_UPS:
                await client.call_tool(name, arguments)
        if goal:
            await _request(client, server.pool, goal, inputs)
    (record,) = await store.sessions()
    events = whole_events(await store.events(record.id), await store.payloads(record.id))
    return audit_trace(PROGRAMS, events, judge=judge), str(record.summary["status"])


async def _request(
    client: Client, pool: SessionPool, goal: str, inputs: Mapping[str, JSON]
) -> None:
    listed = (await client.list_tools()).tools
    tools = [ToolSchema(one.name, one.description or "", one.input_schema) for one in listed]
    user = ScriptedUser(f"I want {goal}", inputs, goal=goal)
    model = Reference(VerdictJudge(HANDBOOK))
    messages = [Message("system", client.instructions or ""), Message("user", user.opening())]
    frame = (await client.read_resource(FRAME_URI)).contents[0]
    assert isinstance(frame, types.TextResourceContents)
    slot = frame.text
    for _ in range(60):
        (live,) = pool.live
        shown = live.player.driver.shown()
        request = ModelRequest([*messages, Message("system", slot)], tools, shown=shown)
        reply = await model.complete(request)
        messages.append(Message("assistant", reply.content, reply.tool_calls))
        for call in reply.tool_calls:
            result = await client.call_tool(call.name, json.loads(call.arguments or "{}"))
            assert isinstance(result, types.CallToolResult)
            said = [one.text for one in result.content if isinstance(one, types.TextContent)]
            slot = said[-1]
            messages.append(Message("tool", said[0], tool_call_id=call.id, name=call.name))
            if slot.startswith("No process is running."):
                return
        if not reply.tool_calls:
            answer = await user.reply(reply.content)
            if answer is None:
                return
            messages.append(Message("user", answer))


@pytest.mark.parametrize(
    ("goal", "more", "status"),
    [
        ("ask_for_payment", {"bill_id": "B1"}, "completed"),
        ("roam", {"line_id": "L1"}, "completed"),
        ("resume", {"line_id": "L1"}, "refused"),
    ],
)
async def test_an_honest_request_is_blamed_for_nothing(
    goal: str, more: Mapping[str, JSON], status: str
) -> None:
    inputs = {"phone": "555-1", "customer_id": "C1", **more}
    report, listed = await through_the_gateway(goal, inputs, look_ups=1)
    above = [one for one in report.findings if one.severity is not Severity.NOTE]
    assert not above
    assert (report.score_card.outcome, listed) == (status, status)


async def test_reads_without_a_running_procedure_are_no_findings() -> None:
    report, _ = await through_the_gateway("", {}, look_ups=6)
    assert report.score_card.calls == 18
    assert not report.findings
