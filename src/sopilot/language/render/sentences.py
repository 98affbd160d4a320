"""The sentence of a check, on the side that is wanted, and what a function decides.

A rule has two sides. Where the SOP demands one of them, that one is quoted; where a check only
finds something out, the quotation says which result it describes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sopilot.language.handbook.translated import in_language
from sopilot.language.handbook.wording import Named, fill, named, negative, placeholders
from sopilot.language.program.model import Check, Condition, Function, Kind, Literal, Program
from sopilot.language.render._conditions import (
    checks_everything,
    condition_text,
    group_condition,
)
from sopilot.language.render._scaffold import words

TRUE_MEANS, FALSE_MEANS = "true_means", "false_means"


class Saying(NamedTuple):
    """A line below a check: ``label`` is the key of the words before it, or empty. ``quoted``
    tells the SOP's own sentence from the words of the scaffold."""

    label: str
    text: str
    quoted: bool = True


def is_demand(step: Check) -> bool:
    """Whether going on means that the check is met; otherwise it only finds something out."""
    return step.met is None and step.unmet is not None


def check_saying(step: Check, program: Program, language: str) -> Saying | None:
    """What a check is about, in words."""
    function = program.functions.get(step.function)
    demanded = is_demand(step)
    side = TRUE_MEANS if step.wanted else FALSE_MEANS
    if step.says:
        return Saying("" if demanded else side, in_language(step.says, language))
    if function is None:
        return None
    if function.predicate is None:
        condition = condition_of(function, language)
        return Saying(TRUE_MEANS, condition, quoted=False) if condition else None
    if not function.says:
        return None
    says = function.says
    if not step.wanted and (demanded or function.says_not):
        says = negative(function.says, function.says_not)
    elif not demanded:
        side = TRUE_MEANS
    values = {**program.constants, **_argument_values(step)}
    return Saying("" if demanded else side, in_language(fill(says, values), language))


def _argument_values(step: Check) -> dict[str, object]:
    return {
        parameter: term.value if isinstance(term, Literal) else Named(term.name)
        for parameter, term in step.arguments
    }


def condition_of(function: Function, language: str) -> str:
    """A group's condition in words; its author's where one wrote some."""
    if function.says:
        return in_language(function.says, language)
    if "condition" not in function.kept:
        function.kept["condition"] = group_condition(function)
    condition: Condition | None = function.kept["condition"]
    return condition_text(condition, words(language)) if condition is not None else ""


def purpose(function: Function, program: Program, language: str) -> list[str]:
    """What a function is for, a line a sentence: the goal's description, a group's condition,
    or both sides of what a rule judges, as far as the program wants them."""
    table = words(language)
    if function.predicate is not None:
        return _sides(function, program, table, language)
    if function.says:
        return [table["purpose"].format(says=in_language(function.says, language))]
    condition = condition_of(function, language) if function.kind is Kind.GROUP else ""
    if not condition:
        return []
    how = table["all_first"] if checks_everything(function) else ""
    return [table["true_if"].format(condition=condition) + how]


def telling(functions: Iterable[str], program: Program, language: str) -> tuple[str, ...]:
    """All that the customer may be told where a request is refused for these functions; empty
    where nothing is to be kept from them."""
    found = [program.functions[name].tells for name in functions if name in program.functions]
    told = (in_language(fill(one, program.constants), language) for one in found if one)
    return tuple(dict.fromkeys(told))


def _sides(
    function: Function, program: Program, table: Mapping[str, str], language: str
) -> list[str]:
    if not function.says:
        return []
    values = {**program.constants, **named({name: name for name in function.parameters})}
    says = in_language(fill(function.says, values), language)
    opens = function.kind is Kind.GATE and not function.is_fact
    key = "establishes" if opens else TRUE_MEANS
    lines = [table[key].format(says=says)]
    if function.says_not and wants_false(function, program):
        says_not = in_language(fill(function.says_not, values), language)
        lines.append(table[FALSE_MEANS].format(says=says_not))
    told = telling([function.name], program, language)
    return [*lines, *(table["told"].format(says=one) for one in told)]


def wants_false(function: Function, program: Program) -> bool:
    """Whether some check of the program wants the other side."""
    return function.name in denied_functions(program)


def denied_functions(program: Program) -> set[str]:
    """Whose other side some check wants."""
    return {
        step.function
        for caller in program.functions.values()
        for step in caller.checks
        if not step.wanted
    }


def named_constants(function: Function) -> tuple[str, ...]:
    """The constants that a function's sentences may name; what it is always given is none."""
    kept = function.kept
    names: tuple[str, ...] | None = kept.get("constants")
    if names is None:
        given = set(function.parameters) - set(function.optional)
        sides = [*placeholders(function.says), *placeholders(function.says_not)]
        told = placeholders(function.tells)
        names = tuple(dict.fromkeys([*(name for name in sides if name not in given), *told]))
        kept["constants"] = names
    return names


def constant_texts(names: Iterable[str], program: Program) -> list[str | None]:
    """What a text has of them: 500 and 500.0 are equal numbers and different words."""
    constants = program.constants
    return [str(constants[name]) if name in constants else None for name in names]
