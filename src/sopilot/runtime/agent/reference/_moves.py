"""What the slot of a request asks for next, whether it shows a frame or only the state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sopilot.language.program.model import (
    Act,
    Ask,
    Branch,
    CallArguments,
    Check,
    Choose,
    Complete,
    Emit,
    Fail,
    Return,
)
from sopilot.runtime.agent.arms._lookahead import AFTER, JUDGE
from sopilot.runtime.agent.arms.machine_state import (
    GATHERED,
    KNOWN,
    LATER,
    NEXT,
    NO_PROCESS,
    POSITION,
)
from sopilot.runtime.agent.reference._expressions import scan_call
from sopilot.runtime.agent.reference._reading import ReadFrame, active_frame, read_known
from sopilot.runtime.session.protocols import JSON

Recipe = tuple[Act, ...]
_BRANCH, _OR, _EMIT = "select_branch ", " | ", "emit_artifact "


@dataclass(frozen=True, slots=True)
class Ahead:
    """A move that is not due yet. A verdict has a ``number``, by which the slot says what
    follows it, and the ``evidence`` that it would stand on."""

    kind: str
    name: str = ""
    arguments: CallArguments = ()
    evidence: tuple[int, ...] = ()
    number: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """``kind`` is ``start``, ``call``, ``tool``, ``goal``, ``judge``, ``return``, ``branch``,
    ``choose``, ``emit``, ``complete``, ``fail`` or ``next``. ``options`` are what there is to
    choose at the step ``name``. ``gathered`` numbers the evidence of the frame where
    the slot tells it; ``recipes`` are the ways to verify where the slot shows them. ``ahead``
    is what the slot says about what follows, by what leads there."""

    kind: str
    function: str = ""
    name: str = ""
    arguments: CallArguments = ()
    known: Mapping[str, JSON] = field(default_factory=dict)
    gathered: tuple[int, ...] | None = None
    recipes: tuple[Recipe, ...] = ()
    wanted: bool = True
    goals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unmet: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    ahead: Mapping[str, Ahead] = field(default_factory=dict)
    needed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Goal → the values that it needs to begin, where the slot tells them apart."""


def read_move(slot: str) -> Move | None:
    """The next move, or ``None`` if the slot shows neither frame nor state."""
    if slot.startswith(NO_PROCESS):
        return Move("start", goals=_goals(slot), ahead=_ahead(slot), needed=_needed(slot))
    if POSITION in slot:
        return _from_state(slot[slot.index(POSITION) :])
    frame = active_frame(slot)
    if frame is None:
        return None
    return replace(_from_frame(frame), gathered=_gathered(slot), ahead=_ahead(slot))


def _gathered(slot: str) -> tuple[int, ...] | None:
    """As the slot says it in a line of its own, which no value can imitate."""
    line = next((line for line in slot.splitlines() if line.startswith(GATHERED)), None)
    return None if line is None else tuple(map(int, re.findall(r"#(\d+)", line)))


def _ahead(slot: str) -> dict[str, Ahead]:
    found: dict[str, Ahead] = {}
    for line in slot.splitlines():
        if line.startswith(AFTER):
            edges, _, move = line.removeprefix(AFTER).partition(": ")
            found.update(dict.fromkeys(edges.split(", "), _read_ahead(move)))
    return found


def _read_ahead(move: str) -> Ahead:
    if not move.startswith(JUDGE):
        return Ahead(*_next(move))
    number, _, call = move.removeprefix(JUDGE).partition(" ")
    name, arguments, rest = scan_call(call)
    cited = tuple(map(int, re.findall(r"#(\d+)", rest.partition(":")[0])))
    return Ahead("judge", name, arguments, cited, number)


def _needed(slot: str) -> dict[str, tuple[str, ...]]:
    found = {}
    for line in slot.splitlines():
        match = re.match(rf"{NEXT}start (\w+)\(([^()]*){LATER}[^()]*\)$", line)
        if match is not None:
            found[match.group(1)] = tuple(match.group(2).split(", "))
    return found


