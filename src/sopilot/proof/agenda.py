"""The calls that a guarded call still needs, or the checks that rule it out. Pure.

An agent that follows no protocol calls a guarded action when it likes. The planner walks the
program to that action with the recorded answers. It only advises; ``license_call`` decides.

A check that nothing has decided yet is a need. The walk goes on as if the check came out as
wanted, so the agenda is whole: every call that is known to be missing, in program order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from sopilot.handbook.model import BUILT_IN
from sopilot.handbook.requirements import Constant
from sopilot.handbook.yes_or_no import is_decided
from sopilot.machine.evidence import changes
from sopilot.machine.layout import FunctionLayout, Position
from sopilot.machine.leaves import LeafVerdict, Prover, gate_call, names_the_same, prover_at
from sopilot.machine.recipes import Absent, WantedCall, wanted_calls
from sopilot.machine.state import NEVER, CallRecord
from sopilot.machine.terms import plain_arguments
from sopilot.messages.catalogue import sentence
from sopilot.program.model import (
    Act,
    Branch,
    Check,
    Choose,
    Emit,
    FailStep,
    Function,
    Kind,
    Program,
    ReturnStep,
)
from sopilot.program.model import Do as DoStep
from sopilot.program.walk import DEEPEST_CALL, Activation, passed_values, truth
from sopilot.proof.licence import values_at_the_act
from sopilot.values.answers import shows_success
from sopilot.values.json import JSON, ArgumentsKey, Judge, key_of, same

Requested = Callable[[int], bool]
"""Whether the user has asked for something since an event."""
_MOST_PATHS = 64
_MOST_OTHERS = 2
_MOST_STEPS = 4_000


class Need(NamedTuple):
    """A check that isn't decided yet, with the calls that would decide it. ``awaited`` are calls
    that were made and aren't answered yet. ``judgement``: the answers (``evidence``) are there,
    and a model must judge them. ``value`` names an input of the procedure without a value, and
    ``argument`` the input of the act that has it."""

    function: str
    values: Mapping[str, JSON]
    calls: tuple[WantedCall, ...] = ()
    judgement: bool = False
    value: str = ""
    argument: str = ""
    evidence: tuple[int, ...] = ()
    awaited: tuple[str, ...] = ()


class Unmet(NamedTuple):
    """A check that came out against the call, or that can't be decided. ``holds`` is ``None``
    in the second case, and ``why`` says why."""

    function: str
    values: Mapping[str, JSON]
    holds: bool | None
    evidence: tuple[int, ...] = ()
    why: str = ""


class Plan(NamedTuple):
    """``needs`` in program order, ``instead`` the other ways. Without needs, ``unmet`` rules
    the call out. ``problem``: the arguments themselves don't fit."""

    needs: tuple[Need, ...] = ()
    unmet: tuple[Unmet, ...] = ()
    instead: tuple[tuple[Need, ...], ...] = ()
    problem: str = ""


def plan_call(
    here: Position,
    arguments: Mapping[str, JSON],
    judge: Judge,
    *,
    since: int = NEVER,
    failed_since: int = NEVER,
    requested: Requested = lambda seq: True,
) -> Plan:
    """The plan for the goal action at the cursor. A reply of the user from before the event
    ``since`` that was neither yes nor no is asked for again; a yes or a no if the user has
    ``requested`` something since that reply. A call that failed before ``failed_since`` is made
    again."""
    step = here.step
    assert isinstance(step, Act)
    values = values_at_the_act(here, step, arguments)
    if isinstance(values, str):
        return Plan(problem=values)
    planner = _Planner(prover_at(here, values, judge), step.label, since, failed_since, requested)
    root = Activation(here.layout, values)
    paths = list(islice(planner.paths(root, here.layout.first, {}, True), _MOST_PATHS))
    # A no of the user rules the call out, whatever an option would show that another did without.
    functions = planner.prover.program.functions
    refused = [
        path
        for path in paths
        if not path.needs and any(functions[item.function].function.question for item in path.unmet)
    ]
    # The calls of `done` are named only beside other ways.
    brought = [path for path in paths if any(map(planner.brings_about, path.needs))]
    others = [path for path in paths if not any(map(planner.brings_about, path.needs))]
    reached = [path for path in others if path.reached]
    plan = _choose(reached, brought, refused or others)
    in_act = {
        term.name: parameter
        for parameter, term in plain_arguments(step.arguments)
        if not isinstance(term, Constant)
    }
    ways = [
        tuple(need._replace(argument=in_act.get(need.value, "")) for need in way)
        for way in (plan.needs, *plan.instead)
    ]
    return _in_order(plan._replace(needs=ways[0], instead=tuple(ways[1:])), planner)


