"""Numbers as suppliers write them: the right number or none."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quotation.amounts import UnreadableAmount, read_amount, rounded

AMOUNTS = st.decimals(min_value=0, max_value=10**9, places=2)
OTHER = {".": ",", ",": "."}


def written(amount: Decimal, mark: str, *, grouped: bool) -> str:
    text = f"{amount:,.2f}" if grouped else f"{amount:.2f}"
    return text.translate(str.maketrans(",.", OTHER[mark] + mark))


@given(AMOUNTS, st.sampled_from(".,"), st.booleans())
@settings(deadline=None)
def test_the_agreed_mark_gives_the_number(amount: Decimal, mark: str, grouped: bool) -> None:
    assert read_amount(written(amount, mark, grouped=grouped), mark) == amount


@given(AMOUNTS, st.sampled_from(".,"), st.booleans())
@settings(deadline=None)
def test_the_other_mark_gives_no_number(amount: Decimal, mark: str, grouped: bool) -> None:
    with pytest.raises(UnreadableAmount):
        read_amount(written(amount, OTHER[mark], grouped=grouped), mark)


@given(st.text(max_size=12), st.sampled_from(".,"))
@settings(deadline=None)
def test_any_text_is_a_plain_number_or_refused(text: str, mark: str) -> None:
    try:
        amount = read_amount(text, mark)
    except UnreadableAmount:
        return
    digits = text.strip().replace(OTHER[mark], "").replace(mark, ".")
    assert amount == Decimal(digits)
    assert amount >= 0


@pytest.mark.parametrize("text", ["1,234", "1.234", "12.500", "999,000"])
@pytest.mark.parametrize("mark", [".", ","])
def test_thousands_that_could_be_decimals_are_refused(text: str, mark: str) -> None:
    with pytest.raises(UnreadableAmount, match="could be thousands or decimals"):
        read_amount(text, mark)


@pytest.mark.parametrize(
    ("value", "wanted"), [("2.675", "2.68"), ("2.665", "2.67"), ("-0.005", "-0.01"), ("1", "1.00")]
)
def test_halves_go_away_from_zero(value: str, wanted: str) -> None:
    assert rounded(Decimal(value), 2) == Decimal(wanted)
