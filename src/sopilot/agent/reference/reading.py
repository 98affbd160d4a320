"""Reading frames and programs back from the text a model is shown.

The same steps as in ``sopilot.program``, but only what the text says: whoever
reads it learns nothing that is not there. Understands every language of the
scaffold.

What the slot of a request asks for next, whether it shows a frame or only the state.

What the messages of a request say, as any reader could know it.

Calls and conditions as they are written in frames and programs.

Values for a call: from the frame, from what the user told, from earlier evidence.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sopilot.agent.approvers import EVERYTHING_TOLD
from sopilot.agent.reference.judging import Seen
from sopilot.agent.resume import NEVER_MADE
from sopilot.handbook.requirements import Path
from sopilot.machine.terms import plain_arguments
from sopilot.messages.errors import SopilotError
from sopilot.messages.scaffold import LANGUAGES
from sopilot.program.codec import path_from_text
from sopilot.program.model import (
    Act,
    Always,
    Ask,
    Branch,
    CallArgument,
    CallArguments,
    Check,
    Choose,
    CompleteStep,
    Condition,
    Do,
    Emit,
    Every,
    FailStep,
    Function,
    Holds,
    Kind,
    Literal,
    Local,
    Option,
    ReturnStep,
    Some,
    Step,
    Unknown,
)
from sopilot.program.walk import checks_to_blame
from sopilot.protocols import Message, ModelRequest
from sopilot.trace.events import Call, Complete, Fail, Return, Start
from sopilot.values.json import JSON
from sopilot.values.text import abbreviation_name, digest_of
from sopilot.views.dialog_folding import DONE, SAID, is_note, read_note
from sopilot.views.step_tool import IN_PASSING, STEP_NAMES, parse_steps

_NAME = re.compile(r"\w+")


_PATH = re.compile(r"\w+(?:\.\w+|\[\d+\])+")


class UnreadableExpression(SopilotError):
    """The text is not what a frame would show."""


def scan_act(text: str, table: Mapping[str, str]) -> tuple[Act, str]:
    """A tool's call with what its answer is called and for which elements it is made."""
    action, arguments, rest = scan_call(text)
    name, element, where = "", "", None
    named = re.match(_words(table["bound_as"]), rest)
    if named is not None:
        name, rest = named["slot"], rest[named.end() :]
    each = re.match(_words(table["for_each"]), rest)
    if each is not None:
        element, where, rest = each["element"], path_from_text(each["where"]), rest[each.end() :]
        where = where or Path(each["where"])
    return Act("", action, arguments, name=name, each=where, element=element), rest


def _words(template: str) -> str:
    """Fields are names; ``where`` is a place in an answer."""
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>\\w+)", re.escape(template))
    return pattern.replace(r"(?P<where>\w+)", r"(?P<where>\w+(?:\.\w+|\[\d+\])*)")


def scan_call(text: str) -> tuple[str, CallArguments, str]:
    """``name(a, b=3, c=?d)`` at the beginning of the text, and what follows it."""
    match = re.match(r"(\w+)\(", text)
    if match is None:
        raise UnreadableExpression(f"no call in `{text}`")
    arguments: list[tuple[str, CallArgument]] = []
    position = match.end()
    while not text.startswith(")", position):
        position = _skip(text, position, ", ") if arguments else position
        named = re.compile(r"(\w+)=").match(text, position)
        if named is not None:
            term, position = _argument(text, named.end())
            arguments.append((named.group(1), term))
        else:
            bare = _NAME.match(text, position)
            if bare is None:
                raise UnreadableExpression(f"no argument in `{text}`")
            arguments.append((bare.group(), Local(bare.group())))
            position = bare.end()
        if position >= len(text):
            raise UnreadableExpression(f"the call does not end in `{text}`")
    return match.group(1), tuple(arguments), text[position + 1 :]


def read_acts(text: str, table: Mapping[str, str]) -> tuple[Act, ...]:
    """Several calls, one after the other."""
    results = []
    while text:
        act, text = scan_act(text, table)
        results.append(act)
        text = text.removeprefix(table["then"])
    return tuple(results)


