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


WALLET = """
handbook: wallet
actions:
  list_cards: {input: {user: string}, read_only: true}
  read_card: {input: {number: integer}, read_only: true}
  pay: {input: {user: string}, irreversible: true, confirm: false}
  lend: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  all_valid(user):
    says: Every card is valid.
    verify:
      all:
        - list_cards(user)
        - {call: read_card(card.number), for_each: list_cards.cards as card}
    verdict: result.all(item, item.valid)
  second_valid(user):
    says: The second card is valid.
    verify: {all: [list_cards(user), "read_card(list_cards.cards[1].number)"]}
    verdict: result.valid
procedures:
  pay: {requires: all_valid(user)}
  lend: {requires: second_valid(user)}
"""


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
