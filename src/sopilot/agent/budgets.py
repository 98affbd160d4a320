"""How much a run may use (the paper's defaults), and what it has used, counted from its trace."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields

from sopilot.agent.dialog import MODEL_REQUEST
from sopilot.agent.result import RequestRecord
from sopilot.messages.errors import UserMistake
from sopilot.session.questions import RunPaused
from sopilot.session.session import Session
from sopilot.trace.events import Actor

_MAY_BE_LEFT_OUT = frozenset({"temperature", "seed", "reply_tokens"})
_MAY_BE_NOTHING = frozenset({"temperature", "user_turns", "domain_calls", "seed"})


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits of a run. ``agent_turns`` counts requests to the model and ``user_turns`` answers of
    the user. ``refresh_actions`` counts tool calls between two refreshes of the context.
    ``context_tokens`` limits the size of a request. Every request carries ``temperature``, ``seed``
    and ``reply_tokens`` unless they are ``None``."""

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
"""For agents that have their own budgets."""
_RECORDED = tuple(item.name for item in fields(RequestRecord))
_CHARACTERS_PER_TOKEN = 4.0
"""An estimate for the first request, before the provider has counted tokens."""


class BudgetSpent(RunPaused):
    """A limit of the run is reached. A question to the user stays open."""

    def __init__(self, budget: str, limit: float) -> None:
        super().__init__(f"the budget of {limit:g} {budget.replace('_', ' ')} is spent")
        self.budget = budget
        self.limit = limit


@dataclass(slots=True)
class Spending:
    """The wall clock counts the present process only; everything else the whole session."""

    session: Session
    budgets: Budgets
    begun: float
    domain_calls: int = 0
    agent_turns: int = 0
    user_turns: int = 0
    requests: list[RequestRecord] = field(default_factory=list)

    @classmethod
    def of(cls, session: Session, budgets: Budgets) -> Spending:
        spending = cls(session, budgets, session.clock.now())
        reply = 0
        for event in session.own_events:
            if event.kind == "domain_call" and event.actor == Actor.MODEL:
                spending.domain_calls += 1
            elif event.kind == "user_said":
                reply += 1
            elif event.note == MODEL_REQUEST:
                details = event.details
                blank = {item.name: 0 for item in fields(RequestRecord) if item.default is MISSING}
                known = {name: details[name] for name in _RECORDED if name in details}
                spending.requests.append(RequestRecord(**blank | known))
        spending.agent_turns = len(spending.requests)
        spending.user_turns = max(0, reply - 1)
        return spending

    def spent(self, budget: str) -> BudgetSpent:
        return BudgetSpent(budget, getattr(self.budgets, budget))

    def seconds_left(self) -> float:
        left = self.begun + self.budgets.wall_seconds - self.session.clock.now()
        if left <= 0:
            raise self.spent("wall_seconds")
        return left

    def spend_agent_turn(self) -> None:
        self.seconds_left()
        if self.agent_turns >= self.budgets.agent_turns:
            raise self.spent("agent_turns")
        self.agent_turns += 1

    def check_context(self, characters: int) -> None:
        """Whether a request of so many characters fits. Estimated from what the provider
        counted for the one before, which it grew from."""
        limit = self.budgets.context_tokens
        last = self.requests[-1] if self.requests else None
        tokens = characters / _CHARACTERS_PER_TOKEN
        if last is not None and last.prompt_tokens and last.characters:
            grown = characters - last.characters
            tokens = last.prompt_tokens + grown * min(1.0, last.prompt_tokens / last.characters)
        if tokens > limit:
            raise self.spent("context_tokens")

    def spend_domain_call(self) -> None:
        self.seconds_left()
        if self.domain_calls >= self.budgets.domain_calls:
            raise self.spent("domain_calls")
        self.domain_calls += 1

    def spend_user_turn(self) -> None:
        if self.user_turns >= self.budgets.user_turns:
            raise self.spent("user_turns")
        self.user_turns += 1
