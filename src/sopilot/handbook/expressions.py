"""Verdict expressions: what lets a machine judge a predicate.

The language is CEL, run by its C++ reference implementation, which bounds
recursion and iteration (see ``design/verdicts.md``). A verdict reads JSON
values and answers true or false; it cannot reach anything else.

Expressions: verdicts, conditions and the values of computed arguments.

The process that ``bounded`` asks: a line of JSON in, a line of JSON out.
"""

from __future__ import annotations

import json
import math
import re
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sopilot.handbook import fields
from sopilot.handbook.nodes import Node, ScalarNode, Spot
from sopilot.handbook.operators import (
    FUNCTIONS,
    METHODS,
    NULL_NAME,
    NULL_SIGN,
    PLUS,
    RENAMED,
    STRICT,
    TRUTHS,
    Undecided,
    seen_alike,
    size,
)
from sopilot.handbook.read_calls import call_offset
from sopilot.messages.diagnostic import DiagnosticCollector, did_you_mean
from sopilot.messages.errors import SopilotError
from sopilot.values.json import as_seen
from sopilot.values.patterns import CPU_SECONDS, MEMORY_BYTES, Unbounded, ask

LONGEST = 10_000
"""Characters in a verdict. The parser is linear, but nobody audits more than that."""


CHEAP = 1_000_000
"""What an expression may cost here: its length for every combination of values that its macros
can go through."""


