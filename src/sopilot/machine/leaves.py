"""Leaves: whether a rule or gate is proven for given values, and on which evidence.

P1 closed, P2 about it, P3 whole, P4 newest, P5 fresh, P6 judged, P7 named: the code marks where it
decides each clause.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sopilot.handbook.model import BUILT_IN
from sopilot.handbook.requirements import Constant, Path
from sopilot.machine.evidence import asked_otherwise, may_disturb, renewed, stale_since
from sopilot.machine.layout import FunctionLayout, Position, ProgramLayout, Programs
from sopilot.machine.moves import parameter_values, rule_key
from sopilot.machine.recipes import Absent, Values, WantedCall, wanted_calls
from sopilot.machine.state import (
    NEVER,
    NONE,
    UNRESOLVED,
    CallRecord,
    Configuration,
    Process,
    ProofLevel,
    RuleKey,
)
from sopilot.messages.catalogue import sentence
from sopilot.messages.errors import SopilotError
from sopilot.program.model import Act, Kind, Prerequisite
from sopilot.program.walk import passed_values
from sopilot.trace.events import Return
from sopilot.values.json import JSON, Judge, holds_stand_in, key_of, look_the_same, same
from sopilot.values.schema import violation
from sopilot.values.text import quote_value


class GateCalls(NamedTuple):
    """The calls that open or close a gate: exact successes, all that may have touched it, and
    the action of one that isn't answered yet."""

    exact: tuple[CallRecord, ...]
    touching: tuple[CallRecord, ...]
    pending: str

    @property
    def touched(self) -> int:
        """The last event that may have touched the gate."""
        return max((item.touched for item in self.touching), default=NEVER)

    @property
    def latest(self) -> CallRecord | None:
        return max(self.exact, key=lambda item: item.success_call, default=None)

    @property
    def overlapping(self) -> bool:
        """Whether another may have been carried out since the latest was made: then it is unknown
        which answer describes the present state."""
        latest = self.latest
        return bool(self.pending) or (
            latest is not None
            and any(
                item is not latest and item.touched > latest.success_call for item in self.touching
            )
        )


_NO_CALLS = GateCalls((), (), pending="")


def inputs_of(call: WantedCall) -> set[str]:
    return {*call.arguments, *call.open}


def is_exact(call: WantedCall, arguments: Mapping[str, JSON]) -> bool:
    """Whether it has exactly the gate's inputs."""
    return arguments.keys() == inputs_of(call)


def named_by(call: WantedCall) -> set[str]:
    """The names whose values the call gives."""
    return {
        term.name
        for parameter, term in call.act.arguments
        if parameter in call.arguments and not isinstance(term, Constant | Path)
    }


def names_the_same(call: WantedCall, arguments: Mapping[str, JSON]) -> bool:
    return all(same(value, arguments[name]) for name, value in call.arguments.items())


def may_concern(call: WantedCall, arguments: Mapping[str, JSON]) -> bool:
    """Whether a call may be about the gate's values. It isn't if it names another value of the same
    type; a tool may interpret values of another type, and look-alikes, in any way."""
    return not any(
        name in arguments
        and _is_number(arguments[name]) == _is_number(value)
        and (_is_number(value) or type(arguments[name]) is type(value))
        and not same(value, arguments[name])
        and not look_the_same(value, arguments[name])
        for name, value in call.arguments.items()
    )


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class LeafVerdict(NamedTuple):
    """``holds`` is ``None`` if it is undecided; ``why`` then says what is missing. ``uses`` are the
    user's answers in the evidence that serve only one call."""

    function: str
    predicate: str
    holds: bool | None
    grade: ProofLevel
    evidence: tuple[int, ...]
    why: str
    calls: tuple[WantedCall, ...] = ()
    uses: tuple[int, ...] = ()

    def as_json(self) -> dict[str, JSON]:
        return {
            "predicate": self.predicate,
            "holds": self.holds,
            "grade": str(self.grade),
            "evidence": list(self.evidence),
        }


