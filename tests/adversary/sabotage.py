"""The guard broken on purpose, one way at a time: the campaign must find each.

A clause that could be off without anybody being robbed would be no clause, and a campaign that
does not notice would be no evidence. Each sabotage replaces as little as it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Protocol
from unittest.mock import patch

from adversary import core_play, tools
from adversary.tools import ASK, CONFIRM
from adversary.values import JSON
from sopilot.handbook import operators as _strict_operators
from sopilot.handbook.consent import reply_to
from sopilot.machine import evidence as freshness
from sopilot.machine import observations as observing
from sopilot.machine.proof import guard as guards
from sopilot.machine.proof import leaves as leaf
from sopilot.machine.proof import licence
from sopilot.machine.proof.leaves import Prover
from sopilot.machine.proof.licence import Licence
from sopilot.machine.recipes import Absent, WantedCall, wanted_calls
from sopilot.machine.state import NEVER, CallRecord
from sopilot.program.model import Kind
from sopilot.protocols import ToolResult
from sopilot.session import admission, attempts, calls
from sopilot.session import questions as user_questions


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

    def newest(self: Prover, call: WantedCall) -> CallRecord | Absent:
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
            wanted = wanted_calls(act, self.value_in(layout, values), answers)
            calls = [] if isinstance(wanted, Absent) else wanted
            found = [one for one in map(self._newest, calls) if isinstance(one, CallRecord)]
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

    def stale(programs: Any, configuration: Any, verifier: str, newest: CallRecord) -> str:
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
        called = sorted((one for one in newest if isinstance(one, CallRecord)), key=lambda o: o.seq)
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

    def stale(programs: Any, configuration: Any, verifier: str, newest: CallRecord) -> str:
        return real(programs, configuration._replace(pending={}), verifier, newest)

    return _replaced((leaf, "stale_since", stale))


# --- P8 same environment --------------------------------------------------------------


def _any_connection() -> AbstractContextManager[Any]:
    """A login on one connection counts on the next."""

    def never(*given: Any) -> int:
        return NEVER

    return _replaced(*((module, "renewed", never) for module in (freshness, leaf, observing)))


def yes_to_anything() -> AbstractContextManager[Any]:
    """A yes to another call is a yes."""
    real = Prover._newest

    def newest(self: Prover, call: WantedCall) -> CallRecord | Absent:
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

    def stale(programs: Any, configuration: Any, verifier: str, newest: CallRecord) -> str:
        return "" if verifier == CONFIRM else real(programs, configuration, verifier, newest)

    return patch.object(leaf, "stale_since", stale)


def no_is_a_yes() -> AbstractContextManager[Any]:
    """Whatever the user said, it was heard as a yes."""
    real = Prover._newest

    def newest(self: Prover, call: WantedCall) -> CallRecord | Absent:
        found = real(self, call)
        if call.act.action in (ASK, CONFIRM) and isinstance(found, CallRecord):
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
    for module in (tools, user_questions):
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
        return found._replace(holds=True, grade=leaf.ProofLevel.PROVEN) if computes else found

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
    real = core_play.licence_of

    def licence_of(book: Any, configuration: Any, action: str, arguments: Any) -> Any:
        if action not in book.machine.programs.goal_actions:
            return Licence()
        return real(book, configuration, action, arguments)

    return patch.object(core_play, "licence_of", licence_of)


NEWER_SABOTAGES: dict[str, Sabotage] = {
    "P9 a yes to another call": yes_to_anything,
    "P9 a yes for ever": yes_for_ever,
    "P9 a no heard as a yes": no_is_a_yes,
    "P11 two customers at once": two_customers,
    "P11 two ways in at once": two_ways_in,
    "P9 an answer for every call": answers_for_ever,
    "P9 a correction is a yes": correction_is_a_yes,
    "done for anybody": done_for_anybody,
    "P6 any failure is an answer": any_failure_answers,
    "the clock stands still": the_clock_stands,
    "computed once": computed_once,
    "a value taken for left out": a_value_left_out,
    "P13 look-alikes differ": look_alikes_differ,
    "P15 an action without a procedure": strays,
}


# --- in a session -----------------------------------------------------------------------


def _an_open_act_is_forgotten() -> AbstractContextManager[Any]:
    """While a guarded call is open, what it rests on may change."""
    return _replaced((admission, "under_way", lambda *_: None))


def _broken_off_is_failed() -> AbstractContextManager[Any]:
    """A call that broke off was not carried out."""
    real = calls.invoke_tool

    async def failed(session: Any, call: Any, connection: str) -> ToolResult:
        return replace(await real(session, call, connection), unknown=False)

    return _replaced(*((module, "invoke_tool", failed) for module in (admission, calls)))


def _as_sent() -> AbstractContextManager[Any]:
    """The guard judges what the model sent, not what the tool receives."""
    return _replaced((admission, "as_received", lambda session, name, given: dict(given)))


def _approved_whatever_changed() -> AbstractContextManager[Any]:
    """An approval covers the action and its arguments, whatever the facts are by now."""
    return _replaced((admission, "_same_facts", lambda *_: True))


def _no_fence() -> AbstractContextManager[Any]:
    """A session goes on from an old copy of the store."""

    async def nothing(*_: Any, **__: Any) -> str:
        return ""

    return _replaced((admission, "fence_reason", nothing))


SESSION_SABOTAGES: dict[str, Sabotage] = {
    "P10 an open act is forgotten": _an_open_act_is_forgotten,
    "P10 what broke off has failed": _broken_off_is_failed,
    "P12 the arguments as they were sent": _as_sent,
    "P14 approved, whatever changed": _approved_whatever_changed,
    "a session goes on behind the fence": _no_fence,
}
"""Only a session can be broken so."""


# --- without a protocol -----------------------------------------------------------------


def _as_often_as_called() -> AbstractContextManager[Any]:
    """A request is carried out as often as the agent calls."""
    return _replaced((attempts, "_carried_out", lambda *_: None))


def _any_word_is_a_request() -> AbstractContextManager[Any]:
    """An answer to a question of the runtime is a new request."""

    def asked(session: Any, seq: int) -> bool:
        return any(event.kind == "user_said" for event in session.own_events[seq + 1 :])

    return _replaced((attempts, "_asked_since", asked))


def _opens_for_anybody() -> AbstractContextManager[Any]:
    """The runtime identifies the customer, with what the agent names."""
    real = attempts._filled

    def filled(session: Any, chosen: Any, need: Any, call: WantedCall) -> Any:
        function = chosen.here.program.functions[need.function].function
        is_open = bool(call.open) or session.settings.guard != "auto"
        if function.kind is Kind.GATE and function.principal and not is_open:
            return call
        return real(session, chosen, need, call)

    return _replaced((attempts, "_filled", filled))


def _changes_by_itself() -> AbstractContextManager[Any]:
    """The runtime makes every call that is missing, whatever it changes."""
    return _replaced((attempts, "changes", lambda *_: ()))


def _reads_ahead() -> AbstractContextManager[Any]:
    """The runtime reads behind a check that isn't decided yet."""
    real = attempts._own_call

    def own_call(session: Any, chosen: Any, made: Any) -> Any:
        return real(session, chosen._replace(proven=True), made)

    return _replaced((attempts, "_own_call", own_call))


