"""The guard broken on purpose, one way at a time: the campaign must find each.

A clause that could be off without anybody being robbed would be no clause, and a campaign that
does not notice would be no evidence. Each sabotage replaces as little as it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol
from unittest.mock import patch

from adversary.newer_sabotage import NEWER_SABOTAGES
from adversary.values import JSON
from sopilot.machine import evidence as freshness
from sopilot.machine import observations as observing
from sopilot.machine.proof import guard as guards
from sopilot.machine.proof import leaves as leaf
from sopilot.machine.proof import licence
from sopilot.machine.proof.leaves import Prover
from sopilot.machine.recipes import Absent, WantedCall, wanted_calls
from sopilot.machine.state import NEVER, Answered


class Sabotage(Protocol):
    def __call__(self) -> AbstractContextManager[Any]: ...


def _replaced(*pieces: tuple[object, str, object]) -> AbstractContextManager[Any]:
    stack = ExitStack()
    for owner, name, instead in pieces:
        stack.enter_context(patch.object(owner, name, instead))
    return stack


# --- P1 closed ------------------------------------------------------------------------


def _values_of_the_start() -> AbstractContextManager[Any]:
    """The leaves are judged for what the process was started with, whatever the act names."""
    real = licence.values_at_the_act

    def values(here: Any, step: Any, arguments: Mapping[str, JSON]) -> Any:
        found = real(here, step, arguments)
        known = {**here.process.known, **here.frame.locals}
        return found if isinstance(found, str) else {**found, **known}

    return _replaced(
        (licence, "values_at_the_act", values), (guards, "fits_act", lambda *given: True)
    )


# --- P2 about it ----------------------------------------------------------------------


def _about_anybody() -> AbstractContextManager[Any]:
    """The newest answer to the action counts, whoever it was asked about."""
    real = Prover._newest

    def newest(self: Prover, call: WantedCall) -> Answered | Absent:
        answers = self.configuration.answers.get(call.act.action, {}).values()
        latest = max(answers, key=lambda one: one.seq, default=None)
        about = call if latest is None else call._replace(arguments=latest.arguments)
        return real(self, about)

    return _replaced((Prover, "_newest", newest))


# --- P3 whole -------------------------------------------------------------------------


def _half() -> AbstractContextManager[Any]:
    """Calls of a recipe that were not made are not missed."""

    def whole(self: Prover, layout: Any, recipe: Any, values: Mapping[str, JSON]) -> Any:
        answers: dict[str, JSON] = {}
        evidence: list[int] = []
        for act in recipe:
            wanted = wanted_calls(act, self._value(layout, values), answers)
            calls = [] if isinstance(wanted, Absent) else wanted
            found = [one for one in map(self._newest, calls) if isinstance(one, Answered)]
            evidence += [one.seq for one in found]
            listed = [one.value for one in found]
            if act.each is not None:
                answers[act.answer] = listed
            elif listed:
                answers[act.answer] = listed[0]
        if not evidence:
            return Absent("nothing was called")
        return leaf._Whole(answers, list(answers.values())[-1], tuple(sorted(evidence)), ())

    return _replaced((Prover, "_whole", whole))


# --- P4 newest ------------------------------------------------------------------------


def _older_yes() -> AbstractContextManager[Any]:
    """The first answer to a call stands, however often it is asked again."""
    real = observing._answered

    def answered(answers: Any, observed: Any, *more: Any) -> Any:
        before = answers.get(observed.action, {}).get(observing.key_of(observed.arguments))
        if before is not None and before.ok:
            observed = observed._replace(ok=True, value=before.value)
        return real(answers, observed, *more)

    return _replaced((observing, "_answered", answered))


# --- P5 fresh -------------------------------------------------------------------------


def _never_stale() -> AbstractContextManager[Any]:
    return _replaced((leaf, "stale_since", lambda *given: ""))


def _fresh_when_cited() -> AbstractContextManager[Any]:
    """Freshness is judged when the verdict was given, not when it is used."""
    real = freshness.stale_since

    def stale(programs: Any, configuration: Any, verifier: str, newest: Answered) -> str:
        process = configuration.process
        slots = process.frames[0].slots.values() if process is not None else ()
        cited = max((bound.producer for bound in slots), default=configuration.next_seq)
        answers = {
            action: {key: one for key, one in by_key.items() if one.succeeded < cited}
            for action, by_key in configuration.answers.items()
        }
        earlier = configuration._replace(answers=answers, pending={})
        return real(programs, earlier, verifier, newest)

    return _replaced((leaf, "stale_since", stale))


# --- P6 judged ------------------------------------------------------------------------


def _believed() -> AbstractContextManager[Any]:
    """The executor's word is believed where it gave one."""
    real = Prover._judged

    def judged(self: Prover, layout: Any, verdict: str, values: Any, whole: Any) -> bool | str:
        for bound in self.process.frames[0].slots.values():
            if bound.function == layout.function.name and bound.holds is not None:
                return bool(bound.holds)
        return real(self, layout, verdict, values, whole)

    return _replaced((Prover, "_judged", judged))


