"""Whether a guarded call may be carried out: one accepting path whose leaves are all proven.

The program is walked from its entry with the values of the act. A check goes where the program
says; one that is undecided goes both ways, and so does a branch over undecided results. A step of
the executor counts once the cursor went past it. The call is held unless every way reaches the
goal action; the licence names everything on the way that isn't proven.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sopilot.handbook.requirements import Constant
from sopilot.machine.layout import FunctionLayout, Position
from sopilot.machine.leaves import LeafVerdict, Prover, argument_problem, prover_at
from sopilot.machine.recipes import WantedCall
from sopilot.machine.state import ProofLevel, weakest
from sopilot.machine.terms import plain_arguments
from sopilot.messages.catalogue import listed, sentence
from sopilot.program.model import Act, Ask, Branch, Check, Choose, Do, Emit, ReturnStep
from sopilot.program.walk import DEEPEST_CALL, Activation, Flow, Walk, passed_values, truth
from sopilot.values.json import JSON, ArgumentsKey, Judge, key_of, same, shown

Slots = dict[str, bool | None]


@dataclass(frozen=True, slots=True)
class Licence:
    """The call may be carried out if ``missing`` is empty."""

    missing: str = ""
    leaves: tuple[LeafVerdict, ...] = ()
    facts: tuple[Mapping[str, JSON], ...] = ()
    """P14: what is missing, as data. An approval stands in for the proof of these."""

    @property
    def grade(self) -> ProofLevel:
        return weakest(leaf.grade for leaf in self.leaves if leaf.holds is not None)

    @property
    def calls(self) -> tuple[WantedCall, ...]:
        """The read-only calls that it rests on, without repetitions."""
        wanted_calls: dict[tuple[str, ArgumentsKey], WantedCall] = {}
        for leaf in self.leaves:
            for call in leaf.calls:
                wanted_calls.setdefault((call.act.action, key_of(call.arguments)), call)
        return tuple(wanted_calls.values())

    @property
    def uses(self) -> dict[str, JSON]:
        """P9: the events of the user's answers that the call rests on and uses up."""
        uses = sorted({seq for leaf in self.leaves for seq in leaf.uses})
        return {"uses": uses} if uses else {}

    def as_json(self) -> dict[str, JSON]:
        leaves = [leaf.as_json() for leaf in self.leaves]
        return {"grade": str(self.grade), "leaves": leaves, **self.uses}


def license_call(here: Position, arguments: Mapping[str, JSON], judge: Judge) -> Licence:
    """For the goal action at the cursor of ``here``, whose stack is the root frame alone."""
    step = here.step
    assert isinstance(step, Act)
    values = values_at_the_act(here, step, arguments)
    if isinstance(values, str):
        return Licence(values, facts=({"problem": "arguments"},))
    proof = _Proof(prover_at(here, values, judge), here.frame.cursor)
    if proof.root(here.layout, values):
        return Licence("", tuple(proof.leaves.values()))
    licence = proof.missing(here.layout, values, step.action)
    return replace(licence, leaves=tuple(proof.leaves.values()))


def values_at_the_act(
    here: Position, step: Act, arguments: Mapping[str, JSON]
) -> dict[str, JSON] | str:
    """P1: the arguments fit the action. A name has the value that the act gives it, and one value;
    an input that the act leaves out has none. Text where that can't be."""
    facts = here.programs.actions.get(step.action)
    for name in facts.required if facts is not None else ():
        if arguments.get(name) is None:
            return sentence("action-needs", action=step.action, name=name)
    problem = argument_problem(here.programs, step.action, arguments)
    if problem:
        return problem
    values: dict[str, JSON] = {}
    passed: dict[str, JSON] = {}
    for parameter, term in plain_arguments(step.arguments):
        if isinstance(term, Constant):
            if parameter not in arguments or not same(term.value, arguments[parameter]):
                return sentence("fixed-input", name=parameter, value=shown(term.value))
            continue
        value = arguments.get(parameter)
        if not same(passed.setdefault(term.name, value), value):
            return sentence("two-values", name=term.name)
        if parameter in arguments:
            values[term.name] = value
    known = {**here.process.known, **here.frame.locals}
    return {**{name: value for name, value in known.items() if name not in passed}, **values}


class _Unmet(NamedTuple):
    message: str
    fact: Mapping[str, JSON]


