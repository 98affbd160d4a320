"""Plain values as YAML text: scalars that read back as themselves, blocks and one-liners."""

from __future__ import annotations

import json
import re

from sopilot.language.handbook._scalars import is_surprising, resolve

_PLAIN = re.compile(r"[A-Za-z_(][^\x00-\x1f\x22\x27\x5c\x60\x7f-\xa0\u2028\u2029\ufeff]*")
_ESCAPED = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")

Value = str | list["Value"] | dict[str, "Value"]
"""What the emitter takes: ready-made scalars, lists and mappings."""


def scalar(value: object) -> str:
    """A scalar that reads back as itself."""
    if not isinstance(value, str):
        return json.dumps(value)
    safe = (
        _PLAIN.fullmatch(value)
        and ": " not in value
        and " #" not in value
        and value[-1] not in " :"
        and isinstance(resolve(value), str)
        and not is_surprising(value)
    )
    return value if safe else quoted(value)


def quoted(value: str) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def flow(value: object) -> str:
    """JSON in one line, with every text quoted."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(one) for one in value) + "]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def emit(lines: list[str], key: str, value: Value, indent: int) -> None:
    pad = " " * indent
    if isinstance(value, str):
        lines.append(f"{pad}{key}: {value}")
    elif not value:
        lines.append(f"{pad}{key}: " + ("[]" if isinstance(value, list) else "{}"))
    else:
        lines.append(f"{pad}{key}:")
        _emit_inside(lines, value, indent + 2)


def _emit_inside(lines: list[str], value: list[Value] | dict[str, Value], indent: int) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            emit(lines, key, item, indent)
        return
    for item in value:
        if isinstance(item, str):
            lines.append(f"{' ' * indent}- {item}")
        else:
            inner: list[str] = []
            _emit_inside(inner, item, indent + 2)
            inner[0] = f"{' ' * indent}- {inner[0].lstrip(' ')}"
            lines.extend(inner)