def _in_order(plan: Plan, planner: _Planner) -> Plan:
    """Calls that may change other answers come first, but no call comes before the gates that it
    requires. A predicate has one judgement at a time, because a model names the predicate
    alone."""
    prover = planner.prover
    pending: dict[str, Mapping[str, JSON]] = {}

    def clear(need: Need) -> bool:
        judges = prover.program.functions[need.function].function.judges
        return not need.judgement or same(pending.setdefault(judges, need.values), need.values)

    def reads(need: Need) -> bool:
        return all(changes(prover.programs, call.act.action) == () for call in need.calls)

    def ordered(way: Iterable[Need]) -> tuple[Need, ...]:
        placed: list[Need] = []
        for need in sorted(way, key=reads):
            placed += [item for item in (*planner.openers(need), need) if item not in placed]
        return tuple(placed)

    instead = tuple(ordered(way) for way in plan.instead if all(map(clear, way)))
    return plan._replace(needs=ordered(filter(clear, plan.needs)), instead=instead)


def unguardable(program: Program) -> str:
    """A step that only an executor with a protocol would do; empty if there is none. Programs
    with such a step can't guard an agent without a protocol."""
    for function in program.functions.values():
        if function.kind in (Kind.RULE, Kind.GATE):
            continue
        for step in function.steps:
            if isinstance(step, DoStep | Emit) or (isinstance(step, Act) and not step.goal):
                return f"{function.name}@{step.label}"
    return ""


def inputs_beside(entry: Function, act: Act) -> list[str]:
    """The inputs of a procedure that aren't arguments of its act."""
    terms = (term for _, term in plain_arguments(act.arguments))
    passed = {term.name for term in terms if not isinstance(term, Constant)}
    return [name for name in entry.parameters if name not in passed]


class _Path(NamedTuple):
    needs: tuple[Need, ...] = ()
    unmet: tuple[Unmet, ...] = ()
    reached: bool = True

    def joined(self, other: _Path) -> _Path:
        later = tuple(need for need in other.needs if need not in self.needs)
        return _Path(
            (*self.needs, *later), (*self.unmet, *other.unmet), self.reached and other.reached
        )


class _Result(NamedTuple):
    """One way for a check to come out: its needs, and what would be to blame."""

    holds: bool | None
    needs: tuple[Need, ...] = ()
    unmet: tuple[Unmet, ...] = ()


def _choose(reached: list[_Path], brought: list[_Path], paths: list[_Path]) -> Plan:
    if not reached:
        first = paths[0] if paths else _Path()
        # Refuse nothing in front of an undecided check: a person who isn't identified yet must
        # not learn a detail.
        return Plan(first.needs) if first.needs else Plan(unmet=first.unmet)
    options: dict[frozenset[tuple[str, ArgumentsKey]], tuple[Need, ...]] = {}
    for path in (*sorted(reached, key=_blocked), *(path for path in brought if path.reached)):
        key = frozenset(item for need in path.needs for item in _work(need))
        if key not in options and not any(best <= key for best in islice(options, 1)):
            options[key] = path.needs
    best, *others = options.values()
    return Plan(best, instead=tuple(others[:_MOST_OTHERS]))


def _work(need: Need) -> Iterator[tuple[str, ArgumentsKey]]:
    """The work for a need: two needs may want the same call."""
    for action in need.awaited:
        yield action, key_of({})
    if not need.calls and not need.awaited:
        yield need.function, key_of(need.values)
    for call in need.calls:
        yield call.act.action, key_of(call.arguments)


