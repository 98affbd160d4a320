"""Calls that may be about a gate: which it names, which it may concern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sopilot.language.handbook.look_alikes import look_the_same
from sopilot.runtime.vm.recipe_calls import WantedCall
from sopilot.runtime.vm.state import Answered
from sopilot.runtime.vm.values import JSON, same


class GateCalls(NamedTuple):
    """The calls that open a gate, or that close it: exact successes, when anything touched it
    last, and whether one is not answered yet."""

    exact: tuple[Answered, ...]
    touched: int
    pending: bool

    @property
    def latest(self) -> Answered | None:
        return max(self.exact, key=lambda one: one.asked, default=None)

    @property
    def overlapping(self) -> bool:
        """Whether another was still running when the latest was asked for."""
        latest = self.latest
        return latest is not None and any(
            one is not latest and one.succeeded > latest.asked for one in self.exact
        )


def either(first: GateCalls | None, second: GateCalls) -> GateCalls:
    """Calls that shut a gate in one of two ways."""
    if first is None:
        return second
    return GateCalls(
        (*first.exact, *second.exact),
        max(first.touched, second.touched),
        first.pending or second.pending,
    )


def counts(call: WantedCall, arguments: Mapping[str, JSON], others: bool) -> bool:
    """Whether a call may be about this gate; with ``others``, about anybody else's: that is one
    which does not name exactly these values."""
    if not others:
        return may_concern(call, arguments)
    exact = arguments.keys() == call.arguments.keys() | set(call.open)
    return not (exact and names_the_same(call, arguments))


def names_the_same(call: WantedCall, arguments: Mapping[str, JSON]) -> bool:
    return all(same(given, arguments[name]) for name, given in call.arguments.items())


def may_concern(call: WantedCall, arguments: Mapping[str, JSON]) -> bool:
    """Unless it names another value of the same type; a tool may read one of another type, or
    one that looks the same, as it likes."""
    return not any(
        name in arguments
        and _is_number(arguments[name]) == _is_number(given)
        and (_is_number(given) or type(arguments[name]) is type(given))
        and not same(given, arguments[name])
        and not look_the_same(given, arguments[name])
        for name, given in call.arguments.items()
    )


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
