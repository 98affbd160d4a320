from __future__ import annotations

from pathlib import Path

import pytest
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


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_mutated_lines(data: st.DataObject) -> None:
    lines = BANK.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        other = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["drop", "copy", "swap", "indent"])):
            case "drop" if len(lines) > 1:
                del lines[at]
            case "copy":
                lines.insert(other, lines[at])
            case "swap":
                lines[at], lines[other] = lines[other], lines[at]
            case _:
                lines[at] = "  " + lines[at]
        if len(lines) < 2:
            break
    check("\n".join(lines))


@pytest.mark.slow
@settings(deadline=None, max_examples=20_000)
@given(st.binary(max_size=100), st.integers(0, len(BANK)), st.integers(0, 50))
def test_bytes_in_a_handbook(noise: bytes, at: int, width: int) -> None:
    data = BANK.encode()
    check(data[:at] + noise + data[at + width :])
