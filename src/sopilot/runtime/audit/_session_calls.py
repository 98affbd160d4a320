"""The calls of a session in the order of the trace, whatever process made them.

A proof reads this list and nothing else: no table is kept of what is newest or fresh.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sopilot.language.handbook import BUILT_IN
from sopilot.runtime.vm.values import JSON, same, spoken_at


@dataclass(slots=True)
class SessionCall:
    """``answered`` is the event of its answer, ``None`` while it is awaited; ``unknown``: it
    broke off, and may have been carried out. ``opened`` names the frame it was made in,
    ``asked_for`` is whether the program asked for it there, ``by_machine`` whether the machine
    made it by itself."""

    seq: int
    action: str
    arguments: Mapping[str, JSON]
    process: str | None = None
    opened: int = -1
    asked_for: bool = True
    answered: int | None = None
    ok: bool = False
    unknown: bool = False
    value: JSON = None
    by_machine: bool = False

    @property
    def awaited(self) -> bool:
        return self.answered is None

    @property
    def may_have_run(self) -> bool:
        return self.awaited or self.ok or self.unknown

    def done_by(self) -> float:
        """The event by which it had run, if it did; what is awaited may run at any time."""
        return float("inf") if self.answered is None else self.answered


def calls_of(
    calls: Sequence[SessionCall], action: str, arguments: Mapping[str, JSON]
) -> Iterator[SessionCall]:
    """Exactly this call, latest first."""
    wanted = dict(arguments)
    for one in reversed(calls):
        if one.action == action and same(dict(one.arguments), wanted):
            yield one


def newest_answer(
    calls: Sequence[SessionCall], action: str, arguments: Mapping[str, JSON]
) -> SessionCall | None:
    """The one whose answer came last, or one that was asked for since and is awaited. Of two
    answers of the user's, the later word."""
    of_it = list(calls_of(calls, action, arguments))
    spoken = action in BUILT_IN
    newest: SessionCall | None = None
    for one in sorted((one for one in of_it if not one.awaited), key=SessionCall.done_by):
        if newest is None or not spoken or not _said_before(one, newest):
            newest = one
    for one in of_it:
        if one.awaited and (newest is None or spoken or one.seq > newest.seq):
            return one
    return newest


def _said_before(one: SessionCall, other: SessionCall) -> bool:
    return 0 <= spoken_at(one.value) < spoken_at(other.value)
