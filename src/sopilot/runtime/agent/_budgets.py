"""How much a run may use. The defaults are the paper's."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sopilot.language.diagnostics import UserMistake


@dataclass(frozen=True, slots=True)
class Budgets:
    """``agent_turns`` counts requests to the model, ``user_turns`` answers of the user,
    ``refresh_actions`` tool calls between two refreshes of the context."""

    agent_turns: int = 150
    refresh_actions: int = 50
    wall_seconds: float = 900.0
    domain_calls: int = 30
    user_turns: int = 3
    request_seconds: float = 600.0
    temperature: float = 0.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            least = 0 if item.name in ("temperature", "user_turns", "domain_calls") else 1e-9
            if not isinstance(value, int | float) or isinstance(value, bool) or value < least:
                raise UserMistake(f"the budget `{item.name}` cannot be `{value}`")


DEEP_BUDGETS = Budgets(wall_seconds=1_800.0, user_turns=5)
"""For domains whose procedures are long."""
UNLIMITED = Budgets(
    agent_turns=2**31,
    refresh_actions=2**31,
    wall_seconds=float("inf"),
    domain_calls=2**31,
    user_turns=2**31,
)
"""Somebody else's agent has budgets of its own."""
