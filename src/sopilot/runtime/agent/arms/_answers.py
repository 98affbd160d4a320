"""How much the answer to a step tells of where the program stands."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from sopilot.runtime.vm import Outcome, answer_text

TELL_THE_PLACE: Final = frozenset(
    {"wrong-step", "wrong-function", "not-accepting", "wrong-artifact"}
)
"""Refusals whose reason names the step at the cursor."""


class Answers(StrEnum):
    """``whole``: the position and what fits there. ``short``: nothing of it where the step was
    taken, for the slot shows it. ``blind``: never anything of it but the checks that the machine
    passed by itself, which are books and not a place; then a refreshed context must keep the
    bookkeeping, for nothing else tells the model where it is."""

    WHOLE = "whole"
    SHORT = "short"
    BLIND = "blind"


def step_answer(outcome: Outcome, answers: Answers) -> str:
    if answers is Answers.WHOLE or (answers is Answers.SHORT and not outcome.accepted):
        return answer_text(outcome)
    if outcome.accepted:
        done = f"Done: {outcome.events[0].kind if outcome.events else 'nothing to do'}."
        return "\n".join([done, *(passed(outcome) if answers is Answers.BLIND else ())])
    told = outcome.answer
    if told["code"] in TELL_THE_PLACE:
        return "Nothing was done: this step does not fit where the program stands."
    return f"Nothing was done: {told['problem']}."


def passed(outcome: Outcome) -> list[str]:
    """The checks that the machine took as passed behind the step, and why."""
    rows = outcome.answer.get("passed", ())
    return [f"Passed {row['label']}: {row['ground']}." for row in rows]
