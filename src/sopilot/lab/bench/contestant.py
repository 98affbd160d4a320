"""Who is to run the tasks, and on which terms: what a person writes down of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sopilot.adapters.model_by_name import asked_model, public_name
from sopilot.runtime.agent import Retries
from sopilot.runtime.session.protocols import Usage

ANY: Final = "any"
"""Whichever model answers: the name that an endpoint tells is not compared."""
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Contestant:
    """``name`` is what ``--model`` takes, an address among it; ``alias`` is what records and
    reports call it. ``price`` is of a million prompt and a million completion tokens.
    ``served`` is the model that answers must name, by default the one that was asked for."""

    name: str
    alias: str = ""
    key_variable: str | None = None
    served: str | None = None
    price: tuple[float, float] | None = None

    @property
    def label(self) -> str:
        return self.alias or public_name(self.name)

    @property
    def expected(self) -> str | None:
        if self.served == ANY:
            return None
        return self.served or asked_model(self.name)

    def cost(self, *used: Usage) -> float | None:
        """Of what was used, in the price's currency; ``None`` without a price."""
        if self.price is None:
            return None
        prompt, completion = self.price
        total = sum((one for one in used), Usage())
        return (total.prompt_tokens * prompt + total.completion_tokens * completion) / _MILLION


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a sweep bears with a provider. ``retries`` are of one request; a run that still
    breaks is made again up to ``redraws`` times, unless the same would happen again. A sweep
    stops when more than ``most_missing`` of the tasks that were tried, and at least
    ``fewest_tried`` of them, stayed without a judged run."""

    retries: Retries = Retries()  # noqa: RUF009  frozen, and made of numbers
    redraws: int = 2
    most_missing: float = 0.5
    fewest_tried: int = 10


def lasting(fault: str) -> bool:
    """Whether the same run would break in the same way: a refused request, a filter."""
    passing = ("http-408", "http-409", "http-425", "http-429")
    return fault == "content-filter" or (fault.startswith("http-4") and fault not in passing)


def concerns_all(fault: str) -> bool:
    """A key, an account or an address that is wrong is wrong for every task."""
    return fault in ("http-401", "http-402", "http-403", "http-404")
