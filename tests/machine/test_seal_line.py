"""A sealed line is the canonical JSON of its event, and its hash that of the rest of it."""

from __future__ import annotations

import hashlib
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.trace.chain import (
    FORMAT,
    decode_line,
    encode_line,
    genesis,
    seal,
    seal_line,
    verify_chain,
)
from sopilot.trace.events import Event
from sopilot.values.json import canonical, plain, plain_mapping

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(deadline=None)
@given(
    st.text(),
    st.text() | st.none(),
    st.dictionaries(st.text(), VALUES),
    st.floats(0, 1e10, allow_nan=False) | st.integers(0, 1 << 40),
)
def test_the_same_hash_and_the_same_line(
    frame: str, process: str | None, payload: dict[str, object], at: float
) -> None:
    fields = plain_mapping({**payload, "hash": "forged", "kind": "forged"})
    event = Event(0, at, "model", "note", process, frame, fields)
    previous = genesis("s")
    sealed, line = seal_line(event, previous)
    body = {**event._asdict(), "format": FORMAT, "previous": previous}
    assert sealed.hash == hashlib.sha256(canonical(body)).hexdigest()
    assert line.encode() == canonical({**body, "hash": sealed.hash})
    assert sealed == seal(event, previous)
    assert line == encode_line(sealed)
    assert verify_chain([decode_line(line)], "s") is None


@settings(deadline=None)
@given(VALUES)
def test_one_spelling_with_and_without_the_prepared_encoder(value: object) -> None:
    spelled = json.dumps(
        plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    assert canonical(plain(value)) == spelled.encode()
