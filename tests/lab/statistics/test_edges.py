"""Where a figure begins and ceases to exist, and what holds where nothing is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sopilot.messages.errors import UserMistake
from sopilot_lab.statistics.accuracy import Rate, balanced_accuracy
from sopilot_lab.statistics.binomial import at_most, fair_tail, probability
from sopilot_lab.statistics.bootstrap import bootstrap_interval
from sopilot_lab.statistics.clustered import sign_flip
from sopilot_lab.statistics.intervals import clopper_pearson, paired_difference, score, wilson
from sopilot_lab.statistics.non_inferiority import least_pairs, most_losses, non_inferiority
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import Discordance, benjamini_hochberg
from sopilot_lab.statistics.power import mcnemar_power, minimum_detectable_effect, tasks_needed
from sopilot_lab.statistics.undefined import Undefined

UNITS = [(1, 2), (0, 1), (2, 2)]


def mean(sums: tuple[int, ...]) -> float:
    return sums[0] / sums[1]


@pytest.mark.parametrize(
    ("silent", "said"),
    [
        (lambda: clopper_pearson(3, 9), lambda: clopper_pearson(3, 9, 0.95)),
        (lambda: wilson(3, 9), lambda: wilson(3, 9, 0.95)),
        (lambda: paired_difference(3, 1, 9), lambda: paired_difference(3, 1, 9, 0.95)),
        (
            lambda: mcnemar_power(40, discordance=0.3, effect=0.2),
            lambda: mcnemar_power(40, discordance=0.3, effect=0.2, alpha=0.05),
        ),
        (
            lambda: minimum_detectable_effect(90, discordance=0.3),
            lambda: minimum_detectable_effect(90, discordance=0.3, alpha=0.05, power=0.8),
        ),
        (
            lambda: tasks_needed(discordance=0.3, effect=0.2),
            lambda: tasks_needed(discordance=0.3, effect=0.2, alpha=0.05, power=0.8),
        ),
        (lambda: most_losses(99, margin=0.1), lambda: most_losses(99, margin=0.1, alpha=0.05)),
        (lambda: least_pairs(margin=0.1), lambda: least_pairs(margin=0.1, alpha=0.05)),
        (
            lambda: bootstrap_interval(UNITS, mean, seed=1),
            lambda: bootstrap_interval(UNITS, mean, confidence=0.95, draws=10_000, seed=1),
        ),
        (
            lambda: sign_flip([3, 1, 2, -1], exact=False),
            lambda: sign_flip([3, 1, 2, -1], exact=False, draws=20_000, seed=27),
        ),
    ],
)
def test_what_holds_where_nothing_is_said(
    silent: Callable[[], object], said: Callable[[], object]
) -> None:
    assert silent() == said()


@pytest.mark.parametrize(
    "asked",
    [
        lambda: clopper_pearson(-1, 9),
        lambda: clopper_pearson(10, 9),
        lambda: wilson(3, 9, 1.0),
        lambda: wilson(3, 9, 0.0),
        lambda: paired_difference(-1, 1, 9),
        lambda: paired_difference(1, -1, 9),
        lambda: paired_difference(5, 5, 9),
        lambda: bootstrap_interval(UNITS, mean, draws=0, seed=1),
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
        lambda: balanced_accuracy(Rate(2, 1), Rate(1, 1)),
        lambda: balanced_accuracy(Rate(1, 1), Rate(-1, 1)),
    ],
)
def test_what_is_no_question_is_refused(asked: Callable[[], Any]) -> None:
    with pytest.raises(UserMistake):
        asked()


def test_units_have_the_same_columns() -> None:
    with pytest.raises(ValueError, match="shorter"):
        bootstrap_interval([(1, 2), (1,)], mean, draws=20, seed=1)


@pytest.mark.parametrize(
    "asked",
    [
        lambda: paired_difference(5, 4, 9),
        lambda: paired_difference(0, 0, 1),
        lambda: clopper_pearson(9, 9),
        lambda: clopper_pearson(0, 9),
        lambda: bootstrap_interval(UNITS[:2], mean, draws=1, seed=1),
        lambda: sign_flip([1], exact=False, draws=1),
        lambda: mcnemar_power(0, discordance=1.0, effect=1.0),
        lambda: mcnemar_power(9, discordance=0.3, effect=-0.3),
        lambda: non_inferiority(5, 4, 9, margin=0.1),
        lambda: non_inferiority(0, 0, 2_000, margin=0.5),
        lambda: balanced_accuracy(Rate(1, 1), Rate(0, 1)),
    ],
)
def test_the_last_that_is_one_is_answered(asked: Callable[[], Any]) -> None:
    assert not isinstance(asked(), Undefined)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (lambda: clopper_pearson(0, 0), "no trials"),
        (lambda: wilson(0, 0), "no trials"),
        (lambda: paired_difference(0, 0, 0), "no pairs"),
        (lambda: non_inferiority(0, 0, 0, margin=0.1), "no pairs"),
        (lambda: bootstrap_interval(UNITS[:1], mean, seed=1), "two units"),
        (lambda: bootstrap_interval(UNITS, lambda _: None, draws=9, seed=1), "in no draw"),
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


def test_chances_outside_of_what_can_happen() -> None:
    some = [probability(one, 3, 0.5) for one in (-1, 0, 3, 4)]
    assert some == pytest.approx([0.0, 0.125, 0.125, 0.0])
    assert [probability(one, 3, 1.0) for one in (0, 2, 3)] == [0.0, 0.0, 1.0]
    assert [probability(one, 3, 0.0) for one in (0, 1, 3)] == [1.0, 0.0, 0.0]
    some = [at_most(one, 3, 0.5) for one in (-1, 0, 3, 4)]
    assert some == pytest.approx([0.0, 0.125, 1.0, 1.0])
    assert [at_most(one, 3, 1.0) for one in (0, 2, 3)] == [0.0, 0.0, 1.0]
    assert [at_most(one, 3, 0.0) for one in (-1, 0, 2)] == [0.0, 1.0, 1.0]
    assert [fair_tail(one, 3) for one in (-1, 0, 1, 2, 3, 4)] == [0, 1, 4, 7, 8, 8]


def test_a_difference_that_nothing_speaks_for_or_against() -> None:
    assert score(0, 0, 5, 0.0) == 0.0
    assert score(5, 0, 5, 1.0) == 0.0
    assert score(4, 0, 5, 1.0) == -math.inf
    assert score(0, 4, 5, -1.0) == math.inf
    assert score(3, 1, 9, 0.0) == pytest.approx(1.0)


def test_units_are_clusters_or_goals_of_a_domain() -> None:
    one = RunOutcome(task="t", goal="g", kind=TaskKind.EXECUTE, passed=True)
    assert one.unit == "g"
    assert replace(one, domain="d").unit == "d/g"
    assert replace(one, domain="d", cluster="c").unit == "c"
    both = Discordance(3, 1) + Discordance(2, 2)
    assert (both.total, both.net, both - Discordance(1, 1)) == (8, 2, Discordance(4, 2))
