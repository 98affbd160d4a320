"""The SOP's own sentences in an audit: what was judged, about whom."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.handbook.wording import fill, named, negative
from sopilot.language.program.model import Function
from sopilot.runtime.audit._state import is_withheld
from sopilot.runtime.vm.values import JSON


def filled_sentence(
    function: Function,
    constants: Mapping[str, JSON],
    values: Mapping[str, JSON],
    *,
    wanted: bool = True,
) -> str:
    """A rule's sentence with every hole filled: what is not known or withheld is
    called by its name."""
    if function.predicate is None:
        return function.says
    template = function.says
    if template and not wanted:
        template = negative(function.says, function.says_not)
    return _filled(template, function, constants, values)


def found_sentence(
    function: Function,
    constants: Mapping[str, JSON],
    values: Mapping[str, JSON],
    *,
    holds: bool | None,
) -> str:
    """What came out, as a sentence of its own: never the required one with a "not" before it."""
    if holds is None:
        return "it could not be told"
    if function.predicate is None or not function.says:
        return "it holds" if holds else "it does not hold"
    template = function.says
    if not holds:
        template = function.says_not or f"It is not the case that: {template}"
    return _filled(template, function, constants, values)


def _filled(
    template: str,
    function: Function,
    constants: Mapping[str, JSON],
    values: Mapping[str, JSON],
) -> str:
    names = named({name: name for name in function.parameters})
    known = {name: value for name, value in values.items() if not is_withheld(value)}
    return fill(template, {**constants, **names, **known})
