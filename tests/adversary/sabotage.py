"""The guard broken on purpose, one way at a time: the campaign must find each.

A clause that could be off without anybody being robbed would be no clause, and a campaign that
does not notice would be no evidence. Each sabotage replaces as little as it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from adversary import core_play, tools
from adversary.tools import ASK, CONFIRM
from adversary.values import JSON
from sopilot.handbook import operators
from sopilot.handbook.yes_or_no import reply_to
from sopilot.machine import evidence, leaves, observations
from sopilot.machine.leaves import Prover
from sopilot.machine.recipes import Absent, WantedCall, wanted_calls
from sopilot.machine.state import NEVER, CallRecord
from sopilot.program.model import Function, Kind
from sopilot.proof import guard, licence
from sopilot.proof.licence import Licence
from sopilot.protocols import ToolResult
from sopilot.session import admission, attempts, calls, questions


@dataclass
class Sabotage:
    """``through`` is the way in which it shows: the core, a session, or a session without a
    protocol. ``newer``: it shows soonest in handbooks of the newer constructs. ``pieces`` are
    replaced: owner, attribute, and what takes its place; a function gets the real one first."""

    through: str
    newer: bool
    pieces: list[tuple[object, str, Any]] = field(default_factory=list)


SABOTAGES: dict[str, Sabotage] = {}


def sabotage(
    name: str, *owners: object, attribute: str, through: str = "core", newer: bool = False
) -> Callable[[Any], Any]:
    """Declare what takes the place of the attribute. One sabotage may have several pieces."""

    def declare(instead: Any) -> Any:
        known = SABOTAGES.setdefault(name, Sabotage(through, newer))
        known.pieces += [(owner, attribute, instead) for owner in owners]
        return instead

    return declare


@contextmanager
def sabotaged(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, attribute, instead in SABOTAGES[name].pieces:
            new = _around(getattr(owner, attribute), instead) if callable(instead) else instead
            stack.enter_context(patch.object(owner, attribute, new))
        yield


def _around(real: Any, instead: Callable[..., Any]) -> Callable[..., Any]:
    def replaced(*given: Any, **named: Any) -> Any:
        return instead(real, *given, **named)

    return replaced


def _about_the_newest(prover: Prover, call: WantedCall) -> WantedCall:
    """The call as it was last answered, whoever it was about."""
    answers = prover.configuration.answers.get(call.act.action, {}).values()
    latest = max(answers, key=lambda one: one.seq, default=None)
    return call if latest is None else call._replace(arguments=latest.arguments)


def _answers_to(prover: Prover, layout: Any) -> list[CallRecord]:
    """All answers to the call that opens a gate."""
    return list(prover.configuration.answers.get(layout.recipe_acts[0].action, {}).values())


# --- P1 to P4: closed, about it, whole, newest ----------------------------------------

START = "P1 the values of the start, not of the act"
sabotage(START, guard, attribute="fits_act")(lambda real, *given: True)


@sabotage(START, licence, attribute="values_at_the_act")
def _values_of_the_start(real: Any, here: Any, *act: Any) -> Any:
    """The leaves are judged for what the process was started with, whatever the act names."""
    found = real(here, *act)
    known = {**here.process.known, **here.frame.locals}
    return found if isinstance(found, str) else {**found, **known}


@sabotage("P2 evidence about anybody", Prover, attribute="newest")
def _about_anybody(real: Any, self: Prover, call: WantedCall) -> Any:
    """The newest answer to the action counts, whoever it was asked about."""
    return real(self, _about_the_newest(self, call))


@sabotage("P3 half of a recipe", Prover, attribute="_whole")
def _half(real: Any, self: Prover, layout: Any, recipe: Any, values: Mapping[str, JSON]) -> Any:
    """Calls of a recipe that were not made are not missed."""
    answers: dict[str, JSON] = {}
    cited: list[int] = []
    for act in recipe:
        wanted = wanted_calls(act, self.value_in(layout, values), answers)
        made = [] if isinstance(wanted, Absent) else wanted
        found = [one for one in map(self.newest, made) if isinstance(one, CallRecord)]
        cited += [one.seq for one in found]
        listed = [one.value for one in found]
        if act.each is not None:
            answers[act.answer] = listed
        elif listed:
            answers[act.answer] = listed[0]
    if not cited:
        return Absent("nothing was called")
    return leaves._Whole(answers, list(answers.values())[-1], tuple(sorted(cited)), ())


@sabotage("P4 the older answer", observations, attribute="_answered")
def _older_yes(real: Any, answers: Any, observed: Any, *more: Any) -> Any:
    """The first answer to a call stands, however often it is asked again."""
    before = answers.get(observed.action, {}).get(observations.key_of(observed.arguments))
    if before is not None and before.ok:
        observed = observed._replace(ok=True, value=before.value)
    return real(answers, observed, *more)


# --- P5 fresh, P10 what is open -------------------------------------------------------

sabotage("P5 nothing is ever stale", leaves, attribute="stale_since")(lambda real, *given: "")


@sabotage("freshness judged at citation", leaves, attribute="stale_since")
def _fresh_when_cited(real: Any, programs: Any, configuration: Any, *answer: Any) -> str:
    """Freshness is judged when the verdict was given, not when it is used."""
    process = configuration.process
    slots = process.frames[0].slots.values() if process is not None else ()
    cited = max((bound.producer for bound in slots), default=configuration.next_seq)
    answers = {
        action: {key: one for key, one in by_key.items() if one.succeeded < cited}
        for action, by_key in configuration.answers.items()
    }
    return str(real(programs, configuration._replace(answers=answers, pending={}), *answer))


@sabotage("P10 what is open does not count", leaves, attribute="stale_since")
def _nothing_is_awaited(real: Any, programs: Any, configuration: Any, *answer: Any) -> str:
    """What was called and is not answered yet counts for nothing."""
    return str(real(programs, configuration._replace(pending={}), *answer))


# --- P6 judged, P7 named --------------------------------------------------------------


@sabotage("P6 the executor is believed", Prover, attribute="_judged")
def _believed(real: Any, self: Prover, layout: Any, *given: Any) -> bool | str:
    """The executor's word is believed where it gave one."""
    for bound in self.process.frames[0].slots.values():
        if bound.function == layout.function.name and bound.holds is not None:
            return bool(bound.holds)
    found: bool | str = real(self, layout, *given)
    return found


