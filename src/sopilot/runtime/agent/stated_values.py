"""Values that a user, or a form in front of one, stated by name: `amount: 50`, one a line.

Nobody has to copy them: what is stated is what was meant, and a copy can be wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.vm import Event

STATED = re.compile(r"^\s*([A-Za-z_]\w*): (.+?)\s*$")


def stated_in(text: str) -> dict[str, JSON]:
    """Name → value. A value is JSON: words without quotes are words, and state nothing."""
    found: dict[str, JSON] = {}
    for line in text.splitlines():
        match = STATED.match(line)
        if match is None:
            continue
        try:
            found[match.group(1)] = json.loads(match.group(2))
        except (ValueError, RecursionError):
            continue
    return found


def stated_values(events: Iterable[Event]) -> dict[str, JSON]:
    """What the user stated, the latest of each name; words that are kept elsewhere say nothing."""
    found: dict[str, JSON] = {}
    for event in events:
        text = event.payload.get("text") if event.kind == "user_said" else None
        if isinstance(text, str):
            found.update(stated_in(text))
    return found
