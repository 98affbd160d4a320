"""The guard broken on purpose in the newer constructs, one way at a time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from adversary import admission, newer_tools
from adversary.newer_tools import ASK, CONFIRM
from adversary.values import JSON
from sopilot.handbook import operators as _strict_operators
from sopilot.handbook.consent import reply_to
from sopilot.machine import evidence as freshness
from sopilot.machine.proof import leaves as leaf
from sopilot.machine.proof.leaves import Prover
from sopilot.machine.proof.licence import Licence
from sopilot.machine.recipes import Absent, WantedCall
from sopilot.machine.state import Answered
from sopilot.session import questions as user_questions


def yes_to_anything() -> AbstractContextManager[Any]:
    """A yes to another call is a yes."""
    real = Prover._newest

    def newest(self: Prover, call: WantedCall) -> Answered | Absent:
        if call.act.action != CONFIRM:
            return real(self, call)
        answers = self.configuration.answers.get(CONFIRM, {}).values()
        latest = max(answers, key=lambda one: one.seq, default=None)
        about = call if latest is None else call._replace(arguments=latest.arguments)
        return real(self, about)

    return patch.object(Prover, "_newest", newest)


def yes_for_ever() -> AbstractContextManager[Any]:
    """What changed after the yes does not matter."""
    real = freshness.stale_since

    def stale(programs: Any, configuration: Any, verifier: str, newest: Answered) -> str:
        return "" if verifier == CONFIRM else real(programs, configuration, verifier, newest)

    return patch.object(leaf, "stale_since", stale)


def no_is_a_yes() -> AbstractContextManager[Any]:
    """Whatever the user said, it was heard as a yes."""
    real = Prover._newest

    def newest(self: Prover, call: WantedCall) -> Answered | Absent:
        found = real(self, call)
        if call.act.action in (ASK, CONFIRM) and isinstance(found, Answered):
            return found._replace(value={**dict(found.value), "answer": "yes"})
        return found

    return patch.object(Prover, "_newest", newest)


def two_customers() -> AbstractContextManager[Any]:
    """A principal stays one when another takes the place."""
    nobody = leaf.GateCalls((), (), pending=False)
    return patch.object(Prover, "_other_customers", lambda *_: nobody)


def two_ways_in() -> AbstractContextManager[Any]:
    """Only the same gate, opened for another, closes what it has opened."""
    real = Prover._other_customers

    def others(self: Prover, *gate: Any) -> Any:
        alone = replace(self.programs, layouts={})
        return real(replace(self, programs=alone), *gate)

    return patch.object(Prover, "_other_customers", others)


def answers_for_ever() -> AbstractContextManager[Any]:
    """An answer of the user serves as many calls as anybody wants."""
    return patch.object(Licence, "uses", {})


def correction_is_a_yes() -> AbstractContextManager[Any]:
    """A reply that begins with a yes is one."""

    def begins(action: str, said: str) -> str | None:
        return "yes" if said.lower().startswith(("yes", "ok")) else reply_to(action, said)

    patches = ExitStack()
    for module in (newer_tools, user_questions):
        patches.enter_context(patch.object(module, "reply_to", begins))
    return patches


def done_for_anybody() -> AbstractContextManager[Any]:
    """What was done for somebody was done for all."""
    real = Prover._gate

    def gate(self: Prover, layout: Any, values: Mapping[str, JSON]) -> Any:
        found = real(self, layout, values)
        answers = self.configuration.answers.get(layout.recipe_acts[0].action, {}).values()
        done = layout.function.is_fact and any(one.succeeded >= 0 for one in answers)
        return found._replace(holds=True) if done else found

    return patch.object(Prover, "_gate", gate)


def any_failure_answers() -> AbstractContextManager[Any]:
    """A tool that was busy has said that there is nothing."""
    return patch.object(Prover, "_answers", lambda self, newest: True)


def the_clock_stands() -> AbstractContextManager[Any]:
    """It is always the moment at which the session began."""
    real = Prover._judged

    def judged(self: Prover, *given: Any) -> bool | str:
        if not self.configuration.clock:
            return real(self, *given)
        early = self.configuration._replace(clock="1970-01-01T00:00:00+00:00")
        moved = Prover(self.programs, early, self.process, self.known, self.judge)
        return real(moved, *given)

    return patch.object(Prover, "_judged", judged)


def computed_once() -> AbstractContextManager[Any]:
    """What was computed is not computed again at the act."""
    real = Prover.leaf

    def proven(self: Prover, function: str, values: Mapping[str, JSON]) -> Any:
        found = real(self, function, values)
        computes = self.program.functions[function].function.computes
        return found._replace(holds=True, grade=leaf.Grade.PROVEN) if computes else found

    return patch.object(Prover, "leaf", proven)


def a_value_left_out() -> AbstractContextManager[Any]:
    """An input that may be left out is taken for left out."""
    real = Prover._judged

    def judged(self: Prover, layout: Any, verdict: str, values: Any, whole: Any) -> bool | str:
        open_names = layout.function.optional
        kept = {name: one for name, one in values.items() if name not in open_names}
        return real(self, layout, verdict, kept, whole)

    return patch.object(Prover, "_judged", judged)


def look_alikes_differ() -> AbstractContextManager[Any]:
    """Texts are what they are spelled like."""
    return patch.multiple(
        _strict_operators,
        as_seen=lambda text: text,
        look_the_same=lambda left, right: bool(left == right),
    )


def strays() -> AbstractContextManager[Any]:
    """A guarded action that no procedure is for has nothing to prove."""
    real = admission.licence_of

    def licence_of(book: Any, configuration: Any, action: str, arguments: Any) -> Any:
        if action not in book.machine.programs.goal_actions:
            return Licence()
        return real(book, configuration, action, arguments)

    return patch.object(admission, "licence_of", licence_of)


NEWER_SABOTAGES = {
    "a yes to another call": yes_to_anything,
    "a yes for ever": yes_for_ever,
    "a no heard as a yes": no_is_a_yes,
    "two customers at once": two_customers,
    "two ways in at once": two_ways_in,
    "an answer for every call": answers_for_ever,
    "a correction is a yes": correction_is_a_yes,
    "done for anybody": done_for_anybody,
    "any failure is an answer": any_failure_answers,
    "the clock stands still": the_clock_stands,
    "computed once": computed_once,
    "a value taken for left out": a_value_left_out,
    "look-alikes differ": look_alikes_differ,
    "P15 an action without a procedure": strays,
}
