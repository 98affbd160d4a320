"""Schedules: a plan becomes steps (Eq. 3).

In:  the plan of one function.
Out: its steps. Outside ``any``, conjunctions and ``first`` are jumping code: each
     check names where to go when it is met and when it is not. Inside ``any``
     (evidence-complete mode) every check runs and a condition decides at the end.

    in_order[a, first[b, c]]  →  check a  (unmet → refuse)
                                 check b  (met → accept)
                                 check c  (unmet → refuse)

A check isn't repeated if every path to it has met it. Otherwise the repeated check names the same
slot, and the machine reuses a bound result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sopilot.compiler.factoring import FactorNode, Group, Plan, numbered
from sopilot.compiler.threading import thread
from sopilot.handbook.grammar import Translated
from sopilot.handbook.model import Action, Handbook, Input, Procedure
from sopilot.handbook.requirements import (
    AnyOf,
    Binding,
    Constant,
    First,
    Leaf,
    Name,
    Term,
    names_in,
)
from sopilot.program.model import (
    Act,
    Always,
    Argument,
    Arguments,
    Branch,
    Check,
    CompleteStep,
    Condition,
    Every,
    FailStep,
    Guarded,
    Holds,
    Local,
    ReturnStep,
    Some,
    Step,
    Unknown,
)


def start_names(terms: Binding, procedure: Procedure) -> tuple[str, ...]:
    """The names the process is started with: the goal's inputs, then the tree's own."""
    names = dict.fromkeys([term.name for _, term in terms if isinstance(term, Name)])
    names.update(dict.fromkeys([item.name for item in procedure.inputs]))
    names.update(dict.fromkeys(names_in(procedure.requires)))
    for entry in procedure.computed:
        names.pop(entry.name, None)
    return tuple(names)


def goal_arguments(terms: Binding, scope: frozenset[str]) -> Arguments:
    return tuple([(name, argument_of(term, scope)) for name, term in terms])


def refusal(handbook: Handbook, otherwise: str) -> FailStep:
    """The refusing step, which may start another procedure or tell the user something."""
    if otherwise in handbook.procedures:
        messages = {"en": f"then start `{otherwise}`", "zh": f"然后 start `{otherwise}`"}
        return FailStep("refuse", Translated(messages), otherwise)
    if not otherwise:
        return FailStep("refuse")
    messages = {"en": f"tell the user: {otherwise}", "zh": f"告诉用户：{otherwise}"}
    return FailStep("refuse", Translated(messages))


def goal_terms(goal: Action, procedure: Procedure) -> Binding:
    """Every input of the goal; one that the procedure does not mention keeps its own name."""
    arguments = dict(procedure.arguments)
    return tuple([(item.name, arguments.get(item.name) or Name(item.name)) for item in goal.inputs])


def inputs_by_name(terms: Binding, goal: Action, procedure: Procedure) -> dict[str, Input]:
    """The inputs behind the names of a procedure: its own, and those of the goal that they
    become."""
    inputs = {item.name: item for item in goal.inputs}
    become = {term.name: inputs[name] for name, term in terms if isinstance(term, Name)}
    return become | {item.name: item for item in procedure.inputs}


def argument_of(term: Term, scope: frozenset[str]) -> Argument:
    if isinstance(term, Constant):
        return term
    return Local(term.name) if term.name in scope else Unknown(term.name)


def guard_of(action: Action) -> Guarded:
    approval = action.approval
    if approval is None:
        return Guarded(action.name, recheck=action.recheck, not_done=action.not_done)
    return Guarded(
        action.name,
        approval.roles,
        approval.needed,
        approval.expires_seconds,
        action.recheck,
        approval.when,
        action.not_done,
    )


Resolve = Callable[[Leaf | Group], tuple[str, Arguments]]
"""A leaf or group → the function that checks it and its arguments."""

_Draft = tuple[str, str, Arguments, str, bool]
"""A check without its targets: label, function, arguments, slot, wanted."""


@dataclass(slots=True, eq=False)
class VisitMark:
    """A target whose position in the code isn't known yet."""

    position: int = -1
    used: bool = False


_Goes = tuple[VisitMark | None, VisitMark] | None
"""The targets of a step if it is met (``None``: the next step) and if it isn't."""


