"""YAML text → nodes with positions, strictly.

Reads parser events, never objects: no tag is constructed, no alias expanded,
and depth is counted before anything recurses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from sopilot.language.handbook._flow_calls import join_items, join_pairs
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.nodes import ListNode, MapNode, Node, ScalarNode, Spot

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
                message = "an escape names half a character, which is not valid Unicode"
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
                message = "a file is one YAML document, and here a second one starts"
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
        return None  # what an alias stands for is unknown, so more would be guessing
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
        help = "text with `: ` inside needs quotes around the whole"
    elif "(" in line and re.search("[\"'].*\\)", line):
        help = "inside brackets, a call with a quoted argument needs quotes around the whole"
    elif "flow" in (error.context or "") and re.search(r"\w\[\d+\]", line):
        help = "inside brackets or braces, a path with a position like `[0]` needs quotes"
    elif error.context and "block" in error.context:
        help = "what belongs together starts in the same column: compare with the lines above"
    context = f" {error.context}" if error.context else ""
    report.error("yaml-syntax", _worded(problem + context), spot, help)


def _worded(problem: str) -> str:
    problem = re.sub(r"[^\x20-\x7e\xa0-\uffff]", " ", problem.replace("'", "`"))
    return problem[:1].lower() + problem[1:]
