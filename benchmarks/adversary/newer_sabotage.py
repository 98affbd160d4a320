"""The guard broken on purpose in the newer constructs, one way at a time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from adversary.newer_tools import ASK, CONFIRM
from adversary.values import JSON
from sopilot.runtime.proof import _leaf as leaf
from sopilot.runtime.proof._leaf import Prover
from sopilot.runtime.vm import freshness
from sopilot.runtime.vm.recipe_calls import Absent, WantedCall
from sopilot.runtime.vm.state import Answered


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
    real = Prover._gate_calls

    def calls(self: Prover, layout: Any, act: Any, values: Any, *, others: bool = False) -> Any:
        if others:
            return leaf.GateCalls((), (), pending=False)
        return real(self, layout, act, values)

    return patch.object(Prover, "_gate_calls", calls)


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


NEWER_SABOTAGES = {
    "a yes to another call": yes_to_anything,
    "a yes for ever": yes_for_ever,
    "a no heard as a yes": no_is_a_yes,
    "two customers at once": two_customers,
    "done for anybody": done_for_anybody,
    "any failure is an answer": any_failure_answers,
    "the clock stands still": the_clock_stands,
    "computed once": computed_once,
    "a value taken for left out": a_value_left_out,
}
