"""What the verifier asks of a function's paths: all ends reachable, no trap, every slot bound."""

from __future__ import annotations

from collections.abc import Sequence

from sopilot.language.program._flow import (
    Targets,
    bound_before,
    can_end,
    condition_depth,
    find_cycle,
    reachable,
    runs_down,
    slots_in,
    step_condition,
    step_graph,
)
from sopilot.language.program._report import ProblemCollector
from sopilot.language.program.model import Check, Choose, Condition, Function, Kind

DEEPEST_CONDITION = 24
"""A condition that is nested deeper could be written to a file but not read back."""


def check_paths(function: Function, targets: Sequence[Targets], report: ProblemCollector) -> None:
    if runs_down(function, targets):
        return
    steps = function.steps
    graph = step_graph(function, targets)
    reached = reachable(graph)
    for index, seen in enumerate(reached) if not all(reached) else ():
        if not seen:
            report.step(
                function,
                index,
                "unreachable-step",
                f"no path of `{function.name}` gets to `{steps[index].label}`",
                "go to it from some step or remove it",
            )
    ends = [not successors for successors in graph]
    trapped = [index for index, able in enumerate(can_end(graph, ends)) if not able]
    if trapped:
        report.step(
            function,
            trapped[0],
            "no-end",
            f"from `{steps[trapped[0]].label}` no path of `{function.name}` ends",
            f"let some path get to {ends_of(function)}",
        )
        return
    cycle = find_cycle(graph, [isinstance(step, Choose) for step in steps])
    if cycle:
        report.step(
            function,
            cycle[0],
            "endless-loop",
            "endless loop: "
            + " → ".join(f"`{steps[index].label}`" for index in [*cycle, cycle[0]]),
            "a bound result never changes, so every loop needs a `choose` that can leave it",
        )


def check_slots(function: Function, targets: Sequence[Targets], report: ProblemCollector) -> None:
    producers: dict[str, Check] = {}
    read: dict[int, tuple[str, ...]] = {}
    for index, step in enumerate(function.steps):
        if not isinstance(step, Check):
            condition = step_condition(step)
            if condition is not None:
                read[index] = _read(function, index, condition, report)
            continue
        first = producers.setdefault(step.slot, step)
        if first is not step and (first.function, first.arguments) != (
            step.function,
            step.arguments,
        ):
            report.step(
                function,
                index,
                "slot-rebound",
                f"slot `{step.slot}` would hold the results of two different calls",
                f"`{first.label}` binds it already: use another slot",
            )
    slots = tuple(dict.fromkeys([slot for names in read.values() for slot in names]))
    if not slots:
        return
    bound = bound_before(function, step_graph(function, targets), slots)
    bit = {slot: 1 << index for index, slot in enumerate(slots)}
    for index, names in read.items():
        for slot in names:
            if bound[index] & bit[slot]:
                continue
            if slot in producers:
                message = f"slot `{slot}` is not bound on every path to here"
                help = f"let every path go through `{producers[slot].label}` first"
            else:
                message = f"slot `{slot}` is never bound"
                help = report.nearest(slot, producers, "bind it in a `call` step first")
            report.step(function, index, "unbound-slot", message, help)


def _read(
    function: Function, index: int, condition: Condition, report: ProblemCollector
) -> tuple[str, ...]:
    """The slots that a condition reads."""
    if condition_depth(condition) > DEEPEST_CONDITION:
        report.step(
            function,
            index,
            "condition-too-deep",
            f"a condition is nested deeper than {DEEPEST_CONDITION} levels",
            "move a part of it into a function of its own",
        )
    return tuple(dict.fromkeys(slots_in(condition)))


def ends_of(function: Function) -> str:
    return "`complete` or `fail`" if function.kind is Kind.PROCESS else "`return`"
