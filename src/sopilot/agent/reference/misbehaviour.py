"""The replies of the reference executor, and named ways to misbehave, each with a rate.

They drive the tests of the audit and of the qualification.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from sopilot.agent.reference.reading import ASK, Facts
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ModelReply, ToolCall, ToolSchema, inputs_of, required_of
from sopilot.values.json import JSON
from sopilot.views.moves import Move
from sopilot.views.step_tool import SHORT_NAME, TOOL_NAME

SWITCHES: Final = (
    "skip_check",
    "act_early",
    "over_verify",
    "return_without_evidence",
    "refuse_wrongly",
    "ignore_frame",
)


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """Rates between 0 and 1, drawn anew at every opportunity.

    ``skip_check`` claims what the SOP wants instead of checking it.
    ``act_early`` calls the goal action before the checks.
    ``over_verify`` goes on calling tools after the goal was reached.
    ``return_without_evidence`` guesses a verdict without calling a tool.
    ``refuse_wrongly`` gives up without a reason.
    ``ignore_frame`` calls a tool that has nothing to do with the present step.
    ``only_when_paged`` restricts them to requests that show a frame without the program,
    ``only_when_long`` to requests of at least so many characters.
    """

    skip_check: float = 0.0
    act_early: float = 0.0
    over_verify: float = 0.0
    return_without_evidence: float = 0.0
    refuse_wrongly: float = 0.0
    ignore_frame: float = 0.0
    seed: int = 0
    only_when_paged: bool = False
    only_when_long: int = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.name in SWITCHES and not 0 <= getattr(self, item.name) <= 1:
                raise UserMistake(f"the rate of `{item.name}` must be between 0 and 1")


@dataclass(frozen=True, slots=True)
class Temptation:
    """One opportunity: the same request is always tempted in the same way."""

    misbehaviour: Misbehaviour
    situation: str
    paged: bool
    characters: int

    def gives_in(self, switch: str) -> bool:
        rate: float = getattr(self.misbehaviour, switch)
        if rate <= 0 or (self.misbehaviour.only_when_paged and not self.paged):
            return False
        if self.characters < self.misbehaviour.only_when_long:
            return False
        return self.random(switch).random() < rate

    def random(self, switch: str) -> random.Random:
        return random.Random(f"{self.misbehaviour.seed}:{switch}:{self.situation}")


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
        """Whether what the machine has need not be written."""
        return self._step == SHORT_NAME

    def verdicts(self, value: Sequence[tuple[str, str, bool, Sequence[str]]]) -> list[ToolCall]:
        """Several, each with its number, rule, verdict and evidence; the first is the present."""
        if self.short and value:
            sides = {
                word: " ".join(number for number, _, holds, _ in value if holds is side)
                for word, side in (("true", True), ("false", False))
            }
            return [self.call(SHORT_NAME, {word: some for word, some in sides.items() if some})]
        return [
            # One that is given in advance says what it is about.
            self.step_call(
                "return", function=rule if number != "1" else None, holds=holds, evidence=cited
            )
            for number, rule, holds, cited in value
        ]

    def in_one(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Bookkeeping in the call that follows it, where the tool can be written so."""
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


MOST_EXTRA_CALLS = 2


