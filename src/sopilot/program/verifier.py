"""The verifier, which runs on every compiled and every loaded program.

It reports every mistake with its place, and its time grows with the program's size. In a program
that it accepts every jump has a target, every result that is read is bound, and every loop can end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from sopilot.handbook.requirements import Path
from sopilot.messages.diagnostic import Diagnostic, Place, did_you_mean
from sopilot.messages.errors import UserMistake
from sopilot.program.model import (
    Act,
    Ask,
    Branch,
    CallArguments,
    Check,
    Choose,
    Function,
    Kind,
    Local,
    Program,
    ReturnStep,
    Unknown,
    step_kind,
)
from sopilot.program.walk import (
    ENDS,
    Targets,
    bound_before,
    continuations,
    cycles,
    reachable,
    reversed_graph,
    runs_down,
    slots_and_depth,
    step_graph,
)

WHOLE = -1
"""The position of the function itself, beside those of its steps."""

Places = Mapping[tuple[str, int], Place]
"""(function, position of the step or ``WHOLE``) → where a file says it."""

NAMES_COMPARED = 50_000
"""The most name comparisons for suggestions, so that a hostile file can't cost hours."""

DEEPEST_CONDITION = 24
"""The deepest condition that can be read back from a file."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_NAME_HELP = "a name has letters, digits and underscores, and does not start with a digit"


def verify_program(
    program: Program,
    handbook_predicates: frozenset[str] | None = None,
    *,
    places: Places | None = None,
    accepted: Mapping[str, Function] | None = None,
) -> list[Diagnostic]:
    """Every mistake in ``program``.

    Rules and gates may judge only ``handbook_predicates`` (L(T) ∪ H_T).
    ``places`` gives positions in the file a program was read from.
    ``accepted`` are functions without callees that passed before, by name.
    """
    verifier = _Verifier(program, places or {})
    verifier.check_header()
    for name, function in program.functions.items():
        if function.name != name:
            verifier.report(
                "name-mismatch",
                f"function `{function.name}` is listed as `{name}`",
                "list a function under its own name",
                name,
            )
        check = _FunctionCheck(verifier, function)
        if accepted is None or accepted.get(name) is not function:
            check.run()
        predicates, predicate = handbook_predicates, function.predicate
        if predicates is not None and predicate is not None and predicate not in predicates:
            message = f"`{predicate}` is not a predicate that this procedure needs"
            help = verifier.nearest(predicate, predicates, "it needs none")
            check.whole("unknown-predicate", message, help)
    verifier.check_call_graph()
    if program.source.sha256:
        verifier.check_goal()
    return verifier.diagnostics


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


@lru_cache(maxsize=8192)
def is_identifier(name: str) -> bool:
    """ASCII only: a name is shown to models and people, and must not look like another."""
    return _IDENTIFIER.fullmatch(name) is not None


def _repeated(names: Sequence[str]) -> Iterable[str]:
    if len(names) == len(set(names)):
        return ()
    return [name for name, count in Counter(names).items() if count > 1]


def _path_problems(act: Act, roots: Collection[str]) -> Iterator[str]:
    """Paths of a call that start neither at an earlier answer of its recipe nor at a parameter."""
    paths = [argument for _, argument in act.arguments if isinstance(argument, Path)]
    paths = [path for path in paths if path.root != act.element]
    for path in (*((act.each,) if act.each is not None else ()), *paths):
        if path.root not in roots:
            yield f"`{path.root}` isn't an earlier answer"


class _Verifier:
    """Checks of the program as a whole; collects all diagnostics."""

    def __init__(self, program: Program, places: Places) -> None:
        self.program = program
        self.diagnostics: list[Diagnostic] = []
        self._places = places
        self._to_compare = NAMES_COMPARED

    def nearest(self, word: str, known: Collection[str], otherwise: str) -> str:
        """Help that names the nearest known name, else ``otherwise``."""
        self._to_compare -= len(known)
        if self._to_compare < 0 or not known:
            return otherwise
        return did_you_mean(word, known)

    def report(
        self, code: str, message: str, help: str, path: str, at: tuple[str, int] = ("", WHOLE)
    ) -> None:
        place = self._places.get(at, Place())
        where = Place(place.source, place.line, place.column, path)
        self.diagnostics.append(Diagnostic(code, message, where, help))

    def check_header(self) -> None:
        program = self.program
        entry = program.functions.get(program.entry)
        if entry is None:
            message = f"the entry `{program.entry}` is not a function of this program"
            help = self.nearest(program.entry, program.functions, "add a process function")
            self.report("entry-missing", message, help, "entry")
        elif entry.kind is not Kind.PROCESS:
            _FunctionCheck(self, entry).whole(
                "entry-not-process",
                f"the entry `{program.entry}` is a {entry.kind}",
                "a run starts in a process",
            )
        for name in program.constants:
            if not is_identifier(name):
                message = f"`{name}` is not a name for a constant"
                help = "use letters, digits and underscores"
                self.report("bad-name", message, help, "constants")
        seen: set[str] = set()
        for guarded in program.guarded:
            if guarded.action in seen:
                message = f"`{guarded.action}` is guarded twice"
                help = "write one guard for an action"
                self.report("duplicate-guard", message, help, "guarded")
            seen.add(guarded.action)
            expires = guarded.expires_seconds
            if guarded.needed < 0 or (expires is not None and expires <= 0):
                message = f"the guard of `{guarded.action}` asks for an impossible approval"
                help = "`needed` is at least 0 and `expires_seconds` at least 1"
                self.report("bad-guard", message, help, "guarded")
            if guarded.needed > 0 and not guarded.roles:
                message = f"the guard of `{guarded.action}` names no role that could approve"
                self.report("bad-guard", message, "list the roles that may approve", "guarded")

    def check_goal(self) -> None:
        """A program compiled from a handbook exists for exactly one call."""
        entry = self.program.functions.get(self.program.entry)
        if entry is None or entry.kind is not Kind.PROCESS:
            return
        check = _FunctionCheck(self, entry)
        goals = [at for at, step in enumerate(entry.steps) if isinstance(step, Act) and step.goal]
        if not goals:
            message = f"`{entry.name}` never calls its goal action"
            check.whole("goal-missing", message, "mark one `act` step with `goal: true`")
        for index in goals[1:]:
            message = f"`{entry.name}` calls its goal action more than once"
            help = f"the goal is already called at `{entry.steps[goals[0]].label}`"
            check.step(index, "goal-repeated", message, help)

    def check_call_graph(self) -> None:
        """Cycles, and functions that the entry never reaches. The guard needs every gate that
        identifies the customer, called or not."""
        functions, entry = self.program.functions, self.program.entry
        calls = {
            name: [step.function for step in function.checks if step.function in functions]
            for name, function in functions.items()
        }
        called = reachable(calls.__getitem__, [entry]) if entry in functions else functions
        for name, function in functions.items():
            if name not in called and not function.principal:
                message = f"`{name}` is never called from `{entry}`"
                check = _FunctionCheck(self, function)
                check.whole("unused-function", message, "call it or remove it")
        in_cycle: set[str] = set()
        for cycle in cycles(calls.__getitem__, functions):
            if in_cycle.issuperset(cycle):
                continue
            in_cycle.update(cycle)
            last = functions[cycle[-1]]
            closing = next(
                at
                for at, step in enumerate(last.steps)
                if isinstance(step, Check) and step.function == cycle[0]
            )
            message = "cyclic call: " + " → ".join(f"`{name}`" for name in [*cycle, cycle[0]])
            help = "a function may not call itself, directly or through others"
            _FunctionCheck(self, last).step(closing, "cyclic-call", message, help)


class _FunctionCheck:
    """One function: names, values, labels, calls, ends and paths."""

    __slots__ = ("_targets", "function", "verifier")

    def __init__(self, verifier: _Verifier, function: Function) -> None:
        self.verifier = verifier
        self.function = function
        self._targets: list[Targets] = []

    def whole(self, code: str, message: str, help: str) -> None:
        name = self.function.name
        self.verifier.report(code, message, help, name, (name, WHOLE))

    def step(self, index: int, code: str, message: str, help: str) -> None:
        name = self.function.name
        path = f"{name}@{self.function.steps[index].label}"
        self.verifier.report(code, message, help, path, (name, index))

    @property
    def _ends(self) -> str:
        return "`complete` or `fail`" if self.function.kind is Kind.PROCESS else "`return`"

    def run(self) -> None:
        function = self.function
        for name in (function.name, *function.parameters):
            if not is_identifier(name):
                self.whole("bad-name", f"`{name}` isn't a valid name", _NAME_HELP)
        for name in _repeated(function.parameters):
            self.whole("duplicate-parameter", f"parameter `{name}` is declared twice", "keep one")
        if not function.steps:
            self.whole("empty-body", f"`{function.name}` has no steps", "add at least one step")
            return
        labels = self._check_labels()
        self._targets = [continuations(step) for step in function.steps]
        complete = self._check_targets(labels)
        self._check_steps()
        if complete:
            self._check_paths()
        self._check_slots()
        for acts in function.fallbacks:
            self._check_plain_calls("fallback", acts)
        if function.closed_by is not None:
            self._check_plain_calls("closing", (function.closed_by,))

    def _check_name(self, index: int, name: str, kind: str = "name") -> None:
        if not is_identifier(name):
            self.step(index, "bad-name", f"`{name}` is not a {kind}", _NAME_HELP)

    def _check_labels(self) -> Collection[str]:
        seen: set[str] = set()
        for index, step in enumerate(self.function.steps):
            self._check_name(index, step.label, "label")
            if step.label in seen:
                message = f"label `{step.label}` is used twice in `{self.function.name}`"
                help = "give every step of a function its own label"
                self.step(index, "duplicate-label", message, help)
            seen.add(step.label)
        return seen

    def _check_targets(self, labels: Collection[str]) -> bool:
        """Whether every target exists; otherwise the function has no meaningful paths."""
        unknown = set(chain.from_iterable(self._targets)).difference(labels, {None})
        for index, names in enumerate(self._targets) if unknown else ():
            for target in dict.fromkeys(names):
                if target is not None and target in unknown:
                    message = f"`{self.function.name}` has no step `{target}`"
                    help = self.verifier.nearest(target, labels, "name one of its labels")
                    self.step(index, "unknown-label", message, help)
        if None in self._targets[-1]:
            message = f"`{self.function.name}` goes on after its last step"
            last = len(self._targets) - 1
            self.step(last, "falls-off-end", message, f"end with {self._ends}")
        return not unknown

    def _check_steps(self) -> None:
        function = self.function
        known, roots = set(function.parameters), set(function.parameters)
        for index, step in enumerate(function.steps):
            if isinstance(step, Check):
                self._check_call(index, step)
                self._check_name(index, step.slot, "slot")
                self._check_values(index, step.arguments, known)
            elif isinstance(step, Act):
                self._check_values(index, step.arguments, known)
                for problem in _path_problems(step, roots):
                    self.step(index, "unknown-answer", problem, "name an earlier call")
                roots.add(step.answer)
                for name in _repeated([name for name, _ in step.arguments]):
                    self.step(index, "wrong-arguments", f"`{name}` is given twice", "keep one")
                if step.goal and function.kind is not Kind.PROCESS:
                    message = f"the {function.kind} `{function.name}` calls a goal action"
                    self.step(index, "goal-outside-process", message, "only a process has a goal")
            elif isinstance(step, Ask):
                if not step.wants:
                    self.step(index, "empty-ask", "nothing is asked for", "name what is wanted")
                for name in step.wants:
                    self._check_name(index, name)
                known.update(step.wants)
            elif isinstance(step, Choose):
                self._check_choose(index, step)
            elif isinstance(step, ENDS) and (
                isinstance(step, ReturnStep) is (function.kind is Kind.PROCESS)
            ):
                message = f"a {function.kind} does not end with `{step_kind(step)}`"
                self.step(index, "wrong-end", message, f"end with {self._ends}")

    def _check_call(self, index: int, step: Check) -> None:
        functions = self.verifier.program.functions
        callee = functions.get(step.function)
        if callee is None:
            message = f"`{step.function}` is not a function of this program"
            help = self.verifier.nearest(step.function, functions, "add it")
            self.step(index, "unknown-function", message, help)
            return
        if callee.kind is Kind.PROCESS:
            message = f"`{step.function}` is a process and cannot be called"
            self.step(index, "call-to-process", message, "call a rule, a gate or a group")
        names, parameters = tuple([name for name, _ in step.arguments]), callee.parameters
        if names == parameters:
            return
        if len(names) == len(set(names)) and (
            set(names) <= set(parameters) <= {*names, *callee.optional}
        ):
            return
        wanted = ", ".join(f"`{name}`" for name in parameters) or "no arguments"
        wrong = [f"`{name}` is missing" for name in parameters if name not in names]
        wrong += [f"`{name}` is not a parameter" for name in names if name not in parameters]
        wrong += [f"`{name}` is given twice" for name in _repeated(names)]
        message = f"call of `{step.function}`: {'; '.join(wrong)}"
        self.step(index, "wrong-arguments", message, f"`{step.function}` takes {wanted}")

    def _check_values(self, index: int, arguments: CallArguments, known: set[str]) -> None:
        """Add the values that the call makes the executor find to ``known``."""
        learned: list[str] = []
        for _, argument in arguments:
            if isinstance(argument, Local) and argument.name not in known:
                message = f"`{argument.name}` has no value here"
                otherwise = f"make it a parameter of `{self.function.name}` or ask for it first"
                help = self.verifier.nearest(argument.name, known, otherwise)
                self.step(index, "unknown-value", message, help)
            elif isinstance(argument, Unknown):
                learned.append(argument.name)
                self._check_name(index, argument.name)
        known.update(learned)

    def _check_choose(self, index: int, step: Choose) -> None:
        if not step.options:
            self.step(index, "empty-choice", "there is nothing to choose", "add two options")
        for option in step.options:
            self._check_name(index, option.name)
        for name in _repeated([option.name for option in step.options]):
            message = f"option `{name}` is offered twice"
            self.step(index, "duplicate-option", message, "give every option its own name")

    def _check_plain_calls(self, what: str, acts: tuple[Act, ...]) -> None:
        """Check calls beside the steps: a recipe that knows only the parameters."""
        known, roots = set(self.function.parameters), set(self.function.parameters)
        for act in acts:
            for problem in _path_problems(act, roots):
                self.whole("unknown-answer", problem, "name an earlier call")
            roots.add(act.answer)
            for _, argument in act.arguments:
                if isinstance(argument, Local) and argument.name not in known:
                    message = f"{what} `{act.action}`: `{argument.name}` has no value there"
                    help = self.verifier.nearest(argument.name, known, "name a parameter")
                    self.whole("unknown-value", message, help)
            known.update(a.name for _, a in act.arguments if isinstance(a, Unknown))
            if act.goal or act.next is not None or not is_identifier(act.label):
                message = f"{what} `{act.action}` is not a plain call"
                self.whole("bad-fallback", message, f"a {what} has a label, no goal and no jump")
        if not acts:
            self.whole("bad-fallback", f"a {what} without any call", "name its calls")

    def _check_paths(self) -> None:
        """All steps are reachable, all paths can end, and no loop is without a choice."""
        function, steps = self.function, self.function.steps
        if runs_down(function, self._targets):
            return
        graph = step_graph(steps, self._targets)
        places = range(len(steps))
        reached = reachable(graph.__getitem__, [0])
        for index in places:
            if index not in reached:
                message = f"no path of `{function.name}` gets to `{steps[index].label}`"
                help = "go to it from some step or remove it"
                self.step(index, "unreachable-step", message, help)
        ends = [index for index in places if not graph[index]]
        able = reachable(reversed_graph(graph).__getitem__, ends)
        trapped = next((index for index in places if index not in able), None)
        if trapped is not None:
            message = f"from `{steps[trapped].label}` no path of `{function.name}` ends"
            self.step(trapped, "no-end", message, f"let some path get to {self._ends}")
            return

        def without_choices(index: int) -> Iterator[int]:
            return (place for place in graph[index] if not isinstance(steps[place], Choose))

        decided = [index for index in places if not isinstance(steps[index], Choose)]
        cycle = next(cycles(without_choices, decided), [])
        if cycle:
            labels = [f"`{steps[index].label}`" for index in [*cycle, cycle[0]]]
            help = "a bound result never changes, so every loop needs a `choose` that can leave it"
            self.step(cycle[0], "endless-loop", "endless loop: " + " → ".join(labels), help)

    def _check_slots(self) -> None:
        """Every slot that a condition reads is bound on every path to it."""
        producers: dict[str, Check] = {}
        read: dict[int, tuple[str, ...]] = {}
        for index, step in enumerate(self.function.steps):
            if isinstance(step, Check):
                first = producers.setdefault(step.slot, step)
                same = (first.function, first.arguments) == (step.function, step.arguments)
                if not same:
                    message = f"slot `{step.slot}` would hold the results of two different calls"
                    help = f"`{first.label}` already binds it: use another slot"
                    self.step(index, "slot-rebound", message, help)
                continue
            condition = step.when if isinstance(step, Branch) else None
            condition = step.holds if isinstance(step, ReturnStep) else condition
            if condition is not None:
                read[index], depth = slots_and_depth(condition)
                if depth > DEEPEST_CONDITION:
                    message = f"a condition is nested deeper than {DEEPEST_CONDITION} levels"
                    help = "move a part of it into a function of its own"
                    self.step(index, "condition-too-deep", message, help)
        slots = tuple(dict.fromkeys([slot for names in read.values() for slot in names]))
        if not slots:
            return
        bound = bound_before(self.function, step_graph(self.function.steps, self._targets), slots)
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
                    help = self.verifier.nearest(slot, producers, "bind it in a `call` step first")
                self.step(index, "unbound-slot", message, help)
