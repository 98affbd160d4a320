"""Where a figure begins and ceases to exist, and what holds where nothing is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sopilot.messages.errors import UserMistake
from sopilot_lab.statistics.clustered import sign_flip
from sopilot_lab.statistics.intervals import (
    Undefined,
    clopper_pearson,
    clustered_interval,
    paired_difference,
    ratio,
    wilson,
)
from sopilot_lab.statistics.non_inferiority import (
    least_pairs,
    most_losses,
    non_inferiority,
    non_inferiority_power,
)
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import Discordance, benjamini_hochberg, mcnemar
from sopilot_lab.statistics.power import mcnemar_power, minimum_detectable_effect, tasks_needed
from sopilot_lab.statistics.rates import Rate, balanced_accuracy, pass_k

RUN = RunOutcome(task="t", goal="g", kind=TaskKind.EXECUTE, passed=True)
UNITS = [("a", (1, 2)), ("b", (0, 1)), ("c", (2, 2))]


@pytest.mark.parametrize(
    "asked",
    [
        lambda: mcnemar(-1, 2),
        lambda: mcnemar(2, -1),
        lambda: benjamini_hochberg([math.nan]),
        lambda: benjamini_hochberg([0.1], q=0.0),
        lambda: pass_k([], 0),
        lambda: pass_k([RUN, RUN], 1),
        lambda: clopper_pearson(-1, 9),
        lambda: clopper_pearson(10, 9),
        lambda: wilson(3, 9, 1.0),
        lambda: wilson(3, 9, 0.0),
        lambda: paired_difference(-1, 1, 9),
        lambda: paired_difference(1, -1, 9),
        lambda: paired_difference(5, 5, 9),
        lambda: clustered_interval(UNITS, ratio, draws=0),
        lambda: sign_flip([1], exact=False, draws=0),
        lambda: mcnemar_power(-1, discordance=0.3, effect=0.2),
        lambda: mcnemar_power(9, discordance=0.0, effect=0.0),
        lambda: mcnemar_power(9, discordance=1.1, effect=0.0),
        lambda: mcnemar_power(9, discordance=0.3, effect=-0.4),
        lambda: mcnemar_power(9, discordance=0.3, effect=0.2, alpha=1.0),
        lambda: minimum_detectable_effect(-1, discordance=0.3),
        lambda: minimum_detectable_effect(9, discordance=0.3, alpha=0.8),
        lambda: minimum_detectable_effect(9, discordance=0.3, power=1.0),
        lambda: tasks_needed(discordance=0.3, effect=0.2, alpha=0.8),
        lambda: non_inferiority(-1, 0, 9, margin=0.1),
        lambda: non_inferiority(0, -1, 9, margin=0.1),
        lambda: non_inferiority(5, 5, 9, margin=0.1),
        lambda: non_inferiority(0, 0, 2_001, margin=0.1),
        lambda: non_inferiority(0, 0, 9, margin=1.0),
        lambda: most_losses(9, margin=0.1, alpha=0.0),
        lambda: least_pairs(margin=0.1, alpha=1.0),
        lambda: least_pairs(margin=0.0),
        lambda: non_inferiority_power(9, win=-0.1, loss=0.1, margin=0.1),
        lambda: non_inferiority_power(9, win=0.1, loss=-0.1, margin=0.1),
        lambda: non_inferiority_power(9, win=0.6, loss=0.5, margin=0.1),
        lambda: non_inferiority_power(9, win=0.1, loss=0.1, margin=0.1, alpha=1.0),
        lambda: balanced_accuracy(Rate(2, 1), Rate(1, 1)),
        lambda: balanced_accuracy(Rate(1, 1), Rate(-1, 1)),
    ],
)
def test_what_is_no_question_is_refused(asked: Callable[[], Any]) -> None:
    with pytest.raises(UserMistake):
        asked()


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (lambda: clopper_pearson(0, 0), "no trials"),
        (lambda: wilson(0, 0), "no trials"),
        (lambda: paired_difference(0, 0, 0), "no pairs"),
        (lambda: non_inferiority(0, 0, 0, margin=0.1), "no pairs"),
        (lambda: clustered_interval(UNITS[:1], ratio), "two units"),
        (lambda: clustered_interval(UNITS, lambda _: None, draws=9), "undefined in every draw"),
        (lambda: minimum_detectable_effect(0, discordance=0.3), "with 0 tasks power is 0.000"),
        (lambda: tasks_needed(discordance=0.3, effect=0.0), "an effect of 0"),
        (lambda: tasks_needed(discordance=1.0, effect=0.001), "more than 20000 tasks"),
        (lambda: most_losses(1, margin=0.01), "1 pairs cannot show it"),
        (lambda: balanced_accuracy(Rate(), Rate(1, 1)), "no judged execute task"),
        (lambda: balanced_accuracy(Rate(1, 1), Rate()), "no judged refuse task"),
        (lambda: Rate().share, "no judged run"),
    ],
)
def test_what_does_not_exist_says_why(asked: Callable[[], Any], says: str) -> None:
    found = asked()
    assert isinstance(found, Undefined)
    assert says in found.reason


@pytest.mark.parametrize(
    ("nets", "sampled"),
    [
        ([1250] * 16, False),
        ([2000] * 16, False),
        ([1250] * 15 + [1249, 1], False),  # 17 units whose nets add up to 20,000
        ([1250] * 16 + [1], True),
    ],
)
def test_few_units_or_small_nets_are_counted_and_not_sampled(
    nets: list[int], sampled: bool
) -> None:
    assert (sign_flip(nets, draws=10).draws == 10) is sampled


def test_a_discovery_at_the_threshold_is_one() -> None:
    assert [one.rejected for one in benjamini_hochberg([0.05], 0.05)] == [True]
    assert [one.rejected for one in benjamini_hochberg([0.050001], 0.05)] == [False]
    assert [one.rejected for one in benjamini_hochberg([0.04, 0.05], 0.05)] == [True, True]


def test_units_are_clusters_or_goals_of_a_domain() -> None:
    assert RUN.unit == "g"
    assert replace(RUN, domain="d").unit == "d/g"
    assert replace(RUN, domain="d", cluster="c").unit == "c"
    both = Discordance(3, 1) + Discordance(2, 2)
    assert (both.total, both.net, both - Discordance(1, 1)) == (8, 2, Discordance(4, 2))
