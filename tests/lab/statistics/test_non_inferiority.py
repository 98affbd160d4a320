"""The exact test of non-inferiority against brute enumeration, in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot_lab.statistics.intervals import Undefined
from sopilot_lab.statistics.non_inferiority import (
    least_pairs,
    most_losses,
    non_inferiority,
    non_inferiority_power,
)

MARGIN = 0.05


def likeliest(wins: int, losses: int, pairs: int, margin: float) -> float:
    """The restricted likelihood's maximum found by bisection on its slope: an implementation
    that shares no formula with the one under test."""
    ties = pairs - wins - losses

    def slope(loss: float) -> float:
        found = -2.0 * ties / max(1e-300, 1.0 + margin - 2.0 * loss)
        found += losses / loss
        return found + (wins / max(1e-300, loss - margin) if wins else 0.0)

    low, high = margin + 1e-15, (1.0 + margin) / 2.0 - 1e-15
    if slope(low) <= 0:
        return margin
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return low


def statistic(wins: int, losses: int, pairs: int, margin: float) -> float:
    loss = likeliest(wins, losses, pairs, margin)
    variance = pairs * (2.0 * loss - margin - margin * margin)
    return (wins - losses + pairs * margin) / math.sqrt(variance)


def enumerated(wins: int, losses: int, pairs: int, margin: float, points: int = 200) -> float:
    """Every outcome, every share of losses on a grid; fractions until the end."""
    seen = statistic(wins, losses, pairs, margin)
    region = [
        (won, lost)
        for won in range(pairs + 1)
        for lost in range(pairs - won + 1)
        if statistic(won, lost, pairs, margin) >= seen - 1e-7
    ]
    exact = Fraction(margin).limit_denominator(1000)
    most = Fraction(0)
    for index in range(points + 1):
        loss = exact + ((1 + exact) / 2 - exact) * Fraction(index, points)
        win, tie = loss - exact, 1 - 2 * loss + exact
        total = Fraction(0)
        for won, lost in region:
            ways = math.comb(pairs, won) * math.comb(pairs - won, lost)
            total += ways * win**won * loss**lost * tie ** (pairs - won - lost)
        most = max(most, total)
    return float(most)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 9), st.sampled_from([0.05, 0.1, 0.25]), st.data())
def test_the_p_value_is_that_of_the_enumeration(
    pairs: int, margin: float, data: st.DataObject
) -> None:
    wins = data.draw(st.integers(0, pairs))
    losses = data.draw(st.integers(0, pairs - wins))
    found = non_inferiority(wins, losses, pairs, margin=margin)
    expected = enumerated(wins, losses, pairs, margin)
    assert isinstance(found, float)
    # The reference looks at a grid alone, so it may miss the peak by a little, from below.
    assert expected - 1e-9 <= found <= expected + 2e-3


@pytest.mark.parametrize("pairs", [59, 60, 100])
def test_agreement_alone_is_a_power_of_what_remains(pairs: int) -> None:
    """Where nothing is won, no loss in n pairs has the chance (1 - margin) ** n."""
    found = non_inferiority(0, 0, pairs, margin=MARGIN)
    assert isinstance(found, float)
    assert found >= (1 - MARGIN) ** pairs - 1e-12
    if pairs <= 60:
        assert found == pytest.approx((1 - MARGIN) ** pairs)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.data())
def test_a_loss_more_never_helps(pairs: int, data: st.DataObject) -> None:
    wins = data.draw(st.integers(0, pairs - 1))
    losses = data.draw(st.integers(0, pairs - wins - 1))
    one_more = non_inferiority(wins, losses + 1, pairs, margin=MARGIN)
    assert isinstance(one_more, float)
    now = non_inferiority(wins, losses, pairs, margin=MARGIN)
    assert isinstance(now, float)
    assert now <= one_more + 1e-9
    better = non_inferiority(wins + 1, losses, pairs, margin=MARGIN)
    assert isinstance(better, float)
    assert better <= now + 1e-9


def test_what_so_many_pairs_can_show() -> None:
    assert least_pairs(margin=MARGIN) == 59
    assert isinstance(most_losses(58, margin=MARGIN), Undefined)
    assert [most_losses(n, margin=MARGIN) for n in (59, 60, 100, 150)] == [0, 0, 1, 2]
    assert non_inferiority(0, 1, 1, margin=MARGIN) == 1.0
    assert non_inferiority_power(60, win=0, loss=0, margin=MARGIN) == 1.0
    assert non_inferiority_power(60, win=0, loss=0.01, margin=MARGIN) == pytest.approx(0.99**60)


@pytest.mark.parametrize(("margin", "alpha"), [(0.05, 0.05), (0.05, 0.01), (0.3, 0.05), (0.5, 0.5)])
def test_the_fewest_pairs_show_it_and_no_fewer_do(margin: float, alpha: float) -> None:
    """Also where (1 - margin) ** n alone would promise fewer."""

    def shown(pairs: int) -> bool:
        found = non_inferiority(0, 0, pairs, margin=margin)
        assert isinstance(found, float)
        return found <= alpha

    least = least_pairs(margin=margin, alpha=alpha)
    assert [shown(pairs) for pairs in range(1, least + 1)] == [False] * (least - 1) + [True]


@pytest.mark.parametrize(("win", "loss"), [(0.9, 0.1), (0.5, 0.1), (0.0, 0.2)])
def test_the_chance_to_show_it_adds_up_every_outcome_that_does(win: float, loss: float) -> None:
    total = 0.0
    for wins in range(13):
        for losses in range(13 - wins):
            found = non_inferiority(wins, losses, 12, margin=0.25)
            assert isinstance(found, float)
            if found <= 0.05:
                ways = math.comb(12, wins) * math.comb(12 - wins, losses)
                total += ways * win**wins * loss**losses * (1 - win - loss) ** (12 - wins - losses)
    power = non_inferiority_power(12, win=win, loss=loss, margin=0.25)
    assert power == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize(
    ("pairs", "win", "loss", "power"),
    [
        (60, 0.002, 0.002, 0.89), (60, 0.005, 0.005, 0.75), (60, 0.01, 0.01, 0.59),
        (100, 0.002, 0.002, 0.98), (100, 0.005, 0.005, 0.92), (100, 0.01, 0.01, 0.79),
        (150, 0.002, 0.002, 1.00), (150, 0.005, 0.005, 0.98), (150, 0.01, 0.01, 0.93),
        # Models that err often: no difference in a fifth of the pairs; a loss of 8 points.
        (100, 0.1, 0.1, 0.26), (100, 0.06, 0.137, 0.01),
    ],
)  # fmt: skip
def test_the_figures_of_the_design_note(pairs: int, win: float, loss: float, power: float) -> None:
    assert round(non_inferiority_power(pairs, win=win, loss=loss, margin=MARGIN), 2) == power