def _goals(slot: str) -> dict[str, tuple[str, ...]]:
    found = {}
    for line in slot.splitlines():
        match = re.match(rf"{NEXT}start (\w+)\(([^()]*)\)$", line)
        if match is not None:
            names = match.group(2).replace(LATER, ", ").split(", ")
            found[match.group(1)] = tuple(name for name in names if name)
    return found


# --- from a frame ---------------------------------------------------------------------


def _from_frame(frame: ReadFrame) -> Move:
    function = frame.function
    step = frame.step
    if isinstance(step, Ask):
        behind = function.steps[function.steps.index(step) + 1]
        step = behind if isinstance(behind, Act) else step
    acts = tuple(one for one in function.steps if isinstance(one, Act))
    recipes = tuple(tuple(recipe) for recipe in (acts, *function.fallbacks) if recipe)
    common = (function.name, frame.known, recipes)
    if isinstance(step, Check):
        return _move("call", common, step.function, step.arguments, wanted=step.wanted)
    if isinstance(step, Act):
        kind = "goal" if step.goal else "tool"
        return _move(kind, common, step.action, step.arguments)
    if isinstance(step, Return):
        return _move("judge" if step.holds is None else "return", common)
    if isinstance(step, Branch):
        return _move("branch", common)
    if isinstance(step, Choose):
        names = tuple(option.name for option in step.options)
        return replace(_move("choose", common, step.label), options=names)
    if isinstance(step, Emit):
        return _move("emit", common, step.artifact)
    if isinstance(step, Complete):
        return _move("complete", common)
    if isinstance(step, Fail):
        return _move("fail", common, unmet=_unmet(frame))
    return _move("next", common)


def _move(
    kind: str,
    common: tuple[str, Mapping[str, JSON], tuple[Recipe, ...]],
    name: str = "",
    arguments: CallArguments = (),
    *,
    wanted: bool = True,
    unmet: tuple[str, ...] = (),
) -> Move:
    function, known, recipes = common
    return Move(kind, function, name, arguments, known, recipes=recipes, wanted=wanted, unmet=unmet)


def _unmet(frame: ReadFrame) -> tuple[str, ...]:
    wanted = {step.slot: step.wanted for step in frame.function.steps if isinstance(step, Check)}
    return tuple(slot for slot, holds in frame.results.items() if holds != wanted.get(slot, holds))


# --- from the state -------------------------------------------------------------------


def _from_state(text: str) -> Move:
    lines = text.splitlines()
    path, _, label = lines[0].removeprefix(POSITION).rpartition("@")
    function = path.rsplit("/", 1)[-1]
    known: Mapping[str, JSON] = {}
    gathered: tuple[int, ...] = ()
    for line in lines[1:]:
        if line.startswith(KNOWN):
            known = read_known(line.removeprefix(KNOWN))
        elif line.startswith(GATHERED):
            gathered = tuple(map(int, re.findall(r"#(\d+)", line)))
        elif line.startswith(NEXT):
            move = line.removeprefix(NEXT)
            kind, name, arguments = _next(move)
            options = tuple(move.removeprefix(_BRANCH).split(_OR)) if kind == "choose" else ()
            name = label if kind == "choose" else name
            return Move(kind, function, name, arguments, known, gathered, options=options)
    return Move("next", function, known=known, gathered=gathered)


def _next(move: str) -> tuple[str, str, CallArguments]:
    for prefix, kind in (("call ", "call"), ("tool ", "tool"), ("goal tool ", "goal")):
        if move.startswith(prefix):
            name, arguments, _ = scan_call(move.removeprefix(prefix))
            return kind, name, arguments
    if move == "return true | false":
        return "judge", "", ()
    if move.startswith(_EMIT):
        return "emit", move.removeprefix(_EMIT), ()
    if move.startswith(_BRANCH) and _OR in move:
        return "choose", "", ()
    word = move.split(" ", 1)[0]
    kinds = {"return": "return", "complete": "complete", "fail": "fail"}
    if move.startswith("select_branch") and move != "select_branch next":
        return "branch", "", ()
    return kinds.get(word, "next"), "", ()
