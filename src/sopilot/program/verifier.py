"""The verifier that runs on every compiled and every loaded program.

It reports every mistake it finds, and its time grows with the size of the
program. A program it accepts cannot send a machine to a place that does not
exist, read a result that is not bound, or loop for ever by itself.

What the verifier asks of one function: names, values, labels, calls and ends.

The call graph: every call fits its callee, no function calls itself, none is unused.

What the verifier asks of a function's paths: all ends reachable, no trap, every slot bound.

Where a verifier's findings are collected, each at its place in the program.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter

from sopilot.handbook.requirements import Path
from sopilot.messages.diagnostic import Diagnostic, Place, did_you_mean
from sopilot.messages.errors import UserMistake
from sopilot.program.model import (
    Act,
    Ask,
    CallArguments,
    Check,
    Choose,
    CompleteStep,
    Condition,
    FailStep,
    Function,
    Kind,
    Local,
    Program,
    ReturnStep,
    Step,
    Unknown,
    step_kind,
)
from sopilot.program.walk import (
    Targets,
    bound_before,
    can_end,
    condition_depth,
    continuations,
    find_cycle,
    reachable,
    runs_down,
    slots_in,
    step_condition,
    step_graph,
)

WHOLE = -1
"""Stands for the function itself where a step's position is asked for."""


Places = Mapping[tuple[str, int], Place]
"""(function, position of the step or ``WHOLE``) → where a file says it."""


NAMES_COMPARED = 50_000
"""A hostile file must not buy hours of comparing names: past this, help goes without them."""


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")


@lru_cache(maxsize=8192)
def is_identifier(name: str) -> bool:
    """ASCII on purpose: a name is shown to models and people, and must not look like another."""
    return _IDENTIFIER.fullmatch(name) is not None


class ProblemCollector:
    """Collects diagnostics; ``places`` turns a path into a position in a file."""

    def __init__(self, places: Places) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._places = places
        self._to_compare = NAMES_COMPARED

    def nearest(self, word: str, known: Collection[str], otherwise: str) -> str:
        """Help that names the nearest known name, else ``otherwise``."""
        self._to_compare -= len(known)
        if self._to_compare < 0 or not known:
            return otherwise
        return did_you_mean(word, known)

    def program(self, code: str, message: str, help: str, path: str = "program") -> None:
        place = self._places.get(("", WHOLE), Place())
        self._add(code, message, help, place, path)

    def function(self, function: Function, code: str, message: str, help: str) -> None:
        place = self._places.get((function.name, WHOLE), Place())
        self._add(code, message, help, place, function.name)

    def step(self, function: Function, index: int, code: str, message: str, help: str) -> None:
        step: Step = function.steps[index]
        place = self._places.get((function.name, index), Place())
        self._add(code, message, help, place, f"{function.name}@{step.label}")

    def _add(self, code: str, message: str, help: str, place: Place, path: str) -> None:
        where = Place(place.source, place.line, place.column, path)
        self.diagnostics.append(Diagnostic(code, message, where, help))


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
    value = tuple(map(_first, step.arguments))
    if value == callee.parameters:
        return
    if len(value) == len(callee.parameters) and set(value) == set(callee.parameters):
        return
    if set(value) <= set(callee.parameters) <= {*value, *callee.optional}:
        return
    wanted = ", ".join(f"`{name}`" for name in callee.parameters) or "no arguments"
    wrong = [f"`{name}` is missing" for name in callee.parameters if name not in value]
    wrong += [f"`{name}` is not a parameter" for name in value if name not in callee.parameters]
    wrong += [f"`{n}` is given twice" for n in dict.fromkeys(value) if value.count(n) > 1]
    report.step(
        function,
        index,
        "wrong-arguments",
        f"call of `{step.function}`: {'; '.join(wrong)}",
        f"`{step.function}` takes {wanted}",
    )


def check_call_graph(program: Program, report: ProblemCollector) -> None:
    """Cycles and functions that the entry never reaches. A gate that identifies the customer is
    there for the guard, also where this procedure doesn't require it."""
    done: set[str] = set()
    in_cycle: set[str] = set()
    roots = [program.entry] if program.entry in program.functions else []
    _walk(program, roots, done, in_cycle, report)
    unused = [
        name for name, item in program.functions.items() if not (name in done or item.principal)
    ]
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
    complete = labels.issuperset(
        [item for item in chain.from_iterable(targets) if item is not None]
    )
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