def _argument(text: str, position: int) -> tuple[CallArgument, int]:
    if text.startswith("?", position):
        match = _NAME.match(text, position + 1)
        if match is not None:
            return Unknown(match.group()), match.end()
    try:
        value, end = _DECODER.raw_decode(text, position)
        return Literal(value), end
    except ValueError:
        match = _NAME.match(text, position)
        if match is None:
            raise UnreadableExpression(f"no value in `{text[position:]}`") from None
        path = _PATH.match(text, position)
        if path is not None:
            result = path_from_text(path.group())
            assert result is not None
            return result, path.end()
        return Local(match.group()), match.end()


def _skip(text: str, position: int, wanted: str) -> int:
    if not text.startswith(wanted, position):
        raise UnreadableExpression(f"`{wanted}` is missing in `{text}`")
    return position + len(wanted)


def read_condition(text: str, table: Mapping[str, str]) -> Condition:
    text = text.strip()
    for joint, kind in ((table["or"], Some), (table["and"], Every)):
        parts = _split(text, joint)
        if len(parts) > 1:
            return kind(tuple(read_condition(part, table) for part in parts))
    if text.startswith("(") and text.endswith(")"):
        return read_condition(text[1:-1], table)
    if text in ("true", "false"):
        return Always(text == "true")
    before = table["not"][: table["not"].index("{")]
    if text.startswith(before):
        return Holds(text.removeprefix(before), False)
    return Holds(text)


def _split(text: str, joint: str) -> list[str]:
    """At the joints that stand in no bracket."""
    parts, depth, begun, position = [], 0, 0, 0
    while position < len(text):
        if depth == 0 and text.startswith(joint, position):
            parts.append(text[begun:position])
            position += len(joint)
            begun = position
            continue
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        position += 1
    return [*parts, text[begun:]]


_STEP = re.compile(r"^(> |  )(\w+): (.*)$")


_HEADER = re.compile(r"^(\S+) (\w+)\(([^()]*)\)$")


_NAMES = re.compile(r"`([^`]+)`")


_INDENT = "    "


_DECODER = json.JSONDecoder()


_JUDGED = (
    "judge_you",
    "judge_values",
    "judge_unverified",
    "judge_gate",
    "judge_gate_answer",
    "judge_machine",
    "judge_gate_machine",
    "judge_fact",
    "judge_fact_machine",
)


CUT = "…"


@dataclass(slots=True)
class ReadFrame:
    """A function as shown, with what moves in an active frame."""

    function: Function
    cursor: str | None = None
    known: dict[str, JSON] = field(default_factory=dict)
    results: dict[str, bool] = field(default_factory=dict)

    @property
    def step(self) -> Step | None:
        """The step at the cursor."""
        return next((step for step in self.function.steps if step.label == self.cursor), None)


def read_functions(text: str) -> Iterator[ReadFrame]:
    """Every function that the text shows, in order. Text around them is passed over."""
    frame: ReadFrame | None = None
    language = ""
    steps: list[Step] = []
    for line in text.splitlines():
        header = _header(line)
        if header is not None:
            if frame is not None and steps:
                yield _finished(frame, steps)
            function, language = header
            frame, steps = ReadFrame(function), []
        elif frame is not None:
            _read_line(frame, steps, line, language)
    if frame is not None and steps:
        yield _finished(frame, steps)


def active_frame(text: str) -> ReadFrame | None:
    """The first function with a cursor."""
    return next((frame for frame in read_functions(text) if frame.cursor is not None), None)


def _finished(frame: ReadFrame, steps: list[Step]) -> ReadFrame:
    frame.function = replace(frame.function, steps=tuple(_with_wishes(steps)))
    return frame


def _with_wishes(steps: list[Step]) -> Iterator[Step]:
    """A check that goes on either way is wanted as the condition reads it that decides."""
    wanted = {
        hold.slot: hold.wanted
        for step in steps
        if isinstance(step, Branch | ReturnStep)
        for hold in _holds(step.when if isinstance(step, Branch) else step.holds)
    }
    for step in steps:
        if isinstance(step, Check) and step.met is None and step.unmet is None:
            step = replace(step, wanted=wanted.get(step.slot, True))
        yield step


def _holds(condition: Condition | None) -> Iterator[Holds]:
    if isinstance(condition, Holds):
        yield condition
    elif isinstance(condition, Every | Some):
        for item in condition.conditions:
            yield from _holds(item)


def shows_whole_program(text: str) -> bool:
    return any(table["flat_intro"] in text for table in LANGUAGES.values())


