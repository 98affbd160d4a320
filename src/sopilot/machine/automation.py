"""Transitions that need no judgement, which the machine takes if the run's settings allow it.

The machine always reuses a result whose slot is bound in the frame or whose gate is open. The
settings may let it reuse a verdict of the process on the same rule and values, if its evidence is
whole, newest and fresh. Reuse proves nothing for a guarded action, which is proven anew at the act.
"""

from __future__ import annotations

from dataclasses import dataclass

from sopilot.handbook.expressions import compute
from sopilot.machine.evidence import (
    admissible,
    bind_evidence,
    borrowable,
    frame_answers,
    is_current,
)
from sopilot.machine.layout import Position
from sopilot.machine.leaves import prover_at
from sopilot.machine.moves import parameter_values, rule_key
from sopilot.machine.state import Bound, CallRecord, Frame
from sopilot.machine.terms import known_arguments
from sopilot.messages.catalogue import sentence
from sopilot.messages.errors import SopilotError
from sopilot.program.model import Act, Branch, Check, CompleteStep, FailStep, Kind, ReturnStep
from sopilot.trace.events import BindEvidence, Call, Complete, Fail, Operation, Return, SelectBranch
from sopilot.values.json import JSON, Judge


@dataclass(frozen=True, slots=True)
class Automation:
    """Transitions that the machine takes by itself, beside reuse in a frame; none by default.

    ``take_branches``: branches, whose condition is over bound results.
    ``group_returns``: returns of groups, whose value is a condition.
    ``enter_calls``: calls whose arguments all have a value.
    ``bind_evidence``: calls of a rule that an earlier, fresh result answers already.
    ``machine_verdicts``: returns of rules with a verdict, and of gates whose action succeeded.
    ``complete``, ``fail``: the end of the process, where the program ends.
    ``reuse_verdicts``: checks with a verdict of the process that still stands.
    """

    take_branches: bool = False
    group_returns: bool = False
    enter_calls: bool = False
    bind_evidence: bool = False
    machine_verdicts: bool = False
    complete: bool = False
    fail: bool = False
    reuse_verdicts: bool = False


def determined(
    here: Position, automation: Automation, judge: Judge | None
) -> tuple[Operation, str] | None:
    """The operation that follows without the executor, and its ground."""
    step = here.step
    if isinstance(step, Branch):
        if automation.take_branches:
            return SelectBranch(), "condition over bound results"
    elif isinstance(step, Check):
        if automation.enter_calls and not _missing(here, step):
            return Call(step.function), "every argument is known"
    elif isinstance(step, Act):
        if automation.bind_evidence and here.layout.function.kind is Kind.RULE:
            result = borrowable(here, step)
            if result is not None:
                return BindEvidence(result.seq), "earlier result of the same call"
    elif isinstance(step, ReturnStep):
        return _determined_return(here, step, automation, judge)
    elif isinstance(step, CompleteStep):
        if automation.complete:
            return Complete(), "the program accepts"
    elif isinstance(step, FailStep) and automation.fail:
        return Fail(step.says), "the program refuses"
    return None


def _missing(here: Position, step: Check) -> list[str]:
    callee = here.program.functions[step.function].function
    missing = known_arguments(here, step.arguments)[1]
    return [name for name in missing if name not in (*callee.optional, callee.computes)]


def _determined_return(
    here: Position, step: ReturnStep, automation: Automation, judge: Judge | None
) -> tuple[Operation, str] | None:
    function = here.layout.function
    if step.holds is not None:
        return (Return(), "condition over bound results") if automation.group_returns else None
    if not automation.machine_verdicts:
        return None
    cited = _cited(here)
    evidence = tuple(f"#{result.seq}" for result in cited)
    if function.verdict is not None and judge is not None:
        variables = _variables(here)
        try:
            if variables is None:
                return None
            if function.value is not None and function.computes not in here.frame.locals:
                value = compute(function.value, variables)
                if value is None:
                    return None
                learned = {function.computes: value}
                return Return(True, evidence, arguments=learned), f"computed: {function.value}"
            holds = judge(function.verdict, variables)
        except SopilotError:
            return None
        return None if holds is None else (Return(holds, evidence), f"verdict: {function.verdict}")
    if function.is_fact:
        prover = prover_at(here, here.process.known, lambda *_: None)
        done = prover.leaf(function.name, parameter_values(here, here.frame)).holds
        return None if done is None else (Return(done), "what was done in this session")
    if function.kind is Kind.GATE and function.verdict is None:
        newest = next((result for result in reversed(cited) if result.ok), None)
        if newest is not None and function.opened_by(newest.value):
            return Return(True, evidence), f"`{newest.action}` succeeded"
    return None


def _cited(here: Position) -> list[CallRecord]:
    seqs = set(bind_evidence(here, ()).evidence)
    return [result for result in here.process.results if result.seq in seqs]


def _variables(here: Position) -> dict[str, JSON] | None:
    """The variables of a verdict; ``None`` while a value is missing."""
    function = here.layout.function
    clock = here.configuration.clock
    variables: dict[str, JSON] = {"now": clock} if clock else {}
    variables |= here.program.program.constants
    for name in function.parameters:
        if name not in here.frame.locals:
            if name == function.computes:
                continue
            if name in function.optional:
                variables[name] = None
                continue
            return None
        variables[name] = here.frame.locals[name]
    variables["results"], variables["result"] = {}, None
    if here.layout.recipes:
        gathered = frame_answers(here)
        if gathered is None:
            return None
        variables["results"], variables["result"] = gathered
    return variables


def bound_already(here: Position, step: Check) -> tuple[Bound, str] | None:
    """The bound result or open gate that settles the check, and its ground."""
    bound = here.frame.slots.get(step.slot)
    if bound is not None:
        return bound, sentence("bound-already")
    if not here.process.gates or (
        here.program.functions[step.function].function.kind is not Kind.GATE
    ):
        return None
    values, missing = known_arguments(here, step.arguments)
    if missing:
        return None
    bound = here.process.gates.get(rule_key(step.function, values))
    return None if bound is None else (bound, sentence("gate-open"))


def judged_already(here: Position, step: Check) -> tuple[Bound, str] | None:
    """The process's verdict on the same rule for the same values, if it still stands."""
    if not here.process.verdicts:
        return None
    values, missing = known_arguments(here, step.arguments)
    if missing:
        return None
    bound = here.process.verdicts.get(rule_key(step.function, values))
    if bound is None or bound.holds is None or not _stands(here, step, values, bound):
        return None
    return bound, sentence("judged-already", seq=bound.producer)


def _stands(here: Position, step: Check, values: dict[str, JSON], bound: Bound) -> bool:
    layout = here.program.functions[step.function]
    if not layout.recipes:
        # Judged by its values alone; the user may give another value now.
        return not layout.learnable
    cited = frozenset(bound.evidence)
    results = [result for result in here.process.results if result.seq in cited]
    if not all(is_current(here.programs, here.configuration, result) for result in results):
        return False
    frame = Frame(
        step.function,
        layout.first,
        values,
        {},
        here.configuration.next_seq,
        f"{here.frame.path}/{step.function}",
        (),
        bound.evidence,
    )
    inside = Position(
        here.configuration,
        here.process,
        frame,
        here.program,
        layout,
        layout.steps[layout.first],
        here.programs,
    )
    if frame_answers(inside) is not None:
        return True
    # A failed call would fail again, unless the user gives another value this time.
    return not layout.learnable and any(
        not result.ok and admissible(inside, result) for result in results
    )
