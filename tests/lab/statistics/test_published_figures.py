"""Every figure the study prints must come out to its printed digits."""

from __future__ import annotations

import pytest

from sopilot_lab.statistics.intervals import Interval, clopper_pearson
from sopilot_lab.statistics.paired import Discordance, benjamini_hochberg, mcnemar, pool
from sopilot_lab.statistics.rates import Rate, balanced_accuracy


@pytest.mark.parametrize(
    ("wins", "losses", "printed"),
    [
        (26, 6, ".0005"),
        (9, 1, ".0215"),
        (6, 2, ".289"),
        (12, 9, ".664"),
        (16, 7, ".093"),
        (14, 32, ".0114"),
        (9, 42, "3.4e-06"),
        (58, 19, "9.8e-06"),
        (75, 31, "2.3e-05"),
        (41, 30, ".235"),
        (59, 237, "1.9e-26"),
        (57, 34, ".0206"),
        (36, 20, ".0440"),
        (27, 5, "1.1e-04"),
        (26, 8, ".0029"),
        (10, 26, ".0113"),
        (9, 9, "1.000"),
        (14, 14, "1.000"),
        (4, 5, "1.000"),
        (22, 18, ".636"),
        (32, 14, ".011"),
        (21, 18, ".749"),
        (26, 16, ".164"),
        (3, 4, "1.000"),
        (5, 3, ".727"),
        (15, 3, ".008"),
        (0, 0, "1.000"),
        (5, 1, ".219"),
        (11, 8, ".648"),
        (7, 3, ".344"),
        (10, 5, ".302"),
    ],
)
def test_printed_p_values(wins: int, losses: int, printed: str) -> None:
    p = mcnemar(wins, losses)
    if "e" in printed:
        assert f"{p:.1e}" == printed
    else:
        digits = len(printed.partition(".")[2])
        assert f"{p:.{digits}f}".removeprefix("0") == printed.removeprefix("0")


def test_pooled_domains() -> None:
    strong = [(9, 1), (13, 7), (2, 1), (4, 1), (16, 6), (14, 2), (0, 1)]
    second = [(6, 2), (26, 16), (3, 4), (5, 3), (20, 3), (15, 3), (0, 0)]
    weak = [(14, 32), (5, 19), (10, 43), (14, 54), (15, 66), (1, 23)]
    for parts, wins, losses in ((strong, 58, 19), (second, 75, 31), (weak, 59, 237)):
        assert pool(Discordance(*part) for part in parts) == Discordance(wins, losses)


def test_full_refusal_lower_bound() -> None:
    bounds = clopper_pearson(86, 86)
    assert isinstance(bounds, Interval)
    assert f"{bounds.low:.3f}" == "0.958"
    assert bounds.high == 1.0


def test_twelve_contrasts_keep_four_and_lose_the_single_runtime_gain() -> None:
    contrasts = [
        (26, 6), (9, 9), (14, 14), (16, 7), (22, 18), (32, 14),
        (9, 1), (6, 2), (12, 9), (4, 5), (14, 32), (9, 42),
    ]  # fmt: skip
    rows = benjamini_hochberg([mcnemar(*contrast) for contrast in contrasts])
    kept = {contrast for contrast, row in zip(contrasts, rows, strict=True) if row.rejected}
    assert kept == {(26, 6), (32, 14), (14, 32), (9, 42)}


@pytest.mark.parametrize(
    ("execute", "refuse", "printed"),
    [
        (28, 80, "82.4"), (30, 86, "88.5"), (24, 83, "79.0"), (27, 84, "83.5"),
        (24, 78, "76.1"), (28, 77, "80.7"), (25, 83, "80.3"), (25, 82, "79.7"),
        (18, 68, "62.6"), (4, 64, "42.3"), (27, 67, "73.6"), (9, 52, "41.8"),
    ],
)  # fmt: skip
def test_balanced_accuracy_of_the_screened_bank_set(
    execute: int, refuse: int, printed: str
) -> None:
    value = balanced_accuracy(Rate(execute, 39), Rate(refuse, 86))
    assert isinstance(value, float)
    assert f"{100 * value:.1f}" == printed
