"""Where a process stands: can it still accept, and which checks does acceptance still need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sopilot.audit.acceptance import Acceptance, Settled, Truth, rule_checks
from sopilot.audit.code import Code, ProgramCode
from sopilot.audit.state import MISSING, FrameView, ProcessView
from sopilot.program.model import Arguments, Check, Kind, Literal
from sopilot.vm.values import JSON, canonical


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

    def settled(step: Check, callee: Code, chain: tuple[Arguments, ...]) -> Truth:
        if callee.function.kind is not Kind.GATE:
            return None
        values = parameters_along(chain, frame.values)
        found = process.gates.get((step.function, canonical(values)))
        return None if found is None else found.holds

    return settled


def can_accept(process: ProcessView) -> Truth:
    """``False`` once the bound results rule acceptance out; ``None`` while it is open."""
    return _from_stack(process, lambda frame: _gate_settled(process, frame))


def needed_checks(process: ProcessView) -> list[OpenCheck]:
    """The checks without which nothing proves acceptance. Empty when the program accepts
    or cannot accept any more."""
    if can_accept(process) is not None:
        return []
    entry = process.frames[0]
    bound = _bound_rules(process)
    opened = [
        check
        for check in _rules(process.program, entry.values)
        if check[0].key not in bound and _gate_settled(process, entry)(*check[1:]) is None
    ]
    needed = [one for one, *_ in opened if _is_needed(process, one)]
    chosen = needed or [one for one, *_ in opened]
    return list({one.key: one for one in chosen}.values())


def _rules(
    program: ProgramCode, values: Mapping[str, JSON]
) -> Iterator[tuple[OpenCheck, Check, Code, tuple[Arguments, ...]]]:
    for step, callee, chain in rule_checks(program):
        predicate = callee.function.predicate or callee.function.name
        found = OpenCheck(step.function, predicate, step.says, parameters_along(chain, values))
        yield found, step, callee, chain


def _bound_rules(process: ProcessView) -> set[tuple[str, str]]:
    """The rules that returned in this process, each with its parameters."""
    found = set()
    for frame in process.frames:
        for step in frame.code.function.steps:
            if isinstance(step, Check) and step.slot in frame.slots:
                values = parameters_along((step.arguments,), frame.values)
                found.add((step.function, canonical(values).decode("utf-8", "replace")))
    return found


def _is_needed(process: ProcessView, one: OpenCheck) -> bool:
    """Whether the program cannot accept if this check alone goes against it."""

    def settle_for(frame: FrameView) -> Settled:
        def settled(step: Check, callee: Code, chain: tuple[Arguments, ...]) -> Truth:
            values = parameters_along(chain, frame.values)
            here = OpenCheck(step.function, "", "", values)
            return (not step.wanted) if here.key == one.key else step.wanted

        return settled

    return _from_stack(process, settle_for) is False


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
        slots = {name: bound.holds for name, bound in frame.slots.items()}
        inner = acceptance.from_step(
            frame.code, frame.cursor, slots, (), inner=inner, entered=entered
        )
    return inner
