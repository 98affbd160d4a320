"""How much a run may use. The defaults are the paper's."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sopilot.language.diagnostics import UserMistake

_MAY_BE_LEFT_OUT = frozenset({"temperature", "seed", "reply_tokens"})
_MAY_BE_NOTHING = frozenset({"temperature", "user_turns", "domain_calls", "seed"})


@dataclass(frozen=True, slots=True)
class Budgets:
    """``agent_turns`` counts requests to the model, ``user_turns`` answers of the user,
    ``refresh_actions`` tool calls between two refreshes of the context, ``context_tokens`` what
    one request may hold. ``temperature``, ``seed`` and ``reply_tokens`` are sent with every
    request, and left out where they are ``None``."""

    agent_turns: int = 150
    refresh_actions: int = 50
    wall_seconds: float = 900.0
    domain_calls: int = 30
    user_turns: int = 3
    request_seconds: float = 600.0
    temperature: float | None = 0.0
    context_tokens: int = 128_000
    seed: int | None = None
    reply_tokens: int | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None and item.name in _MAY_BE_LEFT_OUT:
                continue
            least = 0 if item.name in _MAY_BE_NOTHING else 1e-9
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
    context_tokens=2**31,
)
"""Somebody else's agent has budgets of its own."""
