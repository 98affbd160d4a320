"""The replies of the reference executor."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sopilot.agent.reference.reading import ASK, Facts
from sopilot.protocols import ModelReply, ToolCall
from sopilot.values.json import JSON
from sopilot.views.step_tool import SHORT_NAME, TOOL_NAME


def not_offered(action: str) -> str:
    """Why an allowed goal can't be carried out."""
    return f"the tool {action} isn't offered"


_SHORT: Mapping[str, Callable[[Mapping[str, JSON]], Mapping[str, JSON]]] = {
    "start": lambda it: {"start": it["goal"], **_only(it, "arguments")},
    "call": lambda it: {"call": it["function"], **_only(it, "arguments")},
    "return": lambda it: (
        {"true" if it["holds"] else "false": "1"} if "holds" in it else {"operation": "return"}
    ),
    "complete": lambda it: {"complete": True},
    "fail": lambda it: {"fail": True},
}


def _only(values: Mapping[str, JSON], name: str) -> Mapping[str, JSON]:
    return {name: values[name]} if name in values else {}


class Replies:
    """Makes the replies to one request; call ids follow from how much was said already."""

    def __init__(self, facts: Facts, step: str = TOOL_NAME) -> None:
        """``step`` is the name of the bookkeeping tool, which says how it is written."""
        self._step = step
        self._number = max(facts.steps + len(facts.seen), facts.last_call)

    def ask(self, names: Sequence[str]) -> ModelReply:
        return ModelReply(f"{ASK}{', '.join(f'`{name}`' for name in names)}?")

    def refuse(self, why: str, text: str = "") -> ModelReply:
        return self.give_up(f"a requirement is not met: {why}", text)

    def give_up(self, reason: str, text: str = "") -> ModelReply:
        """``text``: all that the user may hear of it."""
        return self.step("fail", text or f"I cannot do this: {reason}.", reason=reason)

    def step(self, operation: str, /, content: str = "", **fields: JSON) -> ModelReply:
        return ModelReply(content, (self.step_call(operation, **fields),))

    def step_call(self, operation: str, /, **fields: JSON) -> ToolCall:
        values = {key: value for key, value in fields.items() if value not in (None, {}, [])}
        if self._step == SHORT_NAME and operation in _SHORT:
            return self.call(SHORT_NAME, _SHORT[operation](values))
        return self.call(self._step, {"operation": operation, **values})

    @property
    def short(self) -> bool:
        """Whether a reply may omit what the machine knows already."""
        return self._step == SHORT_NAME

    def verdicts(self, value: Sequence[tuple[str, str, bool, Sequence[str]]]) -> list[ToolCall]:
        """The calls for several verdicts, each with its number, rule and evidence, the present one
        first."""
        if self.short and value:
            sides = {
                word: " ".join(number for number, _, holds, _ in value if holds is side)
                for word, side in (("true", True), ("false", False))
            }
            return [self.call(SHORT_NAME, {word: some for word, some in sides.items() if some})]
        return [
            # A verdict given in advance names its rule.
            self.step_call(
                "return", function=rule if number != "1" else None, holds=holds, evidence=cited
            )
            for number, rule, holds, cited in value
        ]

    def in_one(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Put bookkeeping into the call that follows it, if the tool allows that."""
        joined: list[ToolCall] = []
        for call in calls:
            if self.short and joined and joined[-1].name == SHORT_NAME:
                both = {**json.loads(joined[-1].arguments), **json.loads(call.arguments)}
                joined[-1] = replace(call, arguments=json.dumps(both, ensure_ascii=False))
            else:
                joined.append(call)
        return tuple(joined)

    def tool(self, name: str, arguments: Mapping[str, JSON], content: str = "") -> ModelReply:
        return ModelReply(content, (self.call(name, arguments),))

    def call(self, name: str, arguments: Mapping[str, JSON]) -> ToolCall:
        self._number += 1
        text = json.dumps(dict(arguments), ensure_ascii=False)
        return ToolCall(f"call_{self._number}", name, text)
