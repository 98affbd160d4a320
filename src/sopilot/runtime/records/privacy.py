"""How long contents are kept, what must not be erased, and what was. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sopilot.runtime.vm.values import JSON

SHREDDED = "shredded"
ANY = "*"
"""Of a handbook without a period of its own."""


@dataclass(slots=True)
class Policy:
    columns: frozenset[str] = frozenset()
    """Arguments that stand in register and trace: amounts, currencies, nothing of a person."""
    periods: dict[str, float] = field(default_factory=dict)
    """Handbook → seconds that contents of its sessions are kept after their last event."""
    readers: frozenset[str] = frozenset()
    """Roles that may read contents; empty: everybody."""
    holds: dict[str, str] = field(default_factory=dict)
    """Session, or a text that is searched for → why it must not be erased."""
    pruned: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Session → the head that it had when its events were deleted."""
    erased: set[str] = field(default_factory=set)
    """Sessions whose contents somebody erased, on record."""

    def due(self, handbook: str, updated_at: float, now: float) -> bool:
        period = self.periods.get(handbook, self.periods.get(ANY))
        return period is not None and now - updated_at >= period


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
        elif name == "pruned":
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
