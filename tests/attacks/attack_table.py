"""The classes of attack that once worked, as data for every interface."""

from __future__ import annotations

from attacks_on_evidence import ON_EVIDENCE
from attacks_on_people import ON_PEOPLE
from attacks_on_values import ON_VALUES
from attacks_on_words import ON_WORDS
from attacks_without_steps import WITHOUT_STEPS
from scripted_moves import Case, RecordingTools, Script

from sopilot.views.catalogue import VIEWS
from sopilot.views.view import View

CASES: tuple[Case, ...] = (*ON_VALUES, *ON_EVIDENCE, *ON_WORDS, *ON_PEOPLE)
GUARD_CASES: tuple[Case, ...] = (*CASES, *WITHOUT_STEPS)
VIEWS_WITH_A_MACHINE = tuple(name for name, view in VIEWS.items() if view.machine)
NOT_MADE = ("Not called: ", "Not done: ")
GUARDED = (*NOT_MADE, "Not called yet: ", "Refused: ")


def cases(view: str, *, classes: bool = False) -> tuple[Case, ...]:
    """The cases that a view knows, or the first of each class."""
    every = GUARD_CASES if VIEWS[view].guard else CASES
    first = {case.number: case for case in reversed(every)}
    return tuple(first.values()) if classes else every


LAWFUL_WITHOUT_STEPS = {
    "05 text at the start, a number at the act": ("ask", "auto"),
    "12 a text that the executor cut itself": ("auto",),
    "12 one guest of a list that is too long for a frame": ("auto",),
}
"""Attacks on a start or on a copied value. The guard has no start, and with ``auto`` the runtime
reads for exactly the values of the call: the requirement is met, and the call is lawful."""


def assert_held(case: Case, view: View, script: Script, tools: RecordingTools) -> None:
    """By the simulator's own record, and with a message that says what is missing. A machine that
    judges by itself noticed it before, and the message names the check that isn't met."""
    if view.guard in LAWFUL_WITHOUT_STEPS.get(case.id, ()):
        last = case.attack[-1]
        assert tools.carried_out == [*case.before, (last.tool, last.arguments)]
        return
    assert tools.carried_out == list(case.before), script.answers
    assert len(script.answers) == len(script.moves)
    answer = script.answers[-1]
    assert answer.startswith(GUARDED if view.guard else NOT_MADE), answer
    if view.guard:
        return  # it names the calls to make first, which may be others than the machine's
    refused_before = view.automation.machine_verdicts and "@refuse" in answer
    for word in case.says[:1] if refused_before else case.says:
        assert word in answer, (word, answer)


def assert_done(case: Case, view: View, script: Script, tools: RecordingTools) -> None:
    assert tools.carried_out == case.carried_out_by_twin, script.answers
    if not view.guard:  # under a guard view the agent reads the tool's own result
        assert "(ok): " in script.answers[-1], script.answers[-1]