def _undecided_is_false() -> AbstractContextManager[Any]:
    real = Prover._judged

    def judged(self: Prover, layout: Any, verdict: str, values: Any, whole: Any) -> bool | str:
        found = real(self, layout, verdict, values, whole)
        return False if isinstance(found, str) else found

    return _replaced((Prover, "_judged", judged))


# --- P7 named -------------------------------------------------------------------------


def _in_order_of_calls() -> AbstractContextManager[Any]:
    """Names go to the answers in the order in which somebody called."""
    real = Prover._whole

    def whole(self: Prover, layout: Any, recipe: Any, values: Mapping[str, JSON]) -> Any:
        found = real(self, layout, recipe, values)
        if isinstance(found, Absent) or any(act.each is not None for act in recipe):
            return found
        newest = [self._newest(call) for call in found.calls]
        called = sorted((one for one in newest if isinstance(one, Answered)), key=lambda o: o.seq)
        answers = {act.answer: one.value for act, one in zip(recipe, called, strict=True)}
        return found._replace(answers=answers, result=called[-1].value)

    return _replaced((Prover, "_whole", whole))


# --- gates, and what is awaited -------------------------------------------------------


def _gate_for_anybody() -> AbstractContextManager[Any]:
    """A gate that is open for somebody is open for all."""
    real = Prover._gate

    def gate(self: Prover, layout: Any, values: Mapping[str, JSON]) -> Any:
        found = real(self, layout, values)
        act = layout.recipe_acts[0]
        answers = self.configuration.answers.get(act.action, {}).values()
        return found._replace(holds=True) if any(one.ok for one in answers) else found

    return _replaced((Prover, "_gate", gate))


def _gates_stay_open() -> AbstractContextManager[Any]:
    """Nothing closes a gate."""
    real = Prover._gate

    def gate(self: Prover, layout: Any, values: Mapping[str, JSON]) -> Any:
        found = real(self, layout, values)
        act = layout.recipe_acts[0]
        answers = self.configuration.answers.get(act.action, {}).values()
        opened = any(
            one.succeeded >= 0 and all(one.arguments.get(key) == values[key] for key in values)
            for one in answers
        )
        return found._replace(holds=True) if opened else found

    return _replaced((Prover, "_gate", gate))


def _nothing_is_awaited() -> AbstractContextManager[Any]:
    """What was called and is not answered yet counts for nothing."""
    real = freshness.stale_since

    def stale(programs: Any, configuration: Any, verifier: str, newest: Answered) -> str:
        return real(programs, configuration._replace(pending={}), verifier, newest)

    return _replaced((leaf, "stale_since", stale))


# --- P8 same environment --------------------------------------------------------------


def _any_connection() -> AbstractContextManager[Any]:
    """A login on one connection counts on the next."""

    def never(*given: Any) -> int:
        return NEVER

    return _replaced(*((module, "renewed", never) for module in (freshness, leaf, observing)))


SABOTAGES: dict[str, Sabotage] = {
    "P1 the values of the start, not of the act": _values_of_the_start,
    "P2 evidence about anybody": _about_anybody,
    "P3 half of a recipe": _half,
    "P4 the older answer": _older_yes,
    "P5 nothing is ever stale": _never_stale,
    "P6 the executor is believed": _believed,
    "P7 named by the order of calls": _in_order_of_calls,
    "undecided counts as false": _undecided_is_false,
    "freshness judged at citation": _fresh_when_cited,
    "a gate for any arguments": _gate_for_anybody,
    "a gate is never closed": _gates_stay_open,
    "P8 evidence of any connection": _any_connection,
    "P10 what is open does not count": _nothing_is_awaited,
    **NEWER_SABOTAGES,
}


@contextmanager
def sabotaged(name: str) -> Iterator[None]:
    with SABOTAGES[name]():
        yield