def _header(line: str) -> tuple[Function, str] | None:
    match = _HEADER.match(line)
    if match is None:
        return None
    for language, table in LANGUAGES.items():
        for kind in Kind:
            if table[kind] == match.group(1):
                names = tuple(name for name in match.group(3).split(", ") if name)
                return Function(match.group(2), kind, names, ()), language
    return None


def _read_line(frame: ReadFrame, steps: list[Step], line: str, language: str) -> None:
    table = LANGUAGES[language]
    match = _STEP.match(line)
    function = frame.function
    if match is not None:
        steps.append(_step(match.group(2), match.group(3), language))
        if match.group(1) == "> ":
            frame.cursor = match.group(2)
        return
    if line.startswith(_INDENT) and steps and isinstance(steps[-1], Choose):
        option = re.match(_pattern(table["option"]), line.removeprefix(_INDENT))
        if option is not None:
            known = steps[-1].options
            chosen = Option(option.group("name"), option.group("target"))
            steps[-1] = replace(steps[-1], options=(*known, chosen))
        return
    if line.startswith(_INDENT):
        below = line.removeprefix(_INDENT)
        rest = _after(below, table["instead"]) or _after(below, table["instead_of_all"])
        if rest is not None and steps and isinstance(steps[-1], Act):
            calls = read_acts(rest, table)
            frame.function = replace(function, fallbacks=(*function.fallbacks, calls))
        return
    rest = _after(line, table["told"])
    if rest is not None:
        frame.function = replace(function, customer_message=rest)
    rest = _after(line, table["results"])
    if rest is not None:
        frame.results = _results(rest)
    rest = _after(line, table["known"])
    if rest is not None:
        frame.known = read_known(rest, table["separator"])


def _after(line: str, template: str) -> str | None:
    """What stands in place of the template's one field at its end."""
    prefix = template[: template.index("{")]
    return line.removeprefix(prefix) if line.startswith(prefix) else None


@lru_cache(maxsize=8192)
def _step(label: str, body: str, language: str) -> Step:
    table = LANGUAGES[language]
    for key, goal in (("goal", True), ("act", False)):
        rest = _after(body, table[key])
        if rest is not None:
            act, rest = scan_act(rest, table)
            return replace(act, label=label, goal=goal, next=_target(rest, "goto", table))
    check = _check(label, body, table)
    if check is not None:
        return check
    if body.startswith(_prefix(table["choose"])):
        return Choose(label, body.removeprefix(_prefix(table["choose"])), ())
    handed = re.match(_pattern(table["emit"]), body)
    if handed is not None:
        return Emit(label, handed.group("name"))
    branch = _matches(table["branch"], body)
    if branch is not None:
        condition = read_condition(branch["when"], table)
        return Branch(label, condition, branch["then"], branch["otherwise"])
    if any(body.startswith(table[key]) for key in _JUDGED):
        return ReturnStep(label)
    value = _matches(table["return_value"], body.split(_remark(table))[0])
    if value is not None:
        return ReturnStep(label, read_condition(value["when"], table))
    plain = body.split(_remark(table))[0]
    if plain == table["complete"]:
        return CompleteStep(label)
    if plain == table["fail"]:
        return FailStep(label)
    names = tuple(_NAMES.findall(body))
    return Ask(label, names) if names else Do(label, body)


def _check(label: str, body: str, table: Mapping[str, str]) -> Check | None:
    find = _prefix(table["check_find"])
    try:
        name, arguments, rest = scan_call(body.removeprefix(find))
    except UnreadableExpression:
        return None
    slot = name
    bound = re.match(_pattern(table["bound_as"]), rest)
    if bound is not None:
        slot, rest = bound.group("slot"), rest[bound.end() :]
    check = Check(label, name, plain_arguments(arguments), slot)
    if not body.startswith(find):
        must = re.fullmatch(_pattern(table["check_must"].removeprefix("{call}")), rest)
        if must is None:
            return None
        return replace(check, wanted=must["wanted"] == "true", unmet=must["target"])
    match = re.match(_pattern(table["found"]), rest)
    if match is None:
        return check if rest == table["either"] else None
    other = re.match(_pattern(table["found_else"]), rest[match.end() :])
    return replace(
        check,
        wanted=match["wanted"] == "true",
        met=match["target"],
        unmet=other["target"] if other else None,
    )


