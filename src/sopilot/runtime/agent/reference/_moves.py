"""What the slot of a request asks for next, whether it shows a frame or only the state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sopilot.language.program.causes import checks_to_blame
from sopilot.language.program.model import (
    Act,
    Ask,
    Branch,
    CallArguments,
    Check,
    Choose,
    CompleteStep,
    Emit,
    FailStep,
    ReturnStep,
)
from sopilot.language.render import LANGUAGES
from sopilot.runtime.agent.reference._expressions import scan_call
from sopilot.runtime.agent.reference._reading import ReadFrame, active_frame, read_known
from sopilot.runtime.session.protocols import JSON

Recipe = tuple[Act, ...]
Table = Mapping[str, str]
_EDGES = r"((?:start \w+|(?:\d+ )?(?:true|false))(?:, (?:start \w+|(?:\d+ )?(?:true|false)))*)"
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
    for table in LANGUAGES.values():
        position = _before(table["position"])
        if slot.startswith(table["no_process"]):
            goals, needed = _goals(slot, table), _needed(slot, table)
            return Move("start", goals=goals, ahead=_ahead(slot, table), needed=needed)
        if position in slot:
            return _from_state(slot[slot.index(position) :], table)
    frame = active_frame(slot)
    if frame is None:
        return None
    for table in LANGUAGES.values():
        gathered, ahead = _gathered(slot, table), _ahead(slot, table)
        if gathered is not None or ahead:
            return replace(move_in_frame(frame), gathered=gathered, ahead=ahead)
    return move_in_frame(frame)


def _before(template: str) -> str:
    """The words in front of a template's first field."""
    return template[: template.index("{")]


def _gathered(slot: str, table: Table) -> tuple[int, ...] | None:
    """As the slot says it in a line of its own, which no value can imitate."""
    begun = _before(table["gathered"])
    line = next((line for line in slot.splitlines() if line.startswith(begun)), None)
    return None if line is None else tuple(map(int, re.findall(r"#(\d+)", line)))


def _ahead(slot: str, table: Table) -> dict[str, Ahead]:
    found: dict[str, Ahead] = {}
    pattern = re.escape(table["after"]).replace(r"\{edges\}", _EDGES).replace(r"\{move\}", "(.*)")
    for line in slot.splitlines():
        after = re.fullmatch(pattern, line)
        if after is not None:
            found.update(dict.fromkeys(after[1].split(", "), _read_ahead(after[2], table)))
    return found


def _read_ahead(move: str, table: Table) -> Ahead:
    before, _, rest = table["ahead_judge"].partition("{number} {call}")
    if not move.startswith(before):
        return Ahead(*_next(move, table))
    number, _, call = move.removeprefix(before).partition(" ")
    name, arguments, rest = scan_call(call)
    cited = tuple(map(int, re.findall(r"#(\d+)", re.split("[:：]", rest)[0])))
    return Ahead("judge", name, arguments, cited, number)


def _needed(slot: str, table: Table) -> dict[str, tuple[str, ...]]:
    found = {}
    start = rf"{_before(table['next'])}start (\w+)\(([^()]*){table['separator']}[^()]*\)$"
    for line in slot.splitlines():
        match = re.match(start, line)
        if match is not None:
            found[match.group(1)] = tuple(match.group(2).split(", "))
    return found


def _goals(slot: str, table: Table) -> dict[str, tuple[str, ...]]:
    found = {}
    for line in slot.splitlines():
        match = re.match(rf"{_before(table['next'])}start (\w+)\(([^()]*)\)$", line)
        if match is not None:
            names = match.group(2).replace(table["separator"], ", ").split(", ")
            found[match.group(1)] = tuple(name for name in names if name)
    return found


# --- from a frame ---------------------------------------------------------------------


def move_in_frame(frame: ReadFrame) -> Move:
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
    if isinstance(step, ReturnStep):
        return _move("judge" if step.holds is None else "return", common)
    if isinstance(step, Branch):
        return _move("branch", common)
    if isinstance(step, Choose):
        names = tuple(option.name for option in step.options)
        return replace(_move("choose", common, step.label), options=names)
    if isinstance(step, Emit):
        return _move("emit", common, step.artifact)
    if isinstance(step, CompleteStep):
        return _move("complete", common)
    if isinstance(step, FailStep):
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
    return tuple(step.slot for step in checks_to_blame(frame.function, frame.results))


# --- from the state -------------------------------------------------------------------


def _from_state(text: str, table: Table) -> Move:
    lines = text.splitlines()
    path, _, label = lines[0].removeprefix(_before(table["position"])).rpartition("@")
    function = path.rsplit("/", 1)[-1]
    known: Mapping[str, JSON] = {}
    gathered: tuple[int, ...] = ()
    for line in lines[1:]:
        begun, following = _before(table["known"]), _before(table["next"])
        if line.startswith(begun):
            known = read_known(line.removeprefix(begun), table["separator"])
        elif line.startswith(_before(table["gathered"])):
            gathered = tuple(map(int, re.findall(r"#(\d+)", line)))
        elif line.startswith(following):
            move = line.removeprefix(following)
            kind, name, arguments = _next(move, table)
            options = tuple(move.removeprefix(_BRANCH).split(_OR)) if kind == "choose" else ()
            name = label if kind == "choose" else name
            return Move(kind, function, name, arguments, known, gathered, options=options)
    return Move("next", function, known=known, gathered=gathered)


def _next(move: str, table: Table) -> tuple[str, str, CallArguments]:
    for key, kind in (("move_call", "call"), ("move_tool", "tool"), ("move_goal", "goal")):
        prefix = _before(table[key])
        if move.startswith(prefix):
            name, arguments, _ = scan_call(move.removeprefix(prefix))
            return kind, name, arguments
    if move.startswith(_before(table["move_values"])):
        return "call", "", ()
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
