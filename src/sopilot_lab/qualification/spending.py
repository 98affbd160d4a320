"""What a check may use: requests, money, minutes; and what it has used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from sopilot.protocols import Usage
from sopilot_lab.qualification.rehearsal import Estimate
from sopilot_lab.qualification.running import SPARE_TURNS, TURNS_FACTOR

CALLS = 20_000


MINUTES = 25.0


_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Per million tokens. Without prices money is not counted, and not said to be 0."""

    prompt: float = 0.0
    completion: float = 0.0

    @property
    def known(self) -> bool:
        return self.prompt > 0.0 or self.completion > 0.0

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION


@dataclass(frozen=True, slots=True)
class Allowance:
    """``calls`` are requests to the model, exceeded only by repeated attempts of what is under
    way; ``money`` may be exceeded by what the runs under way cost more than expected."""

    calls: int = CALLS
    money: float | None = None
    minutes: float = MINUTES
    prices: Prices = field(default_factory=Prices)


class Spent(Protocol):
    """What a run or a question took."""

    @property
    def requests(self) -> int: ...

    @property
    def prompt_tokens(self) -> int: ...

    @property
    def completion_tokens(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Question:
    usage: Usage
    requests: int = 1

    @property
    def prompt_tokens(self) -> int:
        return self.usage.prompt_tokens

    @property
    def completion_tokens(self) -> int:
        return self.usage.completion_tokens


@dataclass(slots=True)
class CheckSpending:
    """``reserved`` is the worst case of what is under way."""

    allowance: Allowance
    calls: int = 0
    money: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reserved_calls: int = 0
    reserved_money: float = 0.0

    def add(self, spent: Spent) -> None:
        self.calls += spent.requests
        self.add_tokens(spent.prompt_tokens, spent.completion_tokens)

    def add_tokens(self, prompt: int, completion: int) -> None:
        self.prompt_tokens += prompt
        self.completion_tokens += completion
        self.money = self.allowance.prices.cost(self.prompt_tokens, self.completion_tokens)

    def refuses(self, calls: int, money: float) -> str | None:
        """The budget that has no room for this much more, if there is one."""
        if self.calls + self.reserved_calls + calls > self.allowance.calls:
            return f"the budget of {self.allowance.calls} requests"
        most = self.allowance.money
        if most is not None and self.money + self.reserved_money + money > most:
            return f"the budget of {most:g} in money"
        return None


def worst_calls(turns: int, runs: int) -> int:
    return runs * (TURNS_FACTOR * turns + SPARE_TURNS)


def likely_money(estimate: Estimate, prices: Prices) -> float:
    """Twice what the reference executor would cost: models take detours."""
    return 2 * prices.cost(estimate.prompt_tokens, estimate.completion_tokens)
