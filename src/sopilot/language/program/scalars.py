"""How a single value is written in a program's YAML, and what a written value means.

Strings stay plain only where no YAML reader could take them for anything else;
everything else is double-quoted with JSON's escapes.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache

from sopilot.language.diagnostics import UserMistake, mistake
from sopilot.language.handbook import Path, Scalar
from sopilot.language.handbook.translated import Translated
from sopilot.language.program.model import CallArgument, Literal, Local, Unknown

_PLAIN = re.compile(r"[A-Za-z_$](?:[A-Za-z0-9_$./ -]*[A-Za-z0-9_$./])?")
_NOT_PLAIN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufdd0-\ufdef\ufeff\ufffe\uffff]")
_LARGEST = 10**300
_HALF_PAIR = re.compile("[\ud800-\udfff]")


@lru_cache(maxsize=8192)
def text_to_yaml(text: str) -> str:
    """A text that is written in several languages becomes a mapping."""
    if isinstance(text, Translated):
        written = [f"{one}: {text_to_yaml(said)}" for one, said in text.texts.items()]
        return "{" + ", ".join(written) + "}"
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN:
        return text
    if _HALF_PAIR.search(text):
        raise _unwritable(f"a text holds half a surrogate pair: {ascii(text)[:80]}")
    return _UNPRINTABLE.sub(
        lambda match: f"\\u{ord(match.group()):04x}", json.dumps(text, ensure_ascii=False)
    )


def scalar_to_yaml(value: Scalar) -> str:
    if isinstance(value, str):
        return text_to_yaml(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _unwritable("a number is infinite or not a number")
        return repr(value)
    if abs(value) >= _LARGEST:
        raise _unwritable("a whole number has too many digits")
    return repr(value)


def argument_to_yaml(argument: CallArgument) -> str:
    if isinstance(argument, Local):
        return text_to_yaml("$" + argument.name)
    if isinstance(argument, Unknown):
        return text_to_yaml("?" + argument.name)
    if isinstance(argument, Path):
        return text_to_yaml("$" + path_to_text(argument))
    value = argument.value
    if isinstance(value, str) and value[:1] in ("$", "?"):
        return text_to_yaml(value[0] + value)
    return scalar_to_yaml(value)


def argument_from_scalar(value: Scalar) -> CallArgument:
    """``$name`` is a local, ``$name.key`` a place in an answer, ``?name`` nobody knows yet; a
    doubled sign stands for itself."""
    if isinstance(value, str) and value[:1] in ("$", "?"):
        if value[1:2] == value[0]:
            return Literal(value[1:])
        if value[0] == "?":
            return Unknown(value[1:])
        return path_from_text(value[1:]) or Local(value[1:])
    return Literal(value)


_PATH = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\.|(?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,6}\])+)")
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]")


def path_to_text(path: Path) -> str:
    """``call.key[0]``; a whole answer ends with a dot, which tells it from a local."""
    return str(path) if path.steps else f"{path.root}."


def path_from_text(text: str) -> Path | None:
    match = _PATH.fullmatch(text)
    if match is None:
        return None
    steps = tuple(key or int(position) for key, position in _STEP.findall(match[2]))
    return Path(match[1], steps)


def json_to_yaml(value: object) -> str:
    """JSON on one line, keys sorted; it means the same to a YAML reader."""
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _unwritable(f"a schema is not JSON: {error}") from error
    if _HALF_PAIR.search(text):
        raise _unwritable("a schema holds half a surrogate pair")
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _unwritable(message: str) -> UserMistake:
    return mistake("unwritable-value", message, help="use a plain JSON value")
