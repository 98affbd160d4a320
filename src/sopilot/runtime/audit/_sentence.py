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
    names = named({name: name for name in function.parameters})
    known = {name: value for name, value in values.items() if not is_withheld(value)}
    return fill(template, {**constants, **names, **known})
