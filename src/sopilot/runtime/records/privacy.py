"""How long contents are kept, what must not be erased, and what was. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sopilot.language.diagnostics import mistake
from sopilot.runtime.vm.values import JSON

SHREDDED, PRUNED = "shredded", "pruned"
ANY = "*"
"""Of a handbook without a period of its own."""

_ENDINGS = ("completed", "refused", "ended", "running", "waiting", "unknown", "new")
"""How a session stands, as `sopilot sessions` says it."""


@dataclass(slots=True)
class Policy:
    columns: frozenset[str] = frozenset()
    """Arguments that stand in register and trace: amounts, currencies, nothing of a person."""
    periods: dict[str, float] = field(default_factory=dict)
    """Class of sessions (a handbook, one goal of it, how they ended) → seconds that their contents
    are kept after the last event."""
    readers: frozenset[str] = frozenset()
    """Roles that may read contents; empty: everybody."""
    holds: dict[str, str] = field(default_factory=dict)
    """Session, or a text that is searched for → why it must not be erased."""
    pruned: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Session → the head that it had when its events were deleted."""
    erased: set[str] = field(default_factory=set)
    """Sessions whose contents somebody erased, on record."""

    def due(
        self, handbook: str, updated_at: float, now: float, *, goal: str = "", status: str = ""
    ) -> bool:
        """By the period of the narrowest class that the session belongs to."""
        for name in (f"{handbook}/{goal}", handbook, ANY):
            for one in (f"{name}@{status}", name):
                if one in self.periods:
                    return now - updated_at >= self.periods[one]
        return False


def period_details(given: Mapping[str, Any]) -> dict[str, Any]:
    """A class of sessions, and how many days its contents are kept."""
    name, at, status = str(given["kind"]).partition("@")
    if not name or (at and status not in _ENDINGS):
        raise mistake(
            "no-class",
            f"`{given['kind']}` names no class of sessions",
            help=f"HANDBOOK, HANDBOOK/GOAL or {ANY}, and behind it, if need be, one of "
            + ", ".join(f"@{one}" for one in _ENDINGS),
        )
    return {"handbook": given["kind"], "seconds": given["days"] * 86_400}


def fold_policy(entries: Iterable[tuple[str, Mapping[str, JSON]]]) -> Policy:
    policy = Policy()
    for name, it in entries:
        if name == "columns_named":
            policy.columns = _texts(it.get("columns"))
        elif name == "period_set":
            seconds = it.get("seconds")
            if isinstance(seconds, int | float):
                policy.periods[str(it["handbook"])] = float(seconds)
            else:
                policy.periods.pop(str(it["handbook"]), None)
        elif name == "readers_named":
            policy.readers = _texts(it.get("roles"))
        elif name == "hold_set":
            policy.holds[str(it["what"])] = str(it.get("why"))
        elif name == PRUNED:
            heads: Any = it["sessions"]
            for session_id, (seq, digest) in heads.items():
                policy.pruned[session_id] = (int(seq), str(digest))
        elif name == "hold_lifted":
            policy.holds.pop(str(it["what"]), None)
        elif name == SHREDDED:
            policy.erased |= _texts(it.get("sessions"))
    return policy


def _texts(value: JSON) -> frozenset[str]:
    return frozenset(map(str, value)) if isinstance(value, list | tuple) else frozenset()
