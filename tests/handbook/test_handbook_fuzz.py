from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.handbook.reader import read_handbook
from sopilot.handbook.writer import write_handbook
from sopilot.messages.diagnostic import Severity

HERE = Path(__file__).parent
BANK = (HERE / "valid" / "bank_desk.yaml").read_text(encoding="utf-8")
WORDS = st.sampled_from(
    ["(", ")", "{", "}", "[", "]", ":", ": ", "- ", "\n", "\n  ", "#", "'", '"', "\t", "not", "all",
     "any:", "null", "*a", "&a", "!!x", "---", "|", ">", "é", "\x00", "\x85", "\u2028", ",", "=",
     "0x", "says", "verify", "<<", "? ", "\\", "true", "1e999", "9" * 400]
)  # fmt: skip


def check(data: str | bytes) -> None:
    handbook, diagnostics = read_handbook(data, "fuzz.yaml")
    errors = [one for one in diagnostics if one.severity is Severity.ERROR]
    assert (handbook is None) == bool(errors)
    if handbook is not None:
        assert read_handbook(write_handbook(handbook))[0] == handbook


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200) | st.text(max_size=200))
def test_random_data(data: str | bytes) -> None:
    check(data)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_mutated_handbook(data: st.DataObject) -> None:
    text = BANK
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(WORDS) + text[end:]
    check(text)
