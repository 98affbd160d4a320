"""Open calls of other sessions in the same store.

A client that reconnects after a crash may get a new session, whose own trace doesn't know the
call that broke off.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from sopilot.messages.errors import SopilotError
from sopilot.records.loading import load
from sopilot.values.json import JSON, is_same_act

if TYPE_CHECKING:
    from sopilot.session.session import Session

GRACE_SECONDS = 2.0
"""How long a lease has run out before its owner counts as gone: a busy one renews it late."""


class OpenElsewhere(NamedTuple):
    session_id: str
    call_id: str


async def open_elsewhere(
    session: Session, action: str, arguments: Mapping[str, JSON]
) -> OpenElsewhere | None:
    """The same act in another session of this handbook whose outcome is unknown, or whose process
    is gone. Sessions that can't be read, or whose contents were erased, are skipped."""
    store, handbook = session._store, session.metadata.get("handbook")
    for record in await store.unresolved(now=session.clock.now() - GRACE_SECONDS):
        if record.id == session.id or record.metadata.get("handbook") != handbook:
            continue
        with suppress(SopilotError):
            loaded = await load(store, record.id, known=(session.programs,))
            for call_id, pending in loaded.configuration.pending.items():
                if pending.action == action and is_same_act(pending.arguments, arguments):
                    return OpenElsewhere(record.id, call_id)
    return None