def _blocked(path: _Path) -> int:
    """Ways that can be gone at once come first; sorting keeps the order of the program."""
    return sum(map(_is_blocked, path.needs))


def _in_caller(step: Check, need: Need) -> Need:
    """The need with the caller's name of the missing value."""
    term = dict(step.arguments).get(need.value)
    if term is None or isinstance(term, Constant):
        return need
    return need._replace(value=term.name)


def _is_blocked(need: Need) -> bool:
    """Whether a value must be supplied first."""
    return bool(need.value) or any(call.open for call in need.calls)


@dataclass(slots=True)
class _Planner:
    prover: Prover
    goal: str
    since: int
    failed_since: int
    requested: Requested
    steps: int = 0
    leaves: dict[tuple[str, ArgumentsKey], Need | Unmet | bool] = field(default_factory=dict)

    def paths(
        self, within: Activation, label: str, slots: Mapping[str, bool | None], wanted: bool
    ) -> Iterator[_Path]:
        """The ways on from ``label``: to the goal, or to the end of a group that comes out as
        ``wanted``. At the root, refusals are ways too."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return
        flow = within.flow
        step = flow.steps[label]
        if isinstance(step, Check):
            for result in self._results(step, within):
                met = result.holds is step.wanted
                following = flow.after[label] if met else flow.unmet[label]
                bound = {**slots, step.slot: result.holds}
                for path in self.paths(within, following, bound, wanted):
                    yield _Path(result.needs, result.unmet).joined(path)
        elif isinstance(step, Branch):
            value = truth(step.when, slots)
            side = step.otherwise if value is False else step.then
            for path in self.paths(within, side, slots, wanted):
                # An undecided check doesn't say which side is gone: both must lead on.
                others = (
                    self.paths(within, step.otherwise, slots, wanted)
                    if value is None
                    else [_Path()]
                )
                yield from map(path.joined, others)
        elif isinstance(step, Choose):
            for option in step.options:
                yield from self.paths(within, option.target, slots, wanted)
        elif isinstance(step, ReturnStep):
            if step.holds is not None and truth(step.holds, slots) is wanted:
                yield _Path()
        elif isinstance(step, FailStep):
            yield _Path(reached=False)
        elif within.depth == 0 and label == self.goal:
            yield _Path()
        elif label in flow.after and not (isinstance(step, Act) and step.goal):
            yield from self.paths(within, flow.after[label], slots, wanted)

    def _results(self, step: Check, within: Activation) -> Iterator[_Result]:
        callee = self.prover.program.functions[step.function]
        values = passed_values(step.arguments, within.values, self.prover.known)
        if callee.soft and not callee.function.branches:
            yield from self._leaf_results(step, within, callee, values)
        elif within.depth < DEEPEST_CALL:
            inside = Activation(callee, values, step, within.depth + 1)
            for holds in (step.wanted, not step.wanted):
                paths = islice(self.paths(inside, callee.first, {}, holds), _MOST_PATHS)
                for path in sorted(paths, key=_blocked):
                    # A group that came out as wanted makes up for the options that did not.
                    unmet = () if holds is step.wanted else path.unmet
                    needs = tuple(_in_caller(step, need) for need in path.needs)
                    yield _Result(holds, needs, unmet)

    def _leaf_results(
        self,
        step: Check,
        within: Activation,
        callee: FunctionLayout,
        values: Mapping[str, JSON],
    ) -> Iterator[_Result]:
        leaf = self._leaf(callee, values)
        shut = self._shut_before(leaf) if isinstance(leaf, Need) else None
        if shut is not None:
            yield _Result(None, (), (shut,))
        elif isinstance(leaf, Need):
            needs = (*self.openers(leaf), _in_caller(step, leaf))
            yield _Result(step.wanted, needs)
            # Where the program asks for every option's evidence, none that can be had is left out.
            complete = within.flow.after[step.label] == within.flow.unmet[step.label]
            if not complete or any(map(_is_blocked, needs)):
                yield _Result(None)  # another option may do without it
            yield _Result(not step.wanted, needs)
        elif isinstance(leaf, Unmet):
            yield _Result(leaf.holds, (), (leaf,))
        elif leaf is step.wanted:
            yield _Result(leaf)
        else:
            evidence = self.prover.leaf(callee.name, values).evidence
            yield _Result(leaf, (), (Unmet(callee.name, values, leaf, evidence),))
            if callee.function.is_fact and step.wanted:
                acts = [gate_call(callee, act, values) for act in callee.recipes[0]]
                calls = tuple(call for call in acts if call is not None)
                yield _Result(True, (Need(callee.name, values, calls),))

    def brings_about(self, need: Need) -> bool:
        return bool(need.calls) and self.prover.program.functions[need.function].function.is_fact

    def _leaf(self, callee: FunctionLayout, values: Mapping[str, JSON]) -> Need | Unmet | bool:
        key = (callee.name, key_of(values))
        if key not in self.leaves:
            self.leaves[key] = self._decided(callee, values)
        return self.leaves[key]

    def openers(self, need: Need) -> list[Need]:
        """The gates to open before the calls of the need, in order."""
        return [gate for gate in self._gates_before(need) if isinstance(gate, Need)]

    def _shut_before(self, need: Need) -> Unmet | None:
        """A gate before the calls of the need that can't be opened."""
        return next((gate for gate in self._gates_before(need) if isinstance(gate, Unmet)), None)

    def _gates_before(self, need: Need) -> list[Need | Unmet]:
        """The gates that the calls of the need require, and that aren't open: those first that the
        others require."""
        gates: list[Need | Unmet] = []
        waiting = [need]
        while waiting:
            for layout, values in self._required_gates(waiting.pop()):
                gate = self._leaf(layout, values)
                if not isinstance(gate, bool) and gate not in gates:
                    gates.insert(0, gate)
                    waiting += [gate] if isinstance(gate, Need) else []
        return gates

    def _required_gates(self, need: Need) -> Iterator[tuple[FunctionLayout, Mapping[str, JSON]]]:
        for call in need.calls:
            for group in self.prover.prerequisites(call):
                for layout, values, wanted in group if len(group) == 1 else ():
                    gate = layout is not None and layout.function.kind is Kind.GATE and wanted
                    if layout is not None and gate and layout.parameters <= values.keys():
                        yield layout, values

    def _decided(self, callee: FunctionLayout, values: Mapping[str, JSON]) -> Need | Unmet | bool:
        function = callee.function
        for name in function.parameters:
            if values.get(name) is None and name not in function.optional:
                return Need(callee.name, values, value=name)
        verdict = self.prover.leaf(callee.name, values)
        if verdict.holds is True:
            return True
        if function.kind is Kind.GATE:
            return self._gate(callee, values, verdict)
        if verdict.holds is False and not self._asks_again(callee, values, verdict.evidence):
            return False
        for recipe in callee.recipes:
            need = self._missing(callee, recipe, values)
            if need is not None:
                return need
        if function.question:
            calls = self._questions(callee, values)
            if calls:
                return Need(callee.name, values, calls)
        if function.verdict is None and function.judged_by_model:
            evidence = self.prover.evidence_of(callee, values)
            if evidence is not None:
                return Need(callee.name, values, judgement=True, evidence=evidence)
        return Unmet(callee.name, values, None, verdict.evidence, verdict.why)

    def _asks_again(
        self, callee: FunctionLayout, values: Mapping[str, JSON], evidence: tuple[int, ...]
    ) -> bool:
        """Whether an earlier reply of the user doesn't rule a new attempt out."""
        if not callee.function.question:
            return False
        for call in self._questions(callee, values):
            reply = self.prover.newest(call)
            if not isinstance(reply, Absent) and is_decided(reply.value):
                return self.requested(reply.seq)
        return max(evidence, default=NEVER) < self.since

    def _questions(
        self, callee: FunctionLayout, values: Mapping[str, JSON]
    ) -> tuple[WantedCall, ...]:
        value = self.prover.value_in(callee, values)
        for recipe in callee.recipes:
            wanted = wanted_calls(recipe[-1], value, {}, optional=callee.function.optional)
            if recipe[-1].action in BUILT_IN and not isinstance(wanted, Absent):
                return tuple(wanted)
        return ()

    def _missing(
        self, callee: FunctionLayout, recipe: tuple[Act, ...], values: Mapping[str, JSON]
    ) -> Need | None:
        """The calls of a recipe that aren't answered, as far as they are known. ``None`` where
        one of them can't be made, or failed, or where all are answered."""
        answers: dict[str, JSON] = {}
        missing: list[WantedCall] = []
        awaited: list[str] = []
        value = self.prover.value_in(callee, values)
        for act in recipe:
            wanted = wanted_calls(act, value, answers, optional=callee.function.optional)
            if isinstance(wanted, Absent):
                break
            result: list[JSON] = []
            for call in wanted:
                newest = self.prover.newest(call)
                if not isinstance(newest, Absent):
                    result.append(newest.value)
                elif newest.awaited and act.action not in BUILT_IN:
                    awaited.append(newest.awaited)
                elif newest.callable:
                    missing.append(call._replace(again=newest.again))
                elif self._failed_earlier(call):
                    missing.append(call._replace(again=newest.why))
                else:
                    return None
            if len(result) == len(wanted):
                answers[act.answer] = result if act.each is not None else result[0]
        if not missing and not awaited:
            return None
        return Need(callee.name, values, tuple(missing), awaited=tuple(awaited))

    def _failed_earlier(self, call: WantedCall) -> bool:
        answers = self.prover.configuration.answers.get(call.act.action, {})
        latest = answers.get(key_of(call.arguments))
        return latest is not None and not latest.ok and latest.seq < self.failed_since

    def _gate(
        self, callee: FunctionLayout, values: Mapping[str, JSON], verdict: LeafVerdict
    ) -> Need | Unmet | bool:
        """A gate that was never tried is missing; one whose last try failed, or opened nothing, is
        refused. A call that may shut it is awaited first: until it is answered, opening the gate
        proves nothing."""
        if callee.function.is_fact and verdict.holds is False:
            return False
        calls = []
        awaited = []
        for act in callee.recipes[0]:
            call = gate_call(callee, act, values)
            if call is None:
                return Unmet(callee.name, values, None, why=f"`{act.action}` needs an answer first")
            shutting = self.prover.shutting(callee, act, values).pending
            if shutting or self._is_awaited(call):
                awaited.append(shutting or act.action)
                continue
            if callee.function.is_fact:
                return Unmet(callee.name, values, verdict.holds)
            tried = [
                answer
                for answer in self.prover.configuration.answers.get(act.action, {}).values()
                if answer.arguments.keys() >= call.arguments.keys()
                and names_the_same(call, answer.arguments)
            ]
            latest = max(tried, key=lambda answer: answer.seq, default=None)
            if latest is not None and not latest.ok:
                why = sentence("call-failed", action=act.action, seq=latest.seq)
                return Unmet(callee.name, values, False, (latest.seq,), why)
            if latest is not None and self._opens_nothing(callee, latest, verdict):
                return Unmet(callee.name, values, verdict.holds, (latest.seq,), verdict.why)
            calls.append(call._replace(again=verdict.why if latest is not None else ""))
        return Need(callee.name, values, tuple(calls), awaited=tuple(awaited))

    def _opens_nothing(
        self, callee: FunctionLayout, latest: CallRecord, verdict: LeafVerdict
    ) -> bool:
        if callee.function.verdict is None:
            return not shows_success(latest.value)
        return verdict.holds is False and latest.seq in verdict.evidence

    def _is_awaited(self, call: WantedCall) -> bool:
        return any(
            pending.action == call.act.action
            and pending.arguments.keys() >= call.arguments.keys()
            and names_the_same(call, pending.arguments)
            for pending in self.prover.configuration.pending.values()
        )
