"""Programs prepared for running, and the position where an operation lands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sopilot.handbook.requirements import Constant
from sopilot.machine.recipes import linked
from sopilot.machine.state import Configuration, Frame, Process
from sopilot.messages.catalogue import sentence
from sopilot.program.model import (
    Act,
    ActionFacts,
    Ask,
    Check,
    Do,
    Emit,
    Function,
    Guarded,
    Kind,
    Program,
    Step,
    Unknown,
    step_kind,
)
from sopilot.trace.redaction import has_withheld, is_reference
from sopilot.values.json import JSON, Fields, same
from sopilot.values.schema import violation

Agreement = Callable[[JSON, JSON], bool]
"""Whether two values are the same; in a redacted trace, whether they may be."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``depth`` bounds a stack, ``steps`` a process's transitions, ``processes`` a run."""

    depth: int = 64
    steps: int = 10_000
    processes: int = 1_000


@dataclass(frozen=True, slots=True)
class FunctionLayout:
    """``after`` maps a step to the one that follows it; for a check, where ``met`` goes.

    ``recipes`` are the admissible ways to verify, the one in the steps first.
    ``learnable`` are names the function may learn that are not its parameters.
    ``linked``: a call of a recipe looks into an earlier answer.
    """

    function: Function
    first: str
    steps: Mapping[str, Step]
    after: Mapping[str, str]
    unmet: Mapping[str, str]
    parameters: frozenset[str]
    recipes: tuple[tuple[Act, ...], ...]
    recipe_acts: tuple[Act, ...]
    learnable: frozenset[str]
    soft: bool
    linked: bool

    @property
    def name(self) -> str:
        return self.function.name

    def past_asking(self, label: str, *, acting: bool = False) -> str:
        """The first step from ``label`` on that isn't an ``Ask`` (with ``acting``, an ``Act``)."""
        kinds = (Act, Ask) if acting else (Ask,)
        seen = set()
        while isinstance(self.steps[label], kinds) and label not in seen:
            seen.add(label)
            label = self.after[label]
        return label


@dataclass(frozen=True, slots=True)
class ProgramLayout:
    """``redacted``: for a trace with withheld values, which may have any type."""

    program: Program
    functions: Mapping[str, FunctionLayout]
    entry: FunctionLayout
    goal_actions: frozenset[str]
    agree: Agreement
    guarded: Mapping[str, Guarded]
    redacted: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The names that a process may know: its inputs and the names that it learns."""
        return self.entry.parameters.union(
            *(function.learnable for function in self.functions.values())
        )

    def depends_on(self, step: Check, names: frozenset[str]) -> bool:
        """Whether the result of a check may depend on these names: they are its arguments, or a
        function below it learns them."""
        if any(not isinstance(term, Constant) and term.name in names for _, term in step.arguments):
            return True
        waiting, seen = [step.function], {step.function}
        while waiting:
            layout = self.functions[waiting.pop()]
            if not layout.learnable.isdisjoint(names):
                return True
            for item in layout.steps.values():
                if isinstance(item, Check) and item.function not in seen:
                    seen.add(item.function)
                    waiting.append(item.function)
        return False

    def type_problem(self, name: str, value: JSON) -> str | None:
        """Why a value cannot be the entry's ``name``."""
        if self.redacted and has_withheld(value):
            return None
        return violation(value, self.program.types.get(name, {}), f"`{name}`")


def lay_out(program: Program, *, redacted: bool = False) -> ProgramLayout:
    """Prepare a verified program for running.

    With ``redacted`` a withheld value agrees with every value that isn't withheld. The program
    caches its layouts, because many sessions run it.
    """
    key = ("layout", redacted)
    if key not in program.cache:
        program.cache[key] = _laid_out(program, redacted)
    layout: ProgramLayout = program.cache[key]
    return layout


