"""One leaf: whether a rule or gate is proven for given values, on which evidence.

P1 closed, P2 about it, P3 whole, P4 newest, P5 fresh, P6 judged, P7 named: each clause is
where its number stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sopilot.language.diagnostics import SopilotError
from sopilot.language.program.model import Act, Kind
from sopilot.runtime.proof.freshness import stale_since
from sopilot.runtime.proof.grade import Grade
from sopilot.runtime.vm.layout import FunctionLayout, ProgramLayout
from sopilot.runtime.vm.moves import rule_key
from sopilot.runtime.vm.position import Programs
from sopilot.runtime.vm.recipe_calls import Absent, WantedCall, wanted_calls
from sopilot.runtime.vm.schema_check import violation
from sopilot.runtime.vm.state import Answered, Configuration, Process
from sopilot.runtime.vm.values import JSON, key_of, same, shown

Judge = Callable[[str, Mapping[str, JSON]], bool | None]
"""A verdict expression over its variables; ``None``, or an error, where it cannot say."""


class LeafVerdict(NamedTuple):
    """``holds`` is ``None`` where it is undecided; ``why`` then says what is missing."""

    function: str
    predicate: str
    holds: bool | None
    grade: Grade
    evidence: tuple[int, ...] = ()
    why: str = ""
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


@dataclass(frozen=True, slots=True)
class Prover:
    """Proves leaves of one process at one moment. ``known`` are its values beyond a leaf's own
    parameters: what the user was asked for."""

    programs: Programs
    configuration: Configuration
    process: Process
    judge: Judge

    @property
    def program(self) -> ProgramLayout:
        return self.programs.layouts[self.process.goal]

    def leaf(self, function: str, values: Mapping[str, JSON]) -> LeafVerdict:
        layout = self.program.functions[function]
        for name in layout.function.parameters:  # P1
            if values.get(name) is None:
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
            found = found or self._verdict(layout, holds, Grade.PROVEN, one)
        return found or self._undecided(layout, doubt)

    def _whole(
        self, layout: FunctionLayout, recipe: tuple[Act, ...], values: Mapping[str, JSON]
    ) -> _Whole | Absent:
        """P2 and P3: the newest answers to exactly the calls of one recipe, every one of them."""
        answers: dict[str, JSON] = {}
        evidence: list[int] = []
        calls: list[WantedCall] = []
        for act in recipe:
            wanted = wanted_calls(act, self._value(layout, values), answers)
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
        return _Whole(
            answers, answers[recipe[-1].answer], tuple(sorted(set(evidence))), tuple(calls)
        )

    def _value(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> Callable[[str], JSON]:
        def value(name: str) -> JSON:
            have = values if name in layout.parameters else self.process.known
            found = have.get(name)
            return Absent(f"`{name}` has no value") if found is None else found

        return value

    def _newest(self, call: WantedCall) -> Answered | Absent:
        """P4 and P5, after P1: the arguments must have the types of the inputs."""
        action = call.act.action
        problem = self._mistyped(action, call.arguments)
        if problem is not None:
            return Absent(f"`{action}` cannot be asked: {problem}")
        key = key_of(dict(call.arguments))
        for pending in self.configuration.pending.values():
            if pending.action == action and key_of(dict(pending.arguments)) == key:
                return Absent(f"{_told(call)} is not answered yet")
        newest = self.configuration.answers.get(action, {}).get(key)
        if newest is None:
            return Absent(f"{_told(call)} has not been called")
        if not self._answers(newest):
            return Absent(f"{_told(call)} failed when it was called last (#{newest.seq})")
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
        for name, value in arguments.items():
            problem = violation(value, facts.inputs.get(name, {}), f"`{name}`")
            if problem is not None:
                return problem
        return None

    def _judged(
        self, layout: FunctionLayout, verdict: str, values: Mapping[str, JSON], whole: _Whole
    ) -> bool | str:
        """P6 and P7. Text where the expression cannot say."""
        variables: dict[str, JSON] = {
            **self.program.program.constants,
            **self._asked(layout),
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
        known = self.process.known
        return {name: known[name] for name in layout.learnable if name in known}

    def covers(
        self, layout: FunctionLayout, values: Mapping[str, JSON], cited: frozenset[int]
    ) -> bool:
        """Whether the cited results are the newest answers to all calls of some recipe."""
        if any(values.get(name) is None for name in layout.function.parameters):
            return False
        if not layout.recipes:
            return True
        whole = (self._whole(layout, recipe, values) for recipe in layout.recipes)
        return any(isinstance(one, _Whole) and cited.issuperset(one.evidence) for one in whole)

    def _attested(
        self, layout: FunctionLayout, values: Mapping[str, JSON], ready: list[_Whole]
    ) -> LeafVerdict:
        """The executor's latest verdict for exactly these values, on exactly these answers."""
        name = layout.function.name
        given = self.process.verdicts.get(rule_key(name, values))
        if given is None:
            return self._undecided(layout, "nobody has judged it for these values")
        for one in ready:
            if set(one.evidence) <= set(given.evidence):
                return self._verdict(layout, given.holds, Grade.ATTESTED, one)
        return self._undecided(layout, "it was judged on other answers than the newest")

    # --- gates -----------------------------------------------------------------------

    def _gate(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> LeafVerdict:
        """Open from its action's success until an action that closes it succeeds."""
        act = layout.recipe_acts[0]
        opened = self._latest_success(layout, act, values)
        if opened is None:
            return self._verdict(layout, False, Grade.PROVEN, _Whole({}, None, (), ()))
        closing = layout.function.closed_by
        if closing is not None:
            closed = self._latest_success(layout, closing, values)
            if closed is not None and closed.succeeded > opened.succeeded:
                whole = _Whole({}, None, (closed.succeeded,), ())
                return self._verdict(layout, False, Grade.PROVEN, whole)
            if any(one.action == closing.action for one in self.configuration.pending.values()):
                return self._undecided(layout, f"`{closing.action}` may have closed it")
        whole = _Whole({act.answer: opened.value}, opened.value, (opened.succeeded,), ())
        if layout.function.verdict is None:
            return self._verdict(layout, True, Grade.PROVEN, whole)
        if not opened.ok:
            return self._undecided(layout, f"`{act.action}` failed when it was called last")
        holds = self._judged(layout, layout.function.verdict, values, whole)
        if isinstance(holds, str):
            return self._undecided(layout, holds)
        return self._verdict(layout, holds, Grade.PROVEN, whole)

    def _latest_success(
        self, layout: FunctionLayout, act: Act, values: Mapping[str, JSON]
    ) -> Answered | None:
        """With the gate's own values; what only the user can give may be any."""
        own = {name: values[name] for name in layout.function.parameters}

        def value(name: str) -> JSON:
            return own[name] if name in own else Absent("the user gives it")

        wanted = wanted_calls(act, value, {}, open_values=True)
        if isinstance(wanted, Absent):
            return None
        (call,) = wanted
        successes = [
            one
            for one in self.configuration.answers.get(act.action, {}).values()
            if one.succeeded >= 0
            and one.arguments.keys() <= call.arguments.keys() | set(call.open)
            and all(
                name in one.arguments and same(given, one.arguments[name])
                for name, given in call.arguments.items()
            )
        ]
        return max(successes, key=lambda one: one.succeeded, default=None)

    # --- verdicts --------------------------------------------------------------------

    def _verdict(
        self, layout: FunctionLayout, holds: bool | None, grade: Grade, whole: _Whole
    ) -> LeafVerdict:
        function = layout.function
        why = "" if holds is not None else "it was judged undecided"
        return LeafVerdict(
            function.name,
            function.predicate or function.name,
            holds,
            grade,
            whole.evidence,
            why,
            whole.calls,
        )

    def _undecided(self, layout: FunctionLayout, why: str) -> LeafVerdict:
        function = layout.function
        name = function.predicate or function.name
        return LeafVerdict(function.name, name, None, Grade.CLAIMED, (), why)


def _told(call: WantedCall) -> str:
    values = ", ".join(f"{name}={shown(value)}" for name, value in call.arguments.items())
    return f"`{call.act.action}({values})`"