class MachineMisbehaviour:
    """Opportunities are those of a frame: to enter it, and to be in it. Frames that the
    machine enters, and frames that are passed by looking ahead, tempt as much as others."""

    def __init__(
        self,
        facts: Facts,
        move: Move,
        temptation: Temptation,
        tools: Mapping[str, ToolSchema],
        replies: Replies,
    ) -> None:
        self._facts = facts
        self._move = move
        self._temptation = temptation
        self._tools = tools
        self._replies = replies
        self._goal = facts.open[-1] if facts.open else ""

    def now(self, enter: Callable[[], ModelReply]) -> ModelReply | None:
        """At the present move; ``enter`` calls the function that is due, if one is."""
        kind = self._move.kind
        if kind == "complete" and self._temptation.gives_in("over_verify"):
            return self._extra_call()
        if kind == "call":
            wrong = self._entering() or self._claimed(enter)
            if wrong is None and self._temptation.gives_in("ignore_frame"):
                wrong = self._unrelated(self._move.name)
            return wrong
        if kind in ("tool", "judge") and self._entered_by_machine():
            wrong = self._entering() or self._claimed()
            if wrong is not None:
                return wrong
        if kind == "judge" and not self._move.recipes and not self._temptation.paged:
            # In a long text, values are guessed at as much as answers.
            guesses = self._temptation.gives_in("return_without_evidence")
            return self._replies.step("return", holds=True) if guesses else None
        return self._inside(self._move.name) if kind == "tool" else None

    def ahead(self, ahead: Move, edge: str) -> ModelReply | None:
        """At a move that the frame message shows in advance, behind ``edge``."""
        if ahead.kind not in ("tool", "judge"):
            return None
        there = MachineMisbehaviour(
            self._facts,
            self._move,
            replace(self._temptation, situation=f"{self._temptation.situation}:{edge}"),
            self._tools,
            self._replies,
        )
        there._goal = self._goal or edge.removeprefix("start ")
        wrong = there._entering() or there._claimed()
        if wrong is None and ahead.kind == "tool":
            wrong = there._inside(ahead.name)
        return wrong

    def _entering(self) -> ModelReply | None:
        if self._temptation.gives_in("refuse_wrongly"):
            return self._replies.refuse("something")
        return self._early() if self._temptation.gives_in("act_early") else None

    def _claimed(self, enter: Callable[[], ModelReply] | None = None) -> ModelReply | None:
        """Claim the wanted result where the frame shows it, else that the check holds."""
        if not self._temptation.gives_in("skip_check"):
            return None
        if enter is None:
            return self._replies.step("return", holds=True)
        entered = enter().tool_calls
        if not entered:
            return None
        claimed = self._replies.step_call("return", holds=self._move.wanted)
        return ModelReply("", (*entered, claimed))

    def _inside(self, action: str) -> ModelReply | None:
        """Where ``action`` is due."""
        if self._temptation.gives_in("return_without_evidence"):
            return self._replies.step("return", holds=True)
        if self._temptation.gives_in("ignore_frame"):
            return self._unrelated(action)
        return None

    def _entered_by_machine(self) -> bool:
        """Whether the machine, not a call of ours, opened the frame."""
        stack = self._facts.stack
        return self._move.gathered == () and (not stack or stack[-1] != self._move.function)

    def _early(self) -> ModelReply | None:
        tried = any(item.action == self._goal for item in self._facts.seen)
        if self._goal not in self._tools or tried:
            return None
        return self._with_known_values(self._tools[self._goal])

    def _unrelated(self, action: str) -> ModelReply | None:
        others = [tool for name, tool in sorted(self._tools.items()) if name != action]
        self._temptation.random("which").shuffle(others)
        for tool in others:
            reply = self._with_known_values(tool)
            if reply is not None:
                return reply
        return None

    def _extra_call(self) -> ModelReply | None:
        after_goal = 0
        for item in reversed(self._facts.seen):
            if item.action == self._goal:
                break
            after_goal += 1
        if after_goal >= MOST_EXTRA_CALLS:
            return None
        for item in self._facts.seen:
            if item.ok and item.action not in self._facts.open and item.action in self._tools:
                known = self._with_known_values(self._tools[item.action])
                return known or self._replies.tool(item.action, item.arguments)
        return None

    def _with_known_values(self, tool: ToolSchema) -> ModelReply | None:
        """A call with the values that are known; none if a required value is missing."""
        known = self._facts.values
        if any(known.get(name) is None for name in required_of(tool)):
            return None
        values = {name: known[name] for name in inputs_of(tool) if known.get(name) is not None}
        return self._replies.tool(tool.name, values)