def _laid_out(program: Program, redacted: bool) -> ProgramLayout:
    functions = {name: _lay_out_function(function) for name, function in program.functions.items()}
    goals = frozenset(
        step.action
        for function in program.functions.values()
        for step in function.steps
        if isinstance(step, Act) and step.goal
    )
    guarded = {item.action: item for item in program.guarded}
    entry, agree = functions[program.entry], _may_agree if redacted else same
    return ProgramLayout(program, functions, entry, goals, agree, guarded, redacted)


def _may_agree(left: JSON, right: JSON) -> bool:
    """Compare two references, since equal withheld values have equal ones."""
    return is_reference(left) != is_reference(right) or same(left, right)


def _lay_out_function(function: Function) -> FunctionLayout:
    after: dict[str, str] = {}
    unmet: dict[str, str] = {}
    following = [*(step.label for step in function.steps[1:]), ""]
    for step, below in zip(function.steps, following, strict=True):
        if isinstance(step, Check):
            after[step.label] = step.met or below
            unmet[step.label] = step.unmet or below
        elif isinstance(step, Act | Ask | Do | Emit):
            after[step.label] = step.next or below
    recipes = function.recipes
    recipe_acts = tuple(act for recipe in recipes for act in recipe)
    return FunctionLayout(
        function,
        function.steps[0].label,
        {step.label: step for step in function.steps},
        after,
        unmet,
        frozenset(function.parameters),
        recipes,
        recipe_acts,
        frozenset(_learnable(function, recipe_acts)),
        function.kind in (Kind.RULE, Kind.GATE),
        linked(recipes),
    )


def _learnable(function: Function, acts: tuple[Act, ...]) -> Iterator[str]:
    for step in function.steps:
        if isinstance(step, Ask):
            yield from step.wants
        elif isinstance(step, Check):
            yield from (term.name for _, term in step.arguments if isinstance(term, Unknown))
    for act in acts:
        yield from (term.name for _, term in act.arguments if isinstance(term, Unknown))


@dataclass(frozen=True, slots=True)
class Programs:
    """Programs of a machine: goal → prepared program, with hashes and limits."""

    layouts: Mapping[str, ProgramLayout]
    hashes: Mapping[str, str]
    limits: Limits
    goal_actions: frozenset[str]
    actions: Mapping[str, ActionFacts] = field(default_factory=dict)


@dataclass(slots=True)
class Moved:
    """An accepted transition. ``added`` goes into the event's payload. ``process`` and ``frame``
    are where it happened, if that isn't the position before it."""

    configuration: Configuration
    added: Fields = field(default_factory=dict)
    process: str | None = None
    frame: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused transition: a stable code and a sentence for the executor."""

    code: str
    reason: str


def refused(code: str, wording: str = "", /, **fields: object) -> Refused:
    """``wording`` is the code of the sentence, if it differs from that of the refusal."""
    return Refused(code, sentence(wording or code, **fields))


NO_PROCESS = refused("no-process")


@dataclass(slots=True)
class Position:
    configuration: Configuration
    process: Process
    frame: Frame
    program: ProgramLayout
    layout: FunctionLayout
    step: Step
    programs: Programs

    @property
    def source(self) -> Program:
        return self.program.program

    def with_frame(self, frame: Frame, **changes: Any) -> Configuration:
        """The configuration after a transition of the process to another top frame."""
        frames = (*self.process.frames[:-1], frame)
        return self.configuration.updated(self.process.moved(frames, **changes))

    def wrong_step(self, operation: str) -> Refused:
        place, kind = self.frame.place, step_kind(self.step)
        return refused("wrong-step", operation=operation, place=place, kind=kind)


def locate(programs: Programs, configuration: Configuration) -> Position | None:
    """``None`` without an active process."""
    process = configuration.process
    return locate_process(programs, configuration, process) if process is not None else None


def locate_process(
    programs: Programs, configuration: Configuration, process: Process
) -> Position | None:
    if not process.frames:
        return None
    program = programs.layouts[process.goal]
    frame = process.frames[-1]
    layout = program.functions[frame.function]
    return Position(
        configuration, process, frame, program, layout, layout.steps[frame.cursor], programs
    )
