"""Recalculates a written workbook. It knows the functions that the layout uses.

Written apart from the calculation it checks: it knows cells and formulas only,
in floating point, as a spreadsheet does.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token

from .draft import expand

Scalar = float | str | bool | None
Area = list[Scalar]
_DAY_ZERO = datetime.date(1899, 12, 30)


class CannotCalculate(ValueError):
    """The formula doesn't belong to this layout, or fails as in a spreadsheet."""


def serial(day: datetime.date) -> float:
    """The day's number in a spreadsheet."""
    return float((day - _DAY_ZERO).days)


class Recalculation:
    """``cells`` maps ``Sheet!A1`` to its content: a formula, a number, a date or a text."""

    def __init__(self, cells: Mapping[str, object]) -> None:
        self._cells = cells
        self._values: dict[str, Scalar] = {}
        self._under_way: set[str] = set()

    def value(self, name: str) -> Scalar:
        if name in self._values:
            return self._values[name]
        if name in self._under_way:
            raise CannotCalculate(f"{name} refers to itself")
        self._under_way.add(name)
        content = self._cells.get(name)
        result: Scalar
        if isinstance(content, str) and content.startswith("="):
            sheet = name.rsplit("!", 1)[0]
            result = _Formula(content, sheet, self).result()
        elif isinstance(content, datetime.datetime):
            result = serial(content.date())
        elif isinstance(content, datetime.date):
            result = serial(content)
        elif isinstance(content, bool) or content is None or isinstance(content, str):
            result = content
        elif isinstance(content, int | float):
            result = float(content)
        else:
            raise CannotCalculate(f"{name} holds something else")
        self._under_way.discard(name)
        self._values[name] = result
        return result


class _Formula:
    """Recursive descent over the tokens: comparison, joining, sum, product, sign, operand."""

    def __init__(self, text: str, sheet: str, book: Recalculation) -> None:
        tokens = Tokenizer(text).items
        self._tokens = [token for token in tokens if token.type != Token.WSPACE]
        self._at = 0
        self._sheet = sheet
        self._book = book
        self._text = text

    def result(self) -> Scalar:
        value = self._comparison()
        if self._at != len(self._tokens):
            raise self._problem()
        return _single(value)

    def _comparison(self) -> Scalar | Area:
        left = self._joined()
        while (sign := self._operator("=", "<>", "<", ">", "<=", ">=")) is not None:
            one, other = _single(left), _single(self._joined())
            left = _compare(sign, one, other)
        return left

    def _joined(self) -> Scalar | Area:
        left = self._sum()
        while self._operator("&") is not None:
            left = _spelled(_single(left)) + _spelled(_single(self._sum()))
        return left

    def _sum(self) -> Scalar | Area:
        left = self._product()
        while (sign := self._operator("+", "-")) is not None:
            right = _number(_single(self._product()))
            left = _number(_single(left)) + (right if sign == "+" else -right)
        return left

    def _product(self) -> Scalar | Area:
        left = self._operand()
        while (sign := self._operator("*", "/")) is not None:
            one, other = _number(_single(left)), _number(_single(self._operand()))
            if sign == "/" and other == 0:
                raise CannotCalculate(f"{self._text} divides by zero")
            left = one * other if sign == "*" else one / other
        return left

    def _operand(self) -> Scalar | Area:
        token = self._next()
        if token.type == Token.OP_PRE and token.value == "-":
            return -_number(_single(self._operand()))
        if token.type == Token.PAREN and token.subtype == Token.OPEN:
            value = self._comparison()
            self._next()
            return value
        if token.type == Token.FUNC and token.subtype == Token.OPEN:
            return self._call(token.value.rstrip("(").upper())
        if token.type != Token.OPERAND:
            raise self._problem()
        if token.subtype == Token.NUMBER:
            return float(token.value)
        if token.subtype == Token.TEXT:
            return str(token.value[1:-1]).replace('""', '"')
        if token.subtype != Token.RANGE:
            raise self._problem()
        area = [self._book.value(name) for name in expand(token.value, self._sheet)]
        return area if ":" in token.value else area[0]

    def _call(self, name: str) -> Scalar | Area:
        arguments: list[Scalar | Area] = []
        while not (self._peek().type == Token.FUNC and self._peek().subtype == Token.CLOSE):
            if self._peek().type == Token.SEP:
                self._next()
            arguments.append(self._comparison())
        self._next()
        function = FUNCTIONS.get(name)
        if function is None:
            raise CannotCalculate(f"{self._text} uses {name}")
        return function(*arguments)

    def _operator(self, *signs: str) -> str | None:
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.type == Token.OP_IN and token.value in signs:
                self._at += 1
                return str(token.value)
        return None

    def _peek(self) -> Token:
        if self._at >= len(self._tokens):
            raise self._problem()
        token: Token = self._tokens[self._at]
        return token

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _problem(self) -> CannotCalculate:
        return CannotCalculate(f"{self._text} is not understood")


