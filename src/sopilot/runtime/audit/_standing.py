"""Where a process stands: can it still accept, and which checks lie before acceptance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sopilot.language.program.model import (
    Act,
    Arguments,
    Ask,
    Branch,
    Check,
    Choose,
    Do,
    Emit,
    Kind,
    Literal,
)
from sopilot.runtime.audit._acceptance import DEEPEST, Acceptance, Settled, Truth, condition_truth
from sopilot.runtime.audit._resolved_function import ProgramCode, ResolvedFunction
from sopilot.runtime.audit._sentence import filled_sentence
from sopilot.runtime.audit._state import FrameView, ProcessView
from sopilot.runtime.vm.values import JSON, MISSING, canonical, key_of


@dataclass(frozen=True, slots=True)
class OpenCheck:
    """A check without a result. ``values`` are the rule's parameters as far as known."""

    function: str
    predicate: str
    sentence: str
    values: Mapping[str, JSON]

    @property
    def key(self) -> tuple[str, str]:
        return self.function, canonical(dict(self.values)).decode("utf-8", "replace")


def parameters_along(chain: tuple[Arguments, ...], values: Mapping[str, JSON]) -> dict[str, JSON]:
    """The last callee's parameters, each call's arguments resolved in its caller's."""
    for arguments in chain:
        resolved: dict[str, JSON] = {}
        for parameter, term in arguments:
            value = term.value if isinstance(term, Literal) else values.get(term.name, MISSING)
            if value is not MISSING:
                resolved[parameter] = value
        values = resolved
    return dict(values)


def _gate_settled(process: ProcessView, frame: FrameView) -> Settled:
    """A gate that the process opened with the same values counts wherever it is asked for."""

    def settled(step: Check, callee: ResolvedFunction, chain: tuple[Arguments, ...]) -> Truth:
        if callee.function.kind is not Kind.GATE:
            return None
        values = parameters_along(chain, frame.values)
        found = process.gates.get((step.function, key_of(values)))
        return None if found is None else found.holds

    return settled


def can_accept(process: ProcessView) -> Truth:
    """``False`` once the bound results rule acceptance out; ``None`` while it is open."""
    return _from_stack(process, lambda frame: _gate_settled(process, frame))


def remaining_checks(process: ProcessView) -> list[OpenCheck]:
    """The checks that the program still makes if all of them go well."""
    found: dict[tuple[str, str], OpenCheck] = {}
    for frame in reversed(process.frames):
        if frame.code.judges:
            continue
        slots = {name: bound.side for name, bound in frame.slots.items()}
        settled = _gate_settled(process, frame)
        _walk(process.program, frame.code, frame.cursor, slots, frame.values, (), settled, found)
    return list(found.values())


def _walk(
    program: ProgramCode,
    code: ResolvedFunction,
    label: str,
    slots: dict[str, bool],
    values: Mapping[str, JSON],
    chain: tuple[Arguments, ...],
    settled: Settled,
    found: dict[tuple[str, str], OpenCheck],
) -> None:
    """Follows the steps, every open check taken as met, and collects the open ones."""
    seen: set[str] = set()
    while label not in seen:
        seen.add(label)
        step = code.steps[label]
        if isinstance(step, Check):
            callee = program.functions[step.function]
            inner = (*chain, step.arguments)
            holds = slots.get(step.slot)
            if holds is None:
                holds = settled(step, callee, inner) if callee.judges else None
            if holds is None and callee.judges:
                _add(found, step, callee, values, inner, program.program.constants)
            elif holds is None and len(inner) < DEEPEST:
                _walk(program, callee, callee.first(), {}, values, inner, settled, found)
            slots = {**slots, step.slot: step.wanted if holds is None else holds}
            label = code.target(step, slots[step.slot])
        elif isinstance(step, Branch):
            taken = condition_truth(step.when, slots)
            label = step.then if taken else step.otherwise
        elif isinstance(step, Act) and step.goal:
            return
        elif isinstance(step, Act | Ask | Do | Emit):
            label = code.following(step)
        elif isinstance(step, Choose):
            label = step.options[0].target
        else:
            return


def _add(
    found: dict[tuple[str, str], OpenCheck],
    step: Check,
    callee: ResolvedFunction,
    values: Mapping[str, JSON],
    chain: tuple[Arguments, ...],
    constants: Mapping[str, JSON],
) -> None:
    function = callee.function
    subject = parameters_along(chain, values)
    said = filled_sentence(function, constants, subject, wanted=step.wanted) or step.says
    one = OpenCheck(step.function, function.judges, said, subject)
    found.setdefault(one.key, one)


def _from_stack(process: ProcessView, settle_for: Callable[[FrameView], Settled]) -> Truth:
    """Acceptance from the cursors of the stack on, innermost first."""
    inner: Truth = None
    for depth in range(len(process.frames) - 1, -1, -1):
        frame = process.frames[depth]
        entered = depth < len(process.frames) - 1
        if frame.code.judges:
            step = process.frames[depth - 1].step if depth else None
            if isinstance(step, Check):
                settled = settle_for(process.frames[depth - 1])
                inner = settled(step, frame.code, (step.arguments,))
            continue
        acceptance = Acceptance(process.program, settle_for(frame))
        slots = {name: bound.side for name, bound in frame.slots.items()}
        inner = acceptance.from_step(
            frame.code, frame.cursor, slots, (), inner=inner, entered=entered
        )
    return inner