def _target(rest: str, key: str, table: Mapping[str, str]) -> str | None:
    match = re.search(_pattern(table[key]), rest.split(_remark(table))[0])
    return match.group("target") if match else None


def _remark(table: Mapping[str, str]) -> str:
    return _prefix(table["remark"])


def _prefix(template: str) -> str:
    return template[: template.index("{")]


def _pattern(template: str) -> str:
    """A template as a pattern: a field is a name or a word of the language."""
    return re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>\\w+)", re.escape(template))


def _matches(template: str, text: str) -> Mapping[str, str] | None:
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(template))
    match = re.fullmatch(pattern, text)
    return match.groupdict() if match else None


def _results(text: str) -> dict[str, bool]:
    truths = {"true": True, "false": False}
    flags: dict[str, bool] = {}
    for name, word in re.findall(r"(?:^|; |；)(\w+) = (\w+)", text):
        if word in truths:
            flags[name] = truths[word]
    return flags


def read_known(text: str, separator: str = "; ") -> dict[str, JSON]:
    """``name = <JSON>`` pairs. Of a value that was cut in the middle, the text as shown."""
    values: dict[str, JSON] = {}
    position = 0
    while True:
        match = re.compile(r"(\w+)(?: \(= \w+\))? = ").match(text, position)
        if match is None:
            return values
        try:
            value, position = _DECODER.raw_decode(text, match.end())
            values[match.group(1)] = value
        except ValueError:
            position = text.find(CUT, match.end()) + len(CUT)
            if position < match.end():
                return values
            values[match.group(1)] = text[match.end() : position]
        following = text.find(separator, position)
        if following < 0:
            return values
        position = following + len(separator)


Recipe = tuple[Act, ...]


Table = Mapping[str, str]


_EDGE = r"(?:start \w+|(?:\d+ )?(?:true|false)|undecided)(?: \+ \d+ (?:true|false))*"


_EDGES = rf"({_EDGE}(?:, {_EDGE})*)"


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
    aheads: dict[str, Ahead] = {}
    pattern = re.escape(table["after"]).replace(r"\{edges\}", _EDGES).replace(r"\{move\}", "(.*)")
    for line in slot.splitlines():
        after = re.fullmatch(pattern, line)
        if after is not None:
            aheads.update(dict.fromkeys(after[1].split(", "), _read_ahead(after[2], table)))
    return aheads


def _read_ahead(move: str, table: Table) -> Ahead:
    before, _, rest = table["ahead_judge"].partition("{number} {call}")
    if not move.startswith(before):
        return Ahead(*_next(move, table))
    number, _, call = move.removeprefix(before).partition(" ")
    name, arguments, rest = scan_call(call)
    cited = tuple(map(int, re.findall(r"#(\d+)", re.split("[:：]", rest)[0])))
    return Ahead("judge", name, arguments, cited, number)


def _needed(slot: str, table: Table) -> dict[str, tuple[str, ...]]:
    results = {}
    start = rf"{_before(table['next'])}start (\w+)\([^()]*\){_before(table['at_least'])}(.+)$"
    for line in slot.splitlines():
        match = re.match(start, line)
        if match is not None:
            results[match.group(1)] = tuple(match.group(2).split(", "))
    return results


def _goals(slot: str, table: Table) -> dict[str, tuple[str, ...]]:
    results = {}
    for line in slot.splitlines():
        match = re.match(rf"{_before(table['next'])}start (\w+)\(([^()]*)\)", line)
        if match is not None:
            names = match.group(2).split(", ")
            results[match.group(1)] = tuple(name for name in names if name)
    return results


def move_in_frame(frame: ReadFrame) -> Move:
    function = frame.function
    step = frame.step
    if isinstance(step, Ask):
        behind = function.steps[function.steps.index(step) + 1]
        step = behind if isinstance(behind, Act) else step
    acts = tuple(item for item in function.steps if isinstance(item, Act))
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


STATED = re.compile(r"^\s*([A-Za-z_]\w*): (.+?)\s*$")


def stated_in(text: str) -> dict[str, JSON]:
    """Name → value. A value is JSON: words without quotes are words, and state nothing."""
    values: dict[str, JSON] = {}
    for line in text.splitlines():
        match = STATED.match(line)
        if match is None:
            continue
        try:
            values[match.group(1)] = json.loads(match.group(2))
        except (ValueError, RecursionError):
            continue
    return values


