"""Whether a guarded call may be carried out: one accepting path whose leaves are all proven.

The program is walked from its entry with the values of the act. A check that is met goes
where the program says, one that is unmet or undecided goes the other way, and a condition
counts an undecided result for neither side. The walk reaches the goal action, or the call
is held; what kept it from there is said in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sopilot.language.program.model import (
    Act,
    Arguments,
    Ask,
    Branch,
    Check,
    Choose,
    Condition,
    Do,
    Emit,
    Every,
    Holds,
    Kind,
    Literal,
    Return,
    Unknown,
)
from sopilot.language.program.model import Always as AlwaysCondition
from sopilot.runtime.proof.grade import Grade
from sopilot.runtime.proof.leaf import Judge, LeafVerdict, Prover
from sopilot.runtime.vm.layout import FunctionLayout
from sopilot.runtime.vm.position import Position, Programs
from sopilot.runtime.vm.recipe_calls import WantedCall
from sopilot.runtime.vm.schema_check import violation
from sopilot.runtime.vm.terms import plain_arguments
from sopilot.runtime.vm.values import JSON, ArgumentsKey, key_of, same, shown

_DEEPEST = 64

Slots = dict[str, bool | None]


@dataclass(frozen=True, slots=True)
class Licence:
    """``missing`` is empty where the call may be carried out."""

    missing: str = ""
    leaves: tuple[LeafVerdict, ...] = ()

    @property
    def grade(self) -> Grade:
        attested = any(one.grade is Grade.ATTESTED and one.holds is not None for one in self.leaves)
        return Grade.ATTESTED if attested else Grade.PROVEN

    @property
    def calls(self) -> tuple[WantedCall, ...]:
        """The read-only calls that it rests on, each once."""
        found: dict[tuple[str, ArgumentsKey], WantedCall] = {}
        for leaf in self.leaves:
            for call in leaf.calls:
                found.setdefault((call.act.action, key_of(call.arguments)), call)
        return tuple(found.values())

    def as_json(self) -> dict[str, JSON]:
        return {"grade": str(self.grade), "leaves": [leaf.as_json() for leaf in self.leaves]}


def license_call(
    programs: Programs, here: Position, arguments: Mapping[str, JSON], judge: Judge
) -> Licence:
    """For the goal action at the cursor of ``here``, whose stack is the root frame alone."""
    step = here.step
    assert isinstance(step, Act)
    problem = _argument_problem(programs, step, arguments)
    if problem:
        return Licence(problem)
    values = _values_at_the_act(here, step, arguments)
    if isinstance(values, str):
        return Licence(values)
    prover = Prover(programs, here.configuration, here.process, values, judge)
    walk = _Walk(prover, here.frame.cursor)
    if walk.root(here.layout, values):
        return Licence("", tuple(walk.leaves.values()))
    return Licence(walk.missing(step.action))


def _values_at_the_act(
    here: Position, step: Act, arguments: Mapping[str, JSON]
) -> dict[str, JSON] | str:
    """P1: a name has the value that the act gives it, and one value; an input that the act leaves
    out has none. Text where that cannot be."""
    given: dict[str, JSON] = {}
    names: set[str] = set()
    for parameter, term in plain_arguments(step.arguments):
        if isinstance(term, Literal):
            if parameter not in arguments or not same(term.value, arguments[parameter]):
                return f"`{parameter}` is fixed to {shown(term.value)} here"
            continue
        names.add(term.name)
        if parameter in arguments:
            value = arguments[parameter]
            if term.name in given and not same(given[term.name], value):
                return f"two inputs are `{term.name}`, and they differ"
            given[term.name] = value
    known = {**here.process.known, **here.frame.locals}
    return {**{name: value for name, value in known.items() if name not in names}, **given}


def _argument_problem(programs: Programs, step: Act, arguments: Mapping[str, JSON]) -> str:
    """P1 for the act's own inputs."""
    facts = programs.actions.get(step.action)
    if facts is None:
        return ""
    for name in facts.required:
        if arguments.get(name) is None:
            return f"`{step.action}` needs `{name}`"
    for name, value in arguments.items():
        problem = violation(value, facts.inputs.get(name, {}), f"`{name}`")
        if problem is not None:
            return problem
    return ""