@dataclass(slots=True)
class _Proof:
    prover: Prover
    goal: str
    """The label of the goal action that is called."""
    leaves: dict[tuple[str, ArgumentsKey], LeafVerdict] = field(default_factory=dict)
    unmet: dict[tuple[str, ArgumentsKey], _Unmet] = field(default_factory=dict)
    checked: list[tuple[str, Mapping[str, JSON]]] = field(default_factory=list)
    arrived: dict[tuple[int, str], int] = field(default_factory=dict)
    """Activation and label → how much was missing when the walk came there."""

    @property
    def walk(self) -> Walk:
        return Walk(self.prover.program.functions, self, self.prover.known, self.goal)

    def root(self, layout: FunctionLayout, values: Mapping[str, JSON]) -> bool:
        return self.walk.enter(Activation(layout, values)) is True

    def missing(self, layout: FunctionLayout, values: Mapping[str, JSON], action: str) -> Licence:
        """Everything on the way to the goal that isn't proven. An approval covers exactly these."""
        self._collect(Activation(layout, values), layout.first, {}, frozenset())
        if self.unmet:
            message = listed([item.message for item in self.unmet.values()])
            return Licence(message, facts=tuple(item.fact for item in self.unmet.values()))
        facts = [self.prover.fact(name, dict(passed), True) for name, passed in self.checked]
        why = sentence("no-path", action=action)
        return Licence(why, facts=({"problem": "path"}, *facts))

    # --- what is proven ----------------------------------------------------------------

    def judge(self, check: Check, callee: Flow, values: Mapping[str, JSON]) -> bool | None:
        return self._leaf(self.prover.program.functions[callee.function.name], values).holds

    def was_done(self, within: Activation, step: Act | Do | Emit) -> bool:
        """Whether the cursor went past the step on a call with these values."""
        terms = plain_arguments(step.arguments) if isinstance(step, Act) else ()
        wanted = key_of(passed_values(terms, within.values, self.prover.known))
        place = (within.flow.function.name, step.label)
        return any(item[:2] == place and wanted <= item[2] for item in self.prover.process.passed)

    def _leaf(self, callee: FunctionLayout, passed: Mapping[str, JSON]) -> LeafVerdict:
        verdict = self.prover.trusted(callee.name, passed)
        self.leaves[callee.name, key_of(passed)] = verdict
        self.checked.append((callee.name, passed))
        return verdict

    # --- what is missing ---------------------------------------------------------------

    def _collect(self, within: Activation, label: str, slots: Slots, seen: frozenset[str]) -> bool:
        """Walk to the goal or the end of a group as if every check were met."""
        flow = within.flow
        while label not in seen:
            seen |= {label}
            self.arrived[id(within), label] = len(self.unmet)
            step = flow.steps[label]
            if isinstance(step, Check):
                if self._goes_on(within, step, slots, seen):
                    return True
                self._collect_check(step, within)
                slots = {**slots, step.slot: step.wanted}
                label = flow.after[label]
            elif isinstance(step, Branch):
                sides = (step.then, step.otherwise)
                first, second = sides if truth(step.when, slots) else sides[::-1]
                return self._collect(within, first, slots, seen) or self._collect(
                    within, second, slots, seen
                )
            elif isinstance(step, Choose):
                return any(
                    self._collect(within, option.target, slots, seen) for option in step.options
                )
            elif isinstance(step, ReturnStep):
                return step.holds is None or truth(step.holds, slots) is not False
            elif self.walk.is_goal(within, step):
                return True
            elif isinstance(step, Act | Ask | Do | Emit):
                if not isinstance(step, Ask) and not self.walk.was_done(within, step):
                    place = f"{flow.function.name}@{label}"
                    unmet = _Unmet(sentence("not-done-at", place=place), {"not_done": place})
                    self.unmet.setdefault((place, frozenset()), unmet)
                label = flow.after[label]
            else:
                return False
        return False

    def _goes_on(self, within: Activation, step: Check, slots: Slots, seen: frozenset[str]) -> bool:
        """Collect on the other side of a check that is proven to be unmet, if that side leads on:
        of "if A, then B" B is missing if A is true. The check itself is named too, unless both
        sides join before anything else is missing."""
        met, other = within.flow.after[step.label], within.flow.unmet[step.label]
        if other == met or self.walk.result(step, within) is not (not step.wanted):
            return False
        before, joined = dict(self.unmet), (id(within), met)
        self._collect_check(step, within)
        named = self.unmet.keys() - before.keys()
        self.arrived.pop(joined, None)
        if not self._collect(within, other, {**slots, step.slot: not step.wanted}, seen):
            self.unmet = before
            return False
        if self.arrived.get(joined, len(self.unmet)) == len(before) + len(named):
            self.unmet = {key: item for key, item in self.unmet.items() if key not in named}
        return True

    def _collect_check(self, step: Check, within: Activation) -> None:
        callee = self.prover.program.functions[step.function]
        passed = passed_values(step.arguments, within.values, self.prover.known)
        if callee.soft:
            verdict = self._leaf(callee, passed)
            if verdict.holds is not step.wanted:
                key = (step.function, key_of(passed))
                message = _unmet_message(verdict, step.wanted, callee.function.computes)
                fact = self.prover.fact(step.function, passed, step.wanted)
                self.unmet.setdefault(key, _Unmet(message, fact))
            if not callee.function.branches:
                return
        if within.depth < DEEPEST_CALL and self.walk.result(step, within) is not step.wanted:
            inside = Activation(callee, passed, step, within.depth + 1)
            self._collect(inside, callee.first, {}, frozenset())


def _unmet_message(verdict: LeafVerdict, wanted: bool, computes: str = "") -> str:
    if computes and verdict.holds is False:
        return sentence("computed-otherwise", name=computes)
    side = "true" if wanted else "false"
    if verdict.holds is None:
        return sentence("undecided", predicate=verdict.predicate, wanted=side, why=verdict.why)
    evidence = " ".join(f"#{seq}" for seq in verdict.evidence)
    holds = "true" if verdict.holds else "false"
    if not evidence:
        return sentence("not-so", predicate=verdict.predicate, wanted=side, holds=holds)
    return sentence(
        "not-so-by", predicate=verdict.predicate, wanted=side, holds=holds, evidence=evidence
    )
