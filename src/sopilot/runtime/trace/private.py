"""A trace whose contents stand beside it: what is left shows the procedure and no person.

Everything that people, models or tools said becomes a reference before sealing; what the
machine itself wrote, and the arguments that are named as columns, stay. Without the contents
the chain still verifies, and the register can still be made from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sopilot.runtime.trace._redaction import REF, is_reference, reference
from sopilot.runtime.trace.runtime_notes import RESERVED
from sopilot.runtime.vm.events import Actor, Event
from sopilot.runtime.vm.operations import CLOCK
from sopilot.runtime.vm.values import JSON

_STRUCTURE = frozenset(
    {
        "accepting", "action", "amended", "bound", "by", "call", "call_id", "cited", "code",
        "decision", "earlier", "evidence", "function", "function_kind", "goal", "grade", "ground",
        "holds", "label", "licence", "moved", "name", "ok", "opened", "option", "principal",
        "producer", "program", "reactivated", "result", "role", "slot", "suspended", "target",
        "undecided", "unknown", "unwound",
    }
)  # fmt: skip
_INSIDE = frozenset({"bound", "licence"})
_WITHHELD_OF_NOTES = frozenset({"arguments", "why"})
_CITED = re.compile(r"#?\d+")


def hide(event: Event, *, columns: frozenset[str], salt: bytes) -> tuple[Event, dict[str, JSON]]:
    """The event with references, and what they stand for (digest → value)."""
    kept: dict[str, JSON] = {}

    def withhold(value: JSON) -> JSON:
        if value in (None, "", {}, []) or is_reference(value):
            return value
        ref = reference(value, salt)
        kept[str(ref[REF])] = value
        return ref

    def fields(payload: Mapping[str, JSON]) -> dict[str, JSON]:
        return {name: _field(name, value, event, columns, withhold, fields)
                for name, value in payload.items()}  # fmt: skip

    return event._replace(payload=fields(event.payload)), kept


def _field(
    name: str,
    value: JSON,
    event: Event,
    columns: frozenset[str],
    withhold: Callable[[JSON], JSON],
    fields: Callable[[Mapping[str, JSON]], dict[str, JSON]],
) -> JSON:
    if name == "arguments" and isinstance(value, Mapping):
        return _arguments(value, columns, withhold)
    if name in _INSIDE and isinstance(value, Mapping):
        return fields(value)
    if name == "evidence" and isinstance(value, list | tuple):
        cited = all(isinstance(one, int) or _CITED.fullmatch(str(one)) for one in value)
        return value if cited else withhold(value)
    if name == "details" and isinstance(value, Mapping) and _is_runtimes_own(event):
        return {
            key: (
                _arguments(item, columns, withhold) if isinstance(item, Mapping) else withhold(item)
            )
            if key in _WITHHELD_OF_NOTES
            else item
            for key, item in value.items()
        }
    if name == "value" and event.kind == "domain_result" and event.actor == Actor.OPERATOR:
        return value  # who settled it
    plain = name == "principal" or not isinstance(value, Mapping)
    return value if name in _STRUCTURE and plain else withhold(value)


def _arguments(
    values: Mapping[str, JSON], columns: frozenset[str], withhold: Callable[[JSON], JSON]
) -> dict[str, JSON]:
    return {
        name: value
        if name in columns and isinstance(value, int | float | bool | str)
        else withhold(value)
        for name, value in values.items()
    }


def _is_runtimes_own(event: Event) -> bool:
    named = event.payload.get("name")
    return event.kind == "note" and event.actor == Actor.RUNTIME and named in {*RESERVED, CLOCK}