@sabotage("undecided counts as false", Prover, attribute="_judged")
def _undecided_is_false(real: Any, *given: Any) -> bool:
    found = real(*given)
    return False if isinstance(found, str) else bool(found)


@sabotage("P7 named by the order of calls", Prover, attribute="_whole")
def _in_order_of_calls(real: Any, self: Prover, layout: Any, recipe: Any, values: Any) -> Any:
    """Names go to the answers in the order in which somebody called."""
    found = real(self, layout, recipe, values)
    if isinstance(found, Absent) or any(act.each is not None for act in recipe):
        return found
    newest = [self.newest(call) for call in found.calls]
    called = sorted((one for one in newest if isinstance(one, CallRecord)), key=lambda o: o.seq)
    answers = {act.answer: one.value for act, one in zip(recipe, called, strict=True)}
    return found._replace(answers=answers, result=called[-1].value)


@sabotage("P6 any failure is an answer", Prover, attribute="_answers", newer=True)
def _any_failure_answers(real: Any, *given: Any) -> bool:
    """A tool that was busy has said that there is nothing."""
    return True


# --- gates, and P8 the same environment -----------------------------------------------


@sabotage("a gate for any arguments", Prover, attribute="_gate")
def _gate_for_anybody(real: Any, self: Prover, layout: Any, values: Mapping[str, JSON]) -> Any:
    """A gate that is open for somebody is open for all."""
    found = real(self, layout, values)
    is_open = any(one.ok for one in _answers_to(self, layout))
    return found._replace(holds=True) if is_open else found


@sabotage("a gate for any answer", Function, attribute="opened_by")
def _any_answer_opens(real: Any, self: Function, answer: JSON) -> bool:
    """A login that answers nothing, or an error, opens a gate."""
    return True


@sabotage("a gate is never closed", Prover, attribute="_gate")
def _gates_stay_open(real: Any, self: Prover, layout: Any, values: Mapping[str, JSON]) -> Any:
    """Nothing closes a gate."""
    found = real(self, layout, values)
    opened = any(
        one.succeeded >= 0 and all(one.arguments.get(key) == values[key] for key in values)
        for one in _answers_to(self, layout)
    )
    return found._replace(holds=True) if opened else found