def _single(value: Scalar | Area) -> Scalar:
    if isinstance(value, list):
        raise CannotCalculate("a range stands where one value is needed")
    return value


def _number(value: Scalar) -> float:
    if value is None:
        return 0.0
    if isinstance(value, str):
        raise CannotCalculate(f"`{value}` is not a number")
    return float(value)


def _numbers(*values: Scalar | Area) -> list[float]:
    found: list[float] = []
    for value in values:
        items = value if isinstance(value, list) else [value]
        found += [float(one) for one in items if isinstance(one, float | int)]
    return found


def _spelled(value: Scalar) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    return "" if value is None else str(value)


def _compare(sign: str, left: Scalar, right: Scalar) -> bool:
    if isinstance(left, str) != isinstance(right, str):
        return sign == "<>"
    one: float | str = left if isinstance(left, str) else _number(left)
    other: float | str = right if isinstance(right, str) else _number(right)
    if isinstance(one, str) and isinstance(other, str):
        one, other = one.lower(), other.lower()
    below = one < other  # type: ignore[operator]  # both are texts or both are numbers
    tests = {"=": one == other, "<>": one != other, "<": below, ">=": not below}
    tests[">"] = not below and one != other
    tests["<="] = not tests[">"]
    return tests[sign]


# --- functions ------------------------------------------------------------------------


def _round(value: Scalar | Area, places: Scalar | Area) -> Scalar:
    # Spreadsheets round what they show of a number, which is fifteen digits of it.
    shown = Decimal(f"{_number(_single(value)):.15g}")
    unit = Decimal(1).scaleb(-int(_number(_single(places))))
    return float(shown.quantize(unit, ROUND_HALF_UP))


def _if(test: Scalar | Area, then: Scalar | Area, otherwise: Scalar | Area) -> Scalar | Area:
    return then if _number(_single(test)) else otherwise


def _lookup(wanted: Scalar | Area, keys: Scalar | Area, values: Scalar | Area) -> Scalar:
    assert isinstance(keys, list)
    assert isinstance(values, list)
    at = _number(_single(wanted))
    fitting = [value for key, value in zip(keys, values, strict=True) if _number(key) <= at]
    if not fitting:
        raise CannotCalculate("LOOKUP finds nothing")
    return fitting[-1]


def _match(wanted: Scalar | Area, keys: Scalar | Area, kind: Scalar | Area) -> Scalar:
    assert isinstance(keys, list)
    assert _single(kind) == 0.0
    for index, key in enumerate(keys, start=1):
        if _compare("=", key, _single(wanted)):
            return float(index)
    raise CannotCalculate("MATCH finds nothing")


def _index(values: Scalar | Area, position: Scalar | Area) -> Scalar:
    assert isinstance(values, list)
    return values[int(_number(_single(position))) - 1]


def _sumproduct(*areas: Scalar | Area) -> Scalar:
    columns = [[_number(one) for one in area] for area in areas if isinstance(area, list)]
    total = 0.0
    for row in zip(*columns, strict=True):
        product = 1.0
        for one in row:
            product *= one
        total += product
    return total


def _countif(area: Scalar | Area, wanted: Scalar | Area) -> Scalar:
    assert isinstance(area, list)
    return float(sum(_compare("=", one, _single(wanted)) for one in area))


FUNCTIONS: Mapping[str, Callable[..., Scalar | Area]] = {
    "SUM": lambda *values: sum(_numbers(*values)),
    "MIN": lambda *values: min(_numbers(*values)),
    "MAX": lambda *values: max(_numbers(*values)),
    "COUNT": lambda *values: float(len(_numbers(*values))),
    "ABS": lambda value: abs(_number(_single(value))),
    "AND": lambda *values: all(_number(_single(one)) for one in values),
    "ROUND": _round,
    "IF": _if,
    "LOOKUP": _lookup,
    "MATCH": _match,
    "INDEX": _index,
    "SUMPRODUCT": _sumproduct,
    "COUNTIF": _countif,
}
