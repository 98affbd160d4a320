"""YAML text → nodes with positions, strictly; plain values → YAML text.

Reads parser events, never objects: no tag is constructed, no alias expanded, and depth is counted
before anything recurses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from sopilot.handbook import fields
from sopilot.handbook.nodes import (
    ListNode,
    MapNode,
    Node,
    ScalarNode,
    Spot,
    is_surprising,
    join_items,
    join_pairs,
    resolve,
)
from sopilot.messages.diagnostic import DiagnosticCollector, Place
from sopilot.values.json import JSON

_PLAIN = re.compile(r"[A-Za-z_(][^\x00-\x1f\x22\x27\x5c\x60\x7f-\xa0\u2028\u2029\ufeff]*")
_ESCAPED = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")

Value = str | list["Value"] | dict[str, "Value"]
"""Input of the emitter: ready-made scalars, lists and mappings."""


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
        return "{" + ", ".join(f"{quoted(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(item) for item in value) + "]"
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


LARGEST = 2_000_000
DEEPEST = 64
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # YAML 1.1, 5.1
)

_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet."""

    is_map: bool
    flow: bool
    line: int
    column: int
    children: list[Node] = field(default_factory=list)


def spot_of(text: str, offset: int) -> Spot:
    before = text[:offset]
    breaks = list(_LINE_BREAK.finditer(before))
    return Spot(len(breaks) + 1, offset - (breaks[-1].end() if breaks else 0) + 1)


def parse_nodes(text: str, report: DiagnosticCollector, *, largest: int = LARGEST) -> Node | None:
    """The document's root, or ``None`` with the reason reported."""
    text = text.removeprefix("\ufeff")
    if len(text) > largest:
        message = f"the file has {len(text)} characters; at most {largest} are read"
        report.error("file-too-large", message, Spot(1, 1))
        return None
    bad = _UNPRINTABLE.search(text)
    if bad:
        message = f"the character U+{ord(bad.group()):04X} is not allowed in YAML"
        report.error("control-character", message, spot_of(text, bad.start()))
        return None
    try:
        return _build(yaml.parse(text, Loader=LOADER), report)
    except yaml.MarkedYAMLError as error:
        _report_syntax(error, text, report)
    except yaml.YAMLError as error:
        report.error("yaml-syntax", _worded(str(error).split("\n", 1)[0]), Spot(1, 1))
    return None


def _build(events: Iterator[Any], report: DiagnosticCollector) -> Node | None:
    open_nodes: list[_Open] = []
    root: Node | None = None
    documents = 0
    aliased: set[str] = set()
    event: Any
    for event in events:
        node: Node
        mark, after = event.start_mark, event.end_mark
        if isinstance(event, yaml.NodeEvent):
            spot = Spot(mark.line + 1, mark.column + 1)
            _refuse_references(event, spot, report)
        if isinstance(event, yaml.ScalarEvent):
            style = event.style or ""
            if _SURROGATE.search(event.value):  # only an escape can bring one in
                message = "an escape is half of a surrogate pair, which isn't valid Unicode"
                report.error("control-character", message, spot)
            start, end = mark.index, after.index
            # The last line break of a block scalar is layout, not content.
            value = event.value.rstrip("\n") if style in ("|", ">") else event.value
            node = ScalarNode(value, style, spot.line, spot.column, start, end)
        elif isinstance(event, yaml.AliasEvent):
            _refuse_alias(event.anchor or "", spot, aliased, report)
            node = ScalarNode("", "", spot.line, spot.column, mark.index, mark.index)
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(open_nodes) >= DEEPEST:
                report.error("nested-too-deep", f"nested deeper than {DEEPEST} levels", spot)
                return None
            is_map = isinstance(event, yaml.MappingStartEvent)
            open_nodes.append(_Open(is_map, bool(event.flow_style), spot.line, spot.column))
            continue
        elif isinstance(event, yaml.CollectionEndEvent):
            node = _close(open_nodes.pop(), report)
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                message = "a file must be one YAML document; a second document starts here"
                report.error("several-documents", message, Spot(mark.line + 1, mark.column + 1))
                return None
            continue
        else:
            continue
        if open_nodes:
            open_nodes[-1].children.append(node)
        else:
            root = node
    if aliased:
        return None  # without the value of an alias, further diagnostics would be guesses
    if root is None or (isinstance(root, ScalarNode) and root.is_empty):
        report.error("empty-file", "the file has no content", Spot(1, 1))
        return None
    return root


def _refuse_references(event: Any, spot: Spot, report: DiagnosticCollector) -> None:
    if event.anchor is not None and not isinstance(event, yaml.AliasEvent):
        message = f"the anchor `&{event.anchor}` is not allowed; there are no aliases here"
        report.error("yaml-anchor", message, spot)
    tag = getattr(event, "tag", None)
    if tag is not None:
        shown = tag.replace("tag:yaml.org,2002:", "!!")
        report.error("yaml-tag", f"the tag `{shown}` is not allowed", spot)