def _two_at_once() -> AbstractContextManager[Any]:
    """A call that is open counts for nothing."""
    return _replaced(
        (admission, "under_way", lambda *_: None),
        (guards, "_pending", lambda *_: None),
    )


def _judged_for_anybody() -> AbstractContextManager[Any]:
    """A judgement on one customer is one on all."""
    real = Prover._attested

    def attested(self: Prover, layout: Any, values: Mapping[str, JSON], ready: Any) -> Any:
        name = layout.function.name
        for (function, _), given in self.process.verdicts.items():
            if function == name and given.holds:
                return self._verdict(layout, True, leaf.ProofLevel.ATTESTED, ready[0])
        return real(self, layout, values, ready)

    return _replaced((Prover, "_attested", attested))


def _judged_for_good() -> AbstractContextManager[Any]:
    """A judgement serves every attempt of the session."""
    real = Prover._attested

    def attested(self: Prover, layout: Any, values: Mapping[str, JSON], ready: Any) -> Any:
        verdicts = [one.verdicts for one in self.configuration.processes.values()]
        known = {key: bound for some in verdicts for key, bound in some.items()}
        process = self.process._replace(verdicts={**known, **self.process.verdicts})
        return real(replace(self, process=process), layout, values, ready)

    return _replaced((Prover, "_attested", attested))


GUARD_SABOTAGES: dict[str, Sabotage] = {
    "P16 as often as it is called": _as_often_as_called,
    "P16 any word is a request": _any_word_is_a_request,
    "P11 the runtime identifies the customer": _opens_for_anybody,
    "the runtime changes something": _changes_by_itself,
    "the runtime reads ahead": _reads_ahead,
    "P10 two acts at once": _two_at_once,
    "P6 judged for anybody": _judged_for_anybody,
    "P6 judged for good": _judged_for_good,
}
"""Only a session without a protocol can be broken so."""
NEWER_GUARD_SABOTAGES = frozenset({"P16 any word is a request"})
"""Found soonest in handbooks of the newer constructs."""
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
    with {**SABOTAGES, **SESSION_SABOTAGES, **GUARD_SABOTAGES}[name]():
        yield
