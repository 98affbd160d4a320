"""What small desks are made of: the programs of a handbook, and tools that answer by a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook
from sopilot.program.model import Program
from sopilot.protocols import ToolResult, ToolSchema

Answers = Callable[[str, Mapping[str, Any]], Any]
"""A tool's name and arguments → its value, a whole result, or something to wait for."""


def programs_of(handbook: str | Handbook) -> dict[str, Program]:
    book = load_handbook(handbook, "desk.yaml") if isinstance(handbook, str) else handbook
    return {goal: unit.program for goal, unit in compile_handbook(book).items()}


class AnsweringTools:
    """``made`` are the calls in their order."""

    def __init__(self, answers: Answers, schemas: Sequence[ToolSchema] = ()) -> None:
        self.answers = answers
        self.made: list[tuple[str, dict[str, Any]]] = []
        self._schemas = schemas

    def schemas(self) -> Sequence[ToolSchema]:
        return self._schemas

    def given(self, action: str) -> list[dict[str, Any]]:
        """The arguments of every call of the action."""
        return [arguments for name, arguments in self.made if name == action]

    async def call(self, name: str, arguments: Mapping[str, Any], *, key: str) -> ToolResult:
        self.made.append((name, dict(arguments)))
        value = self.answers(name, arguments)
        if isinstance(value, Awaitable):
            value = await value
        return value if isinstance(value, ToolResult) else ToolResult(True, value)