@dataclass(slots=True)
class Schedule:
    """Emits the steps of one function."""

    _resolve: Resolve
    _steps: list[tuple[Step | _Draft, _Goes]] = field(default_factory=list)
    _labels: dict[str, int] = field(default_factory=dict)
    _slots: dict[str, str] = field(default_factory=dict)
    _slot_names: dict[str, int] = field(default_factory=dict)
    _known: dict[str, bool | None] = field(default_factory=dict)
    """The results on the way to the next step; ``None``: bound, and either may be so."""
    _refusals: dict[str, VisitMark] = field(default_factory=dict)

    # --- whole functions -------------------------------------------------------------

    def process(
        self,
        plan: Plan,
        goal: Act,
        complete: CompleteStep,
        refuse: Callable[[str], FailStep],
        otherwise: str = "",
    ) -> tuple[Step, ...]:
        """``refuse`` makes the step that refuses by an ``otherwise``, such as the process's own."""
        accept = VisitMark()
        self._refusals[otherwise] = VisitMark()
        self._jump(plan, accept, self._refusals[otherwise], accept_is_next=True)
        self._place(accept)
        self._emit(self._labelled(goal))
        self._emit(complete)
        for follows, mark in self._refusals.items():
            self._place(mark)
            if mark.used:
                self._emit(self._labelled(refuse(follows)))
        return self._finish()

    def group(self, group: Group) -> tuple[Step, ...]:
        body = group.body
        operator = body.operator if isinstance(body, FactorNode) else None
        if operator is not First and (group.complete or operator is AnyOf):
            self._emit(ReturnStep(self._label("return_result"), self._collect(body)))
            return self._finish()
        met, unmet = VisitMark(), VisitMark()
        if group.complete and isinstance(body, FactorNode):
            self._first_complete(body, met, unmet)
        else:
            self._jump(body, met, unmet, accept_is_next=True)
        self._place(met)
        self._emit(ReturnStep(self._label("return_met"), Always(True)))
        self._place(unmet)
        if unmet.used:
            self._emit(ReturnStep(self._label("return_unmet"), Always(False)))
        return self._finish()

    # --- jumping code ----------------------------------------------------------------

    def _jump(self, plan: Plan, met: VisitMark, unmet: VisitMark, *, accept_is_next: bool) -> None:
        if not isinstance(plan, FactorNode):
            self._check(plan, met, unmet, accept_is_next=accept_is_next)
            return
        if plan.otherwise and unmet in self._refusals.values():
            unmet = self._refusals.setdefault(plan.otherwise, VisitMark())
        if plan.operator is AnyOf:
            condition = self._collect(plan)
            met.used = unmet.used = True
            self._emit(Branch(self._label("decide"), condition, "", ""), (met, unmet))
        elif plan.operator is First:
            before = self._known
            for child in plan.children[:-1]:
                following = VisitMark()
                self._known = dict(before)
                self._jump(child, met, following, accept_is_next=False)
                self._place(following)
            self._known = dict(before)
            self._jump(plan.children[-1], met, unmet, accept_is_next=accept_is_next)
            self._known = before
        elif not plan.children:
            # Nothing is demanded: fall through, or say so where the code must jump.
            if not accept_is_next:
                met.used = unmet.used = True
                self._emit(Branch(self._label("decide"), Always(True), "", ""), (met, unmet))
        else:
            for child in plan.children[:-1]:
                if not isinstance(child, FactorNode):
                    self._check(child, None, unmet, accept_is_next=True)
                    continue
                following = VisitMark()
                self._jump(child, following, unmet, accept_is_next=True)
                self._place(following)
            self._jump(plan.children[-1], met, unmet, accept_is_next=accept_is_next)

    def _check(
        self, leaf: Leaf | Group, met: VisitMark | None, unmet: VisitMark, *, accept_is_next: bool
    ) -> None:
        """Without ``met``, it goes on with the next step."""
        function, arguments = self._resolve(leaf)
        wanted = leaf.wanted if isinstance(leaf, Leaf) else True
        slot = self._slot(leaf, function)
        if accept_is_next and self._known.get(slot) is wanted:
            return
        unmet.used = True
        if met is not None:
            met.used = True
        label = numbered(f"check_{slot}", self._labels)
        self._steps.append(((label, function, arguments, slot, wanted), (met, unmet)))
        self._known[slot] = wanted

    def _first_complete(self, plan: FactorNode, met: VisitMark, unmet: VisitMark) -> None:
        """``first`` whose options collect all their evidence before each decision."""
        for position, child in enumerate(plan.children):
            last = position == len(plan.children) - 1
            before, self._known = self._known, dict(self._known)
            following = unmet if last else VisitMark()
            if isinstance(child, FactorNode):
                condition = self._collect(child)
                met.used = following.used = True
                self._emit(Branch(self._label("decide"), condition, "", ""), (met, following))
            else:
                self._check(child, met, following, accept_is_next=False)
            self._known = before
            if not last:
                self._place(following)

    # --- evidence-complete code ------------------------------------------------------

    def _collect(self, plan: Plan) -> Condition:
        """Run every check of the plan; the value is the condition that is returned."""
        if isinstance(plan, FactorNode):
            parts = tuple(self._collect(child) for child in plan.children)
            if not parts:
                return Always(True)  # nothing is demanded
            return Some(parts) if plan.operator is AnyOf else Every(parts)
        function, arguments = self._resolve(plan)
        wanted = plan.wanted if isinstance(plan, Leaf) else True
        slot = self._slot(plan, function)
        if slot not in self._known:
            label = self._label(f"check_{slot}")
            self._emit((label, function, arguments, slot, wanted))
            self._known[slot] = None
        return Holds(slot, wanted)

    # --- names and marks -------------------------------------------------------------

    def _slot(self, leaf: Leaf | Group, function: str) -> str:
        """The slot of the question; equal questions share one."""
        key = leaf.question if isinstance(leaf, Leaf) else leaf.name
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = numbered(function, self._slot_names)
        return slot

    def _label(self, wanted: str) -> str:
        return numbered(wanted, self._labels)

    def _labelled(self, step: Act | FailStep) -> Step:
        label = self._label(step.label)
        return step if label == step.label else replace(step, label=label)

    def _emit(self, step: Step | _Draft, goes: _Goes = None) -> None:
        self._steps.append((step, goes))

    def _place(self, mark: VisitMark) -> None:
        mark.position = len(self._steps)

    def _finish(self) -> tuple[Step, ...]:
        labels = [step[0] if isinstance(step, tuple) else step.label for step, _ in self._steps]
        finished: list[Step] = []
        for following, (step, goes) in enumerate(self._steps, 1):
            if not goes:
                finished.append(Check(*step) if isinstance(step, tuple) else step)
                continue
            met, unmet = goes
            at = following if met is None else met.position
            if isinstance(step, Branch):
                finished.append(Branch(step.label, step.when, labels[at], labels[unmet.position]))
                continue
            if_met = None if at == following else labels[at]
            if_unmet = None if unmet.position == following else labels[unmet.position]
            assert isinstance(step, tuple)
            finished.append(Check(*step, if_met, if_unmet))
        return thread(tuple(finished), self._label)
