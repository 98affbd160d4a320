"""Normalise the layout of a handbook's YAML; comments, key order and meaning stay.

Works on the scanner's tokens rather than on a tree, so everything that isn't layout is copied,
never rebuilt. Block collections are indented by two, gaps between tokens on one line become
those of the language's own examples, and runs of blank lines become one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import yaml

from sopilot.handbook.fields import wrong
from sopilot.handbook.nodes import MapNode
from sopilot.handbook.yaml import LOADER, parse_nodes
from sopilot.messages.diagnostic import DiagnosticCollector
from sopilot.messages.errors import InternalBug, UserMistake

_BRACKET_OPEN = (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)
_BRACKET_CLOSE = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)
_BLOCK_OPEN = (yaml.BlockSequenceStartToken, yaml.BlockMappingStartToken)
_SIMPLE_SINGLE_QUOTED = re.compile(r"'[^'\"\\\n]*'")


@dataclass(slots=True)
class _Block:
    """An open block collection: where it stood and where it will stand."""

    is_list: bool
    old: int
    new: int
    indentless: bool = False


class Layout:
    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._tokens: list[Any] = list(yaml.scan(text, Loader=LOADER))
        self._text = text
        self._indent: dict[int, int] = {}
        self._shift: dict[int, int] = {}
        # Lines that are content (of a scalar that spans lines), even when blank.
        self._fixed: set[int] = set()
        self._ends_inside: set[int] = set()
        self._edits: dict[int, list[tuple[int, int, str]]] = {}
        self._content_end: dict[int, int] = {}
        self._blocks: list[_Block] = []
        self._brackets = 0
        self._walk()
        self._gaps()

    # --- where lines start ---------------------------------------------------------

    def _walk(self) -> None:
        for token in self._tokens:
            self._open_or_close(token)
            if token.end_mark.index > token.start_mark.index:
                if isinstance(token, _BRACKET_CLOSE):
                    self._brackets -= 1
                self._place(token)
                if isinstance(token, _BRACKET_OPEN):
                    self._brackets += 1

    def _open_or_close(self, token: Any) -> None:
        top = self._blocks[-1] if self._blocks else None
        column = token.start_mark.column
        if isinstance(token, _BLOCK_OPEN):
            is_list = isinstance(token, yaml.BlockSequenceStartToken)
            self._blocks.append(_Block(is_list, column, top.new + 2 if top else 0))
        elif isinstance(token, yaml.BlockEndToken):
            if self._blocks.pop().indentless:
                self._blocks.pop()
        elif self._brackets:
            return
        elif isinstance(token, yaml.BlockEntryToken) and top and not top.is_list:
            self._blocks.append(_Block(True, column, top.new + 2, indentless=True))
        elif isinstance(token, yaml.KeyToken | yaml.ValueToken) and top and top.indentless:
            self._blocks.pop()

    def _place(self, token: Any) -> None:
        first, last = token.start_mark.line, token.end_mark.line
        if first not in self._indent and first not in self._fixed:
            self._indent[first] = self._column(token)
        if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
            self._place_block_scalar(token)
            return
        inner = self._base() + 2 + 2 * self._brackets
        for line in range(first + 1, last + 1):
            self._indent[line] = inner
            self._fixed.add(line)
        self._ends_inside.update(range(first, last))
        self._content_end[last] = token.end_mark.column

    def _place_block_scalar(self, token: Any) -> None:
        top = self._blocks[-1] if self._blocks else None
        shift = top.new - top.old if top else 0
        first = token.start_mark.line
        header = self._lines[first][token.start_mark.column :]
        keeps = "+" in header.split("#", 1)[0]
        end = token.end_mark.line + (1 if token.end_mark.column else 0)
        end = min(end, len(self._lines))
        if not keeps:
            # Spaces beyond the content's indentation are content, even on the last lines.
            margin = top.old + 1 if top else 0
            while end > first + 1 and not self._lines[end - 1].strip(" "):
                if len(self._lines[end - 1]) > margin:
                    break
                end -= 1
        for line in range(first + 1, end):
            self._shift[line] = shift
            self._fixed.add(line)
        self._content_end[first] = token.start_mark.column + len(header.split(" ", 1)[0])

    def _base(self) -> int:
        return self._blocks[-1].new if self._blocks else -2

    def _column(self, token: Any) -> int:
        """Where a line goes that starts with this token."""
        if self._brackets or isinstance(token, _BRACKET_CLOSE):
            return self._base() + 2 + 2 * self._brackets
        if isinstance(token, yaml.DocumentStartToken | yaml.DocumentEndToken | yaml.DirectiveToken):
            return 0
        top = self._blocks[-1] if self._blocks else None
        if top is None:
            return 0
        marker = isinstance(token, yaml.BlockEntryToken | yaml.KeyToken | yaml.ValueToken)
        is_key = not top.is_list and token.start_mark.column == top.old
        return top.new if marker or is_key else top.new + 2

    # --- gaps inside a line --------------------------------------------------------

    def _gaps(self) -> None:
        visible = [item for item in self._tokens if item.end_mark.index > item.start_mark.index]
        for left, right in pairwise(visible):
            if left.end_mark.line != right.start_mark.line:
                continue
            if isinstance(left, yaml.ScalarToken) and left.style in ("|", ">"):
                continue
            start, end = left.end_mark.column, right.start_mark.column
            old = self._lines[left.end_mark.line][start:end]
            new = _gap(left, right, old)
            if new != old and not old.strip(" \t"):
                self._edits.setdefault(left.end_mark.line, []).append((start, end, new))
        for token in visible:
            if isinstance(token, yaml.ScalarToken) and token.style == "'":
                start, end = token.start_mark, token.end_mark
                written = self._text[start.index : end.index]
                if _SIMPLE_SINGLE_QUOTED.fullmatch(written):
                    edit = (start.column, end.column, f'"{written[1:-1]}"')
                    self._edits.setdefault(start.line, []).append(edit)

    # --- the result ----------------------------------------------------------------

    def formatted(self) -> str:
        done: list[str] = []
        blank = False
        for at in range(len(self._lines)):
            text = self._line(at)
            if not text and at not in self._fixed:
                blank = True
                continue
            done += ["", text] if done and blank else [text]
            blank = False
        return "\n".join(done) + "\n"

    def _line(self, at: int) -> str:
        text = self._lines[at]
        if at in self._shift:
            return _shifted(text, self._shift[at])
        if not text.strip(" \t"):
            return ""
        if at not in self._indent:
            return " " * self._comment_indent(at) + text.strip(" \t")
        if at not in self._ends_inside:
            text = self._with_comment(at, text)
        for start, end, new in sorted(self._edits.get(at, []), reverse=True):
            text = text[:start] + new + text[end:]
        return " " * self._indent[at] + text.lstrip(" \t")

    def _with_comment(self, at: int, text: str) -> str:
        end = self._content_end.get(at, 0)
        rest = text[end:].strip(" \t")
        return text[:end] + (f"  {rest}" if rest.startswith("#") else text[end:].rstrip(" \t"))

    def _comment_indent(self, at: int) -> int:
        """With the line below it, or with the block above that it closes."""
        column = self._old_indent(at)
        below = next((item for item in range(at + 1, len(self._lines)) if self._starts(item)), None)
        above = next((item for item in range(at - 1, -1, -1) if self._starts(item)), None)
        if below is None:
            return self._indent[above] if above is not None and column > 0 else 0
        if above is None or self._indent[below] >= self._indent[above]:
            return self._indent[below]
        return self._indent[above if column > self._old_indent(below) else below]

    def _starts(self, at: int) -> bool:
        return at in self._indent and at not in self._fixed

    def _old_indent(self, at: int) -> int:
        return len(self._lines[at]) - len(self._lines[at].lstrip(" \t"))


def _gap(left: Any, right: Any, old: str) -> str:
    if isinstance(left, yaml.ValueToken):
        empty = isinstance(right, (yaml.FlowEntryToken, *_BRACKET_CLOSE))
        return old if empty else " "
    if isinstance(left, yaml.BlockEntryToken | yaml.KeyToken):
        return " "
    if isinstance(left, yaml.FlowEntryToken):
        return "" if isinstance(right, _BRACKET_CLOSE) else " "
    if isinstance(right, yaml.ValueToken):
        ends = (yaml.ScalarToken, *_BRACKET_CLOSE)
        return "" if isinstance(left, ends) else old
    if isinstance(left, _BRACKET_OPEN) or isinstance(right, (yaml.FlowEntryToken, *_BRACKET_CLOSE)):
        return ""
    return old


def _shifted(text: str, shift: int) -> str:
    if shift < 0:
        return text[-shift:]  # a blank line may be shorter than that, and stays blank
    return " " * shift + text if text else ""


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
    formatted = Layout(text).formatted()
    try:
        same = _content(formatted) == _content(text)
    except yaml.YAMLError:
        same = False
    if not same:
        raise InternalBug(f"formatting `{source}` would change what it says")
    return formatted


def _content(text: str) -> list[tuple[object, ...]]:
    """Everything the parser hears; quotes of one kind or the other say the same."""
    heard: list[tuple[object, ...]] = []
    event: Any
    for event in yaml.parse(text, Loader=LOADER):
        style = getattr(event, "style", None) or ""
        plain = style == "" if isinstance(event, yaml.ScalarEvent) else None
        heard.append((type(event).__name__, getattr(event, "value", None), plain))
    return heard
