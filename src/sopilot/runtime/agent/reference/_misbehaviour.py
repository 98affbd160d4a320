"""Named ways to misbehave, each with a rate; they drive the tests of audit and discipline check."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields
from typing import Final

from sopilot.language.diagnostics import UserMistake

SWITCHES: Final = (
    "skip_check",
    "act_early",
    "over_verify",
    "return_without_evidence",
    "refuse_wrongly",
    "ignore_frame",
)


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """Rates between 0 and 1, drawn anew at every opportunity.

    ``skip_check`` claims what the SOP wants instead of checking it.
    ``act_early`` calls the goal action before the checks.
    ``over_verify`` goes on calling tools after the goal was reached.
    ``return_without_evidence`` guesses a verdict without calling a tool.
    ``refuse_wrongly`` gives up without a reason.
    ``ignore_frame`` calls a tool that has nothing to do with the present step.
    ``only_when_paged`` restricts them to requests that show a frame without the program,
    ``only_when_long`` to requests of at least so many characters.
    """

    skip_check: float = 0.0
    act_early: float = 0.0
    over_verify: float = 0.0
    return_without_evidence: float = 0.0
    refuse_wrongly: float = 0.0
    ignore_frame: float = 0.0
    seed: int = 0
    only_when_paged: bool = False
    only_when_long: int = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.name in SWITCHES and not 0 <= getattr(self, item.name) <= 1:
                raise UserMistake(f"the rate of `{item.name}` must be between 0 and 1")


@dataclass(frozen=True, slots=True)
class Temptation:
    """One opportunity: the same request is always tempted in the same way."""

    misbehaviour: Misbehaviour
    situation: str
    paged: bool
    characters: int

    def gives_in(self, switch: str) -> bool:
        rate: float = getattr(self.misbehaviour, switch)
        if rate <= 0 or (self.misbehaviour.only_when_paged and not self.paged):
            return False
        if self.characters < self.misbehaviour.only_when_long:
            return False
        return self.random(switch).random() < rate

    def random(self, switch: str) -> random.Random:
        return random.Random(f"{self.misbehaviour.seed}:{switch}:{self.situation}")
