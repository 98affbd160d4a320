"""How long contents are kept, what must not be erased, and what was. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sopilot.language.diagnostics import mistake
from sopilot.runtime.vm.values import JSON

SHREDDED, PRUNED = "shredded", "pruned"
HOLD_SET, HOLD_LIFTED = "hold_set", "hold_lifted"
ANY = "*"
"""Of a handbook without a period of its own."""

_ENDINGS = ("completed", "refused", "ended", "running", "waiting", "unknown", "new")
"""How a session stands, as `sopilot sessions` says it."""


class Hold(NamedTuple):
    """Its words may stand beside the journal, under ``ref``, and are ``None`` once they are gone:
    whose data must not be erased yet, must be erased later, here as well."""

    what: str | None
    why: str
    ref: str = ""


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
    hold_entries: dict[int, Hold] = field(default_factory=dict)
    """Entry of the journal → a hold that was not lifted."""
    lifted: list[Hold] = field(default_factory=list)
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
    for number, (name, it) in enumerate(entries):
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
        elif name == HOLD_SET:
            said: Any = it.get("beside") or it
            what = str(it["what"]) if said is it else said.get("what")
            policy.hold_entries[number] = Hold(what, str(said.get("why")), said.get("ref", ""))
        elif name == PRUNED:
            heads: Any = it["sessions"]
            for session_id, (seq, digest) in heads.items():
                policy.pruned[session_id] = (int(seq), str(digest))
        elif name == HOLD_LIFTED:
            held = policy.hold_entries
            # An earlier release named the words; now the entries of the holds are named.
            numbers: Any = it.get("holds") or [n for n in held if held[n].what == str(it["what"])]
            policy.lifted += [held.pop(one) for one in numbers if one in held]
        elif name == SHREDDED:
            policy.erased |= _texts(it.get("sessions"))
    for hold in policy.hold_entries.values():
        if hold.what is not None:
            policy.holds[hold.what] = hold.why
    return policy


def _texts(value: JSON) -> frozenset[str]:
    return frozenset(map(str, value)) if isinstance(value, list | tuple) else frozenset()
