"""The calls that a recipe asks for, once its terms have values.

A recipe is a sequence of calls. An argument is a constant, a value of the function, a value from
the user, or a path into a value or an earlier answer of the recipe. A call with ``each`` is made
for every element of the list at such a path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from sopilot.handbook.requirements import Constant, Path
from sopilot.program.model import Act
from sopilot.values.json import JSON


class Absent(NamedTuple):
    """A missing value; ``why`` says what is missing. ``callable``: a call would supply it, and
    ``again`` says why an earlier answer doesn't count. ``awaited`` is the action of a call that
    must be answered first."""

    why: str
    callable: bool = False
    again: str = ""
    awaited: str = ""


Values = Callable[[str], "JSON | Absent"]
"""A name's value, or ``Absent``."""

MOST_ELEMENTS = 1_000
"""No session would reach the end of a longer list."""


class WantedCall(NamedTuple):
    """``arguments`` without the ones in ``open``, which the caller may choose. ``again`` says why
    an earlier answer to the same call doesn't count."""

    act: Act
    arguments: Mapping[str, JSON]
    open: tuple[str, ...] = ()
    again: str = ""


def at_path(path: Path, answers: Mapping[str, JSON]) -> JSON | Absent:
    """The value at a path. An answer may lack it or have another shape."""
    if path.root not in answers:
        return Absent(f"`{path.root}` was not answered")
    value = answers[path.root]
    for step in path.steps:
        if isinstance(step, str):
            if not isinstance(value, Mapping) or step not in value:
                return Absent(f"the answer has no value at `{path}`")
            value = value[step]
        else:
            if not isinstance(value, list) or step >= len(value):
                return Absent(f"the answer has no value at `{path}`")
            value = value[step]
    return Absent(f"the answer is null at `{path}`") if value is None else value


def elements(act: Act, answers: Mapping[str, JSON]) -> list[Mapping[str, JSON]] | Absent:
    """One mapping per call of ``act``: the answers that its arguments may look into."""
    if act.each is None:
        return [answers]
    result = at_path(act.each, answers)
    if isinstance(result, Absent):
        return result
    if not isinstance(result, list):
        return Absent(f"`{act.each}` isn't a list")
    if len(result) > MOST_ELEMENTS:
        return Absent(f"`{act.each}` has more than {MOST_ELEMENTS} elements")
    return [{**answers, act.element: item} for item in result]


def wanted_calls(
    act: Act,
    values: Values,
    answers: Mapping[str, JSON],
    *,
    open_values: bool = False,
    optional: Collection[str] = (),
) -> list[WantedCall] | Absent:
    """The calls that ``act`` stands for. An ``optional`` name without a value leaves its argument
    out. Any other name without a value leaves it open with ``open_values``; without, the calls
    are ``Absent``."""
    if _looks_into_answers(act):
        answers = _rooted(act, values, answers)
    inside = elements(act, answers)
    if isinstance(inside, Absent):
        return inside
    calls: list[WantedCall] = []
    for answered in inside:
        arguments: dict[str, JSON] = {}
        free: list[str] = []
        value: JSON | Absent
        for parameter, term in act.arguments:
            if isinstance(term, Constant):
                value = term.value
            elif isinstance(term, Path):
                value = at_path(term, answered)
                if isinstance(value, Absent):
                    return value
            else:
                value = values(term.name)
                if isinstance(value, Absent):
                    if term.name in optional:
                        continue
                    if not open_values:
                        return value
                    free.append(parameter)
                    continue
            arguments[parameter] = value
        calls.append(WantedCall(act, arguments, tuple(free)))
    return calls


def _rooted(act: Act, values: Values, answers: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The answers, and the function's own values that paths start at."""
    result = dict(answers)
    for path in (act.each, *(term for _, term in act.arguments)):
        if isinstance(path, Path) and path.root not in result and path.root != act.element:
            value = values(path.root)
            if not isinstance(value, Absent):
                result[path.root] = value
    return result


def linked(recipes: Iterable[Iterable[Act]]) -> bool:
    """Whether some call depends on an earlier answer."""
    return any(_looks_into_answers(act) for recipe in recipes for act in recipe)


def _looks_into_answers(act: Act) -> bool:
    return act.each is not None or Path in [type(term) for _, term in act.arguments]
