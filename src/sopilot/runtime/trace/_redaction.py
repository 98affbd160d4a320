"""Values kept outside of the trace: a reference takes their place before sealing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TypeGuard

from sopilot.runtime.vm.events import Event
from sopilot.runtime.vm.values import JSON, canonical

REF = "$ref"
_WHOLE = ("value", "text", "content", "summary", "reason", "details", "arguments")
"""Payload fields that may be large, and may be withheld as wholes."""
DEEPEST = 16
"""Values inside of withheld values that are restored."""


def reference(value: JSON, salt: bytes = b"") -> dict[str, JSON]:
    """Commits to the value. Short secrets can be guessed from a bare digest: give a salt."""
    spelled = canonical(value)
    return {REF: hashlib.sha256(salt + spelled).hexdigest(), "bytes": len(spelled)}


def is_reference(value: JSON) -> TypeGuard[Mapping[str, JSON]]:
    return isinstance(value, Mapping) and value.keys() == {REF, "bytes"}


def redact(
    event: Event,
    *,
    names: frozenset[str] = frozenset(),
    limit: int | None = None,
    salt: bytes = b"",
) -> tuple[Event, dict[str, JSON]]:
    """The event with references, and what they stand for (digest → value).

    Every value under one of ``names`` goes, wherever it stands in the payload;
    so does a field of more than ``limit`` bytes. Redact before sealing: the
    hash then commits to the digests, and the trace verifies without the values.
    """
    kept: dict[str, JSON] = {}

    def withhold(value: JSON) -> dict[str, JSON]:
        if is_reference(value):
            return dict(value)
        ref = reference(value, salt)
        kept[str(ref[REF])] = value
        return ref

    def inside(value: Mapping[str, JSON]) -> dict[str, JSON]:
        return {
            key: withhold(item) if key in names and item is not None else walk(item)
            for key, item in value.items()
        }

    def walk(value: JSON) -> JSON:
        if isinstance(value, Mapping):
            return inside(value)
        if isinstance(value, list):
            return [walk(item) for item in value]
        return value

    payload = inside(event.payload) if names else dict(event.payload)
    if limit is not None:
        for name in _WHOLE:
            value = payload.get(name)
            if value is not None and len(canonical(value)) > limit:
                payload[name] = withhold(value)
    return event._replace(payload=payload), kept


def restore(event: Event, values: Mapping[str, JSON]) -> Event:
    """The event with every reference resolved that ``values`` (digest → value) knows."""

    def walk(value: JSON, inside: frozenset[str]) -> JSON:
        if is_reference(value):
            ref = value[REF]
            # A withheld value may hold references of its own. One to itself is no digest of
            # anything, and stays as it is.
            known = isinstance(ref, str) and ref in values and ref not in inside
            if not known or len(inside) >= DEEPEST:
                return value
            return walk(values[str(ref)], inside | {str(ref)})
        if isinstance(value, Mapping):
            return {key: walk(item, inside) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, inside) for item in value]
        return value

    payload = walk(event.payload, frozenset())
    return event._replace(payload=payload if isinstance(payload, Mapping) else event.payload)
