"""What the verifier asks of one function: names, values, labels, calls and ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from sopilot.language.handbook import Path
from sopilot.language.program._call_graph import check_call
from sopilot.language.program._flow import Targets, continuations
from sopilot.language.program._path_checks import check_paths, check_slots, ends_of
from sopilot.language.program._report import ProblemCollector, is_identifier
from sopilot.language.program.model import (
    Act,
    Ask,
    CallArguments,
    Check,
    Choose,
    CompleteStep,
    FailStep,
    Function,
    Kind,
    Local,
    Program,
    ReturnStep,
    Unknown,
    step_kind,
)

_ENDS = (ReturnStep, CompleteStep, FailStep)
_NAME_HELP = "a name has letters, digits and underscores, and does not start with a digit"


def check_function(program: Program, function: Function, report: ProblemCollector) -> None:
    _check_signature(function, report)
    if not function.steps:
        report.function(
            function, "empty-body", f"`{function.name}` has no steps", "add at least one step"
        )
        return
    labels = _check_labels(function, report)
    targets = [continuations(step) for step in function.steps]
    complete = _check_targets(function, targets, labels, report)
    _check_steps(program, function, report)
    if complete:
        check_paths(function, targets, report)
    check_slots(function, targets, report)
    for acts in function.fallbacks:
        _check_plain_calls("fallback", function, acts, report)
    if function.closed_by is not None:
        _check_plain_calls("closing", function, (function.closed_by,), report)


def _check_signature(function: Function, report: ProblemCollector) -> None:
    names = (function.name, *function.parameters)
    for name in names if not all(map(is_identifier, names)) else ():
        if not is_identifier(name):
            report.function(function, "bad-name", f"`{name}` is not a name", _NAME_HELP)
    for name in _repeated(function.parameters):
        report.function(
            function, "duplicate-parameter", f"parameter `{name}` is declared twice", "keep one"
        )


def _check_labels(function: Function, report: ProblemCollector) -> frozenset[str]:
    labels = [step.label for step in function.steps]
    seen = set(labels)
    if len(seen) == len(labels) and all(map(is_identifier, labels)):
        return frozenset(seen)
    seen.clear()
    for index, step in enumerate(function.steps):
        if not is_identifier(step.label):
            report.step(function, index, "bad-name", f"`{step.label}` is not a label", _NAME_HELP)
        if step.label in seen:
            report.step(
                function,
                index,
                "duplicate-label",
                f"label `{step.label}` is used twice in `{function.name}`",
                "give every step of a function its own label",
            )
        seen.add(step.label)
    return frozenset(seen)


def _check_targets(
    function: Function, targets: list[Targets], labels: frozenset[str], report: ProblemCollector
) -> bool:
    """Whether every step goes to a step that exists; otherwise its paths mean nothing."""
    complete = labels.issuperset([one for one in chain.from_iterable(targets) if one is not None])
    for index, names in enumerate(targets) if not complete else ():
        for target in names:
            if target is not None and target not in labels:
                report.step(
                    function,
                    index,
                    "unknown-label",
                    f"`{function.name}` has no step `{target}`",
                    report.nearest(target, labels, "name one of its labels"),
                )
    if None in targets[-1]:
        report.step(
            function,
            len(targets) - 1,
            "falls-off-end",
            f"`{function.name}` goes on after its last step",
            f"end with {ends_of(function)}",
        )
    return complete


def _check_steps(program: Program, function: Function, report: ProblemCollector) -> None:
    known = set(function.parameters)
    roots = set(function.parameters)
    for index, step in enumerate(function.steps):
        if isinstance(step, Check):
            check_call(program, function, index, report)
            if not is_identifier(step.slot):
                report.step(function, index, "bad-name", f"`{step.slot}` is no slot", _NAME_HELP)
            _check_values(function, index, step.arguments, known, report)
        elif isinstance(step, Act):
            _check_values(function, index, step.arguments, known, report)
            for problem in path_problems(step, roots):
                report.step(function, index, "unknown-answer", problem, "name an earlier call")
            roots.add(step.answer)
            for name in _repeated([name for name, _ in step.arguments]):
                message = f"`{name}` is given twice"
                report.step(function, index, "wrong-arguments", message, "keep one")
            if step.goal and function.kind is not Kind.PROCESS:
                report.step(
                    function,
                    index,
                    "goal-outside-process",
                    f"the {function.kind} `{function.name}` calls a goal action",
                    "only a process has a goal",
                )
        elif isinstance(step, Ask):
            _check_ask(function, index, step, report)
            known.update(step.wants)
        elif isinstance(step, Choose):
            _check_choose(function, index, step, report)
        elif isinstance(step, _ENDS) and (
            isinstance(step, ReturnStep) is (function.kind is Kind.PROCESS)
        ):
            report.step(
                function,
                index,
                "wrong-end",
                f"a {function.kind} does not end with `{step_kind(step)}`",
                f"end with {ends_of(function)}",
            )


def _check_values(
    function: Function,
    index: int,
    arguments: CallArguments,
    known: set[str],
    report: ProblemCollector,
) -> None:
    """``known`` grows by what the call makes whoever executes it find out."""
    learned: list[str] = []
    for _, argument in arguments:
        if isinstance(argument, Local):
            if argument.name in known:
                continue
            report.step(
                function,
                index,
                "unknown-value",
                f"`{argument.name}` has no value here",
                report.nearest(
                    argument.name,
                    known,
                    f"make it a parameter of `{function.name}` or ask for it first",
                ),
            )
        elif isinstance(argument, Unknown):
            learned.append(argument.name)
            if not is_identifier(argument.name):
                report.step(
                    function, index, "bad-name", f"`{argument.name}` is not a name", _NAME_HELP
                )
    if learned:
        known.update(learned)


def path_problems(act: Act, roots: set[str]) -> list[str]:
    """Paths of a call that lead neither into an earlier answer of its recipe nor a parameter."""
    problems = []
    if act.each is not None and act.each.root not in roots:
        problems.append(f"`{act.each.root}` is no earlier answer")
    for _, argument in act.arguments:
        if (
            isinstance(argument, Path)
            and argument.root not in roots
            and argument.root != act.element
        ):
            problems.append(f"`{argument.root}` is no earlier answer")
    return problems


def _check_ask(function: Function, index: int, step: Ask, report: ProblemCollector) -> None:
    if not step.wants:
        report.step(function, index, "empty-ask", "nothing is asked for", "name what is wanted")
    for name in step.wants:
        if not is_identifier(name):
            report.step(function, index, "bad-name", f"`{name}` is not a name", _NAME_HELP)


def _check_choose(function: Function, index: int, step: Choose, report: ProblemCollector) -> None:
    if not step.options:
        report.step(
            function, index, "empty-choice", "there is nothing to choose", "add two options"
        )
    for option in step.options:
        if not is_identifier(option.name):
            report.step(function, index, "bad-name", f"`{option.name}` is no name", _NAME_HELP)
    for name in _repeated([option.name for option in step.options]):
        report.step(
            function,
            index,
            "duplicate-option",
            f"option `{name}` is offered twice",
            "give every option its own name",
        )


def _check_plain_calls(
    what: str, function: Function, acts: tuple[Act, ...], report: ProblemCollector
) -> None:
    """Calls that stand beside the steps: a recipe of their own, from the parameters alone."""
    known = set(function.parameters)
    answers: set[str] = set()
    for act in acts:
        for problem in path_problems(act, answers | set(function.parameters)):
            report.function(function, "unknown-answer", problem, "name an earlier call")
        answers.add(act.answer)
        for _, argument in act.arguments:
            if isinstance(argument, Local) and argument.name not in known:
                report.function(
                    function,
                    "unknown-value",
                    f"{what} `{act.action}`: `{argument.name}` has no value there",
                    report.nearest(argument.name, known, "name a parameter"),
                )
        known.update(a.name for _, a in act.arguments if isinstance(a, Unknown))
        if act.goal or act.next is not None or not is_identifier(act.label):
            report.function(
                function,
                "bad-fallback",
                f"{what} `{act.action}` is not a plain call",
                f"a {what} has a label, no goal and no jump",
            )
    if not acts:
        report.function(function, "bad-fallback", f"a {what} without any call", "name its calls")


def _repeated(names: Sequence[str]) -> list[str]:
    if len(names) == len(set(names)):
        return []
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for name in names:
        if name in seen:
            twice.setdefault(name)
        seen.add(name)
    return list(twice)
