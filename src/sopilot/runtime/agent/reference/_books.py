"""Keeping one's place in a program that is shown whole, where nothing tells it.

The executor runs a machine of its own over what the text says and what the messages hold:
the steps that were taken, the results, the user's turns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sopilot.language.program.model import Program, Source
from sopilot.runtime.agent.arms._view import known_values
from sopilot.runtime.agent.arms.machine_state import gathered
from sopilot.runtime.agent.reference._flat_executor import Functions
from sopilot.runtime.agent.reference._moves import Move, move_in_frame
from sopilot.runtime.agent.reference._reading import ReadFrame
from sopilot.runtime.agent.reference.facts import RESULT
from sopilot.runtime.session.protocols import Message, ToolCall
from sopilot.runtime.vm import (
    TOOL_NAME,
    Configuration,
    DomainCall,
    DomainResult,
    Machine,
    Operation,
    UserSaid,
    parse_step,
)

_TAKEN = "Done"


def next_by_the_books(programs: Mapping[str, Functions], messages: Sequence[Message]) -> Move:
    """What comes next, by the program that was read and the steps that were taken."""
    read = {goal: Program(goal, functions, _NOWHERE, "") for goal, functions in programs.items()}
    machine = Machine(read, hashes=dict.fromkeys(read, ""))
    books = _Books(machine)
    calls: dict[str, ToolCall] = {}
    for message in messages:
        if message.role == "user":
            books.take(UserSaid(message.content))
        elif message.role == "assistant":
            calls.update({call.id: call for call in message.tool_calls})
        elif message.role == "tool" and message.tool_call_id in calls:
            books.answered(calls[message.tool_call_id], message.content)
    here = machine.position(books.configuration)
    if here is None:
        entries = {goal: functions[goal].parameters for goal, functions in programs.items()}
        return Move("start", goals=entries)
    results = {name: bound.holds is True for name, bound in here.frame.slots.items()}
    frame = ReadFrame(here.layout.function, here.frame.cursor, known_values(here), results)
    return replace(move_in_frame(frame), gathered=tuple(gathered(here)))


_NOWHERE = Source("", "", "")


class _Books:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.configuration: Configuration = machine.initial()

    def take(self, operation: Operation) -> None:
        self.configuration = self._machine.step(self.configuration, operation, at=0.0).configuration

    def answered(self, call: ToolCall, answer: str) -> None:
        if call.name == TOOL_NAME:
            step = parse_step(call.arguments) if answer.startswith(_TAKEN) else ""
            if not isinstance(step, str):
                self.take(step)
            return
        result = RESULT.match(answer)
        if result is None:
            return
        # Evidence is cited by the numbers that the answers have.
        seq = int(result[1])
        self.configuration = self.configuration.numbered(seq - 1)
        self.take(DomainCall(call.id, call.name, json.loads(call.arguments or "{}")))
        self.configuration = self.configuration.numbered(seq)
        self.take(DomainResult(call.id, result[2] == "ok", json.loads(result[3])))
