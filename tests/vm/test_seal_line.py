"""Sealing and spelling at once gives what sealing and then spelling gives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.vm import Event, decode_line, encode_line, genesis, seal, seal_line, verify_chain
from sopilot.vm.values import plain_mapping

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(deadline=None)
@given(
    st.text(),
    st.text() | st.none(),
    st.dictionaries(st.text(), VALUES),
    st.floats(0, 1e10, allow_nan=False),
)
def test_the_same_hash_and_the_same_line(
    frame: str, process: str | None, payload: dict[str, object], at: float
) -> None:
    fields = plain_mapping({**payload, "hash": "forged", "kind": "forged"})
    event = Event(0, at, "model", "note", process, frame, fields)
    previous = genesis("s")
    sealed, line = seal_line(event, previous)
    assert sealed == seal(event, previous)
    assert line == encode_line(sealed)
    assert verify_chain([decode_line(line)], "s") is None
