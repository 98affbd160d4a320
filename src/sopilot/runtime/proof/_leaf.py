"""One leaf: whether a rule or gate is proven for given values, on which evidence.

P1 closed, P2 about it, P3 whole, P4 newest, P5 fresh, P6 judged, P7 named: each clause is
where its number stands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sopilot.language.diagnostics import SopilotError
from sopilot.language.handbook import BUILT_IN
from sopilot.language.program.model import Act, Kind
from sopilot.language.render.values import quote_value
from sopilot.runtime.proof._gate_calls import (
    GateCalls,
    counts,
    either,
    may_concern,
    names_the_same,
)
from sopilot.runtime.proof._grade import Grade
from sopilot.runtime.vm.evidence import done_with
from sopilot.runtime.vm.freshness import asked_otherwise, may_disturb, stale_since
from sopilot.runtime.vm.layout import FunctionLayout, ProgramLayout
from sopilot.runtime.vm.moves import rule_key
from sopilot.runtime.vm.position import Programs
from sopilot.runtime.vm.recipe_calls import Absent, Values, WantedCall, wanted_calls
from sopilot.runtime.vm.schema_check import violation
from sopilot.runtime.vm.state import NEVER, Answered, Configuration, Process
from sopilot.runtime.vm.values import JSON, ArgumentsKey, Judge, holds_stand_in, key_of, same


class LeafVerdict(NamedTuple):
    """``holds`` is ``None`` where it is undecided; ``why`` then says what is missing."""

    function: str
    predicate: str
    holds: bool | None
    grade: Grade
    evidence: tuple[int, ...]
    why: str
    calls: tuple[WantedCall, ...] = ()

    def as_json(self) -> dict[str, JSON]:
        return {
            "predicate": self.predicate,
            "holds": self.holds,
            "grade": str(self.grade),
            "evidence": list(self.evidence),
        }


class _Whole(NamedTuple):
    """A recipe with all its answers: by name, the last one's, their events, their calls."""

    answers: Mapping[str, JSON]
    result: JSON
    evidence: tuple[int, ...]
    calls: tuple[WantedCall, ...]


_NONE: Mapping[ArgumentsKey, Answered] = {}


class _Opened(NamedTuple):
    """The success that opens a gate, and whether another of the same action overlaps it."""

    latest: Answered
    overlapping: bool


