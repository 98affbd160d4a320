"""The next move that a frame message asks for, as data.

Views render it, and the reference executor acts on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sopilot.handbook.requirements import Constant
from sopilot.machine.evidence import frame_results, next_wanted
from sopilot.machine.layout import Position
from sopilot.machine.machine import Machine
from sopilot.machine.moves import blamed, is_true, names_of
from sopilot.machine.terms import plain_arguments
from sopilot.program.model import (
    Act,
    Arguments,
    Ask,
    Branch,
    CallArgument,
    Check,
    Choose,
    CompleteStep,
    Emit,
    FailStep,
    Program,
    ReturnStep,
    Step,
    Unknown,
)
from sopilot.values.json import JSON
from sopilot.views.frame import shown_names, told_on_failing
from sopilot.views.moment import Moment, known_values

MOST_EVIDENCE: Final = 12
"""Results of the frame that are listed: the list must not grow with the calls."""

Recipe = tuple[Act, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """An argument whose value is shown."""

    value: JSON


MoveArguments = Sequence[tuple[str, CallArgument | Value]]


@dataclass(frozen=True, slots=True)
class Move:
    """``kind`` is ``start``, ``call``, ``tool``, ``goal``, ``judge``, ``return``, ``branch``,
    ``choose``, ``ask``, ``emit``, ``complete``, ``fail`` or ``next``. ``gathered`` numbers the
    evidence of the frame and ``recipes`` are the ways to verify, where the message shows them.
    ``ahead`` has the moves that aren't due yet, by what leads there; a verdict among them has a
    ``number``, by which the frame message says what follows it."""

    kind: str
    function: str = ""
    name: str = ""
    arguments: MoveArguments = ()
    known: Mapping[str, JSON] = field(default_factory=dict)
    gathered: tuple[int, ...] | None = None
    recipes: tuple[Recipe, ...] = ()
    wanted: bool = True
    goals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Goal → the values that it needs to begin, where it needs others later."""
    unmet: tuple[str, ...] = ()
    message: str = ""
    """All that the user may hear of a refusal here."""
    options: tuple[str, ...] = ()
    ahead: Mapping[str, Move] = field(default_factory=dict)
    number: str = ""


class FrameMessage(NamedTuple):
    """The last message of a request: its text, and the same as data."""

    text: str = ""
    move: Move | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What a request shows beside the dialog. ``programs`` are those whose whole text is shown;
    ``guard``: the agent has its own tools alone."""

    frame_text: str = ""
    move: Move | None = None
    goals: Sequence[str] = ()
    programs: Mapping[str, Program] = field(default_factory=dict)
    guard: bool = False
    language: str = "en"


def gathered(here: Position) -> tuple[int, ...]:
    """The latest results that the frame took over or gathered itself."""
    results = [*here.frame.borrowed, *(result.seq for result in frame_results(here))]
    return tuple(results[-MOST_EVIDENCE:])


def next_move(
    here: Position, known: Mapping[str, JSON], named: Mapping[str, str] | None = None
) -> Move:
    """The move that fits at the cursor. ``named`` renames values that are still open."""
    step = _asked_for(here)
    kind, name, options = _about(step)
    arguments: MoveArguments = ()
    if isinstance(step, Check):
        arguments = _filled(step.arguments, known, named)
    elif isinstance(step, Act) and here.layout.linked:
        arguments = _wanted(here, step)
    elif isinstance(step, Act):
        arguments = _filled(plain_arguments(step.arguments), known, named)
    elif isinstance(step, Branch):
        name = "then" if is_true(step.when, here.frame.slots) else "otherwise"
    elif isinstance(step, ReturnStep) and step.holds is not None:
        name = str(is_true(step.holds, here.frame.slots)).lower()
    return Move(kind, here.frame.function, name, arguments, known, options=options)


def frame_move(here: Position, language: str) -> Move:
    """The move of the active frame, with everything that its text shows."""
    program = here.source
    function = program.functions[here.frame.function]
    step = _asked_for(here)
    known = known_values(here)
    acts = tuple(item for item in function.steps if isinstance(item, Act))
    kind, name, options = _about(step)
    return Move(
        kind,
        function.name,
        name,
        step.arguments if isinstance(step, Check | Act) else (),
        {name: known[name] for name in shown_names(function) if name in known},
        recipes=tuple(recipe for recipe in (acts, *function.fallbacks) if recipe),
        wanted=step.wanted if isinstance(step, Check) else True,
        unmet=names_of(blamed(function, here.frame.slots)),
        message=told_on_failing(function, program, here.frame.slots, language),
        options=options,
    )


def start_move(moment: Moment) -> Move:
    goals, needed = {}, {}
    for goal, program in moment.briefing.programs.items():
        names = goals[goal] = program.functions[program.entry].parameters
        first = _needed_first(moment.machine, goal) if moment.automation.enter_calls else ()
        # The rest may come later, where the program needs it.
        if first and len(first) < len(names):
            needed[goal] = tuple(name for name in names if name in first)
    return Move("start", goals=goals, needed=needed)


def _needed_first(machine: Machine, goal: str) -> frozenset[str]:
    """The values without which the machine can't enter the goal's first check by itself."""
    here = machine.beginning(goal)
    if here is None or not isinstance(here.step, Check):
        return frozenset()
    terms = (term for _, term in here.step.arguments if not isinstance(term, Constant))
    return frozenset(term.name for term in terms)


def _asked_for(here: Position) -> Step:
    """The step at the cursor; behind a question, the call that takes the answer."""
    step = here.step
    if isinstance(step, Ask):
        behind = here.layout.steps[here.layout.past_asking(step.label)]
        return behind if isinstance(behind, Act) else step
    return step


def _about(step: Step) -> tuple[str, str, tuple[str, ...]]:
    """The kind of the move at a step, what it names, and the options that it leaves."""
    match step:
        case Check():
            return "call", step.function, ()
        case Act():
            return "goal" if step.goal else "tool", step.action, ()
        case Branch():
            return "branch", "", ()
        case Choose():
            return "choose", step.label, tuple(option.name for option in step.options)
        case Ask():
            return "ask", "", step.wants
        case Emit():
            return "emit", step.artifact, ()
        case ReturnStep():
            return "judge" if step.holds is None else "return", "", ()
        case CompleteStep():
            return "complete", "", ()
        case FailStep():
            return "fail", "", ()
        case _:
            return "next", "", ()


def _filled(
    arguments: Arguments, known: Mapping[str, JSON], named: Mapping[str, str] | None
) -> MoveArguments:
    """With values where there are any, and the name where one has to be found out."""
    filled: list[tuple[str, CallArgument | Value]] = []
    for parameter, term in arguments:
        if isinstance(term, Constant):
            filled.append((parameter, Value(term.value)))
        elif term.name in known:
            filled.append((parameter, Value(known[term.name])))
        else:
            filled.append((parameter, Unknown((named or {}).get(term.name, term.name))))
    return filled


def _wanted(here: Position, step: Act) -> MoveArguments:
    """The next call of a recipe whose calls look into earlier answers."""
    wanted = next_wanted(here, step)
    values = wanted.arguments if wanted is not None else {}
    return [
        (name, Value(values[name]) if name in values else Unknown(name))
        for name, _ in step.arguments
    ]
