"""The small expressions inside a handbook: ``covers(user, 3, "x", to=b)`` and signatures."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from sopilot.handbook.grammar import IDENTIFIER, RESERVED, SyntaxProblem
from sopilot.handbook.nodes import resolve
from sopilot.handbook.requirements import Constant, Name, Origin, Path, Scalar

_SPACE = re.compile(r"\s*")
_IDENTIFIER = re.compile(IDENTIFIER)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'', re.DOTALL)
_NUMBER = re.compile(r"[-+.0-9][A-Za-z0-9_.+-]*")
_STEP = re.compile(rf"\.{IDENTIFIER}|\[[0-9]{{1,6}}\]")
_OPERATOR = re.compile(r"\s*(and|or|&&|\|\|)(\W|$)")


class WrittenArgument(NamedTuple):
    """An argument as written; ``offset`` is where it starts in the expression."""

    term: Origin
    keyword: str | None
    offset: int


class WrittenCall(NamedTuple):
    name: str
    arguments: tuple[WrittenArgument, ...]


class _Cursor:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def take(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match.group()

    def next_is(self, sign: str) -> bool:
        self.skip()
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def seen(self) -> str:
        """The text at the cursor, as a message shows it."""
        return f"`{self.text[self.at]}`" if self.at < len(self.text) else "the end"


def parse_call(text: str) -> WrittenCall:
    """A name with optional arguments; ``SyntaxProblem`` when it is something else."""
    cursor = _Cursor(text)
    cursor.skip()
    start = cursor.at
    name = cursor.take(_IDENTIFIER)
    if name is None:
        raise SyntaxProblem(
            f"expected a name like `logged_in(username)`, found {cursor.seen()}", start
        )
    arguments: list[WrittenArgument] = []
    if cursor.next_is("(") and not cursor.next_is(")"):
        arguments.append(_argument(cursor))
        while not cursor.next_is(")"):
            if not cursor.next_is(","):
                message = f"expected `,` or `)`, found {cursor.seen()}"
                raise SyntaxProblem(message, cursor.at)
            arguments.append(_argument(cursor))
    cursor.skip()
    if cursor.at < len(text):
        raise SyntaxProblem(
            f"expected the end of the expression, found {cursor.seen()}",
            cursor.at,
            _advice(text, name, cursor.at),
        )
    return WrittenCall(name, tuple(arguments))


def _advice(text: str, name: str, at: int) -> str:
    if name == "not":
        return f"write `not: {text[at:].strip()}`"
    if _OPERATOR.match(text, at):
        return "write `all: [...]` or `any: [...]` over the parts"
    return ""


def _argument(cursor: _Cursor) -> WrittenArgument:
    cursor.skip()
    start = cursor.at
    keyword = cursor.take(_IDENTIFIER)
    if keyword is not None and cursor.next_is("="):
        cursor.skip()
    else:
        keyword, cursor.at = None, start
    return WrittenArgument(_term(cursor), keyword, start)


def _term(cursor: _Cursor) -> Origin:
    start = cursor.at
    word = cursor.take(_IDENTIFIER)
    if word is not None:
        if word in RESERVED:
            return Constant(resolve(word))
        steps: list[str | int] = []
        while (step := cursor.take(_STEP)) is not None:
            steps.append(step[1:] if step[0] == "." else int(step[1:-1]))
        return Path(word, tuple(steps)) if steps else Name(word)
    quoted = cursor.take(_QUOTED)
    if quoted is not None:
        return Constant(_unquote(quoted, start))
    number = cursor.take(_NUMBER)
    if number is not None:
        value = resolve(number)
        if isinstance(value, str):
            raise SyntaxProblem(f"`{number}` is not a decimal number", start, "put text in quotes")
        return Constant(value)
    raise SyntaxProblem(f"expected an argument, found {cursor.seen()}", start)


def parse_each(text: str) -> tuple[Path, str]:
    """``read_order.items as item``."""
    cursor = _Cursor(text)
    cursor.skip()
    term = _term(cursor)
    cursor.skip()
    word = cursor.take(_IDENTIFIER)
    cursor.skip()
    element = cursor.take(_IDENTIFIER)
    cursor.skip()
    if isinstance(term, Constant) or word != "as" or not element or cursor.at < len(text):
        raise SyntaxProblem(
            f"`{text}` does not name a list and its element", 0, "`read_order.items as item`"
        )
    return (term if isinstance(term, Path) else Path(term.name)), element


def _unquote(quoted: str, start: int) -> str:
    if quoted[0] == "'":
        return quoted[1:-1]
    try:
        text = json.loads(quoted, strict=False)
    except ValueError as error:
        raise SyntaxProblem(
            f"{quoted} has an unknown escape", start, "escape as in JSON, or use single quotes"
        ) from error
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise SyntaxProblem(f"{quoted} is not valid Unicode", start)
    return str(text)


def parse_signature(text: str) -> tuple[str, list[tuple[str, int]]]:
    """A declaration: its name, and its parameters with their offsets."""
    name, arguments = parse_call(text)
    parameters: list[tuple[str, int]] = []
    for term, keyword, offset in arguments:
        if keyword is not None or not isinstance(term, Name):
            message = "a declaration lists parameter names only"
            raise SyntaxProblem(message, offset, "`name(one, two)`")
        parameters.append((term.name, offset))
    return name, parameters


def write_term(term: Origin) -> str:
    if isinstance(term, Path):
        return str(term)
    return term.name if isinstance(term, Name) else write_constant(term.value)


def write_constant(value: Scalar) -> str:
    return json.dumps(value, ensure_ascii=False)
