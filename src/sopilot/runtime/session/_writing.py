"""One writer at a time, on top of what the store really holds; events as they are written."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from sopilot.runtime.records import ActionEntry, ActionRow, Register
from sopilot.runtime.session._settings import Settings
from sopilot.runtime.session.secrets import Secrets
from sopilot.runtime.trace import Head, SealedEvent, redact, seal_line
from sopilot.runtime.trace.private import hide
from sopilot.runtime.vm import JSON, Event

if TYPE_CHECKING:
    from sopilot.runtime.session._session import Session


class Writing:
    """Written out by hand: a generator would cost as much as a step of the machine."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def __aenter__(self) -> None:
        await self._session.begin_writing()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.end_writing()


class Kept(NamedTuple):
    """Events as they are kept, and what belongs to them in the store."""

    events: list[SealedEvent]
    payloads: dict[str, JSON]
    lines: list[str]
    actions: Sequence[ActionRow]


def seal_events(
    events: Sequence[Event],
    head: Head,
    settings: Settings,
    salt: bytes,
    secrets: Secrets,
    register: Register,
) -> Kept:
    """The events as they are kept, folded into the register."""
    sealed: list[SealedEvent] = []
    lines: list[str] = []
    payloads: dict[str, JSON] = {}
    actions: dict[str, ActionEntry] = {}
    previous = head.hash
    for event in events:
        one, line = _seal_kept(event, previous, payloads, settings, salt, secrets)
        previous = one.hash
        sealed.append(one)
        lines.append(line)
        action = register.fold(event, one.event)
        if action is not None:
            actions[action.call_id] = action
    rows = [action.row() for action in actions.values()] if actions else ()
    return Kept(sealed, payloads, lines, rows)


def _seal_kept(
    event: Event,
    previous: str,
    payloads: dict[str, JSON],
    settings: Settings,
    salt: bytes,
    secrets: Secrets,
) -> tuple[SealedEvent, str]:
    """The event as it is kept, and its line; what it refers to goes into ``payloads``."""
    if settings.private:
        secrets.learn(event)
        event, kept = hide(event, columns=settings.columns, salt=salt)
        payloads.update(kept)
        return seal_line(event, previous)
    names, limit = settings.by_reference, settings.inline_limit
    strange: frozenset[str] = frozenset()
    if secrets.names:
        secrets.learn(event)
        names |= secrets.places.fields_in(event)
        strange = secrets.places.strange_in(event)
    if not names:
        one, line = seal_line(event, previous)
        # A character takes four bytes at most: a short line has no large field.
        if limit is None or len(line) <= limit // 4:
            return one, line
    event, kept = redact(
        event, names=names, limit=limit, salt=salt, secrets=secrets.values, strange=strange
    )
    payloads.update(kept)
    return seal_line(event, previous)
