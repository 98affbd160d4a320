"""Handbooks of the last release that no longer load, rewritten so that they mean the same.

Then a recipe could leave an input out, or name a value that nothing gives, and whoever called
passed what they liked. Now every value has an origin: what had none is asked of the user. Only
these places change; comments and layout stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sopilot.language.handbook._reader import read_handbook
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.nodes import ListNode, MapNode, Node, ScalarNode
from sopilot.language.handbook.yaml_nodes import parse_nodes

_NO_ORIGIN = re.compile(r"`(\w+)` has no origin: nothing says where the recipe of `(\w+)` takes")
_MISSING = re.compile(r"`(\w+)` needs `(\w+)`, and the recipe of `(\w+)` gives it none")
MOST_ROUNDS = 50


def upgrade_handbook(text: str, source: str = "<input>") -> str:
    """The text with what can be mended mended; the rest stays for ``check`` to tell."""
    for _ in range(MOST_ROUNDS):
        handbook, found = read_handbook(text, source)
        if handbook is not None:
            return text
        changed = text
        for one in found:
            missing = _MISSING.match(one.message) if one.code == "missing-input" else None
            unknown = _NO_ORIGIN.match(one.message) if one.code == "no-origin" else None
            if missing is not None:
                action, name, predicate = missing.groups()
                changed = _with_argument(text, predicate, action, name)
            elif unknown is not None:
                changed = _with_question(text, unknown[2], unknown[1])
            if changed != text:
                break
        if changed == text:
            return text
        text = changed
    return text


def _predicate(text: str, name: str) -> MapNode | None:
    root = parse_nodes(text, DiagnosticCollector(""))
    for key, value in root.pairs if isinstance(root, MapNode) else ():
        if key.text != "predicates" or not isinstance(value, MapNode):
            continue
        for declared, body in value.pairs:
            if re.match(rf"\s*{name}\b", declared.text) and isinstance(body, MapNode):
                return body
    return None


def _with_question(text: str, predicate: str, name: str) -> str:
    """``ask: [name]`` in front of the recipe, or one more in a list that is there."""
    body = _predicate(text, predicate)
    if body is None:
        return text
    keys = {key.text: (key, value) for key, value in body.pairs}
    if "verify" not in keys:
        return text
    if "ask" in keys:
        value = keys["ask"][1]
        if not isinstance(value, ListNode) or not value.items:
            return text
        last = value.items[-1]
        return _inserted(text, last, f"{name}, ") if isinstance(last, ScalarNode) else text
    key = keys["verify"][0]
    line = text.splitlines(keepends=True)[key.line - 1]
    before = line[: key.column - 1]
    alone = not before.strip()
    return _inserted(text, key, f"ask: [{name}]" + ("\n" + before if alone else ", "))


def _with_argument(text: str, predicate: str, action: str, name: str) -> str:
    """``action(…)`` with ``name=name`` besides."""
    body = _predicate(text, predicate)
    for node in _scalars(body) if body is not None else ():
        call = re.fullmatch(rf"\s*{action}\s*(?:\((.*)\))?\s*", node.text, re.DOTALL)
        if call is None or not node.one_line:
            continue
        given = (call[1] or "").strip()
        if re.search(rf"\b{name}\s*=", given):
            continue
        made = f"{action}({given}{', ' if given else ''}{name}={name})"
        start = node.start + len(node.style)
        return text[:start] + made + text[start + len(node.text) :]
    return text


def _scalars(node: Node) -> Iterator[ScalarNode]:
    if isinstance(node, ScalarNode):
        yield node
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from _scalars(item)
    else:
        for key, value in node.pairs:
            if key.text in ("verify", "all", "any", "call"):
                yield from _scalars(value)


def _inserted(text: str, at: ScalarNode, what: str) -> str:
    return text[: at.start] + what + text[at.start :]