ASK = "Please tell me: "


GOAL = "goal"


_REJECTED = tuple(table["nothing_done"].partition("{")[0] for table in LANGUAGES.values())


_CALL_ID = re.compile(r"^call_(\d{1,9})$")


_PLACE = re.compile(r"^Now at (?:[^@\n]*/)?([^@/\n]+)@", re.MULTILINE)


RESULT = re.compile(r"^#(\d+) \((ok|failed)\): (.*)$")


@dataclass(slots=True)
class Facts:
    """``values`` is what the user told, ``asked`` how often each name was asked for, ``open``
    the goals that are under way (the present one last), ``ended`` those that are over;
    ``here`` are the results since the last bookkeeping call, ``not_made`` the calls that were
    answered without being made, ``refused`` the last such answer; ``rejected`` is the last
    step if it did not fit, and why."""

    first: str = ""
    slot: str = ""
    request: str = ""
    values: dict[str, JSON] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    told_everything: bool = False
    wants: str | None = None
    open: list[str] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)
    here: list[Seen] = field(default_factory=list)
    not_made: list[Seen] = field(default_factory=list)
    refused: str = ""
    rejected: tuple[Mapping[str, JSON], str] | None = None
    stack: list[str] = field(default_factory=list)
    place: str = ""
    """The function that the last step led to, where its answer says so."""
    judged: str = ""
    """The rule or gate that was judged last."""
    steps: int = 0
    last_call: int = 0
    """The largest number in a call's id."""
    characters: int = 0

    def value(self, name: str) -> JSON:
        """What is known under a name: told by the user, else found in evidence."""
        if name in self.values:
            return self.values[name]
        for item in reversed(self.seen):
            result = _find(item.value, name) if item.ok else None
            if result is not None:
                return result
        return None

    def is_unavailable(self, name: str) -> bool:
        return self.asked[name] >= 2 or (self.told_everything and self.asked[name] >= 1)


def read_facts(request: ModelRequest) -> Facts:
    messages = list(request.messages)
    facts = Facts(characters=sum(len(message.content) for message in messages))
    if messages and messages[0].role == "system":
        facts.first = messages.pop(0).content
    if messages and messages[-1].role == "system":
        facts.slot = messages.pop().content
    calls: dict[str, tuple[str, str]] = {}
    for message in messages:
        if message.role == "user":
            _read_user(facts, message.content)
        elif message.role == "assistant":
            for line in message.content.splitlines():
                if line.startswith(ASK):
                    facts.asked.update(_NAMES.findall(line))
            calls.update({call.id: (call.name, call.arguments) for call in message.tool_calls})
            numbers = [_CALL_ID.match(call.id) for call in message.tool_calls]
            facts.last_call = max([facts.last_call, *(int(n.group(1)) for n in numbers if n)])
        elif message.role == "tool":
            name, arguments = calls.get(message.tool_call_id or "", (message.name or "", "{}"))
            _read_answer(facts, name, _object(arguments), message)
        elif message.role == "system" and is_note(message.content):
            for who, text in read_note(message.content):
                if who == SAID.removesuffix(": "):
                    _read_user(facts, text)
                else:
                    _read_answer(facts, who, {}, Message("tool", text, name=who))
    return facts


def _read_user(facts: Facts, text: str) -> None:
    if not facts.request:
        facts.request = text
    facts.told_everything = EVERYTHING_TOLD in text
    for name, value in stated_in(text).items():
        if name == GOAL and isinstance(value, str):
            facts.wants = value
        else:
            facts.values[name] = value


def _read_answer(facts: Facts, name: str, arguments: Mapping[str, JSON], message: Message) -> None:
    if name in STEP_NAMES:
        facts.steps += 1
        facts.here = []
        facts.refused = ""
        facts.rejected = None
        rejected = next((item for item in _REJECTED if message.content.startswith(item)), None)
        if rejected is not None:
            why = message.content.splitlines()[0].removeprefix(rejected)
            facts.rejected = (arguments, why.rstrip(".。"))
        if message.content.startswith(DONE):
            _read_lifecycle(facts, arguments)
            place = _PLACE.search(message.content)
            facts.place = place.group(1) if place else ""
        return
    match = RESULT.match(message.content)
    if match is not None and NEVER_MADE in message.content:
        return
    if match is None:
        facts.refused = message.content
        facts.not_made.append(Seen(-1, name, arguments, False, message.content))
        return
    facts.refused = ""
    _read_lifecycle(facts, {key: arguments[key] for key in IN_PASSING if key in arguments})
    seen = Seen(
        int(match.group(1)),
        name,
        {key: value for key, value in arguments.items() if key not in IN_PASSING},
        match.group(2) == "ok",
        json.loads(match.group(3)),
    )
    facts.seen.append(seen)
    facts.here.append(seen)


