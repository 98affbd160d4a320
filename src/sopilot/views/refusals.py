from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request was refused: what fails, what shows it, what could be done. Where it
    ``customer_message`` something, the customer hears that and nothing else of it."""

    rule: str
    sentence: str
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    customer_message: str = ""


def to_customer(refusals: Sequence[Refusal]) -> str:
    return " ".join(dict.fromkeys(one.customer_message for one in refusals if one.customer_message))
