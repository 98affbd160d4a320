"""What is withheld and masked, however many secrets a conversation knows."""

from __future__ import annotations

import gc

from hypothesis import given
from hypothesis import strategies as st

from sopilot.trace.events import Event
from sopilot.trace.redaction import MASK, SecretTexts, holds_secret, mask, redact, restore

_LETTERS = st.text(alphabet="ab1", min_size=3, max_size=6)
_SECRETS = st.frozensets(_LETTERS, min_size=1, max_size=8)
_MANY = frozenset(f"{number}:{number}" for number in range(1000, 3000))


@given(secrets=_SECRETS, text=st.text(alphabet="ab1 :", max_size=30))
def test_many_secrets_are_found_as_few_are(secrets: frozenset[str], text: str) -> None:
    there = any(one in text for one in secrets)
    few, many, learned = SecretTexts(secrets), SecretTexts(secrets | _MANY), SecretTexts(_MANY)
    assert holds_secret(text, few) == there
    assert holds_secret(text, many) == there
    assert holds_secret({text: [text]}, many) == there
    assert mask(text, many) == mask(text, few)
    assert (mask(text, few) != text) == there
    learned.learn(secrets)
    assert mask(text, learned) == mask(text, few)
    assert holds_secret({text: [text]}, learned) == there


def test_each_of_many_is_masked() -> None:
    assert mask("from 1000:1000 to 2999:2999", SecretTexts(_MANY)) == f"from {MASK} to {MASK}"
    assert mask({"value": "2500:2500", "place": 3}, SecretTexts(_MANY)) == {
        "value": MASK,
        "place": 3,
    }
    assert not holds_secret(["3000:3000", {"999:999": 1000}], SecretTexts(_MANY))
    assert holds_secret(["3000:3000", {"1999:1999": 1000}], SecretTexts(_MANY))


def test_nothing_of_it_stays_behind() -> None:
    """A session withholds in every event: what holds itself would be left for the collector."""
    call = {"arguments": {"pin": "1234", "more": [{"pin": "5678"}]}, "value": "1234 it is"}
    event = Event(0, 0.0, "model", "domain_call", None, "", call)
    secrets = frozenset({"1234"})
    gc.collect()
    gc.disable()
    try:
        kept, values = redact(event, names=frozenset({"pin"}), secrets=SecretTexts(secrets))
        assert restore(kept, values) == event
        assert mask(call, SecretTexts(secrets)) != call
        assert holds_secret(call, SecretTexts(secrets))
        assert gc.collect() == 0
    finally:
        gc.enable()