class _Whole(NamedTuple):
    """A recipe with all its answers: by name, the last one's, their events, their calls."""

    answers: Mapping[str, JSON] = NONE
    result: JSON = None
    evidence: tuple[int, ...] = ()
    calls: tuple[WantedCall, ...] = ()


class _Opened(NamedTuple):
    """The success that opens a gate, and whether another of the same action overlaps it."""

    latest: CallRecord
    overlapping: bool


@dataclass(slots=True)
class Prover:
    """Proves leaves of one process at one moment. ``known`` are the process's values, for names
    that aren't parameters of the leaf."""

    programs: Programs
    configuration: Configuration
    process: Process
    known: Mapping[str, JSON]
    judge: Judge
    verdicts: dict[RuleKey, LeafVerdict] = field(init=False, default_factory=dict)
    """Cached verdicts, since it is one moment."""

    @property
    def program(self) -> ProgramLayout:
        return self.programs.layouts[self.process.goal]

    def leaf(self, function: str, values: Mapping[str, JSON]) -> LeafVerdict:
        key = rule_key(function, values)
        if key not in self.verdicts:
            self.verdicts[key] = self._leaf(function, values)
        return self.verdicts[key]

    def _leaf(self, function: str, values: Mapping[str, JSON]) -> LeafVerdict:
        layout = self.program.functions[function]
        for name in layout.function.parameters:  # P1
            if values.get(name) is None and name not in layout.function.optional:
                return self._undecided(layout, sentence("no-value", name=name))
        if layout.function.kind is Kind.GATE:
            return self._gate(layout, values)
        return self._rule(layout, values)

    def trusted(self, function: str, values: Mapping[str, JSON]) -> LeafVerdict:
        """The leaf as a guarded call may rest on it: a model's word counts only where the handbook
        says so."""
        verdict = self.leaf(function, values)
        judged_by_model = self.program.functions[function].function.judged_by_model
        weak = verdict.grade is ProofLevel.CLAIMED or (
            verdict.grade is ProofLevel.ATTESTED and not judged_by_model
        )
        if weak and verdict.holds is not None:
            why = sentence("model-only")
            return verdict._replace(holds=None, why=why, grade=ProofLevel.CLAIMED)
        return verdict

    # --- what a call requires before it ----------------------------------------------

    def prerequisites(
        self, call: WantedCall
    ) -> Iterator[list[tuple[FunctionLayout | None, dict[str, JSON], bool]]]:
        """Groups of leaves. One leaf of each group must come out as wanted before the call. A leaf
        is its function (``None`` if this program has none), its values and the wanted side."""
        facts = self.programs.actions.get(call.act.action)
        for group in facts.requires if facts is not None else ():
            yield [
                (
                    self._judging(item),
                    passed_values(item.arguments, call.arguments, {}),
                    item.wanted,
                )
                for item in group
            ]

    def may_precede(self, call: WantedCall) -> bool | None:
        """Whether everything that the call requires is proven for its arguments; ``None`` if this
        program doesn't check a part of it."""
        unknown = False
        for group in self.prerequisites(call):
            if any(
                layout is not None and self.trusted(layout.name, values).holds is wanted
                for layout, values, wanted in group
            ):
                continue
            if all(layout is not None for layout, _, _ in group):
                return False
            unknown = True
        return None if unknown else True

    def _judging(self, prerequisite: Prerequisite) -> FunctionLayout | None:
        """The function that judges it by its own answers."""
        for layout in self.program.functions.values():
            function = layout.function
            if function.predicate == prerequisite.predicate and not function.branches:
                return layout
        return None

    # --- rules -----------------------------------------------------------------------

    def _rule(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> LeafVerdict:
        ready = self._ready(layout, values)
        if isinstance(ready, Absent):
            return self._undecided(layout, ready.why)
        if layout.function.verdict is None:
            return self._attested(layout, values, ready)
        leaf_verdict: LeafVerdict | None = None
        doubt = ""
        for item in ready:
            holds = self._judged(layout, values, item)
            if isinstance(holds, str):
                doubt = holds
                continue
            if leaf_verdict is not None and leaf_verdict.holds is not holds:
                return self._undecided(layout, sentence("contradicting-ways"))
            grade = ProofLevel.STATED if layout.function.question else ProofLevel.PROVEN
            leaf_verdict = leaf_verdict or self._verdict(layout, holds, grade, item)
        return leaf_verdict or self._undecided(layout, doubt)

    def _ready(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> list[_Whole] | Absent:
        """The recipes with all their answers; what the first one lacks if none is whole."""
        if not layout.recipes:
            return [_Whole()]
        tried = [self._whole(layout, recipe, values) for recipe in layout.recipes]
        ready = [entry for entry in tried if isinstance(entry, _Whole)]
        return ready or next(entry for entry in tried if isinstance(entry, Absent))

    def _whole(
        self, layout: FunctionLayout, recipe: tuple[Act, ...], values: Mapping[str, JSON]
    ) -> _Whole | Absent:
        """P2 and P3: the newest answers to exactly the calls of one recipe, all of them."""
        answers: dict[str, JSON] = {}
        evidence: list[int] = []
        calls: list[WantedCall] = []
        value = self.value_in(layout, values)
        for act in recipe:
            wanted = wanted_calls(act, value, answers, optional=layout.function.optional)
            if isinstance(wanted, Absent):
                return wanted
            result: list[JSON] = []
            for call in wanted:
                newest = self.newest(call)
                if isinstance(newest, Absent):
                    return newest
                result.append(newest.value)
                evidence.append(newest.seq)
                calls.append(call)
            answers[act.answer] = result if act.each is not None else result[0]
        once = tuple(sorted(set(evidence)))
        return _Whole(answers, answers[recipe[-1].answer], once, tuple(calls))

    def value_in(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> Values:
        def value(name: str) -> JSON | Absent:
            have = values if name in layout.parameters else self.known
            result = have.get(name)
            return Absent(sentence("no-value", name=name)) if result is None else result

        return value

    def newest(self, call: WantedCall) -> CallRecord | Absent:
        """P4 and P5, after P1: the arguments must have the types of the inputs."""
        action = call.act.action
        problem = argument_problem(self.programs, action, call.arguments)
        if problem:
            return Absent(sentence("cannot-be-asked", action=action, problem=problem))
        key = key_of(call.arguments)
        newest: CallRecord | None = self.configuration.answers.get(action, NONE).get(key)
        for pending in self.configuration.pending.values():
            # An earlier call can only answer about an earlier moment. But a user who was asked
            # twice may answer the first question last.
            later = newest is None or pending.call_seq > newest.call_seq or action in BUILT_IN
            if later and pending.action == action and key_of(pending.arguments) == key:
                return Absent(sentence("not-answered", call=_spelled(call)), awaited=action)
        if newest is None:
            return Absent(sentence("not-called", call=_spelled(call)), callable=True)
        if not self._answers(newest):
            return Absent(sentence("failed-last-at", call=_spelled(call), seq=newest.seq))
        again = asked_otherwise(self.programs, self.configuration, action, call.arguments, newest)
        if again:
            why = sentence("called-with-more", call=_spelled(call), seq=again)
            since = sentence("more-since", seq=again)
            return Absent(why, callable=True, again=since)
        if may_disturb(self.programs, action, action):
            return Absent(sentence("changes-what-it-reads", action=action))
        changed = stale_since(self.programs, self.configuration, action, newest)
        if changed:
            why = sentence("call-again", call=_spelled(call), why=changed)
            disturbing = (
                pending.action
                for pending in self.configuration.pending.values()
                if may_disturb(self.programs, pending.action, action)
            )
            return Absent(why, callable=True, again=changed, awaited=next(disturbing, ""))
        return newest

    def _answers(self, newest: CallRecord) -> bool:
        """Unless something is guarded, a tool may say no by failing with `false`."""
        return newest.ok or (not self.programs.actions and isinstance(newest.value, bool))

    def _judged(
        self, layout: FunctionLayout, values: Mapping[str, JSON], whole: _Whole
    ) -> bool | str:
        """P6 and P7: the verdict; text where its expression can't tell."""
        assert layout.function.verdict is not None
        clock = self.configuration.clock
        variables: dict[str, JSON] = {
            **({"now": clock} if clock else {}),
            **self.program.program.constants,
            **{name: self.known[name] for name in layout.learnable if name in self.known},
            **dict.fromkeys(layout.function.optional),
            **values,
            "results": dict(whole.answers),
            "result": whole.result,
        }
        try:
            holds = self.judge(layout.function.verdict, variables)
        except SopilotError as problem:
            return sentence("answers-cannot-tell-because", problem=problem)
        return sentence("answers-cannot-tell") if holds is None else holds

    def covers(
        self, layout: FunctionLayout, values: Mapping[str, JSON], cited: frozenset[int]
    ) -> bool:
        """Whether the cited results include the newest answers to all calls of some recipe."""
        complete = all(values.get(name) is not None for name in layout.function.parameters)
        ready = self._ready(layout, values)
        return (
            complete
            and not isinstance(ready, Absent)
            and any(cited.issuperset(whole.evidence) for whole in ready)
        )

    def evidence_of(
        self, layout: FunctionLayout, values: Mapping[str, JSON]
    ) -> tuple[int, ...] | None:
        """The events of the answers to the first whole recipe, if there is one."""
        ready = self._ready(layout, values)
        return None if isinstance(ready, Absent) else ready[0].evidence

    def _attested(
        self, layout: FunctionLayout, values: Mapping[str, JSON], ready: list[_Whole]
    ) -> LeafVerdict:
        """The executor's latest verdict for exactly these values, on exactly these answers."""
        name = layout.function.name
        value = self.process.verdicts.get(rule_key(name, values))
        if value is None:
            return self._undecided(layout, sentence("not-judged"))
        for item in ready:
            if all(self._was_judged(call, value.evidence) for call in item.calls):
                return self._verdict(layout, value.holds, ProofLevel.ATTESTED, item)
        return self._undecided(layout, sentence("judged-on-older", seq=value.producer))

    def _was_judged(self, call: WantedCall, evidence: Collection[int]) -> bool:
        """Whether a verdict on ``evidence`` is one on the newest answer to this call, or on one
        that said the same: reading once more and finding nothing new takes no verdict away."""
        key = key_of(call.arguments)
        newest = self.configuration.answers[call.act.action][key]
        if newest.seq in evidence:
            return True
        return not holds_stand_in(newest.value) and any(
            result.seq in evidence
            and (result.ok, result.action) == (True, call.act.action)
            and key_of(result.arguments) == key
            and same(result.value, newest.value)
            for result in self.process.results
        )

    def fact(self, function: str, values: Mapping[str, JSON], wanted: bool) -> dict[str, JSON]:
        """P14: what a person decides about if the leaf is unmet. ``answers`` are the events (call,
        result) of the newest answers to its calls, failures included. ``changed`` is the last
        event that may have changed what the leaf reads."""
        layout = self.program.functions[function]
        verdict = self.leaf(function, values)
        judged = self.process.verdicts.get(rule_key(function, values))
        return {
            "predicate": verdict.predicate,
            "function": function,
            "must_be": wanted,
            "is": verdict.holds,
            "judged": judged.holds if judged is not None else None,
            "answers": [[item.call_seq, item.seq] for item in self._looked_at(layout, values)],
            "changed": self._changed(layout),
        }

    def _changed(self, layout: FunctionLayout) -> int:
        """P14: the last event that may have changed what a rule reads, or who the customer is."""
        acts, pending = layout.recipe_acts, self.configuration.pending.values()
        answers = self.configuration.answers
        if layout.function.kind is Kind.RULE:
            called = {*answers, *(item.action for item in pending)}
            changing = {
                action
                for action in called
                if any(may_disturb(self.programs, action, act.action) for act in acts)
            }
        else:
            changing = self._identifying() if layout.function.principal else set()
        events = [renewed(self.programs, self.configuration, act.action) for act in acts]
        for action in changing:
            events += [min(item.touched, item.seq) for item in answers.get(action, NONE).values()]
        events += [item.call_seq for item in pending if item.action in changing]
        return max(events, default=NEVER)

    def _identifying(self) -> set[str]:
        """P11: the actions of every gate that knows the customer."""
        gates = (
            function
            for layout in self.programs.layouts.values()
            for function in layout.functions.values()
        )
        return {act.action for gate in gates if gate.function.principal for act in gate.recipe_acts}

    def _looked_at(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> list[CallRecord]:
        if layout.function.kind is Kind.GATE:
            if any(values.get(name) is None for name in layout.function.parameters):
                return []
            closing = layout.function.closed_by
            acts = (*layout.recipes[0], *((closing,) if closing is not None else ()))
            touching = [
                item for act in acts for item in self._gate_calls(layout, act, values).touching
            ]
            return sorted(touching, key=lambda item: item.call_seq)
        answereds: list[CallRecord] = []
        value = self.value_in(layout, values)
        for recipe in layout.recipes:
            answers: dict[str, JSON] = {}
            for act in recipe:
                wanted = wanted_calls(act, value, answers, optional=layout.function.optional)
                if isinstance(wanted, Absent):
                    break
                known = self.configuration.answers.get(act.action, NONE)
                newest = [known.get(key_of(call.arguments)) for call in wanted]
                there = [item for item in newest if item is not None]
                answereds += there
                if len(there) < len(newest) or not all(item.ok for item in there):
                    break
                messages = [item.value for item in there]
                answers[act.answer] = messages if act.each is not None else messages[0]
        return answereds

    # --- gates -----------------------------------------------------------------------

    def _gate(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> LeafVerdict:
        """Open if every call that opens it holds; shut if one of them doesn't."""
        opened: dict[str, _Opened] = {}
        doubt: LeafVerdict | None = None
        for act in layout.recipes[0]:
            opened_by = self._opened_by(layout, act, values)
            if isinstance(opened_by, _Opened):
                opened[act.answer] = opened_by
            elif opened_by.holds is False:
                return opened_by
            else:
                doubt = opened_by
        if doubt is not None:
            return doubt
        answers = {name: item.latest.value for name, item in opened.items()}
        evidence = tuple(sorted({item.latest.succeeded for item in opened.values()}))
        whole = _Whole(answers, answers[layout.recipes[0][-1].answer], evidence)
        if layout.function.verdict is None:
            return self._verdict(layout, True, ProofLevel.PROVEN, whole)
        for act in layout.recipes[0]:
            latest, overlapping = opened[act.answer]
            if not latest.ok:
                return self._undecided(layout, sentence("failed-last", call=act.action))
            if overlapping:
                return self._undecided(layout, sentence("calls-overlap", action=act.action))
        holds = self._judged(layout, values, whole)
        if isinstance(holds, str):
            return self._undecided(layout, holds)
        return self._verdict(layout, holds, ProofLevel.PROVEN, whole)

    def _opened_by(
        self, layout: FunctionLayout, act: Act, values: Mapping[str, JSON]
    ) -> _Opened | LeafVerdict:
        """Open from its action's success until an action that closes it succeeds. Where the two
        overlap, or one isn't answered, the order is unknown."""
        opening = self._gate_calls(layout, act, values)
        shutting = self.shutting(layout, act, values)
        opened, shut = opening.latest, shutting.latest
        if opened is not None and opened.success_call > shutting.touched and not shutting.pending:
            if opened.success_call < renewed(self.programs, self.configuration, act.action):  # P8
                return self._undecided(layout, sentence("earlier-connection", action=act.action))
            if not layout.function.opened_by(opened.success_value):
                why = sentence("answer-opens-nothing", action=act.action, seq=opened.succeeded)
                return self._undecided(layout, why)
            return _Opened(opened, opening.overlapping)
        never = not opening.touching
        if not opening.pending and (
            never or (shut is not None and shut.success_call > opening.touched)
        ):
            since = renewed(self.programs, self.configuration, act.action)
            if shut is not None and not never and shut.success_call < since:
                return self._undecided(layout, sentence("earlier-connection", action=act.action))
            evidence = (shut.succeeded,) if shut is not None and not never else ()
            return self._verdict(layout, False, ProofLevel.PROVEN, _Whole(evidence=evidence))
        return self._undecided(layout, sentence("order-unknown", action=act.action))

    def shutting(self, layout: FunctionLayout, act: Act, values: Mapping[str, JSON]) -> GateCalls:
        """The calls that close the gate which ``act`` opens."""
        closing = layout.function.closed_by
        calls = _NO_CALLS if closing is None else self._gate_calls(layout, closing, values)
        if not layout.function.principal:
            return calls
        others = self._other_customers(layout, act, values)
        return GateCalls(
            calls.exact + others.exact,
            calls.touching + others.touching,
            calls.pending or others.pending,
        )

    def _other_customers(
        self, layout: FunctionLayout, act: Act, values: Mapping[str, JSON]
    ) -> GateCalls:
        """P11: the calls that may have identified another customer, through any gate that
        identifies one. Only a gate with the same parameters can show that it was the same
        person."""
        ways = [(layout, act)]
        for program in self.programs.layouts.values():
            for gate in program.functions.values():
                if gate.function.principal and gate.recipes[0] != layout.recipes[0]:
                    ways += [(gate, opens) for opens in gate.recipes[0]]
        alike = [
            (gate, call)
            for gate, opens in ways
            if gate.parameters == layout.parameters
            and (call := gate_call(gate, opens, values)) is not None
        ]

        def is_same(action: str, arguments: Mapping[str, JSON], answer: CallRecord | None) -> bool:
            return any(
                call.act.action == action
                and is_exact(call, arguments)
                and names_the_same(call, arguments)
                and self._shows_customer(gate, call, values, answer, own=gate is layout)
                for gate, call in alike
            )

        actions = {opens.action for _, opens in ways}
        exact: list[CallRecord] = []
        touching: list[CallRecord] = []
        for action in actions:
            for item in self.configuration.answers.get(action, NONE).values():
                if item.touched == NEVER or is_same(action, item.arguments, item):
                    continue
                touching.append(item)
                if item.succeeded != NEVER and any(
                    call.act.action == action
                    and is_exact(call, item.arguments)
                    and not may_concern(call, item.arguments)
                    for _, call in alike
                ):
                    exact.append(item)
        pending = (
            entry.action
            for entry in self.configuration.pending.values()
            if entry.action in actions and not is_same(entry.action, entry.arguments, None)
        )
        return GateCalls(tuple(exact), tuple(touching), next(pending, ""))

    def _shows_customer(
        self,
        gate: FunctionLayout,
        call: WantedCall,
        values: Mapping[str, JSON],
        answer: CallRecord | None,
        *,
        own: bool,
    ) -> bool:
        """Whether a call that opens ``gate`` is about the customer with these values: it names them
        all, or its answer meets the gate's verdict. For the gate that is being judged (``own``)
        the verdict is evaluated later, on the latest answer."""
        if gate.parameters <= named_by(call):
            return bool(gate.parameters) or own
        if gate.function.verdict is None or own:
            return gate.function.verdict is not None
        if answer is None or not answer.ok or answer.touched == UNRESOLVED:
            return False
        whole = _Whole({call.act.answer: answer.value}, answer.value)
        return self._judged(gate, values, whole) is True

    def _gate_calls(
        self, layout: FunctionLayout, act: Act, values: Mapping[str, JSON]
    ) -> GateCalls:
        """The calls with the gate's own values; inputs that only the user knows may be any. A call
        that leaves an input out or has another one may have touched the gate, but proves nothing.
        For a fact, further declared inputs don't matter."""
        call = gate_call(layout, act, values)
        if call is None:
            return GateCalls((), (), pending=act.action)
        facts = self.programs.actions.get(act.action)
        declared = frozenset(facts.inputs) if facts is not None else frozenset[str]()
        exacts: list[CallRecord] = []
        touching: list[CallRecord] = []
        for item in self.configuration.answers.get(act.action, NONE).values():
            if item.touched == NEVER or not may_concern(call, item.arguments):
                continue
            touching.append(item)
            # A fact is about its own inputs; the other declared inputs may have any value.
            optional = declared if layout.function.is_fact else frozenset[str]()
            exact = inputs_of(call) <= item.arguments.keys() <= inputs_of(call) | optional
            if item.succeeded != NEVER and exact and names_the_same(call, item.arguments):
                exacts.append(item)
        pending = any(
            entry.action == act.action and may_concern(call, entry.arguments)
            for entry in self.configuration.pending.values()
        )
        return GateCalls(tuple(exacts), tuple(touching), act.action if pending else "")

    # --- verdicts --------------------------------------------------------------------

    def _verdict(
        self, layout: FunctionLayout, holds: bool | None, grade: ProofLevel, whole: _Whole
    ) -> LeafVerdict:
        function = layout.function
        why = "" if holds is not None else sentence("judged-undecided")
        return LeafVerdict(
            function.name,
            function.judges,
            holds,
            grade,
            whole.evidence,
            why,
            whole.calls,
            whole.evidence if function.question and not function.reusable else (),
        )

    def _undecided(self, layout: FunctionLayout, why: str) -> LeafVerdict:
        function = layout.function
        return LeafVerdict(function.name, function.judges, None, ProofLevel.CLAIMED, (), why)


def prover_at(here: Position, known: Mapping[str, JSON], judge: Judge) -> Prover:
    return Prover(here.programs, here.configuration, here.process, known, judge)


def argument_problem(programs: Programs, action: str, arguments: Mapping[str, JSON]) -> str:
    """P1 for the inputs of a call: all required ones are there, and each has its type."""
    facts = programs.actions.get(action)
    if facts is None:
        return ""
    for name in facts.required:
        if name not in arguments:
            return sentence("needs", name=name)
    for name, value in arguments.items():
        problem = violation(value, facts.inputs.get(name, {}), f"`{name}`")
        if problem is not None:
            return problem
    return ""


def gate_call(layout: FunctionLayout, act: Act, values: Mapping[str, JSON]) -> WantedCall | None:
    """The call of ``act`` with the gate's own values; ``None`` if it looks into an answer."""
    own = {name: values[name] for name in layout.function.parameters}

    def value(name: str) -> JSON | Absent:
        return own[name] if name in own else Absent("the user gives it")

    wanted = wanted_calls(act, value, {}, open_values=True)
    return None if isinstance(wanted, Absent) else wanted[0]


def _spelled(call: WantedCall) -> str:
    values = ", ".join(f"{name}={quote_value(value)}" for name, value in call.arguments.items())
    return f"{call.act.action}({values})"


def grade_of_return(
    here: Position, operation: Return, evidence: Sequence[int], judge: Judge
) -> ProofLevel | None:
    """The level of a verdict that is returned on ``evidence``; ``None`` if nothing is judged."""
    function = here.layout.function
    if not here.layout.soft or operation.holds is None:
        return None
    prover = prover_at(here, here.process.known, judge)
    values = parameter_values(here, here.frame)
    if operation.arguments:  # A computed value comes with the verdict.
        supplied = {**operation.arguments, **values}
        values = {name: supplied[name] for name in function.parameters if name in supplied}
    if function.kind is Kind.RULE and function.verdict is None:
        covered = prover.covers(here.layout, values, frozenset(evidence))
        return ProofLevel.ATTESTED if covered else ProofLevel.CLAIMED
    leaf = prover.leaf(function.name, values)
    return leaf.grade if leaf.holds is operation.holds else ProofLevel.CLAIMED