_MACRO = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(")


DEEPEST = 64
"""Nesting of a value that a verdict reads; the library overruns its stack far beyond it."""


_INT64 = 2**63


_GATHERING = rb"(?![\s\S]{0,14}@result)"
"""Not where the first argument is the list that a macro gathers."""


_STRICTLY = "strictly_"
"""Before the name of a function that never guesses."""


_STAND_INS = frozenset({"$dropped", "$ref"})
"""Keys of what stands in a trace for a value that JSON cannot say, or that is withheld."""


_ERROR = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")


_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")


# The checker refuses `1 < 1.5` and `x % 2.5` where the evaluator has an answer.
_MIXED_NUMBERS = re.compile(
    r"no matching overload for '_[-+*/%<>=!]+_' applied to '\((int|double), (int|double)\)'"
    r"|no matching overload for '_%_' applied to '\((dyn|int|double), (dyn|int|double)\)'"
)


_TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*
        |[rRbB]{0,2}(?:'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
        |(?P<null>(?<![\w.])null(?!\w))
        |(?P<word>[A-Za-z_]\w*)""",
    re.VERBOSE,
)


_METHOD_CALL = re.compile(r"(contains|startsWith|endsWith|matches|size)(?=\s*\()")


_FIELD = re.compile(r"\.\s*(?:([A-Za-z_]\w*)\b(?!\s*\()|`([^`\n]*)`)")


_ANSWER = re.compile(r"(?<![\w.])results\s*\.\s*([A-Za-z_]\w*)\b(?!\s*\()")


_OF_AN_ERROR = "*error*"


_NO_FIELDS = "a field is read of a value that has none: a list, a text, a number"


_ESCAPE = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U000([0-9a-fA-F]{5})|([0-7]{3}))"
)


# An operator's name with its length in front of it, or as a whole text.
_OPERATOR_TEXTS = tuple(
    text
    for named, _ in RENAMED
    for text in (named.decode(), *(f"{sign}{named[1:].decode()}{sign}" for sign in "'\""))
)


class VerdictError(SopilotError):
    """A verdict could not be judged: it does not parse, fails on these values, or is not
    true or false."""


@dataclass(frozen=True, slots=True)
class VerdictProblem:
    """``line`` and ``column`` count from 1 inside the expression."""

    message: str
    line: int = 1
    column: int = 1


@lru_cache(maxsize=1)
def _cel() -> Any:
    from cel_expr_python import cel

    return cel


@lru_cache(maxsize=64)
def _environment(names: frozenset[str]) -> Any:
    cel = _cel()
    variables = dict.fromkeys(sorted(names), cel.Type.DYN)
    return cel.NewEnv(variables=variables, extensions=[_own_functions()])


@lru_cache(maxsize=1)
def _own_functions() -> Any:
    cel = _cel()
    either = cel.Type.DYN
    declared = [
        cel.FunctionDecl(
            name,
            [
                cel.Overload(
                    id=f"{name}_of", return_type=either, parameters=[either] * one.arity,
                    impl=one.run,
                )
            ],
        )
        for name, one in FUNCTIONS.items()
    ]  # fmt: skip
    return cel.CelExtension("sopilot", declared)


def _compile(text: str, names: frozenset[str], *, check: bool) -> Any:
    """The compiled expression, or ``RuntimeError`` with the library's error list."""
    if len(text) > LONGEST:
        raise RuntimeError(f"ERROR: <input>:1:1: longer than {LONGEST} characters")
    if _has_operator_text(text):
        raise RuntimeError("ERROR: <input>:1:1: a text is spelled like an operator")
    if _has_nul(text):
        raise RuntimeError("ERROR: <input>:1:1: a text has a NUL character in it")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise RuntimeError("ERROR: <input>:1:1: not valid Unicode")
    return _environment(names).compile(text, disable_check=not check)


def _has_nul(text: str) -> bool:
    """Written or escaped: the library would cut the text there."""
    return "\0" in text or any(
        _unescaped(escape) == "\0" for escape in _ESCAPE.finditer(text.replace("\\\\", ""))
    )


def _has_operator_text(text: str) -> bool:
    """Whether renaming the operators would rename (a part of) a text as well."""
    for token in _TOKEN.finditer(text):
        written = token["skip"]
        if written is None or written.startswith("//"):
            continue
        said = _ESCAPE.sub(_unescaped, written)
        if any(spelled in said for spelled in _OPERATOR_TEXTS):
            return True
    return False


def _unescaped(escape: re.Match[str]) -> str:
    *hexadecimal, octal = escape.groups()
    digits = next((one for one in hexadecimal if one), "")
    return chr(int(digits, 16)) if digits else chr(int(octal, 8))


def _errors(error: RuntimeError) -> list[VerdictProblem]:
    found = [
        VerdictProblem(_plain(message), *_position(int(line), int(column)))
        for line, column, message in _ERROR.findall(str(error))
    ]
    return found or [VerdictProblem(_plain(str(error).split("\n", 1)[0]))]


def _position(line: int, column: int) -> tuple[int, int]:
    """Errors that have no place come as -1, signed or not."""
    return (line, column) if 0 < line <= LONGEST and column > 0 else (1, 1)


def _plain(message: str) -> str:
    """The library's words without status codes and token inventories, lower-case."""
    message = re.sub(r"^[A-Z_]+: |\s*\[[A-Z_]+\]\s*$", "", message.strip())
    message = re.sub(r" \(in container ''\)", "", message)
    message = re.sub(r" expecting (\{.*|<EOF>)$", "", message)
    message = re.sub("applying SELECT to non-message type", _NO_FIELDS, message, flags=re.I)
    message = re.sub(
        r'^key not found in map : "?(.*?)"?$', r"there is no field `\1`", message, flags=re.I
    )
    message = message.replace("'<EOF>'", "the end").replace("'", "`")
    return message[:1].lower() + message[1:]


def _undeclared(text: str, names: frozenset[str]) -> frozenset[str]:
    try:
        _compile(text, names, check=True)
    except RuntimeError as error:
        found = _UNDECLARED.findall(str(error))
        return frozenset(name.lstrip(".").split(".", 1)[0] for name in found)
    return frozenset()


@lru_cache(maxsize=4096)
def free_names(text: str) -> frozenset[str]:
    """The variables an expression reads. Names that a macro binds and functions are not among
    them; an expression that does not parse has none."""
    declared: frozenset[str] = frozenset()
    while not (missing := _undeclared(text, declared)) <= declared:
        declared |= missing  # the library lists its first errors alone, so there may be more
    # What stays unknown once it is declared as a variable is a function.
    return declared - missing


def read_answers(text: str) -> dict[str, int]:
    """The names of answers that an expression reads from ``results``, each with its offset."""
    if "results" not in free_names(text):
        return {}
    plain = _TOKEN.sub(lambda one: " " * len(one[0]) if one["skip"] else one[0], text)
    return {one[1]: one.start(1) for one in reversed([*_ANSWER.finditer(plain)])}


@lru_cache(maxsize=4096)
def _problems(text: str, truth: bool) -> tuple[VerdictProblem, ...]:
    names = free_names(text)
    try:
        compiled = _compile(text, names, check=True)
    except RuntimeError as error:
        return tuple(
            _function_problem(problem)
            for problem in _errors(error)
            if not _MIXED_NUMBERS.search(problem.message.replace("`", "'"))
            and _OF_AN_ERROR not in problem.message  # what follows from another one of these
        )
    kind = str(compiled.return_type())
    if not truth or kind in ("BOOL", "DYN"):
        return ()
    return (VerdictProblem("a verdict must be true or false, and this never is"),)


def _function_problem(problem: VerdictProblem) -> VerdictProblem:
    message = problem.message.replace("undeclared reference to", "unknown function")
    return VerdictProblem(message, problem.line, problem.column)


def parse_verdict(text: str, *, truth: bool = True) -> list[VerdictProblem]:
    """What is wrong with an expression whatever its variables hold; empty when nothing is.
    With ``truth`` it must be true or false.

    Which variables exist is the caller's knowledge: compare with ``free_names``.
    """
    return list(_problems(text, truth))


@lru_cache(maxsize=4096)
def _executable(text: str) -> Any:
    """The expression with its operators replaced by the strict ones of ``strict_operators``.

    The library offers its parsed form as bytes, in which an operator is a name with its
    length; the strict functions have names of the same length. Functions are renamed in the
    text, because a field or a text may have the name of one.
    """
    written = _TOKEN.sub(_strictly, _without_comments(text))
    parsed = _compile(written, frozenset(), check=False).serialize()
    for plain, strict in RENAMED:
        # `map` and `filter` add to a list in place, which only the library's own `+` can.
        gathering = _GATHERING if plain == PLUS else b""
        parsed = re.sub(re.escape(plain) + gathering, strict, parsed)
    return _strict_environment().deserialize(parsed)


def _without_comments(text: str) -> str:
    return _TOKEN.sub(lambda one: " " if one.group().startswith("//") else one.group(), text)


def _strictly(token: re.Match[str]) -> str:
    if token["null"]:
        return NULL_NAME
    if token["word"] and _METHOD_CALL.match(token.string, token.start()):
        return f"{_STRICTLY}{token.group()}"
    return token.group()


@lru_cache(maxsize=1)
def _matcher() -> Any:
    return _compile("text.matches(pattern)", frozenset({"text", "pattern"}), check=False)


def _matches(text: str, pattern: str) -> bool:
    """By the library, whose patterns take linear time."""
    found = _matcher().eval(data={"text": text, "pattern": pattern}).plain_value()
    if not isinstance(found, bool):
        raise Undecided("the pattern is not valid")
    return found


def _text_functions(cel: Any) -> list[Any]:
    either, truth = cel.Type.DYN, cel.Type.BOOL
    return [
        cel.FunctionDecl(
            f"{_STRICTLY}{name}",
            [
                cel.Overload(
                    id=f"{_STRICTLY}{name}_{member}", return_type=kind,
                    parameters=[either] * arity, is_member=member, impl=run,
                )
                for member in ((True, False) if name in ("matches", "size") else (True,))
            ],
        )
        for name, run, kind, arity in (
            *((name, run, truth, 2) for name, run in METHODS.items()),
            ("matches", seen_alike(_matches, "matches"), truth, 2),
            ("size", size, cel.Type.INT, 1),
        )
    ]  # fmt: skip


@lru_cache(maxsize=1)
def _strict_environment() -> Any:
    cel = _cel()
    either = cel.Type.DYN
    functions = [
        cel.FunctionDecl(
            name,
            [cel.Overload(id=f"{name}_any", return_type=kind, parameters=[either] * 2, impl=run)],
        )
        for name, run, kind in (
            (name, run, cel.Type.BOOL if name in TRUTHS else either) for name, run in STRICT.items()
        )
    ]
    return cel.NewEnv(
        variables={},
        extensions=[
            cel.CelExtension("strict", [*functions, *_text_functions(cel)]),
            _own_functions(),
        ],
    )


def _value(value: object, depth: int, count: list[int], fields: frozenset[str]) -> object:
    """A copy the library can take: it crashes on very deep values, refuses large integers and
    cuts text at a NUL. ``count`` counts what there is. The library reads ``fields`` by their
    spelling alone, so a key that only looks like one of them is refused."""
    count[0] += 1 + (len(value) >> 6 if isinstance(value, str) else 0)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if "\0" in value:
            raise VerdictError("a text has a NUL character in it")
        if value == NULL_SIGN:
            raise VerdictError("a text is the sign of a written null")
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, int):
        if not -_INT64 <= value < _INT64:
            raise VerdictError("a number is too large")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise VerdictError("a number is infinite or not a number")
        return value
    if depth >= DEEPEST:
        raise VerdictError(f"a value is nested deeper than {DEEPEST} levels")
    if isinstance(value, Mapping):
        if not _STAND_INS.isdisjoint(value):
            raise VerdictError("a value is not JSON, or kept elsewhere")
        for key in map(str, value):
            if key not in fields and as_seen(key) in fields:
                raise VerdictError(
                    f"a field looks like `{as_seen(key)}` and is spelled differently"
                )
        return {
            str(_value(str(key), depth + 1, count, fields)): _value(item, depth + 1, count, fields)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_value(item, depth + 1, count, fields) for item in value]
    raise VerdictError("a value is not JSON")


def judge(text: str, variables: Mapping[str, object]) -> bool:
    """The verdict under these JSON values, or ``VerdictError``: undecided, never false.

    There is one kind of number, and nothing is equal across types: see
    ``strict_operators``. What may be long or large is judged in ``bounded``.
    """
    found = _evaluated(text, variables)
    if not isinstance(found, bool):
        raise VerdictError(f"`{text}` is neither true nor false")
    return found


def compute(text: str, variables: Mapping[str, object]) -> Any:
    """The value of an expression under these JSON values, or ``VerdictError``."""
    found = _evaluated(text, variables)
    if found is None:
        raise VerdictError(f"`{text}` has no value")
    return found


def _evaluated(text: str, variables: Mapping[str, object]) -> object:
    count, fields = [0], _fields(text)
    data = {name: _value(value, 0, count, fields) for name, value in variables.items()}
    macros = _macros(text)
    if macros <= 2 and len(text) * (count[0] + 1) ** (1 + macros) <= CHEAP:
        return evaluate_here(text, data)
    try:
        return ask({"expression": text, "data": data})
    except Unbounded as problem:
        raise VerdictError(str(problem)) from None


@lru_cache(maxsize=4096)
def _fields(text: str) -> frozenset[str]:
    """The names that an expression reads with a dot."""
    plain = _TOKEN.sub(lambda one: " " if one["skip"] else one.group(), text)
    return frozenset(one[1] or one[2] for one in _FIELD.finditer(plain))


@lru_cache(maxsize=4096)
def _macros(text: str) -> int:
    return len(_MACRO.findall(text))


def evaluate_here(text: str, data: Mapping[str, object]) -> object:
    """The JSON value on values that ``judge`` has looked at, without a bound."""
    try:
        answer = _executable(text).eval(data={**data, NULL_NAME: NULL_SIGN})
    except RuntimeError as error:
        raise VerdictError(f"`{text}` failed: {_errors(error)[0].message}") from error
    except OverflowError as error:
        raise VerdictError(f"`{text}` failed: a number is too large") from error
    found: object = answer.plain_value()
    if str(answer.type()) == "ERROR":
        raise VerdictError(f"`{text}` failed: {_plain(str(found))}")
    return found if isinstance(found, bool) else _json(found, 0)


def _json(value: object, depth: int) -> object:
    if value is None or (isinstance(value, str) and value == NULL_SIGN):
        return None  # a type of the library's compares with nothing else
    if isinstance(value, bool | str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value == int(value) and abs(value) < _INT64 else value
    if isinstance(value, list | tuple) and depth < DEEPEST:
        return [_json(one, depth + 1) for one in value]
    if isinstance(value, Mapping) and depth < DEEPEST:
        return {str(key): _json(one, depth + 1) for key, one in value.items()}
    raise VerdictError("a value is not JSON")


_FOREIGN = re.compile(r"\b(and|or|not)\b|(?<![=!<>])=(?!=)")


_UNKNOWN = re.compile(r"unknown function `(\w+)`")


_MACROS = ("all", "exists", "filter", "has", "map", "size", "startsWith")
"""Of CEL's own, those that authors look for."""


def read_expression(
    report: DiagnosticCollector, node: Node, known: frozenset[str] | set[str], what: str
) -> str | None:
    """A verdict, or the value of a computed argument."""
    text = fields.text(report, node, f"`{what}`")
    if not text or not isinstance(node, ScalarNode):
        return None
    problems = parse_verdict(text, truth=what != "value")
    for problem in problems:
        help = "CEL writes `&&`, `||`, `!` and `==`" if _FOREIGN.search(text) else ""
        if unknown := _UNKNOWN.match(problem.message):
            help = did_you_mean(unknown[1], {*FUNCTIONS, *_MACROS})
        at = Spot(node.line, node.column)
        if node.one_line and problem.line == 1:
            at = Spot(node.line, node.column + call_offset(node, problem.column - 1))
        report.error(
            "bad-verdict" if what == "verdict" else "bad-formula",
            f"the {what} does not work: {problem.message}",
            at,
            help,
        )
    for name in sorted(free_names(text) - known):
        message = f"the {what} reads `{name}`, which is not known there"
        report.error(
            "unknown-verdict-name" if what == "verdict" else "unknown-name",
            message,
            node,
            did_you_mean(name, known),
        )
    return text


def main() -> None:
    _limit_memory()
    for line in sys.stdin.buffer:
        _limit_time(CPU_SECONDS)
        answer: dict[str, object]
        try:
            answer = {"answer": _answer(json.loads(line))}
        except (VerdictError, re.error, MemoryError, RecursionError) as problem:
            answer = {"failed": str(problem) or type(problem).__name__}
        _limit_time(0)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


def _answer(request: Mapping[str, Any]) -> object:
    if "pattern" in request:
        return re.search(request["pattern"], request["text"], re.ASCII) is not None
    return evaluate_here(request["expression"], request["data"])


def _limit_memory() -> None:
    # Where the system knows no such limit, time alone is bounded.
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time(seconds: float) -> None:
    """The signal ends the process, whatever it is in the middle of."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
