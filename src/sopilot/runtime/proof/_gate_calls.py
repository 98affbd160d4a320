"""Calls that may be about a gate: which it names, which it may concern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sopilot.language.handbook.look_alikes import look_the_same
from sopilot.runtime.vm.recipe_calls import WantedCall
from sopilot.runtime.vm.state import NEVER, Answered
from sopilot.runtime.vm.values import JSON, same


class GateCalls(NamedTuple):
    """The calls that open a gate, or that close it: exact successes, all that may have touched
    it, and whether one is not answered yet."""

    exact: tuple[Answered, ...]
    touching: tuple[Answered, ...]
    pending: bool

    @property
    def touched(self) -> int:
        """When it was touched last."""
        return max((one.touched for one in self.touching), default=NEVER)

    @property
    def latest(self) -> Answered | None:
        return max(self.exact, key=lambda one: one.asked, default=None)

    @property
    def overlapping(self) -> bool:
        """Whether another may have been carried out since the latest was asked for: then
        nobody can tell whose answer says how things are."""
        latest = self.latest
        return self.pending or (
            latest is not None
            and any(one is not latest and one.touched > latest.asked for one in self.touching)
        )


def either(first: GateCalls | None, second: GateCalls) -> GateCalls:
    """Calls that shut a gate in one of two ways."""
    if first is None:
        return second
    return GateCalls(
        (*first.exact, *second.exact),
        (*first.touching, *second.touching),
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
