"""The classes of attack that once worked, as data for every door."""

from __future__ import annotations

import pytest
from attacks_on_evidence import ON_EVIDENCE
from attacks_on_people import ON_PEOPLE
from attacks_on_values import ON_VALUES
from attacks_on_words import ON_WORDS
from scripted_moves import Case, RecordingTools, Script

from sopilot.views.catalogue import VIEWS
from sopilot.views.view import View

CASES: tuple[Case, ...] = (*ON_VALUES, *ON_EVIDENCE, *ON_WORDS, *ON_PEOPLE)
ONE_OF_EACH_CLASS = tuple({case.number: case for case in reversed(CASES)}.values())
VIEWS_WITH_A_MACHINE = tuple(name for name, view in VIEWS.items() if view.machine)
VIEWS_WITH_STEPS = tuple(name for name, view in VIEWS.items() if view.has_steps)
"""Honest scripts keep the program's books; under the guard nobody does."""
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
NOT_MADE = ("Not called: ", "Not done: ")
GUARDED = (*NOT_MADE, "Not called yet: ", "Refused: ")


LAWFUL_WITHOUT_STEPS = {
    "05 text at the start, a number at the act": ("ask", "auto"),
    "12 a text that the executor cut itself": ("auto",),
    "12 one guest of a list that is too long for a frame": ("auto",),
}
"""Attacks on a start or on a copied value. The guard has no start, and with ``auto`` the runtime
reads for exactly the values of the call: the requirement is met, and the call is lawful."""


def assert_held(case: Case, view: View, script: Script, tools: RecordingTools) -> None:
    """By the world's own record, and with a message that says what is missing. A machine that
    judges by itself found it out before, and the message names the check that is not met."""
    if view.guard in LAWFUL_WITHOUT_STEPS.get(case.id, ()):
        last = case.attack[-1]
        assert tools.carried_out == [*case.before, (last.tool, last.arguments)]
        return
    assert tools.carried_out == list(case.before)
    assert len(script.answers) == len(case.attack)
    told = script.answers[-1]
    assert told.startswith(GUARDED if view.guard else NOT_MADE), told
    if view.guard:
        return  # it names the calls to make first, which may be others than the machine's
    found_before = view.automation.machine_verdicts and "@refuse" in told
    for word in case.says[:1] if found_before else case.says:
        assert word in told, (word, told)


def assert_done(case: Case, script: Script, tools: RecordingTools) -> None:
    assert tools.carried_out == list(case.done), script.answers
    assert "(ok): " in script.answers[-1], script.answers[-1]
