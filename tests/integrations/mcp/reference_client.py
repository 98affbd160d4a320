"""An agent that only speaks MCP: the reference executor behind a client connection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp.client import Client

from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.reference.executor import Reference
from sopilot.integrations.mcp.content import SESSION_META
from sopilot.integrations.mcp.server import FRAME_URI
from sopilot.protocols import Message, ModelRequest, ToolSchema
from sopilot.tasks.examples.example import Example
from sopilot.tasks.examples.judge import example_judge
from sopilot.tasks.examples.task import ExampleTask
from sopilot.views.step_tool import TOOL_NAME

MOST_TURNS = 120


@dataclass
class Driven:
    session_id: str = ""
    calls: list[tuple[str, Mapping[str, Any], bool]] = field(default_factory=list)
    ended: bool = False


def texts(result: types.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, types.TextContent)]


async def drive(
    client: Client, example: Example, task: ExampleTask, *, stop_when_held: bool = False
) -> Driven:
    """One task to its end. The user is on this side, as with any agent's own user."""
    listed = await client.list_tools()
    tools = [ToolSchema(one.name, one.description or "", one.input_schema) for one in listed.tools]
    user = scripted_user(task)
    model = Reference(example_judge(example))
    messages = [Message("system", client.instructions or ""), Message("user", user.opening())]
    contents = (await client.read_resource(FRAME_URI)).contents[0]
    assert isinstance(contents, types.TextResourceContents)
    slot = contents.text
    driven = Driven()
    for _ in range(MOST_TURNS):
        reply = await model.complete(ModelRequest([*messages, Message("system", slot)], tools))
        messages.append(Message("assistant", reply.content, reply.tool_calls))
        for call in reply.tool_calls:
            result = await client.call_tool(call.name, json.loads(call.arguments or "{}"))
            assert isinstance(result, types.CallToolResult)
            said = texts(result)
            slot = said[-1]
            driven.session_id = (result.meta or {})[SESSION_META]
            messages.append(Message("tool", said[0], tool_call_id=call.id, name=call.name))
            driven.calls.append((call.name, json.loads(call.arguments or "{}"), result.is_error))
            if stop_when_held and "waits for approval" in said[0]:
                return driven
            if call.name == TOOL_NAME and slot.startswith("No process is running."):
                driven.ended = True
                return driven
        if not reply.tool_calls:
            answer = await user.reply(reply.content)
            if answer is None:
                return driven
            messages.append(Message("user", answer))
    return driven


def scripted_user(task: ExampleTask) -> ScriptedUser:
    return ScriptedUser(
        task.request, task.inputs, goal=task.goal, late=task.late, follow_ups=task.follow_ups
    )
