from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz_readers import read_any_handbook

HERE = Path(__file__).parent
BANK = (HERE / "valid" / "bank_desk.yaml").read_text(encoding="utf-8")
WORDS = st.sampled_from(
    ["(", ")", "{", "}", "[", "]", ":", ": ", "- ", "\n", "\n  ", "#", "'", '"', "\t", "not", "all",
     "any:", "null", "*a", "&a", "!!x", "---", "|", ">", "é", "\x00", "\x85", "\u2028", ",", "=",
     "0x", "says", "verify", "<<", "? ", "\\", "true", "1e999", "9" * 400]
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200) | st.text(max_size=200))
def test_random_data(data: str | bytes) -> None:
    read_any_handbook(data)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_mutated_handbook(data: st.DataObject) -> None:
    text = BANK
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(WORDS) + text[end:]
    read_any_handbook(text)