def verify_program(
    program: Program,
    handbook_predicates: frozenset[str] | None = None,
    *,
    places: Places | None = None,
    accepted: Mapping[str, Function] | None = None,
) -> list[Diagnostic]:
    """Every mistake in ``program``; nothing when it may run.

    ``handbook_predicates`` bounds what rules and gates may judge (L(T) ∪ H_T).
    ``places`` gives positions in the file a program was read from.
    ``accepted`` are functions without callees that passed before, by name: a rule
    that many programs share is looked at once.
    """
    report = ProblemCollector(places or {})
    accepted = accepted or {}
    _check_header(program, report)
    for name, function in program.functions.items():
        if function.name != name:
            report.program(
                "name-mismatch",
                f"function `{function.name}` is listed as `{name}`",
                "list a function under its own name",
                path=name,
            )
        if accepted.get(name) is not function:
            check_function(program, function, report)
        predicate = function.predicate
        if (
            handbook_predicates is not None
            and predicate is not None
            and predicate not in handbook_predicates
        ):
            report.function(
                function,
                "unknown-predicate",
                f"`{predicate}` is not a predicate that this procedure needs",
                report.nearest(predicate, handbook_predicates, "it needs none"),
            )
    check_call_graph(program, report)
    if program.source.sha256:
        _check_goal(program, report)
    return report.diagnostics


def require_valid(
    program: Program,
    handbook_predicates: frozenset[str] | None = None,
    *,
    accepted: Mapping[str, Function] | None = None,
) -> None:
    """Raise ``UserMistake`` with every mistake in ``program``."""
    mistakes = verify_program(program, handbook_predicates, accepted=accepted)
    if mistakes:
        raise UserMistake(mistakes)


def _check_header(program: Program, report: ProblemCollector) -> None:
    entry = program.functions.get(program.entry)
    if entry is None:
        report.program(
            "entry-missing",
            f"the entry `{program.entry}` is not a function of this program",
            report.nearest(program.entry, program.functions, "add a process function"),
            path="entry",
        )
    elif entry.kind is not Kind.PROCESS:
        report.function(
            entry,
            "entry-not-process",
            f"the entry `{program.entry}` is a {entry.kind}",
            "a run starts in a process",
        )
    for name in program.constants:
        if not is_identifier(name):
            report.program(
                "bad-name",
                f"`{name}` is not a name for a constant",
                "use letters, digits and underscores",
                path="constants",
            )
    _check_guarded(program, report)


def _check_guarded(program: Program, report: ProblemCollector) -> None:
    seen: set[str] = set()
    for guarded in program.guarded:
        if guarded.action in seen:
            report.program(
                "duplicate-guard",
                f"`{guarded.action}` is guarded twice",
                "write one guard for an action",
                path="guarded",
            )
        seen.add(guarded.action)
        expires = guarded.expires_seconds
        if guarded.needed < 0 or (expires is not None and expires <= 0):
            report.program(
                "bad-guard",
                f"the guard of `{guarded.action}` asks for an impossible approval",
                "`needed` is at least 0 and `expires_seconds` at least 1",
                path="guarded",
            )
        if guarded.needed > 0 and not guarded.roles:
            report.program(
                "bad-guard",
                f"the guard of `{guarded.action}` names nobody who could approve",
                "list the roles that may approve",
                path="guarded",
            )


def _check_goal(program: Program, report: ProblemCollector) -> None:
    """A program compiled from a handbook exists for exactly one call."""
    entry = program.functions.get(program.entry)
    if entry is None or entry.kind is not Kind.PROCESS:
        return
    goals = [index for index, step in enumerate(entry.steps) if isinstance(step, Act) and step.goal]
    if not goals:
        report.function(
            entry,
            "goal-missing",
            f"`{entry.name}` never calls its goal action",
            "mark one `act` step with `goal: true`",
        )
    for index in goals[1:]:
        report.step(
            entry,
            index,
            "goal-repeated",
            f"`{entry.name}` calls its goal action more than once",
            f"the goal is already called at `{entry.steps[goals[0]].label}`",
        )
