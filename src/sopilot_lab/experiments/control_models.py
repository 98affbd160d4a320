"""Agents without a policy, to be reported beside the others: a benchmark that one of these
passes says little.
"""

from __future__ import annotations

from sopilot.agent.reference.misbehaviour import Replies
from sopilot.agent.reference.reading import read_facts
from sopilot.agent.toolbox import END_SESSION
from sopilot.protocols import ModelReply, ModelRequest, ToolSchema, inputs_of, required_of
from sopilot.values.json import JSON
from sopilot.views.step_tool import STEP_NAMES

CONTROLS = ("null", "refuse-always", "call-everything")


_ASK = "What do you know?"


class ControlModel:
    """``null`` says nothing; ``refuse-always`` refuses at once; ``call-everything`` calls
    every tool for which the user gave values, once, and stops."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self.name == "null":
            return ModelReply()
        facts = read_facts(request)
        tools = {tool.name: tool for tool in request.tools}
        replies = Replies(facts)
        if self.name == "call-everything":
            if not facts.values and not facts.told_everything:
                return replies.say(_ASK)
            if not facts.seen:
                domain = [t for t in request.tools if t.name not in {*STEP_NAMES, END_SESSION}]
                calls = [
                    replies.call(tool.name, values)
                    for tool in domain
                    if (values := _values(tool, facts.values)) is not None
                ]
                if calls:
                    return ModelReply("", tuple(calls))
        if END_SESSION in tools:
            return replies.tool(END_SESSION, {"outcome": "refused", "reason": "no"})
        if not facts.open:
            goal = facts.slot.split("start ", 1)[-1].split("(", 1)[0].strip()
            return replies.step("start", goal=goal)
        return replies.step("fail", reason="no")


def _values(tool: ToolSchema, known: dict[str, JSON]) -> dict[str, JSON] | None:
    """The arguments of a call, or ``None`` where a required one is not known."""
    if any(name not in known for name in required_of(tool)):
        return None
    return {name: known[name] for name in inputs_of(tool) if name in known}
