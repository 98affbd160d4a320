"""What a session is told once and remembers: stored with it, so that a resumed one agrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeGuard

from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.vm import JSON, Automation, Limits

DEFAULT_INLINE_LIMIT = 16_384
DEFAULT_LEASE_SECONDS = 3.0
"""How long a killed process keeps a session from others. Whoever works renews it in time."""


@dataclass(frozen=True, slots=True)
class Settings:
    """``by_reference`` names fields whose values never enter the trace, only their digests;
    ``inline_limit`` is the size in bytes beyond which a field is kept beside the trace.
    ``private``: all contents are, but for arguments under the names of ``columns``."""

    automation: Automation = field(default_factory=Automation)
    limits: Limits = field(default_factory=Limits)
    by_reference: frozenset[str] = frozenset()
    inline_limit: int | None = DEFAULT_INLINE_LIMIT
    lease_seconds: float = DEFAULT_LEASE_SECONDS
    private: bool = False
    columns: frozenset[str] = frozenset()

    def as_json(self) -> dict[str, JSON]:
        own: dict[str, JSON] = (
            {"private": True, "columns": sorted(self.columns)} if self.private else {}
        )
        return {
            **own,
            "automation": _given(self.automation),
            "limits": _given(self.limits),
            "by_reference": sorted(self.by_reference),
            "inline_limit": self.inline_limit,
            "lease_seconds": self.lease_seconds,
        }


def _given(switches: Automation | Limits) -> dict[str, JSON]:
    # As `asdict`, which copies every value, and this is done for every session.
    return {one.name: getattr(switches, one.name) for one in fields(switches)}


def settings_from_json(value: JSON) -> Settings:
    """Keys that a later release added are ignored; a value of the wrong kind is refused."""
    if not isinstance(value, Mapping):
        raise UserMistake("the settings of a session must be an object")
    known = Settings()
    limit = value.get("inline_limit", known.inline_limit)
    seconds = value.get("lease_seconds", known.lease_seconds)
    names = value.get("by_reference", [])
    columns = value.get("columns", [])
    if (
        not (limit is None or _is_number(limit))
        or not _is_number(seconds)
        or not isinstance(names, list | tuple)
        or not isinstance(columns, list | tuple)
    ):
        raise UserMistake("the settings of a session have a value of the wrong kind")
    return Settings(
        automation=Automation(**_known(Automation, value.get("automation"), bool)),
        limits=Limits(**_known(Limits, value.get("limits"), int)),
        by_reference=frozenset(str(name) for name in names),
        inline_limit=None if limit is None else int(limit),
        lease_seconds=float(seconds),
        private=value.get("private") is True,
        columns=frozenset(map(str, columns)),
    )


def _known(kind: type[Automation] | type[Limits], value: JSON, wanted: type) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    found = {item.name: value[item.name] for item in fields(kind) if item.name in value}
    if any(type(one) is not wanted for one in found.values()):
        raise UserMistake("the settings of a session have a value of the wrong kind")
    return found


def _is_number(value: JSON) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
