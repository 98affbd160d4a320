"""Reading frames and programs back from the text a model is shown.

The same steps as in ``sopilot.language.program``, but only what the text says: whoever
reads it learns nothing that is not there. Understands every language of the
scaffold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sopilot.language.program.model import (
    Act,
    Ask,
    Branch,
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
    Option,
    ReturnStep,
    Some,
    Step,
)
from sopilot.language.render import LANGUAGES
from sopilot.runtime.agent.reference._expressions import (
    UnreadableExpression,
    read_acts,
    read_condition,
    scan_act,
    scan_call,
)
from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.vm.terms import plain_arguments

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
        one.slot: one.wanted
        for step in steps
        if isinstance(step, Branch | ReturnStep)
        for one in _holds(step.when if isinstance(step, Branch) else step.holds)
    }
    for step in steps:
        if isinstance(step, Check) and step.met is None and step.unmet is None:
            step = replace(step, wanted=wanted.get(step.slot, True))
        yield step


def _holds(condition: Condition | None) -> Iterator[Holds]:
    if isinstance(condition, Holds):
        yield condition
    elif isinstance(condition, Every | Some):
        for one in condition.conditions:
            yield from _holds(one)


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
        rest = _after(line.removeprefix(_INDENT), table["instead"])
        if rest is not None and steps and isinstance(steps[-1], Act):
            calls = read_acts(rest, table)
            frame.function = replace(function, fallbacks=(*function.fallbacks, calls))
        return
    rest = _after(line, table["told"])
    if rest is not None:
        frame.function = replace(function, tells=rest)
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


# --- steps ----------------------------------------------------------------------------


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
    found = re.match(_pattern(table["found"]), rest)
    if found is None:
        return check if rest == table["either"] else None
    other = re.match(_pattern(table["found_else"]), rest[found.end() :])
    return replace(
        check,
        wanted=found["wanted"] == "true",
        met=found["target"],
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


# --- what moves -----------------------------------------------------------------------


def _results(text: str) -> dict[str, bool]:
    truths = {"true": True, "false": False}
    found: dict[str, bool] = {}
    for name, word in re.findall(r"(?:^|; |；)(\w+) = (\w+)", text):
        if word in truths:
            found[name] = truths[word]
    return found


def read_known(text: str, separator: str = "; ") -> dict[str, JSON]:
    """``name = <JSON>`` pairs. Of a value that was cut in the middle, the text as shown."""
    found: dict[str, JSON] = {}
    position = 0
    while True:
        match = re.compile(r"(\w+) = ").match(text, position)
        if match is None:
            return found
        try:
            value, position = _DECODER.raw_decode(text, match.end())
            found[match.group(1)] = value
        except ValueError:
            position = text.find(CUT, match.end()) + len(CUT)
            if position < match.end():
                return found
            found[match.group(1)] = text[match.end() : position]
        following = text.find(separator, position)
        if following < 0:
            return found
        position = following + len(separator)
