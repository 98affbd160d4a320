"""What the reference executor says and calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sopilot.runtime.agent.reference.facts import ASK, Facts
from sopilot.runtime.session.protocols import JSON, ModelReply, ToolCall
from sopilot.runtime.vm import TOOL_NAME


def not_offered(action: str) -> str:
    """Why a goal is given up that every requirement allows."""
    return f"the tool {action} is not on offer"


class Replies:
    """Makes the replies to one request; call ids follow from how much was said already."""

    def __init__(self, facts: Facts) -> None:
        self._number = max(facts.steps + len(facts.seen), facts.last_call)

    def say(self, text: str) -> ModelReply:
        return ModelReply(text)

    def ask(self, names: Sequence[str]) -> ModelReply:
        return ModelReply(f"{ASK}{', '.join(f'`{name}`' for name in names)}?")

    def refuse(self, why: str) -> ModelReply:
        return self.give_up(f"a requirement is not met: {why}")

    def give_up(self, reason: str) -> ModelReply:
        return self.step("fail", f"I cannot do this: {reason}.", reason=reason)

    def step(self, operation: str, /, content: str = "", **fields: JSON) -> ModelReply:
        return ModelReply(content, (self.step_call(operation, **fields),))

    def step_call(self, operation: str, /, **fields: JSON) -> ToolCall:
        given = {key: value for key, value in fields.items() if value not in (None, {}, [])}
        return self.call(TOOL_NAME, {"operation": operation, **given})

    def tool(self, name: str, arguments: Mapping[str, JSON], content: str = "") -> ModelReply:
        return ModelReply(content, (self.call(name, arguments),))

    def call(self, name: str, arguments: Mapping[str, JSON]) -> ToolCall:
        self._number += 1
        text = json.dumps(dict(arguments), ensure_ascii=False)
        return ToolCall(f"call_{self._number}", name, text)
