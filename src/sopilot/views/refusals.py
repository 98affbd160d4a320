"""Why a request was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request was refused: what fails, what shows it, what could be done.
    ``customer_message`` is all that the customer hears of it, where the handbook has one;
    ``state`` says how the check came out."""

    rule: str
    sentence: str
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    customer_message: str = ""
    state: str = ""


def to_customer(refusals: Sequence[Refusal]) -> str:
    return " ".join(
        dict.fromkeys(refusal.customer_message for refusal in refusals if refusal.customer_message)
    )
