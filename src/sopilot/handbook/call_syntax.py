"""The small expressions inside a handbook: ``covers(user, 3, "x", to=b)`` and signatures."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from sopilot.handbook.grammar import IDENTIFIER, RESERVED
from sopilot.handbook.nodes import resolve
from sopilot.handbook.requirements import Constant, Name, Origin, Path, Scalar

_SPACE = re.compile(r"\s*")
_IDENTIFIER = re.compile(IDENTIFIER)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'', re.DOTALL)
_NUMBER = re.compile(r"[-+.0-9][A-Za-z0-9_.+-]*")
_STEP = re.compile(rf"\.{IDENTIFIER}|\[[0-9]{{1,6}}\]")
_OPERATOR = re.compile(r"\s*(and|or|&&|\|\|)(\W|$)")


@dataclass(frozen=True, slots=True)
class WrittenArgument:
    """An argument as written; ``offset`` is where it starts in the expression."""

    term: Origin
    keyword: str | None
    offset: int


@dataclass(frozen=True, slots=True)
class WrittenCall:
    name: str
    arguments: tuple[WrittenArgument, ...]


class ExpressionError(Exception):
    """Internal to the reader, which turns it into a diagnostic."""

    def __init__(self, message: str, offset: int, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.help = help


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
    """A name with optional arguments; ``ExpressionError`` when it is something else."""
    cursor = _Cursor(text)
    cursor.skip()
    start = cursor.at
    name = cursor.take(_IDENTIFIER)
    if name is None:
        raise ExpressionError(
            f"expected a name like `logged_in(username)`, found {cursor.seen()}", start
        )
    arguments: list[WrittenArgument] = []
    if cursor.next_is("(") and not cursor.next_is(")"):
        arguments.append(_argument(cursor))
        while not cursor.next_is(")"):
            if not cursor.next_is(","):
                message = f"expected `,` or `)`, found {cursor.seen()}"
                raise ExpressionError(message, cursor.at)
            arguments.append(_argument(cursor))
    cursor.skip()
    if cursor.at < len(text):
        raise ExpressionError(
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
    word = cursor.take(_IDENTIFIER)
    keyword = None
    if word is not None and cursor.next_is("="):
        keyword = word
        cursor.skip()
        return WrittenArgument(_term(cursor), keyword, start)
    cursor.at = start
    return WrittenArgument(_term(cursor), keyword, start)


def _term(cursor: _Cursor) -> Origin:
    start = cursor.at
    word = cursor.take(_IDENTIFIER)
    if word is not None:
        if word in RESERVED:
            return Constant(resolve(word))
        steps = _steps(cursor)
        return Path(word, steps) if steps else Name(word)
    quoted = cursor.take(_QUOTED)
    if quoted is not None:
        return Constant(_unquote(quoted, start))
    number = cursor.take(_NUMBER)
    if number is not None:
        value = resolve(number)
        if isinstance(value, str):
            raise ExpressionError(
                f"`{number}` is not a decimal number", start, "put text in quotes"
            )
        return Constant(value)
    raise ExpressionError(f"expected an argument, found {cursor.seen()}", start)


def _steps(cursor: _Cursor) -> tuple[str | int, ...]:
    """``.key`` and ``[0]`` behind a name."""
    steps: list[str | int] = []
    while (step := cursor.take(_STEP)) is not None:
        steps.append(step[1:] if step[0] == "." else int(step[1:-1]))
    return tuple(steps)


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
        raise ExpressionError(
            f"`{text}` does not name a list and its element", 0, "`read_order.items as item`"
        )
    return (term if isinstance(term, Path) else Path(term.name)), element


def _unquote(quoted: str, start: int) -> str:
    if quoted[0] == "'":
        return quoted[1:-1]
    try:
        text = json.loads(quoted, strict=False)
    except ValueError as error:
        raise ExpressionError(
            f"{quoted} has an unknown escape", start, "escape as in JSON, or use single quotes"
        ) from error
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ExpressionError(f"{quoted} is not valid Unicode", start)
    return str(text)


def parse_signature(text: str) -> WrittenCall:
    """A declaration: a call whose arguments are names only."""
    call = parse_call(text)
    for argument in call.arguments:
        if argument.keyword is not None or not isinstance(argument.term, Name):
            raise ExpressionError(
                "a declaration lists parameter names only", argument.offset, "`name(one, two)`"
            )
    return call


def write_term(term: Origin) -> str:
    if isinstance(term, Path):
        return str(term)
    return term.name if isinstance(term, Name) else write_constant(term.value)


def write_constant(value: Scalar) -> str:
    return json.dumps(value, ensure_ascii=False)
