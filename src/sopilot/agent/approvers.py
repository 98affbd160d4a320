"""Simulated people: users by script, and approvers; actions as tools."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from sopilot.handbook.model import Action
from sopilot.machine.call_ledger import HeldCall
from sopilot.protocols import ToolCall, ToolSchema
from sopilot.records.entitlements import Vote
from sopilot.records.people import THE_MACHINE
from sopilot.values.json import JSON
from sopilot.values.text import visible


class Operator(Protocol):
    async def decide(self, held: HeldCall) -> Sequence[Vote]:
        """The decisions for now; without any, the run has to wait."""
        ...


@runtime_checkable
class KeepsUnmadeCalls(Protocol):
    """Tools with a log of their own in which malformed calls have to stand as well."""

    async def unmade(self, call: ToolCall, problem: str) -> bool:
        """Runs nothing. Whether the call is in the log."""
        ...


@dataclass(frozen=True, slots=True)
class RoleApprovers:
    """Approves at once, as one person in each of these roles."""

    roles: tuple[str, ...]

    async def decide(self, held: HeldCall) -> Sequence[Vote]:
        values = {(ruling.by, ruling.role) for ruling in held.rulings}
        votes = [
            Vote("approve", f"the {role}", role, who=THE_MACHINE)
            for role in self.roles
            if role in held.roles
        ]
        # A resumed run may have their approval already.
        return [vote for vote in votes[: held.needed] if (vote.by, vote.role) not in values]


def offered_tools(actions: Mapping[str, Action]) -> tuple[ToolSchema, ...]:
    """A handbook's actions as the tools of an agent."""
    return tuple(action_schema(action) for action in actions.values() if action.offered)


def action_schema(action: Action) -> ToolSchema:
    """An action of a handbook as a tool."""
    properties: dict[str, Any] = {}
    for item in action.inputs:
        properties[item.name] = dict(item.schema) if item.schema else {"type": item.type}
        if item.says:
            properties[item.name]["description"] = item.says
    return ToolSchema(
        action.name,
        action.says,
        {
            "type": "object",
            "properties": properties,
            "required": [item.name for item in action.inputs if item.required],
            "additionalProperties": False,
        },
    )


_ASKS = re.compile(
    r"[?？]|\b(please|provide|tell me|share|enter|send me|specify|confirm|need|let me know)\b|"
    r"请|提供|告诉我|告知我|需要|多少|什么",
    re.IGNORECASE,
)

_ENDS = re.compile(
    r"\b(done|complete[d]?|carried out|success(ful(ly)?)?|booked|refuse[d]?|decline[d]?|"
    r"reject(ed)?|deny|denied|cannot|can't|can not|unable|not (?:able|allowed|possible)|sorry|"
    r"unfortunately|goodbye|bye|that is all|leave (?:it|this))\b|"
    r"办理完毕|已完成|已办理|成功|无法|不能|拒绝|抱歉|对不起|再见",
    re.IGNORECASE,
)

EVERYTHING_TOLD: Final = "I have told you everything I know."


class ScriptedUser:
    """``request`` opens the dialog. Every answer has all values that the user knows, one per
    line; values in ``late`` only from the second answer on. Each answer begins with the next of
    the ``follow_ups`` and names ``goal``. ``answers`` are replies to the runtime's questions, by
    subject. The dialog ends with a message that asks nothing, if the user has nothing new to say
    or the agent has said how the request ended.
    """

    def __init__(
        self,
        request: str,
        inputs: Mapping[str, JSON],
        *,
        goal: str | None = None,
        late: Sequence[str] = (),
        follow_ups: Sequence[str] = (),
        answers: Mapping[str, str] | None = None,
    ) -> None:
        self._answers = dict(answers or {})
        self._request = request
        self._inputs = dict(inputs)
        self._goal = goal
        self._late = frozenset(late)
        self._follow_ups = tuple(follow_ups)
        self._turns = 0

    def opening(self) -> str:
        return self._request

    def skip(self, turns: int) -> None:
        """The first ``turns`` answers were given before an interruption."""
        self._turns = turns

    async def answer(self, about: str, question: str) -> str | None:
        """Answer the runtime's own question: yes, unless a reply was written down."""
        return self._answers.get(about, "yes")

    async def reply(self, message: str) -> str | None:
        turn = self._turns
        nothing_new = turn > (1 if self._late else 0)
        is_question = _is_question(message)
        if (
            turn >= len(self._follow_ups)
            and not is_question
            and (nothing_new or _is_farewell(message))
        ):
            return None
        self._turns += 1
        lines = [self._follow_ups[turn]] if turn < len(self._follow_ups) else []
        if self._goal is not None:
            lines.append(f"goal: {json.dumps(self._goal)}")
        for name, value in self._inputs.items():
            if turn > 0 or name not in self._late:
                lines.append(f"{name}: {visible(json.dumps(value, ensure_ascii=False))}")
        if nothing_new:
            lines.append(EVERYTHING_TOLD)
        return "\n".join(lines) or EVERYTHING_TOLD


def _is_question(message: str) -> bool:
    return _ASKS.search(message) is not None


def _is_farewell(message: str) -> bool:
    return _ENDS.search(message) is not None