def _read_lifecycle(facts: Facts, arguments: Mapping[str, JSON]) -> None:
    moves = parse_steps(arguments)
    for move in moves if isinstance(moves, tuple) else ():
        operation = move.operation
        if isinstance(operation, Start):
            if operation.goal in facts.open:
                facts.open.remove(operation.goal)
            facts.open.append(operation.goal)
            facts.stack = []
            # A gate stays shut on the user's word only if the word was given to that gate: what
            # was asked before the process began and not told is asked for again in its frame.
            facts.asked = Counter(
                {name: n for name, n in facts.asked.items() if name in facts.values}
            )
        elif isinstance(operation, Complete | Fail) and facts.open:
            facts.ended.add(facts.open.pop())
            facts.stack = []
        elif isinstance(operation, Call):
            facts.stack.append(str(operation.function))
        elif isinstance(operation, Return) and facts.stack:
            function = facts.stack.pop()
            # The machine may have gone on from what was called to what is judged there.
            function = facts.place or function
            facts.judged = function if operation.holds is not None else facts.judged


def _object(text: str) -> dict[str, JSON]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _find(value: JSON, name: str) -> JSON:
    """The latest scalar under that key, however deep."""
    result: JSON = None
    if isinstance(value, Mapping):
        if name in value and not isinstance(value[name], dict | list):
            return value[name]
        nested: Sequence[JSON] = list(value.values())
    elif isinstance(value, list):
        nested = value
    else:
        return None
    for item in nested:
        deeper = _find(item, name)
        result = deeper if deeper is not None else result
    return result


@dataclass(slots=True)
class Resolved:
    """``found_out`` are the values that the frame did not have; ``missing`` names, as the
    user knows them, for which there is none."""

    values: dict[str, JSON] = field(default_factory=dict)
    found_out: dict[str, JSON] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def resolve(move: Move, facts: Facts) -> Resolved:
    return call_arguments(
        move.arguments, move.known, facts, users_own=move.kind in ("call", "goal")
    )


def call_arguments(
    arguments: CallArguments, known: Mapping[str, JSON], facts: Facts, *, users_own: bool = False
) -> Resolved:
    """``users_own``: the names are the user's, as in processes and groups. Evidence may use
    the same names for other things, so there it counts only when the user cannot tell."""
    resolved = Resolved()
    for parameter, term in arguments:
        if isinstance(term, Literal):
            resolved.values[parameter] = whole(term.value, facts)
        elif isinstance(term, Path):
            # It stands in an answer: whoever follows the recipe knows which.
            resolved.missing.append(str(term))
        elif known.get(term.name) is not None:
            resolved.values[parameter] = whole(known[term.name], facts)
        else:
            value = None
            if users_own and not facts.is_unavailable(term.name):
                value = facts.values.get(term.name)
            elif users_own or isinstance(term, Unknown):
                value = facts.value(term.name)
            if value is None:
                resolved.missing.append(term.name)
            else:
                resolved.values[parameter] = resolved.found_out[parameter] = value
    return resolved


def whole(value: JSON, facts: Facts) -> JSON:
    """A value that a frame had to cut, as it was said."""
    name = abbreviation_name(value)
    if name is None:
        return value
    for source in (*facts.values.values(), *(item.value for item in facts.seen)):
        for part in _parts(source):
            if digest_of(part) == name:
                return part
    return value


def _parts(value: JSON) -> Iterator[JSON]:
    """Every text, list and object in a value."""
    nested: Iterable[JSON] = ()
    if isinstance(value, Mapping):
        nested = value.values()
    elif isinstance(value, list):
        nested = value
    elif not isinstance(value, str):
        return
    yield value
    for item in nested:
        yield from _parts(item)
