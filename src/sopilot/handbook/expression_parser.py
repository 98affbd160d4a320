"""Parser of expressions: the subset of CEL that handbooks use.

    a.b[0] == 'x' && (n + 1 < limit || !(k in ['p', 'q'])) ? items.exists(i, i.n > 2) : has(a.c)

Literals, names, fields, indexing, calls, methods, the macros of ``MACROS`` and ``has``, the
operators of ``BINARY``, ``!``, ``-``, ``&&``, ``||`` and ``? :``. Comments start with ``//``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sopilot.handbook.grammar import SyntaxProblem
from sopilot.handbook.operators import Undecided, within_range

LONGEST = 10_000
"""Characters in an expression. The parser is linear, but people can't audit more than that."""

DEEPEST = 120
"""Nested parts in an expression, which the evaluator walks recursively."""

MACROS = frozenset({"all", "exists", "exists_one", "map", "filter"})

BINARY = (
    ("==", "!=", "<", "<=", ">", ">=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators by precedence, the loosest first."""


@dataclass(frozen=True, slots=True)
class Node:
    """``kind`` is ``literal``, ``name``, ``field``, ``has``, ``index``, ``list``, ``map_of``,
    ``call``, a macro, ``?`` or an operator; ``value`` is the literal's value or a name."""

    kind: str
    at: int
    parts: tuple[Node, ...] = ()
    value: object = None
    depth: int = 1


_TOKEN = re.compile(
    r"""(?P<space>(?:\s|//[^\n]*)+)
    |(?P<text>[rR]?(?:'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
    |(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.\d+|\d+|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[^`\n]*`)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE,
)

_RAW_TEXT = re.compile(r"""[rR](?:'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|'[^'\n]*'|"[^"\n]*")""")

_ESCAPE = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)

_NAMED_ESCAPES = dict(zip("abfnrtv\\'\"`?", "\a\b\f\n\r\t\v\\'\"`?", strict=True))
_WORDS = {"and": "&&", "or": "||", "not": "!"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse(text: str) -> Node:
    """Raises ``SyntaxProblem``."""
    if len(text) > LONGEST:
        raise SyntaxProblem(f"it is longer than {LONGEST} characters", 0)
    if "\0" in text:
        raise SyntaxProblem("a string has a NUL character in it", 0)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise SyntaxProblem("it isn't valid Unicode", 0)
    parser = _Parser([*_tokens(text), _Token("end", "", len(text))])
    try:
        node = parser.expression()
    except RecursionError:
        raise SyntaxProblem("it is nested too deeply", 0) from None
    parser.expect("")
    return node


def walk(node: Node) -> Iterator[Node]:
    yield node
    for part in node.parts:
        yield from walk(part)


def free_names(node: Node) -> frozenset[str]:
    """The variables that it reads, without those that its macros bind."""
    if node.kind == "name":
        return frozenset({str(node.value)})
    if node.kind in MACROS:
        target, *bodies = node.parts
        bound = frozenset({str(node.value)})
        return free_names(target).union(*(free_names(body) - bound for body in bodies))
    return frozenset().union(*map(free_names, node.parts))


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _RAW_TEXT.match(text, at) or _TOKEN.match(text, at)
        if match is None:
            sign = text[at]
            if sign in "=&|":
                help = f"did you mean `{sign * 2}`?"
                raise SyntaxProblem(f"`{sign}` isn't an operator", at, help)
            if sign in "'\"":
                raise SyntaxProblem("a string isn't closed", at)
            raise SyntaxProblem(f"unexpected `{sign}`", at)
        kind = match.lastgroup or "text"
        if kind != "space":
            yield _Token(kind, match[0], at)
        at = match.end()


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._open = 0

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        self._next += 1
        return token

    def _is(self, *signs: str) -> bool:
        token = self._token
        return token.kind in ("sign", "word") and token.text in signs

    def expect(self, sign: str) -> _Token:
        if self._token.text == sign and self._token.kind in ("sign", "end"):
            return self._take()
        raise self._unexpected()

    def _unexpected(self) -> SyntaxProblem:
        token = self._token
        if token.kind == "end":
            return SyntaxProblem("the expression ends too early", token.at)
        operator = _WORDS.get(token.text)
        help = f"did you mean `{operator}`?" if operator else ""
        return SyntaxProblem(f"unexpected `{token.text}`", token.at, help)

    def _node(self, kind: str, at: int, *parts: Node, value: object = None) -> Node:
        depth = 1 + max((part.depth for part in parts), default=0)
        if depth > DEEPEST:
            raise SyntaxProblem("it is nested too deeply", at)
        return Node(kind, at, parts, value, depth)

    def expression(self) -> Node:
        self._open += 1
        if self._open > DEEPEST:
            raise SyntaxProblem("it is nested too deeply", self._token.at)
        condition = self._disjunction()
        if self._is("?"):
            at = self._take().at
            then = self._disjunction()
            self.expect(":")
            condition = self._node("?", at, condition, then, self.expression())
        self._open -= 1
        return condition

    def _disjunction(self) -> Node:
        return self._joined("||", lambda: self._joined("&&", self._binary))

    def _joined(self, sign: str, part: Callable[[], Node]) -> Node:
        parts, at = [part()], self._token.at
        while self._is(sign):
            self._take()
            parts.append(part())
        return parts[0] if len(parts) == 1 else self._node(sign, at, *parts)

    def _binary(self, level: int = 0) -> Node:
        if level == len(BINARY):
            return self._unary()
        left = self._binary(level + 1)
        while self._is(*BINARY[level]):
            operator = self._take()
            left = self._node(operator.text, operator.at, left, self._binary(level + 1))
        return left

    def _unary(self) -> Node:
        signs = []
        while self._is("!", "-"):
            signs.append(self._take())
        negative = bool(signs) and signs[-1].text == "-" and self._token.kind == "number"
        node = self._member(negative=negative)
        for sign in reversed(signs[: len(signs) - negative]):
            parts = (Node("literal", sign.at, value=0), node) if sign.text == "-" else (node,)
            node = self._node(sign.text, sign.at, *parts)
        return node

    def _member(self, *, negative: bool) -> Node:
        node = self._primary(negative=negative)
        while self._is(".", "["):
            sign = self._take()
            if sign.text == "[":
                node = self._node("index", sign.at, node, self.expression())
                self.expect("]")
                continue
            if self._token.kind not in ("word", "quoted"):
                raise self._unexpected()
            name = self._take()
            if name.kind == "word" and self._is("("):
                node = self._method(node, name)
            else:
                node = self._node("field", name.at, node, value=name.text.strip("`"))
        return node

    def _method(self, target: Node, name: _Token) -> Node:
        arguments = self._arguments(")")
        if name.text not in MACROS:
            return self._node("call", name.at, target, *arguments, value=f".{name.text}")
        wanted = (2, 3) if name.text == "map" else (2,)
        if len(arguments) not in wanted or arguments[0].kind != "name":
            message = f"`{name.text}` takes a name and an expression"
            raise SyntaxProblem(message, name.at, f"write `items.{name.text}(item, …)`")
        return self._node(name.text, name.at, target, *arguments[1:], value=arguments[0].value)

    def _arguments(self, end: str) -> list[Node]:
        self._take()
        arguments: list[Node] = []
        while not self._is(end):
            arguments.append(self.expression())
            if end == "}":
                self.expect(":")
                arguments.append(self.expression())
            if not self._is(","):
                break
            self._take()
        self.expect(end)
        return arguments

    def _primary(self, *, negative: bool) -> Node:
        token = self._token
        if token.kind == "number":
            return self._node("literal", token.at, value=_number(self._take(), negative))
        if token.kind == "text":
            return self._node("literal", token.at, value=_text(self._take()))
        if self._is("("):
            self._take()
            inner = self.expression()
            self.expect(")")
            return inner
        if self._is("["):
            return self._node("list", token.at, *self._arguments("]"))
        if self._is("{"):
            return self._node("map_of", token.at, *self._arguments("}"))
        if token.kind != "word" or token.text in ("in", *_WORDS):
            raise self._unexpected()
        self._take()
        if token.text in ("true", "false"):
            return self._node("literal", token.at, value=token.text == "true")
        if token.text == "null":
            return self._node("null", token.at)
        if not self._is("("):
            return self._node("name", token.at, value=token.text)
        arguments = self._arguments(")")
        if token.text != "has":
            return self._node("call", token.at, *arguments, value=token.text)
        if len(arguments) != 1 or arguments[0].kind != "field":
            raise SyntaxProblem("`has` takes a field", token.at, "write `has(result.field)`")
        return self._node("has", token.at, *arguments[0].parts, value=arguments[0].value)


def _number(token: _Token, negative: bool) -> int | float:
    text = token.text
    if text[:2] in ("0x", "0X"):
        number: int | float = int(text, 16)
    else:
        number = int(text) if text.isdigit() else float(text)
    try:
        return within_range(-number if negative else number)
    except Undecided as problem:
        raise SyntaxProblem(str(problem), token.at) from None


def _text(token: _Token) -> str:
    raw = token.text[0] in "rR"
    quoted = token.text[raw:]
    quotes = 3 if quoted[:3] in ("'''", '"""') else 1
    inner = quoted[quotes:-quotes]

    def unescaped(escape: re.Match[str]) -> str:
        short, four, eight, octal, sign = escape.groups()
        if sign is not None and sign not in _NAMED_ESCAPES:
            raise SyntaxProblem(f"a string has the unknown escape `\\{sign}`", token.at)
        if sign is not None:
            return _NAMED_ESCAPES[sign]
        code = int(octal, 8) if octal else int(short or four or eight, 16)
        if code == 0:
            raise SyntaxProblem("a string has a NUL character in it", token.at)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise SyntaxProblem("a string has an escape that isn't a character", token.at)
        return chr(code)

    return inner if raw else _ESCAPE.sub(unescaped, inner)