@dataclass(slots=True)
class _Walk:
    prover: Prover
    goal: str
    """The label of the goal action that is called."""
    leaves: dict[tuple[str, ArgumentsKey], LeafVerdict] = field(default_factory=dict)
    unmet: dict[tuple[str, ArgumentsKey], tuple[LeafVerdict, bool]] = field(default_factory=dict)

    def root(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> bool:
        return self._from(layout, layout.first, values, {}, frozenset(), 0) is True

    def missing(self, action: str) -> str:
        told = [_told(verdict, wanted) for verdict, wanted in self.unmet.values()]
        if not told:
            return f"the program does not lead to `{action}` by what was checked"
        # All of them: who decides without the proof decides about these and no others.
        return "; ".join(told)

    def _from(
        self,
        layout: FunctionLayout,
        label: str,
        values: Mapping[str, JSON],
        slots: Slots,
        seen: frozenset[str],
        depth: int,
    ) -> bool | None:
        """Whether the goal is reached (in a process), or what the group returns."""
        while label not in seen:
            seen |= {label}
            step = layout.steps[label]
            if isinstance(step, Check):
                slots[step.slot] = self._check(step, values, depth)
                met = slots[step.slot] is step.wanted
                label = (layout.after if met else layout.unmet)[label]
            elif isinstance(step, Branch):
                label = step.then if _truth(step.when, slots) else step.otherwise
            elif isinstance(step, Choose):
                ways = (
                    self._from(layout, option.target, values, dict(slots), seen, depth)
                    for option in step.options
                )
                return any(way is True for way in ways)
            elif isinstance(step, Act) and step.goal and label == self.goal and depth == 0:
                return True
            elif isinstance(step, Act | Ask | Do | Emit):
                label = layout.after[label]
            elif isinstance(step, Return) and step.holds is not None:
                return _truth(step.holds, slots)
            else:
                return False
        return False

    def _check(self, step: Check, values: Mapping[str, JSON], depth: int) -> bool | None:
        callee = self.prover.program.functions[step.function]
        passed = _passed(step.arguments, values, self.prover.known)
        if callee.function.kind is Kind.GROUP:
            if depth >= _DEEPEST:
                return None
            return self._from(callee, callee.first, passed, {}, frozenset(), depth + 1)
        verdict = self.prover.leaf(step.function, passed)
        key = (step.function, key_of(passed))
        # Programs of the first format could not say whom they trust, and trusted the executor.
        by_model = callee.function.judged_by_model or not self.prover.program.strict
        trusted = verdict.grade is Grade.PROVEN or (verdict.grade is Grade.ATTESTED and by_model)
        if not trusted and verdict.holds is not None:
            why = "only a model has judged it, and the handbook does not let it"
            verdict = verdict._replace(holds=None, why=why, grade=Grade.CLAIMED)
        self.leaves[key] = verdict
        if verdict.holds is not step.wanted:
            self.unmet.setdefault(key, (verdict, step.wanted))
        return verdict.holds


def _passed(
    arguments: Arguments, values: Mapping[str, JSON], known: Mapping[str, JSON]
) -> dict[str, JSON]:
    """P1: one name has one value; a name that the caller does not have is the process's."""
    passed: dict[str, JSON] = {}
    for parameter, term in arguments:
        if isinstance(term, Literal):
            passed[parameter] = term.value
        else:
            value = values.get(term.name)
            if value is None and isinstance(term, Unknown):
                value = known.get(term.name)
            if value is not None:
                passed[parameter] = value
    return passed


def _truth(condition: Condition, slots: Slots) -> bool:
    """An undecided result satisfies neither side."""
    if isinstance(condition, Holds):
        return slots.get(condition.slot) is condition.wanted
    if isinstance(condition, AlwaysCondition):
        return condition.value
    parts = [_truth(part, slots) for part in condition.conditions]
    return all(parts) if isinstance(condition, Every) else any(parts)


def _told(verdict: LeafVerdict, wanted: bool) -> str:
    side = "true" if wanted else "false"
    if verdict.holds is None:
        return f"`{verdict.predicate}` must be {side} and is undecided: {verdict.why}"
    evidence = " ".join(f"#{seq}" for seq in verdict.evidence)
    found = "true" if verdict.holds else "false"
    return f"`{verdict.predicate}` must be {side} and is {found}" + (
        f" by {evidence}" if evidence else ""
    )
