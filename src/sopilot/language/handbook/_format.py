"""A handbook's layout, normalised; comments, key order and meaning stay.

Works on the scanner's tokens rather than on a tree, so everything that is not
layout is copied, never rebuilt: block collections are indented by two, gaps
between tokens on one line become what the language's own examples use, runs
of blank lines become one.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from sopilot.language.diagnostics import InternalBug, UserMistake
from sopilot.language.handbook._layout import Layout, Line
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.fields import wrong
from sopilot.language.handbook.nodes import MapNode
from sopilot.language.handbook.yaml_nodes import LOADER, parse_nodes

_EXOTIC_BREAK = re.compile("[\x85\u2028\u2029]")


def format_handbook(text: str, source: str = "<input>") -> str:
    """The text in normal form; ``UserMistake`` when it is not YAML that the reader takes.

    A file with line breaks other than LF and CRLF is returned as it is.
    """
    report = DiagnosticCollector(source)
    root = parse_nodes(text, report)
    if root is not None and not isinstance(root, MapNode):
        wrong(report, root, "a handbook", "a mapping")
    if report.failed:
        raise UserMistake(report.diagnostics())
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if _EXOTIC_BREAK.search(text):
        return text
    text = text if text.endswith("\n") else text + "\n"
    formatted = _assemble(Layout(text).lines())
    try:
        same = _content(formatted) == _content(text)
    except yaml.YAMLError:
        same = False
    if not same:
        raise InternalBug(f"formatting `{source}` would change what it says")
    return formatted


def _assemble(lines: list[Line]) -> str:
    done: list[str] = []
    blank = 0
    for line in lines:
        if not line.text and not line.fixed:
            blank += 1
            continue
        if done and blank:
            done.append("")
        done.append(line.text)
        blank = 0
    return "\n".join(done) + "\n"


def _content(text: str) -> list[tuple[object, ...]]:
    """Everything the parser hears; quotes of one kind or the other say the same."""
    heard: list[tuple[object, ...]] = []
    event: Any
    for event in yaml.parse(text, Loader=LOADER):
        style = getattr(event, "style", None) or ""
        plain = style == "" if isinstance(event, yaml.ScalarEvent) else None
        heard.append((type(event).__name__, getattr(event, "value", None), plain))
    return heard
