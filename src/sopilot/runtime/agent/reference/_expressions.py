"""Calls and conditions as they are written in frames and programs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from sopilot.language.diagnostics import SopilotError
from sopilot.language.handbook import Path
from sopilot.language.program.model import (
    Act,
    Always,
    CallArgument,
    CallArguments,
    Condition,
    Every,
    Holds,
    Literal,
    Local,
    Some,
    Unknown,
)
from sopilot.language.program.scalars import path_from_text

_NAME = re.compile(r"\w+")
_PATH = re.compile(r"\w+(?:\.\w+|\[\d+\])+")
_DECODER = json.JSONDecoder()


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
    found = []
    while text:
        act, text = scan_act(text, table)
        found.append(act)
        text = text.removeprefix(table["then"])
    return tuple(found)


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
            found = path_from_text(path.group())
            assert found is not None
            return found, path.end()
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