@sabotage("done for anybody", Prover, attribute="_gate", newer=True)
def _done_for_anybody(real: Any, self: Prover, layout: Any, values: Mapping[str, JSON]) -> Any:
    """What was done for somebody was done for all."""
    found = real(self, layout, values)
    done = any(one.succeeded >= 0 for one in _answers_to(self, layout))
    return found._replace(holds=True) if done and layout.function.is_fact else found


@sabotage("P8 evidence of any connection", evidence, leaves, observations, attribute="renewed")
def _any_connection(real: Any, *given: Any) -> int:
    """A login on one connection counts on the next."""
    return NEVER


# --- P9 the user's word, P11 one customer ---------------------------------------------


@sabotage("P9 a yes to another call", Prover, attribute="newest", newer=True)
def _yes_to_anything(real: Any, self: Prover, call: WantedCall) -> Any:
    return real(self, _about_the_newest(self, call) if call.act.action == CONFIRM else call)


@sabotage("P9 a yes for ever", leaves, attribute="stale_since", newer=True)
def _yes_for_ever(real: Any, programs: Any, configuration: Any, verifier: str, newest: Any) -> str:
    """What changed after the yes does not matter."""
    return "" if verifier == CONFIRM else str(real(programs, configuration, verifier, newest))


@sabotage("P9 a no heard as a yes", Prover, attribute="newest", newer=True)
def _no_is_a_yes(real: Any, self: Prover, call: WantedCall) -> Any:
    found = real(self, call)
    if call.act.action in (ASK, CONFIRM) and isinstance(found, CallRecord):
        return found._replace(value={**dict(found.value), "answer": "yes"})
    return found


# An answer of the user serves as many calls as anybody wants.
sabotage("P9 an answer for every call", Licence, attribute="uses", newer=True)({})


@sabotage("P9 a correction is a yes", tools, questions, attribute="reply_to", newer=True)
def _correction_is_a_yes(real: Any, action: str, said: str) -> str | None:
    """A reply that begins with a yes is one."""
    return "yes" if said.lower().startswith(("yes", "ok")) else reply_to(action, said)


@sabotage("P11 two customers at once", Prover, attribute="_other_customers", newer=True)
def _two_customers(real: Any, *given: Any) -> Any:
    """A principal stays one when another takes the place."""
    return leaves.GateCalls((), (), pending=False)


@sabotage("P11 two ways in at once", Prover, attribute="_other_customers", newer=True)
def _two_ways_in(real: Any, self: Prover, *gate: Any) -> Any:
    """Only the same gate, opened for another, closes what it has opened."""
    return real(replace(self, programs=replace(self.programs, layouts={})), *gate)


# --- values, P13 look-alikes, P15 strays ----------------------------------------------


@sabotage("the clock stands still", Prover, attribute="_judged", newer=True)
def _the_clock_stands(real: Any, self: Prover, *given: Any) -> Any:
    """It is always the moment at which the session began."""
    if not self.configuration.clock:
        return real(self, *given)
    early = self.configuration._replace(clock="1970-01-01T00:00:00+00:00")
    return real(Prover(self.programs, early, self.process, self.known, self.judge), *given)


@sabotage("computed once", Prover, attribute="leaf", newer=True)
def _computed_once(real: Any, self: Prover, function: str, values: Mapping[str, JSON]) -> Any:
    """What was computed is not computed again at the act."""
    found = real(self, function, values)
    computes = self.program.functions[function].function.computes
    return found._replace(holds=True, grade=leaves.ProofLevel.PROVEN) if computes else found


@sabotage("a value taken for left out", Prover, attribute="_judged", newer=True)
def _a_value_left_out(
    real: Any, self: Prover, layout: Any, values: Mapping[str, JSON], whole: Any
) -> Any:
    """An input that may be left out is taken for left out."""
    open_names = layout.function.optional
    kept = {name: one for name, one in values.items() if name not in open_names}
    return real(self, layout, kept, whole)


ALIKE = "P13 look-alikes differ"
sabotage(ALIKE, operators, attribute="as_seen", newer=True)(lambda real, text: text)
sabotage(ALIKE, operators, attribute="look_the_same")(lambda real, a, b: bool(a == b))


@sabotage("P15 an action without a procedure", core_play, attribute="licence_of", newer=True)
def _strays(real: Any, book: Any, configuration: Any, action: str, arguments: Any) -> Any:
    """A guarded action that no procedure is for has nothing to prove."""
    if action not in book.machine.programs.goal_actions:
        return Licence()
    return real(book, configuration, action, arguments)


# --- in a session -----------------------------------------------------------------------


