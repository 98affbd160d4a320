"""Why a request was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sopilot.handbook.grammar import in_language
from sopilot.program.model import Function, Program
from sopilot.views.check_sentences import telling

EVIDENCE_SHOWN = 160
"""Characters of an answer that a refusal quotes."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason for a refusal: the requirement that isn't met, its evidence and its remedy.
    ``customer_message`` is the only text that the customer hears, if the handbook has it. ``state``
    is the outcome of the check."""

    rule: str
    sentence: str
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    customer_message: str = ""
    state: str = ""


def refusal(
    function: Function,
    program: Program,
    sentence: str,
    evidence: tuple[str, ...],
    language: str,
    state: str = "",
) -> Refusal:
    """Why this check refuses a request, in the words of the handbook."""
    remedy = in_language(function.remedy, language)
    message = " ".join(telling([function.name], program, language))
    return Refusal(function.judges, sentence, evidence, remedy, message, state)


def to_customer(refusals: Sequence[Refusal]) -> str:
    return " ".join(
        dict.fromkeys(refusal.customer_message for refusal in refusals if refusal.customer_message)
    )
