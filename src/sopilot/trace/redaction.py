"""Values stored outside of the trace: a reference takes their place before sealing.

``redact`` withholds named values and secrets. ``hide`` withholds everything that people, models or
tools said, except the columns of the register. The chain verifies without the withheld values.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeGuard

from sopilot.trace.events import CLOCK, RESERVED, Actor, Event
from sopilot.values.json import JSON, canonical, parts_of

REF = "$ref"
_REFERENCE = frozenset({REF, "bytes"})

SCALARS = frozenset({str, int, float, bool, type(None)})
"""The types of most values. Checking the type is faster than checking for a mapping."""

_WHOLE = ("value", "text", "content", "summary", "reason", "details", "arguments")
"""Payload fields that may be large, and are withheld whole."""

DEEPEST = 16
"""The deepest nesting of withheld values that is restored."""


def reference(value: JSON, salt: bytes = b"") -> dict[str, JSON]:
    """Commit to the value. Use a salt: short secrets can be guessed from a bare digest."""
    return _commitment(canonical(value), salt)


def _commitment(spelled: bytes, salt: bytes) -> dict[str, JSON]:
    return {REF: hashlib.sha256(salt + spelled).hexdigest(), "bytes": len(spelled)}


def is_reference(value: JSON) -> TypeGuard[Mapping[str, JSON]]:
    # Hot path: the type or size decides most cases.
    return (
        type(value) not in SCALARS
        and isinstance(value, Mapping)
        and len(value) == len(_REFERENCE)
        and value.keys() == _REFERENCE
    )


def has_withheld(value: JSON) -> bool:
    """Whether a reference stands for the value or for some part of it."""
    return type(value) not in SCALARS and any(map(is_reference, parts_of(value)))


WITHHELD = "withheld"
"""Stands for text that is stored beside the trace or was erased."""


def words_of(value: JSON) -> str:
    """The text of a field, which may be withheld."""
    return WITHHELD if is_reference(value) else str(value or "")


def references_in(value: JSON) -> list[str]:
    """The digest of every reference in it."""
    return [str(part[REF]) for part in parts_of(value) if is_reference(part)]


class SecretTexts:
    """Texts that must not be shown. If there are many, the parts of a short text are looked up
    instead of searching the text for each secret."""

    __slots__ = ("_lengths", "_texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = set(texts)
        self._lengths = set(map(len, self._texts))

    def __bool__(self) -> bool:
        return bool(self._texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def learn(self, texts: Collection[str]) -> None:
        if texts:
            self._texts.update(texts)
            self._lengths.update(map(len, texts))

    def holds(self, text: str) -> bool:
        """Whether the text contains a secret."""
        texts, lengths = self._texts, self._lengths
        if len(texts) <= _FEW or len(text) * len(lengths) > len(texts):
            return any(item in text for item in texts)
        return any(
            text[start : start + length] in texts
            for length in lengths
            for start in range(len(text) - length + 1)
        )

    def has(self, value: JSON) -> bool:
        """Whether a number is a secret."""
        return not self._texts.isdisjoint(_spellings(value))

    def masked(self, text: str) -> str:
        # Mark all places first, so that nothing remains of overlapping secrets.
        hidden = [False] * len(text)
        for item in self._texts:
            start = text.find(item) if item else -1
            while start >= 0:
                hidden[start : start + len(item)] = [True] * len(item)
                start = text.find(item, start + 1)
        masked: list[str] = []
        for index, character in enumerate(text):
            if not hidden[index]:
                masked.append(character)
            elif index == 0 or not hidden[index - 1]:
                masked.append(MASK)
        return "".join(masked)


NO_SECRETS = SecretTexts()


def redact(
    event: Event,
    *,
    names: frozenset[str] = frozenset(),
    limit: int | None = None,
    salt: bytes = b"",
    secrets: SecretTexts = NO_SECRETS,
    strange: frozenset[str] = frozenset(),
) -> tuple[Event, dict[str, JSON]]:
    """The event with references, and what they stand for (digest → value).

    Withholds every value under one of ``names`` anywhere in the payload, every argument under one
    of the ``strange`` names, every field of more than ``limit`` bytes, and whatever contains one of
    ``secrets``: a text, the keys of an object, a number in arguments and answers. Redact before
    sealing: the hash then covers the digests, and the trace verifies without the values.
    """
    work = _Redaction(names, strange, salt, secrets)
    # Hot path: most events contain nothing to withhold and need no walk.
    touched = secrets or strange or (names and _has_key(event.payload, names))
    payload = work.inside(event.payload, names) if touched else dict(event.payload)
    if limit is not None:
        for name in _WHOLE:
            value = payload.get(name)
            if value is None:
                continue
            spelled = canonical(value)
            if len(spelled) > limit:
                payload[name] = work.withhold(value, spelled)
    return event._replace(payload=payload), work.withheld


class _Withholding:
    """Replaces values of one event by references. A class and no nested functions: recursive
    closures are reference cycles, and every event would leave one to the garbage collector."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self.withheld: dict[str, JSON] = {}

    def withhold(self, value: JSON, spelled: bytes | None = None) -> dict[str, JSON]:
        if is_reference(value):
            return dict(value)
        ref = _commitment(canonical(value) if spelled is None else spelled, self._salt)
        self.withheld[str(ref[REF])] = value
        return ref