@sabotage("P10 an open act is forgotten", admission, attribute="under_way", through="session")
def _an_open_act_is_forgotten(real: Any, *given: Any) -> None:
    """While a guarded call is open, what it rests on may change."""


BROKEN_OFF = "P10 what broke off has failed"


@sabotage(BROKEN_OFF, calls, attribute="invoke_tool", through="session")
async def _broken_off_is_failed(real: Any, *given: Any) -> ToolResult:
    """A call that broke off was not carried out."""
    return replace(await real(*given), unknown=False)


SENT = "P12 the arguments as they were sent"


@sabotage(SENT, admission, attribute="as_received", through="session")
def _as_sent(real: Any, session: Any, name: str, given: Any) -> dict[str, JSON]:
    """The guard judges what the model sent, not what the tool receives."""
    return dict(given)


@sabotage("P14 approved, whatever changed", admission, attribute="_same_facts", through="session")
def _approved_whatever_changed(real: Any, *given: Any) -> bool:
    """An approval covers the action and its arguments, whatever the facts are by now."""
    return True


FENCE = "a session goes on behind the fence"


@sabotage(FENCE, admission, attribute="fence_reason", through="session")
async def _no_fence(real: Any, *given: Any, **named: Any) -> str:
    """A session goes on from an old copy of the store."""
    return ""


# --- without a protocol -----------------------------------------------------------------


def _of_a_guard(name: str, *owners: object, attribute: str, newer: bool = False) -> Any:
    return sabotage(name, *owners, attribute=attribute, through="guard-auto", newer=newer)


@_of_a_guard("P16 as often as it is called", admission, attribute="repeated")
def _as_often_as_called(real: Any, *given: Any) -> str:
    """A request is carried out as often as the agent calls."""
    return ""


@_of_a_guard("P16 any word is a request", admission, attribute="asked_since", newer=True)
def _any_word_is_a_request(real: Any, session: Any, seq: int) -> bool:
    """An answer to a question of the runtime is a new request."""
    return any(event.kind == "user_said" for event in session.own_events[seq + 1 :])


@_of_a_guard("P11 the runtime identifies the customer", attempts, attribute="_filled")
def _opens_for_anybody(real: Any, session: Any, chosen: Any, need: Any, call: WantedCall) -> Any:
    """The runtime identifies the customer, with what the agent names."""
    function = chosen.here.program.functions[need.function].function
    is_open = bool(call.open) or session.settings.guard != "auto"
    if function.kind is Kind.GATE and function.principal and not is_open:
        return call
    return real(session, chosen, need, call)


@_of_a_guard("the runtime changes something", attempts, attribute="changes")
def _changes_by_itself(real: Any, *given: Any) -> tuple[str, ...]:
    """The runtime makes every call that is missing, whatever it changes."""
    return ()


AHEAD = "the runtime reads ahead"


@_of_a_guard(AHEAD, attempts, attribute="_own_call")
def _reads_ahead(real: Any, session: Any, chosen: Any, made: Any) -> Any:
    """The runtime reads behind a check that isn't decided yet, and before a login."""
    return real(session, chosen._replace(proven=True), made)


_of_a_guard(AHEAD, Prover, attribute="may_precede")(lambda real, *given: True)


TWICE = "P10 two acts at once"
for _owner, _attribute in ((admission, "under_way"), (guard, "_pending")):
    # A call that is open counts for nothing.
    _of_a_guard(TWICE, _owner, attribute=_attribute)(lambda real, *given: None)


@_of_a_guard("P6 judged for anybody", Prover, attribute="_attested")
def _judged_for_anybody(real: Any, self: Prover, layout: Any, values: Any, ready: Any) -> Any:
    """A judgement on one customer is one on all."""
    for (function, _), given in self.process.verdicts.items():
        if function == layout.function.name and given.holds:
            return self._verdict(layout, True, leaves.ProofLevel.ATTESTED, ready[0])
    return real(self, layout, values, ready)


@_of_a_guard("P6 judged for good", Prover, attribute="_attested")
def _judged_for_good(real: Any, self: Prover, layout: Any, values: Any, ready: Any) -> Any:
    """A judgement serves every attempt of the session."""
    verdicts = [one.verdicts for one in self.configuration.processes.values()]
    known = {key: bound for some in verdicts for key, bound in some.items()}
    process = self.process._replace(verdicts={**known, **self.process.verdicts})
    return real(replace(self, process=process), layout, values, ready)
