"""Reading one field: the expected shape, or a diagnostic and a harmless value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING
from dataclasses import fields as dataclass_fields
from typing import Any, Generic, NamedTuple, TypeVar

from sopilot.handbook.grammar import LANGUAGES, RESERVED, Translated, is_identifier
from sopilot.handbook.nodes import ListNode, MapNode, Node, ScalarNode, is_surprising
from sopilot.handbook.requirements import Scalar
from sopilot.handbook.wording import placeholders
from sopilot.messages.diagnostic import DiagnosticCollector, Positioned, did_you_mean


class Field(NamedTuple):
    key: ScalarNode
    value: Node


Fields = Mapping[str, Field]

K = TypeVar("K")
REQUIRED: Any = object()


class Entry(NamedTuple, Generic[K]):
    """A field in a table: how it is read and written. ``attribute`` is the name in the model, if
    it differs. The default is the model's unless ``default`` is set."""

    key: str
    kind: K
    attribute: str = ""
    default: Any = MISSING


def filled(part: type[Any], listed: Sequence[Entry[K]]) -> tuple[Entry[K], ...]:
    """The entries with the attributes and defaults of a part of the model."""
    defaults = {
        item.name: item.default if item.default_factory is MISSING else item.default_factory()
        for item in dataclass_fields(part)
    }
    result = []
    for entry in listed:
        attribute, default = entry.attribute or entry.key, entry.default
        if default is MISSING:
            default = defaults.get(attribute, MISSING)
        default = REQUIRED if default is MISSING else default
        result.append(entry._replace(attribute=attribute, default=default))
    return tuple(result)


def describe(node: Node) -> str:
    """The written value in plain words."""
    if isinstance(node, ListNode):
        return "a list"
    if isinstance(node, MapNode):
        return "a mapping"
    value = node.value
    if value is None:
        return "nothing"
    shown = node.text if len(node.text) <= 40 else node.text[:39] + "…"
    if isinstance(value, bool):
        return f"`{shown}`"
    return f"the number `{shown}`" if isinstance(value, int | float) else f"`{shown}`"


def wrong(
    report: DiagnosticCollector, node: Node, what: str, expected: str, help: str = ""
) -> None:
    message = f"{what} must be {expected}, found {describe(node)}"
    report.error("wrong-type", message, node, help)


def fields(report: DiagnosticCollector, node: Node, known: Collection[str], what: str) -> Fields:
    """The known keys of a mapping; the others are reported."""
    if not isinstance(node, MapNode):
        wrong(report, node, what, "a mapping")
        return {}
    result: dict[str, Field] = {}
    for key, value in node.pairs:
        if key.text in known:
            result[key.text] = Field(key, value)
        else:
            message = f"{what} has no key `{key.text}`"
            report.error("unknown-key", message, key, did_you_mean(key.text, known))
    return result


def entries(report: DiagnosticCollector, node: Node, what: str) -> list[Field]:
    """Every pair of a mapping whose keys are the author's own names."""
    if isinstance(node, MapNode):
        return [Field(key, value) for key, value in node.pairs]
    wrong(report, node, what, "a mapping")
    return []


def one_or_more(node: Node) -> Sequence[Node]:
    """The items of a list; a value that stands alone is its own list."""
    return node.items if isinstance(node, ListNode) else (node,)


def missing(report: DiagnosticCollector, at: Positioned, key: str, what: str) -> None:
    report.error("missing-key", f"{what} needs `{key}`", at)


def text(report: DiagnosticCollector, node: Node, what: str) -> str:
    value = node.value if isinstance(node, ScalarNode) else None
    if isinstance(value, str):
        return value
    help = "" if value is None else "put it in quotes"
    if isinstance(node, MapNode):
        help = "text that starts with `{` needs quotes"
    wrong(report, node, what, "text", help)
    return ""


def optional_text(report: DiagnosticCollector, result: Fields, key: str) -> str:
    return text(report, result[key].value, f"`{key}`") if key in result else ""


def worded(report: DiagnosticCollector, node: Node, what: str) -> str:
    """A text, or a mapping of languages to texts: ``{en: …, zh: …}``."""
    if not isinstance(node, MapNode) or not any(item.text in LANGUAGES for item, _ in node.pairs):
        return text(report, node, what)
    read = fields(report, node, LANGUAGES, what)
    key = what.strip("`")
    return Translated({item: text(report, read[item].value, f"`{key}.{item}`") for item in read})


def flag(report: DiagnosticCollector, node: Node, what: str) -> bool:
    if isinstance(node, ScalarNode) and isinstance(node.value, bool):
        return node.value
    wrong(report, node, what, "`true` or `false`")
    return False


def constant(report: DiagnosticCollector, node: Node, what: str) -> Scalar:
    if not isinstance(node, ScalarNode):
        wrong(report, node, what, "text, a number, `true`, `false` or `null`")
        return None
    if not node.style and is_surprising(node.text):
        message = f"`{node.text}` reads differently in different YAML tools"
        help = "put text in quotes; write numbers in decimal and truth as `true` or `false`"
        report.error("ambiguous-value", message, node, help)
    return node.value


def identifier(report: DiagnosticCollector, node: ScalarNode, what: str) -> str | None:
    """The key as a name, or ``None`` after a diagnostic."""
    if is_identifier(node.text):
        return node.text
    bad_identifier(report, node, node.text, what)
    return None


def bad_identifier(report: DiagnosticCollector, at: Positioned, name: str, what: str) -> None:
    if name in RESERVED:
        message = f"`{name}` is a constant and cannot name {what}"
        report.error("bad-identifier", message, at)
        return
    near = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    help = f"for example `{near}`" if is_identifier(near) else ""
    message = (
        f"`{name}` cannot name {what}: use letters, digits and `_`, and don't start with a digit"
    )
    report.error("bad-identifier", message, at, help)


def reserved(report: DiagnosticCollector, at: Positioned, name: str, so: str) -> None:
    report.error("reserved-name", f"`{name}` means the evidence in a verdict, so {so}", at)


def unbound_placeholders(
    report: DiagnosticCollector, node: Node, template: str, known: Collection[str], problem: str
) -> None:
    """Report the placeholders that aren't known names; ``problem`` completes "`{name}` is"."""
    for name in placeholders(template):
        if name not in known:
            message = f"`{{{name}}}` is {problem}"
            report.error("unbound-placeholder", message, node, did_you_mean(name, known))


def unknown(
    report: DiagnosticCollector,
    at: Positioned,
    kind: str,
    name: str,
    known: Iterable[str],
    otherwise: str = "",
) -> None:
    """``otherwise`` is the help where no known name is near."""
    help = did_you_mean(name, known)
    if otherwise and not help.startswith("did you mean"):
        help = otherwise
    report.error(f"unknown-{kind}", f"there is no {kind} `{name}`", at, help)
