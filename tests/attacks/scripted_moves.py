"""Moves as data, the same for every interface, and the script of an executor that makes them."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sopilot.agent.approvers import action_schema
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.guard_answers import JUDGE_TOOL
from sopilot.views.step_tool import TOOL_NAME

Answers = Callable[[str, Mapping[str, JSON], dict[str, JSON]], JSON]
"""The world: action, arguments and its state to a value, or to a `ToolResult`."""
FAILED = ToolResult(False, {"error": "no"})
_RESULT = re.compile(r"#([0-9]+) \((?:ok|failed)\): ")
_ABBREVIATED = re.compile(r'"@[0-9a-f]{8} [^"\n]*…"')


@dataclass(frozen=True, slots=True)
class Cited:
    """The number of the n-th tool result, as the executor read it."""

    number: int


@dataclass(frozen=True, slots=True)
class Copied:
    """Word for word what the slot showed for a long value, when it showed the n-th different
    one: an executor that has nothing but the frame to copy from. ``otherwise``: where the view
    does not show it, what the executor read in the dialog."""

    number: int = 0
    otherwise: JSON = None


def copied(value: JSON) -> JSON:
    return value.otherwise if isinstance(value, Copied) else value


@dataclass(frozen=True, slots=True)
class Move:
    tool: str
    arguments: Mapping[str, JSON]


def start(goal: str, **values: JSON) -> Move:
    return Move(TOOL_NAME, {"operation": "start", "goal": goal, "arguments": values})


ENTER = Move(TOOL_NAME, {"operation": "call"})
DONE = Move(TOOL_NAME, {"operation": "complete", "summary": "done"})


def say(holds: bool, *evidence: JSON, about: str = "") -> Move:
    """The executor's verdict. Where the machine judges by itself it does not fit, and nothing
    comes of it; ``about`` keeps it from being taken for one on the next rule."""
    verdict = {"operation": "return", "holds": holds, "evidence": list(evidence)}
    return Move(TOOL_NAME, {**verdict, "function": about} if about else verdict)


def call(tool: str, **arguments: JSON) -> Move:
    return Move(tool, arguments)


def judge(check: str, holds: bool) -> Move:
    return Move(JUDGE_TOOL, {"check": check, "holds": holds})


@dataclass(frozen=True, slots=True)
class Case:
    """``attack`` ends with the guarded call that must be held, with a message that has all of
    ``says``; the guarded calls that the tools got by then are ``before``. The tools get every
    guarded call of the honest twin, on the same handbook and world, or ``done``. ``by_proof``:
    nothing but the proof holds it; else its type does, or that another value was checked."""

    number: int
    name: str
    handbook: str
    answers: Answers
    attack: Sequence[Move] = ()
    says: tuple[str, ...] = ()
    twin: Sequence[Move] = ()
    done: Sequence[tuple[str, Mapping[str, JSON]]] = ()
    before: Sequence[tuple[str, Mapping[str, JSON]]] = ()
    by_proof: bool = True
    unled: bool = False
    """The moves are those of an agent without a program: for the guard views alone."""
    replies: tuple[str, ...] = ()
    """What the user answers when the runtime asks; nothing after that."""
    meanwhile: Callable[[], Awaitable[None]] | None = None
    """What happens before each answer of the user."""
    judged: str = ""
    """Under a guard view, each step ``say`` judges this check."""

    @property
    def id(self) -> str:
        return f"{self.number:02} {self.name}"

    @property
    def carried_out_by_twin(self) -> list[tuple[str, Mapping[str, JSON]]]:
        actions = self.briefing().handbook.actions
        acts = [move for move in self.twin if move.tool != TOOL_NAME and move.tool in actions]
        return list(self.done) or [
            (act.tool, {name: copied(value) for name, value in act.arguments.items()})
            for act in acts
            if actions[act.tool].irreversible
        ]

    def moves(self, *, honest: bool, guard: bool) -> Sequence[Move]:
        """Under a guard view there is no program to be led through: the calls alone."""
        moves = self.twin if honest else self.attack
        if not guard or self.unled:
            return moves
        act = next(move for move in reversed(moves) if move.tool != TOOL_NAME)
        calls: list[Move] = []
        for move in moves:
            if move.tool != TOOL_NAME:
                calls.append(move)
            elif self.judged and move.arguments["operation"] == "return":
                # The guard names what is to be judged once the act is asked for.
                holds = move.arguments["holds"]
                first = call(act.tool, **{**act.arguments, **self._asked_for(moves)})
                calls += [first, judge(self.judged, holds)]
        return calls

    def _asked_for(self, moves: Sequence[Move]) -> Mapping[str, JSON]:
        started: Mapping[str, JSON] = moves[0].arguments["arguments"]
        return started

    def briefing(self) -> Briefing:
        return _briefing(self.handbook)


@dataclass(frozen=True, slots=True)
class Desk:
    """What is attacked: a handbook and its world, with the honest moves that go through there."""

    handbook: str
    answers: Answers
    honest: Sequence[Move]

    def attacked(
        self, number: int, name: str, moves: Sequence[Move], *says: str, **more: Any
    ) -> Case:
        return Case(number, name, self.handbook, self.answers, moves, says, self.honest, **more)


@cache
def _briefing(text: str) -> Briefing:
    handbook = load_handbook(text, "attack.yaml")
    compiled = compile_handbook(handbook)
    return Briefing(handbook, {goal: unit.program for goal, unit in compiled.items()})


class RecordingTools:
    """The world's own record of what was carried out is ``made``."""

    def __init__(self, case: Case) -> None:
        self._answers = case.answers
        self.state: dict[str, JSON] = {}
        self.made: list[tuple[str, Mapping[str, JSON]]] = []
        actions = case.briefing().handbook.actions.values()
        self._guarded = {action.name for action in actions if action.irreversible}
        self._schemas = tuple(map(action_schema, actions))

    @property
    def carried_out(self) -> list[tuple[str, Mapping[str, JSON]]]:
        return [made for made in self.made if made[0] in self._guarded]

    def schemas(self) -> Sequence[ToolSchema]:
        return self._schemas

    def perform(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        self.made.append((name, dict(arguments)))
        value = self._answers(name, arguments, self.state)
        return value if isinstance(value, ToolResult) else ToolResult(True, value)

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        return self.perform(name, arguments)


@dataclass
class Script:
    """The executor: it makes its moves whatever it is told, and reads only what it copies."""

    moves: Sequence[Move]
    answers: list[str] = field(default_factory=list)
    read_in_the_dialog: bool = False
    """Something was to be copied that no slot had shown."""
    _made: int = 0
    _numbers: list[str] = field(default_factory=list)
    _abbreviated: list[str] = field(default_factory=list)

    def next(self, slot: str) -> Move | None:
        for shown in _ABBREVIATED.findall(slot):
            if json.loads(shown) not in self._abbreviated:
                self._abbreviated.append(json.loads(shown))
        if self._made == len(self.moves):
            return None
        move = self.moves[self._made]
        self._made += 1
        return Move(
            move.tool, {name: self._filled(value) for name, value in move.arguments.items()}
        )

    def answered(self, text: str) -> None:
        self.answers.append(text)
        # A view that folds its dialog shows the same answer for several requests.
        shown = _RESULT.findall(text.partition("\n")[0])
        self._numbers += [number for number in shown if number not in self._numbers]

    def _filled(self, value: JSON) -> JSON:
        if isinstance(value, Cited):
            return f"#{self._numbers[value.number]}"
        if isinstance(value, Copied):
            if value.otherwise is not None and len(self._abbreviated) <= value.number:
                self.read_in_the_dialog = True
                return value.otherwise
            return self._abbreviated[value.number]
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, Mapping):
            return {name: self._filled(item) for name, item in value.items()}
        return value