@dataclass(slots=True)
class Prover:
    """Proves leaves of one process at one moment. ``known`` are its values beyond a leaf's own
    parameters: what the user was asked for."""

    programs: Programs
    configuration: Configuration
    process: Process
    known: Mapping[str, JSON]
    judge: Judge

    @property
    def program(self) -> ProgramLayout:
        return self.programs.layouts[self.process.goal]

    def leaf(self, function: str, values: Mapping[str, JSON]) -> LeafVerdict:
        layout = self.program.functions[function]
        for name in layout.function.parameters:  # P1
            if values.get(name) is None and name not in layout.function.optional:
                return self._undecided(layout, f"`{name}` has no value")
        if layout.function.kind is Kind.GATE:
            return self._gate(layout, values)
        return self._rule(layout, values)

    # --- rules -----------------------------------------------------------------------

    def _rule(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> LeafVerdict:
        whole = [self._whole(layout, recipe, values) for recipe in layout.recipes]
        ready = [one for one in whole if isinstance(one, _Whole)]
        if layout.recipes and not ready:
            missing = next(one for one in whole if isinstance(one, Absent))
            return self._undecided(layout, missing.why)
        if not layout.recipes:
            ready = [_Whole({}, None, (), ())]
        if layout.function.verdict is None:
            return self._attested(layout, values, ready)
        found: LeafVerdict | None = None
        doubt = ""
        for one in ready:
            holds = self._judged(layout, layout.function.verdict, values, one)
            if isinstance(holds, str):
                doubt = holds
                continue
            if found is not None and found.holds is not holds:
                return self._undecided(layout, "two ways to verify it contradict each other")
            grade = Grade.STATED if layout.function.question else Grade.PROVEN
            found = found or self._verdict(layout, holds, grade, one)
        return found or self._undecided(layout, doubt)

    def _whole(
        self, layout: FunctionLayout, recipe: tuple[Act, ...], values: Mapping[str, JSON]
    ) -> _Whole | Absent:
        """P2 and P3: the newest answers to exactly the calls of one recipe, every one of them."""
        answers: dict[str, JSON] = {}
        evidence: list[int] = []
        calls: list[WantedCall] = []
        value = self._value(layout, values)
        for act in recipe:
            wanted = wanted_calls(act, value, answers, optional=layout.function.optional)
            if isinstance(wanted, Absent):
                return wanted
            found: list[JSON] = []
            for call in wanted:
                newest = self._newest(call)
                if isinstance(newest, Absent):
                    return newest
                found.append(newest.value)
                evidence.append(newest.seq)
                calls.append(call)
            answers[act.answer] = found if act.each is not None else found[0]
        once = tuple(sorted(set(evidence)))
        return _Whole(answers, answers[recipe[-1].answer], once, tuple(calls))

    def _value(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> Values:
        def value(name: str) -> JSON | Absent:
            have = values if name in layout.parameters else self.known
            found = have.get(name)
            return Absent(f"`{name}` has no value") if found is None else found

        return value

    def _newest(self, call: WantedCall) -> Answered | Absent:
        """P4 and P5, after P1: the arguments must have the types of the inputs."""
        action = call.act.action
        problem = self._mistyped(action, call.arguments)
        if problem is not None:
            return Absent(f"`{action}` cannot be asked: {problem}")
        key = key_of(call.arguments)
        newest = self.configuration.answers.get(action, _NONE).get(key)
        for pending in self.configuration.pending.values():
            # One that was asked for earlier can only answer about an earlier moment; but a user
            # who was asked twice may answer the first question last.
            later = newest is None or pending.seq > newest.call_seq or action in BUILT_IN
            if later and pending.action == action and key_of(pending.arguments) == key:
                return Absent(f"{_told(call)} is not answered yet")
        if newest is None:
            return Absent(f"{_told(call)} has not been called")
        if not self._answers(newest):
            return Absent(f"{_told(call)} failed when it was called last (#{newest.seq})")
        again = asked_otherwise(self.programs, self.configuration, action, call.arguments, newest)
        if again:
            return Absent(f"{_told(call)} was called again with more than it takes (#{again})")
        if may_disturb(self.programs, action, action):
            return Absent(f"`{action}` changes what it reads, so it proves nothing")
        changed = stale_since(self.programs, self.configuration, action, newest)
        if changed:
            return Absent(f"{_told(call)} must be called again: {changed}")
        return newest

    def _answers(self, newest: Answered) -> bool:
        """Where nothing is guarded a tool may say no by failing with `false`."""
        return newest.ok or (not self.programs.actions and isinstance(newest.value, bool))

    def _mistyped(self, action: str, arguments: Mapping[str, JSON]) -> str | None:
        facts = self.programs.actions.get(action)
        if facts is None:
            return None
        for name in facts.required:
            if name not in arguments:
                return f"it needs `{name}`"
        for name, value in arguments.items():
            problem = violation(value, facts.inputs.get(name, {}), f"`{name}`")
            if problem is not None:
                return problem
        return None

    def _judged(
        self, layout: FunctionLayout, verdict: str, values: Mapping[str, JSON], whole: _Whole
    ) -> bool | str:
        """P6 and P7. Text where the expression cannot say."""
        clock = self.configuration.clock
        variables: dict[str, JSON] = {
            **({"now": clock} if clock else {}),
            **self.program.program.constants,
            **self._asked(layout),
            **dict.fromkeys(layout.function.optional),
            **values,
            "results": dict(whole.answers),
            "result": whole.result,
        }
        try:
            holds = self.judge(verdict, variables)
        except SopilotError as problem:
            return f"its verdict cannot be told from the answers: {problem}"
        return "its verdict cannot be told from the answers" if holds is None else holds

    def _asked(self, layout: FunctionLayout) -> dict[str, JSON]:
        return {name: self.known[name] for name in layout.learnable if name in self.known}

    def covers(
        self, layout: FunctionLayout, values: Mapping[str, JSON], cited: frozenset[int]
    ) -> bool:
        """Whether the cited results are the newest answers to all calls of some recipe."""
        for name in layout.function.parameters:
            if values.get(name) is None:
                return False
        for recipe in layout.recipes:
            whole = self._whole(layout, recipe, values)
            if isinstance(whole, _Whole) and cited.issuperset(whole.evidence):
                return True
        return not layout.recipes

    def _attested(
        self, layout: FunctionLayout, values: Mapping[str, JSON], ready: list[_Whole]
    ) -> LeafVerdict:
        """The executor's latest verdict for exactly these values, on exactly these answers."""
        name = layout.function.name
        given = self.process.verdicts.get(rule_key(name, values))
        if given is None:
            return self._undecided(layout, "nobody has judged it for these values")
        for one in ready:
            if all(self._was_judged(call, given.evidence) for call in one.calls):
                return self._verdict(layout, given.holds, Grade.ATTESTED, one)
        return self._undecided(layout, "it was judged on other answers than the newest")

    def _was_judged(self, call: WantedCall, evidence: Collection[int]) -> bool:
        """Whether a verdict on ``evidence`` is one on the newest answer to this call, or on one
        that said the same: reading once more and finding nothing new takes no verdict away."""
        key = key_of(call.arguments)
        newest = self.configuration.answers[call.act.action][key]
        if newest.seq in evidence:
            return True
        return not holds_stand_in(newest.value) and any(
            one.seq in evidence
            and (one.ok, one.action) == (True, call.act.action)
            and key_of(one.arguments) == key
            and same(one.value, newest.value)
            for one in self.process.results
        )

    # --- gates -----------------------------------------------------------------------

    def _gate(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> LeafVerdict:
        """Open while every call that opens it holds; shut where one of them does not."""
        opened: dict[str, _Opened] = {}
        doubt: LeafVerdict | None = None
        for act in layout.recipes[0]:
            found = self._opened_by(layout, act, values)
            if isinstance(found, _Opened):
                opened[act.answer] = found
            elif found.holds is False:
                return found
            else:
                doubt = found
        if doubt is not None:
            return doubt
        answers = {name: one.latest.value for name, one in opened.items()}
        evidence = tuple(sorted({one.latest.succeeded for one in opened.values()}))
        whole = _Whole(answers, answers[layout.recipes[0][-1].answer], evidence, ())
        if layout.function.verdict is None:
            return self._verdict(layout, True, Grade.PROVEN, whole)
        for act in layout.recipes[0]:
            latest, overlapping = opened[act.answer]
            if not latest.ok:
                return self._undecided(layout, f"`{act.action}` failed when it was called last")
            if overlapping:
                return self._undecided(layout, f"calls of `{act.action}` overlap")
        holds = self._judged(layout, layout.function.verdict, values, whole)
        if isinstance(holds, str):
            return self._undecided(layout, holds)
        return self._verdict(layout, holds, Grade.PROVEN, whole)

    def _opened_by(
        self, layout: FunctionLayout, act: Act, values: Mapping[str, JSON]
    ) -> _Opened | LeafVerdict:
        """Open from its action's success until an action that closes it succeeds. Where the two
        overlap, or one is not answered, nobody can tell which came first."""
        closing = layout.function.closed_by
        opening = self._gate_calls(layout, act, values)
        shutting = self._gate_calls(layout, closing, values) if closing is not None else None
        if layout.function.principal:
            shutting = either(shutting, self._gate_calls(layout, act, values, others=True))
            for gate, opens in self._other_principals(layout):
                shutting = either(shutting, self._gate_calls(gate, opens, values, others=True))
        opened = opening.latest
        if opened is not None and (
            shutting is None or (opened.asked > shutting.touched and not shutting.pending)
        ):
            return _Opened(opened, opening.overlapping)
        shut = shutting.latest if shutting is not None else None
        never = not opening.touching
        if not opening.pending and (never or (shut is not None and shut.asked > opening.touched)):
            evidence = (shut.succeeded,) if shut is not None and not never else ()
            return self._verdict(layout, False, Grade.PROVEN, _Whole({}, None, evidence, ()))
        return self._undecided(layout, f"nobody knows whether `{act.action}` or its end came last")

    def _other_principals(self, layout: FunctionLayout) -> Iterator[tuple[FunctionLayout, Act]]:
        """The other ways in which one customer at a time is known, by the same names."""
        for program in self.programs.layouts.values():
            for one in program.functions.values():
                alike = one.function.principal and one.parameters == layout.parameters
                if alike and one.recipes[0] != layout.recipes[0]:
                    yield from ((one, act) for act in one.recipes[0])

    def _gate_calls(
        self, layout: FunctionLayout, act: Act, values: Mapping[str, JSON], *, others: bool = False
    ) -> GateCalls:
        """With the gate's own values; what only the user can give may be any. A call that leaves
        one of them out, or has another input besides, may have touched the gate and proves
        nothing; what was done may have had any that the action declares. With ``others``, the
        calls that may be for anybody else instead."""
        own = {name: values[name] for name in layout.function.parameters}

        def value(name: str) -> JSON | Absent:
            return own[name] if name in own else Absent("the user gives it")

        wanted = wanted_calls(act, value, {}, open_values=True)
        if isinstance(wanted, Absent):
            return GateCalls((), (), pending=True)
        (call,) = wanted
        exacts: list[Answered] = []
        touching: list[Answered] = []
        for one in self.configuration.answers.get(act.action, {}).values():
            if one.touched == NEVER or not counts(call, one.arguments, others):
                continue
            touching.append(one)
            inputs = call.arguments.keys() | set(call.open)
            exact = one.arguments.keys() == inputs or (
                layout.function.is_fact
                and done_with(self.programs, act.action, inputs, one.arguments)
            )
            if others:
                named = exact and not may_concern(call, one.arguments)
            else:
                named = exact and names_the_same(call, one.arguments)
            if one.succeeded != NEVER and named:
                exacts.append(one)
        pending = any(
            one.action == act.action and counts(call, one.arguments, others)
            for one in self.configuration.pending.values()
        )
        return GateCalls(tuple(exacts), tuple(touching), pending)

    # --- verdicts --------------------------------------------------------------------

    def _verdict(
        self, layout: FunctionLayout, holds: bool | None, grade: Grade, whole: _Whole
    ) -> LeafVerdict:
        function = layout.function
        why = "" if holds is not None else "it was judged undecided"
        return LeafVerdict(
            function.name,
            function.judges,
            holds,
            grade,
            whole.evidence,
            why,
            whole.calls,
        )

    def _undecided(self, layout: FunctionLayout, why: str) -> LeafVerdict:
        function = layout.function
        return LeafVerdict(function.name, function.judges, None, Grade.CLAIMED, (), why)


def _told(call: WantedCall) -> str:
    values = ", ".join(f"{name}={quote_value(value)}" for name, value in call.arguments.items())
    return f"`{call.act.action}({values})`"
