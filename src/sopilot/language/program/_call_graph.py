"""The call graph: every call fits its callee, no function calls itself, none is unused."""

from __future__ import annotations

from operator import itemgetter

from sopilot.language.program._report import ProblemCollector
from sopilot.language.program.model import Check, Function, Kind, Program

_first = itemgetter(0)


def callees(function: Function) -> tuple[str, ...]:
    """The functions a function calls, each once, in order of first call."""
    return tuple(dict.fromkeys([step.function for step in function.checks]))


def check_call(program: Program, function: Function, index: int, report: ProblemCollector) -> None:
    """One ``Check`` step against the function it names."""
    step = function.steps[index]
    assert isinstance(step, Check)
    callee = program.functions.get(step.function)
    if callee is None:
        report.step(
            function,
            index,
            "unknown-function",
            f"`{step.function}` is not a function of this program",
            report.nearest(step.function, program.functions, "add it"),
        )
        return
    if callee.kind is Kind.PROCESS:
        report.step(
            function,
            index,
            "call-to-process",
            f"`{step.function}` is a process and cannot be called",
            "call a rule, a gate or a group",
        )
    given = tuple(map(_first, step.arguments))
    if given == callee.parameters:
        return
    if len(given) == len(callee.parameters) and set(given) == set(callee.parameters):
        return
    if set(given) <= set(callee.parameters) <= {*given, *callee.optional}:
        return
    wanted = ", ".join(f"`{name}`" for name in callee.parameters) or "no arguments"
    wrong = [f"`{name}` is missing" for name in callee.parameters if name not in given]
    wrong += [f"`{name}` is not a parameter" for name in given if name not in callee.parameters]
    wrong += [f"`{n}` is given twice" for n in dict.fromkeys(given) if given.count(n) > 1]
    report.step(
        function,
        index,
        "wrong-arguments",
        f"call of `{step.function}`: {'; '.join(wrong)}",
        f"`{step.function}` takes {wanted}",
    )


def check_call_graph(program: Program, report: ProblemCollector) -> None:
    """Cycles and functions that the entry never reaches."""
    done: set[str] = set()
    in_cycle: set[str] = set()
    roots = [program.entry] if program.entry in program.functions else []
    _walk(program, roots, done, in_cycle, report)
    unused = [name for name in program.functions if name not in done]
    if not unused:
        return
    if roots:
        for name in unused:
            report.function(
                program.functions[name],
                "unused-function",
                f"`{name}` is never called from `{program.entry}`",
                "call it or remove it",
            )
    # Cycles among unused functions are worth naming too, in the same run.
    _walk(program, unused, done, in_cycle, report)


def _walk(
    program: Program, roots: list[str], done: set[str], in_cycle: set[str], report: ProblemCollector
) -> None:
    for root in roots:
        if root in done:
            continue
        path = [root]
        on_path = {root: 0}
        pending = [iter(program.functions[root].checks)]
        while path:
            step = next(pending[-1], None)
            if step is None:
                finished = path.pop()
                del on_path[finished]
                done.add(finished)
                pending.pop()
                continue
            callee = step.function
            if callee in on_path:
                _report_cycle(program, path[on_path[callee] :], in_cycle, report)
            elif callee not in done and callee in program.functions:
                checks = program.functions[callee].checks
                if not checks:
                    done.add(callee)
                    continue
                on_path[callee] = len(path)
                path.append(callee)
                pending.append(iter(checks))


def _report_cycle(
    program: Program, cycle: list[str], seen: set[str], report: ProblemCollector
) -> None:
    if seen.issuperset(cycle):
        return
    seen.update(cycle)
    last = program.functions[cycle[-1]]
    index = next(
        i
        for i, step in enumerate(last.steps)
        if isinstance(step, Check) and step.function == cycle[0]
    )
    report.step(
        last,
        index,
        "cyclic-call",
        "cyclic call: " + " → ".join(f"`{name}`" for name in [*cycle, cycle[0]]),
        "a function may not call itself, directly or through others",
    )
