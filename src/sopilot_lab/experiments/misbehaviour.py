"""A reference executor that misbehaves: named ways, each with a rate.

It drives the tests of the audit and of the qualification.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Final

from sopilot.agent.reference.executor import MachineExecutor, Reference
from sopilot.agent.reference.judging import PredicateJudge
from sopilot.agent.reference.reading import Facts
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ModelReply, ModelRequest, ToolSchema, inputs_of, required_of
from sopilot.views.moves import Move, Shown
from sopilot.views.step_tool import TOOL_NAME

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


MOST_EXTRA_CALLS = 2


class _Tempted(MachineExecutor):
    """Opportunities are those of a frame: to enter it, and to be in it. Frames that the
    machine enters, and frames that are passed by looking ahead, tempt as much as others."""

    def __init__(
        self,
        temptation: Temptation,
        facts: Facts,
        move: Move,
        judge: PredicateJudge,
        tools: Mapping[str, ToolSchema],
        step: str,
    ) -> None:
        super().__init__(facts, move, judge, tools, step)
        self._temptation = temptation
        self._wants = facts.open[-1] if facts.open else ""

    def act(self) -> ModelReply:
        return self._astray() or super().act()

    def _astray(self) -> ModelReply | None:
        """What is done wrong at the present move."""
        kind = self._move.kind
        if kind == "complete" and self._temptation.gives_in("over_verify"):
            return self._extra_call()
        if kind == "call":
            wrong = self._entering() or self._claimed(enters=True)
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

    def beside(self, ahead: Move, edge: str) -> ModelReply | None:
        """What is done wrong at a move that the frame message shows in advance."""
        if ahead.kind not in ("tool", "judge"):
            return None
        there = copy(self)
        situation = f"{self._temptation.situation}:{edge}"
        there._temptation = replace(self._temptation, situation=situation)
        there._wants = self._wants or edge.removeprefix("start ")
        wrong = there._entering() or there._claimed()
        if wrong is None and ahead.kind == "tool":
            wrong = there._inside(ahead.name)
        return wrong

    def _entering(self) -> ModelReply | None:
        if self._temptation.gives_in("refuse_wrongly"):
            return self._replies.refuse("something")
        return self._early() if self._temptation.gives_in("act_early") else None

    def _claimed(self, *, enters: bool = False) -> ModelReply | None:
        """Claim the wanted result where the frame shows it, else that the check holds."""
        if not self._temptation.gives_in("skip_check"):
            return None
        if not enters:
            return self._replies.step("return", holds=True)
        entered = self.call().tool_calls
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
        tried = any(item.action == self._wants for item in self._facts.seen)
        if self._wants not in self._tools or tried:
            return None
        return self._with_known_values(self._tools[self._wants])

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
            if item.action == self._wants:
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


def frame_in(request: ModelRequest) -> str:
    """The text of the frame message; empty if there is none."""
    last = request.messages[-1] if len(request.messages) > 1 else None
    return last.content if last is not None and last.role == "system" else ""


class Misbehaving(Reference):
    def __init__(
        self, judge: PredicateJudge, misbehaviour: Misbehaviour, *, name: str = "reference"
    ) -> None:
        super().__init__(judge, name=name)
        self._misbehaviour = misbehaviour

    def executor(
        self,
        request: ModelRequest,
        facts: Facts,
        move: Move,
        tools: Mapping[str, ToolSchema],
        step: str = TOOL_NAME,
        *,
        situation: str = "",
    ) -> MachineExecutor:
        shown = request.shown if isinstance(request.shown, Shown) else Shown()
        temptation = Temptation(
            self._misbehaviour,
            situation=situation or f"{len(request.messages)}:{frame_in(request)[:400]}",
            paged=not shown.programs,
            characters=sum(len(message.content) for message in request.messages),
        )
        return _Tempted(temptation, facts, move, self._judge, tools, step)
