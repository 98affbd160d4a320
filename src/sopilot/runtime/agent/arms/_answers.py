"""How much the answer to a step tells of where the program stands."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from sopilot.language.render import words
from sopilot.language.render.phrases import said_in
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


def step_answer(outcome: Outcome, answers: Answers, language: str = "en") -> str:
    if answers is not Answers.BLIND:
        return answer_text(outcome, language, terse=answers is Answers.SHORT)
    if outcome.accepted:
        return "\n".join([answer_text(outcome, language, terse=True), *passed(outcome, language)])
    table = words(language)
    told = outcome.answer
    placed = told["code"] in TELL_THE_PLACE
    problem = table["not_here"] if placed else said_in(told["problem"], language).rstrip(".")
    return table["nothing_done"].format(problem=problem)


def passed(outcome: Outcome, language: str = "en") -> list[str]:
    """The checks that the machine took as passed behind the step, and why."""
    said = words(language)["passed"]
    return [
        said.format(label=row["label"], ground=said_in(row["ground"], language))
        for row in outcome.answer.get("passed", ())
    ]