def _refuse_alias(name: str, spot: Spot, aliased: set[str], report: DiagnosticCollector) -> None:
    """Once a name: a file that aliases, aliases a lot."""
    if name not in aliased:
        aliased.add(name)
        message = f"the alias `*{name}` is not allowed; write the value out"
        report.error("yaml-alias", message, spot)


def _close(opened: _Open, report: DiagnosticCollector) -> Node:
    if not opened.is_map:
        items = join_items(opened.children) if opened.flow else opened.children
        return ListNode(tuple(items), opened.line, opened.column)
    children = opened.children
    flat = list(zip(children[::2], children[1::2], strict=True))
    if opened.flow:
        flat = join_pairs(flat)
    pairs: dict[str, tuple[ScalarNode, Node]] = {}
    for key, value in flat:
        if not isinstance(key, ScalarNode):
            report.error("bad-key", "a key must be text, not a list or a mapping", key)
        elif key.text in pairs:
            first = pairs[key.text][0]
            message = f"`{key.text}` is already given on line {first.line}"
            report.error("duplicate-key", message, key)
        else:
            pairs[key.text] = (key, value)
    return MapNode(tuple(pairs.values()), opened.line, opened.column)


def _report_syntax(error: yaml.MarkedYAMLError, text: str, report: DiagnosticCollector) -> None:
    mark = error.problem_mark or error.context_mark
    spot = Spot(mark.line + 1, mark.column + 1) if mark else Spot(1, 1)
    problem = error.problem or "cannot be read"
    lines = text.split("\n")
    line = lines[spot.line - 1] if spot.line <= len(lines) else ""
    if "'\\t'" in problem or "tab" in problem or line[: spot.column].strip(" ") == "\t":
        help = "indent with spaces"
        report.error("tab-indentation", "a tab cannot indent YAML", spot, help)
        return
    help = ""
    if re.search(r":\s+\{.*\}\s*\S", line):
        help = "text that starts with `{` needs quotes around the whole"
    elif "mapping values" in problem:
        help = "quote the whole text if it contains `: `"
    elif "(" in line and re.search("[\"'].*\\)", line):
        help = "inside brackets, quote the whole call if it has a quoted argument"
    elif "flow" in (error.context or "") and re.search(r"\w\[\d+\]", line):
        help = "inside brackets or braces, quote a path with a position like `[0]`"
    elif error.context and "block" in error.context:
        help = "lines that belong together start in the same column: compare with the lines above"
    context = f" {error.context}" if error.context else ""
    report.error("yaml-syntax", _worded(problem + context), spot, help)


def _worded(problem: str) -> str:
    problem = re.sub(r"[^\x20-\x7e\xa0-\uffff]", " ", problem.replace("'", "`"))
    return problem[:1].lower() + problem[1:]


def locate_requirement(text: str, source: str, procedure: str, predicate: str = "") -> Place:
    """The place where ``procedure`` first names ``predicate``, else that of the procedure.

    A text that is not YAML has no such place: then only the source and the path are known.
    """
    value = child(child(parse_nodes(text, DiagnosticCollector(source)), "procedures"), procedure)
    if value is None:
        return Place(source, path=f"procedures.{procedure}")
    named = re.compile(rf"\b{re.escape(predicate)}\b")
    for item in scalars(child(value, "requires")):
        match = named.search(item.text) if predicate else None
        if match:
            spot = item.spot(match.start())
            return Place(source, spot.line, spot.column)
    return Place(source, value.line, value.column)


def locate(text: str, source: str, *path: str) -> Place:
    """The place of the key at a path such as ``actions``, ``login``, ``input``, ``user``. A
    predicate's key is its declaration."""
    key: ScalarNode | None = None
    node = parse_nodes(text, DiagnosticCollector(source))
    for name in path:
        pairs = node.pairs if isinstance(node, MapNode) else ()
        named = re.compile(rf"\s*{re.escape(name)}\b")
        key, node = next((pair for pair in pairs if named.match(pair[0].text)), (None, None))
    return Place(source, key.line, key.column) if key else Place(source, path=".".join(path))


def child(node: Node | None, key: str) -> Node | None:
    """The value under a key of a mapping."""
    if not isinstance(node, MapNode):
        return None
    return next((value for name, value in node.pairs if name.text == key), None)


def scalars(node: Node | None) -> Iterator[ScalarNode]:
    """Every value inside of it, in the order of the source."""
    if isinstance(node, ScalarNode):
        yield node
    elif node is not None:
        parts = node.items if isinstance(node, ListNode) else [value for _, value in node.pairs]
        for part in parts:
            yield from scalars(part)


def json_value(report: DiagnosticCollector, node: Node, what: str) -> JSON:
    """Depth is bounded by the parser, so recursion is safe."""
    if isinstance(node, ScalarNode):
        return fields.constant(report, node, what)
    if isinstance(node, ListNode):
        return [json_value(report, item, what) for item in node.items]
    for key, value in node.pairs:
        if isinstance(value, ScalarNode) and value.value is None and not value.text:
            message = f"`{key.text}` has no value"
            help = "inside braces, text with a comma needs quotes; write `null` for no value"
            report.warning("empty-value", message, key, help)
    return {key.text: json_value(report, value, what) for key, value in node.pairs}