class _Redaction(_Withholding):
    """Withholds secrets."""

    def __init__(
        self, names: frozenset[str], strange: frozenset[str], salt: bytes, secrets: SecretTexts
    ) -> None:
        super().__init__(salt)
        self._names = names
        self._strange = strange
        self._secrets = secrets

    def inside(
        self, value: Mapping[str, JSON], here: frozenset[str], data: bool = False
    ) -> dict[str, JSON]:
        values: dict[str, JSON] = {}
        for key, item in value.items():
            if key in here and item is not None:
                values[key] = self.withhold(item)
            else:
                below = self._names | self._strange if key == "arguments" else here
                values[key] = self._walk(item, below, data or key in _DATA)
        return values

    def _walk(self, value: JSON, here: frozenset[str], data: bool) -> JSON:
        secrets = self._secrets
        if isinstance(value, str):
            return self.withhold(value) if secrets and secrets.holds(value) else value
        if type(value) is dict or isinstance(value, Mapping):
            message = data and secrets and any(map(secrets.holds, value))
            return self.withhold(value) if message else self.inside(value, here, data)
        if isinstance(value, list):
            return [self._walk(item, here, data) for item in value]
        return self.withhold(value) if data and secrets.has(value) else value


def _has_key(value: JSON, names: frozenset[str]) -> bool:
    """Whether one of these names stands anywhere in it."""
    if isinstance(value, Mapping):
        return not names.isdisjoint(value) or any(
            type(item) not in SCALARS and _has_key(item, names) for item in value.values()
        )
    return isinstance(value, list) and any(
        type(item) not in SCALARS and _has_key(item, names) for item in value
    )


def restore(event: Event, values: Mapping[str, JSON]) -> Event:
    """The event with every reference resolved that ``values`` (digest → value) knows."""
    payload = _restored(event.payload, values, frozenset())
    return event._replace(payload=payload if isinstance(payload, Mapping) else event.payload)


def _restored(value: JSON, values: Mapping[str, JSON], inside: frozenset[str]) -> JSON:
    if is_reference(value):
        ref = value[REF]
        # A withheld value may hold references. A reference to itself can't be a digest; keep it.
        known = isinstance(ref, str) and ref in values and ref not in inside
        if not known or len(inside) >= DEEPEST:
            return value
        return _restored(values[str(ref)], values, inside | {str(ref)})
    if isinstance(value, Mapping):
        return {key: _restored(item, values, inside) for key, item in value.items()}
    if isinstance(value, list):
        return [_restored(item, values, inside) for item in value]
    return value


MASK = "•••"


