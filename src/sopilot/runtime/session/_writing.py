"""One writer at a time, on top of what the store really holds; events as they are written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from sopilot.runtime.records import FOLDED, ActionEntry, ActionRow, Register
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


def seal_events(
    events: Sequence[Event],
    head: Head,
    settings: Settings,
    salt: bytes,
    secrets: Secrets,
    register: Register,
) -> tuple[list[SealedEvent], dict[str, JSON], list[str], Sequence[ActionRow]]:
    """The events as they are kept, folded into the register: with the values beside them, as
    lines, and as rows of the register."""
    sealed: list[SealedEvent] = []
    lines: list[str] = []
    payloads: dict[str, JSON] = {}
    actions: dict[str, ActionEntry] = {}
    previous = head.hash
    # A character takes four bytes at most: a short line has no large field.
    short = settings.inline_limit // 4 if settings.inline_limit is not None else sys.maxsize
    as_it_is = not (settings.private or settings.by_reference or secrets.names)
    for event in events:
        if as_it_is:
            one, line = seal_line(event, previous)
        if not as_it_is or len(line) > short:
            one, line = _seal_kept(event, previous, payloads, settings, salt, secrets, short)
        previous = one.hash
        sealed.append(one)
        lines.append(line)
        if event.kind in FOLDED:
            action = register.fold(event, one.event)
            if action is not None:
                actions[action.call_id] = action
    rows = [action.row() for action in actions.values()] if actions else ()
    return sealed, payloads, lines, rows


def _seal_kept(
    event: Event,
    previous: str,
    payloads: dict[str, JSON],
    settings: Settings,
    salt: bytes,
    secrets: Secrets,
    short: int,
) -> tuple[SealedEvent, str]:
    """The event as it is kept, and its line; what it refers to goes into ``payloads``. In a line
    of at most ``short`` characters no field is large."""
    if settings.private:
        secrets.learn(event)
        event, kept = hide(event, columns=settings.columns, salt=salt)
        payloads.update(kept)
        return seal_line(event, previous)
    names, limit = settings.by_reference, settings.inline_limit
    strange: frozenset[str] = frozenset()
    if secrets.names:
        strange = secrets.learn(event)
        names |= secrets.places.fields_in(event)
    event, kept = redact(event, names=names, salt=salt, secrets=secrets.values, strange=strange)
    payloads.update(kept)
    sealed, line = seal_line(event, previous)
    if len(line) > short:
        event, kept = redact(event, limit=limit, salt=salt)
        payloads.update(kept)
        sealed, line = seal_line(event, previous)
    return sealed, line