def mask(value: JSON, secrets: SecretTexts, *, data: bool = False) -> JSON:
    """The value with every secret masked: in texts and keys, and with ``data`` (in arguments and
    answers) in numbers."""
    if isinstance(value, str):
        return secrets.masked(value) if secrets.holds(value) else value
    if isinstance(value, Mapping):
        return {
            str(mask(key, secrets, data=data)) if data else key: mask(
                item, secrets, data=data or key in _DATA
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [mask(item, secrets, data=data) for item in value]
    return MASK if data and secrets.has(value) else value


def without_names(value: JSON, names: frozenset[str]) -> JSON:
    """The value with everything under one of these names masked."""
    if isinstance(value, Mapping):
        return {
            key: MASK if key in names and item is not None else without_names(item, names)
            for key, item in value.items()
        }
    return [without_names(item, names) for item in value] if isinstance(value, list) else value


_DATA = frozenset({"arguments", "value", "resolved", "learned"})
"""Fields with values of people and tools. Numbers elsewhere are the machine's own."""

_FEW = 40

SHORTEST = 3
"""Shorter secrets are withheld by name only, since every text contains a digit."""


def holds_secret(value: JSON, secrets: SecretTexts) -> bool:
    """Whether a value contains a secret."""
    for part in parts_of(value):
        texts = part if isinstance(part, Mapping) else (part,) if isinstance(part, str) else ()
        if any(map(secrets.holds, texts)) or secrets.has(part):
            return True
    return False


def secrets_under(names: frozenset[str], value: JSON) -> set[str]:
    """The values under these names as texts, including an object's fields. References don't count:
    their values aren't here."""
    texts: set[str] = set()
    _gather(names, value, texts)
    return {item for item in texts if len(item) >= SHORTEST} if texts else texts


def _gather(names: frozenset[str], value: JSON, texts: set[str]) -> None:
    if type(value) is dict or isinstance(value, Mapping):
        for key, item in value.items():
            if key in names:
                texts |= _scalars(item)
            elif type(item) not in SCALARS:
                _gather(names, item, texts)
    elif isinstance(value, list | tuple):
        for item in value:
            if type(item) not in SCALARS:
                _gather(names, item, texts)


def _scalars(value: JSON) -> set[str]:
    if isinstance(value, Mapping):
        parts: Iterable[JSON] = () if is_reference(value) else value.values()
        return {scalar for part in parts for scalar in _scalars(part)}
    if isinstance(value, list | tuple):
        return {scalar for part in value for scalar in _scalars(part)}
    return _spellings(value)


def _spellings(value: JSON) -> set[str]:
    """The value as plain text and as JSON inside of a text; 5.0 is also 5."""
    if isinstance(value, str):
        value = value.strip()
        return {value, *(json.dumps(value, ensure_ascii=item)[1:-1] for item in (True, False))}
    if isinstance(value, bool) or not isinstance(value, int | float):
        return set()
    whole = isinstance(value, float) and value.is_integer()
    return {str(value), str(int(value))} if whole else {str(value)}


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
_WITHHELD_OF_NOTES = frozenset({"arguments", "message", "why"})
_CITED = re.compile(r"#?\d+")


def hide(event: Event, *, columns: frozenset[str], salt: bytes) -> tuple[Event, dict[str, JSON]]:
    """The event with references, and what they stand for (digest → value)."""
    work = _Hiding(event, columns, salt)
    return event._replace(payload=work.fields(event.payload)), work.withheld


class _Hiding(_Withholding):
    """Withholds everything that people, models or tools said."""

    def __init__(self, event: Event, columns: frozenset[str], salt: bytes) -> None:
        super().__init__(salt)
        self._event = event
        self._columns = columns

    def fields(self, payload: Mapping[str, JSON]) -> dict[str, JSON]:
        return {name: self._field(name, value) for name, value in payload.items()}

    def _field(self, name: str, value: JSON) -> JSON:
        if name == "arguments" and isinstance(value, Mapping):
            return self._arguments(value)
        if name in _INSIDE and isinstance(value, Mapping):
            return self.fields(value)
        if name in ("evidence", "uses") and isinstance(value, list | tuple):
            cited = all(isinstance(item, int) or _CITED.fullmatch(str(item)) for item in value)
            return value if cited else self._hidden(value)
        if name == "details" and isinstance(value, Mapping) and self._is_runtimes_own():
            return {
                key: (self._arguments(item) if isinstance(item, Mapping) else self._hidden(item))
                if key in _WITHHELD_OF_NOTES
                else item
                for key, item in value.items()
            }
        if (
            name == "value"
            and self._event.kind == "domain_result"
            and self._event.actor == Actor.OPERATOR
        ):
            return value  # the person who resolved the outcome
        plain = name == "principal" or not isinstance(value, Mapping)
        return value if name in _STRUCTURE and plain else self._hidden(value)

    def _arguments(self, values: Mapping[str, JSON]) -> dict[str, JSON]:
        return {
            name: value
            if name in self._columns and isinstance(value, int | float | bool | str)
            else self._hidden(value)
            for name, value in values.items()
        }

    def _hidden(self, value: JSON) -> JSON:
        return value if value in (None, "", {}, []) else self.withhold(value)

    def _is_runtimes_own(self) -> bool:
        return self._event.actor == Actor.RUNTIME and self._event.note in {*RESERVED, CLOCK}
