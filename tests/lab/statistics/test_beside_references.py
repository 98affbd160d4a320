"""Figures beside references that are written in another way, and whole answers where nothing is."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from sopilot.messages.diagnostic import Diagnostic, Place
from sopilot.messages.errors import UserMistake
from sopilot_lab.statistics import figures
from sopilot_lab.statistics.binomial import as_p, at_most, probability
from sopilot_lab.statistics.clustered import sign_flip
from sopilot_lab.statistics.figures import figure_json, figure_lines
from sopilot_lab.statistics.intervals import clopper_pearson, score, wilson
from sopilot_lab.statistics.non_inferiority import least_pairs, most_losses, non_inferiority
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import (
    Discordance,
    Dropped,
    Pair,
    Pairs,
    benjamini_hochberg,
    pair,
)
from sopilot_lab.statistics.power import critical_values, mcnemar_power, tasks_needed
from sopilot_lab.statistics.reading import outcomes_from, read_rows
from sopilot_lab.statistics.repeats import PassK, RunSpread, pass_k, run_to_run
from sopilot_lab.statistics.undefined import Interval, Undefined


def outcome(task: str, passed: bool | None, **more: Any) -> RunOutcome:
    kind = TaskKind.REFUSE if task.endswith("r") else TaskKind.EXECUTE
    return RunOutcome(**{"task": task, "goal": task[0], "kind": kind, "passed": passed, **more})


# --- intervals and tails ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("passed", "trials", "confidence", "low", "high"),
    [
        (0, 1, 0.95, 0.0, 0.975),
        (1, 1, 0.95, 0.025, 1.0),
        (0, 8, 0.9, 0.0, 1 - 0.05 ** (1 / 8)),
        (8, 8, 0.9, 0.05 ** (1 / 8), 1.0),
        (1, 2, 0.5, 1 - math.sqrt(0.75), math.sqrt(0.75)),
    ],
)
def test_the_exact_interval_in_closed_form(
    passed: int, trials: int, confidence: float, low: float, high: float
) -> None:
    found = clopper_pearson(passed, trials, confidence)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)
    assert (found.low == 0.0, found.high == 1.0) == (passed == 0, passed == trials)
    assert found.low in found
    assert found.high in found
    assert found.low - 1e-9 not in found
    assert found.high + 1e-9 not in found


def test_the_score_interval_ends_where_a_share_does() -> None:
    for trials in range(1, 60):
        none, every = wilson(0, trials), wilson(trials, trials)
        assert isinstance(none, Interval)
        assert isinstance(every, Interval)
        assert (none.low, every.high) == (0.0, 1.0)
        assert none.high == pytest.approx(1.0 - every.low, rel=1e-12)
        one = wilson(1, 10**trials) if trials < 12 else wilson(1, trials)
        assert isinstance(one, Interval)
        assert 0.0 < one.low < one.high < 1.0


@pytest.mark.parametrize("pairs", [1, 10, 200])
@pytest.mark.parametrize("difference", [1e-9, 1e-4, 0.02, 0.5])
def test_without_a_discordant_pair_the_score_has_a_closed_form(
    pairs: int, difference: float
) -> None:
    against = -math.sqrt(pairs * difference / (1.0 - difference))
    assert score(0, 0, pairs, difference) == pytest.approx(against, rel=1e-9)
    assert score(0, 0, pairs, -difference) == pytest.approx(-against, rel=1e-9)


@pytest.mark.parametrize(("wins", "losses", "pairs"), [(3, 1, 9), (0, 2, 5), (4, 0, 4), (7, 7, 30)])
@pytest.mark.parametrize("difference", [-0.6, -0.05, 0.0, 0.1, 0.7])
def test_the_score_with_the_likeliest_losses(
    wins: int, losses: int, pairs: int, difference: float
) -> None:
    """The likelihood's maximum under the difference, found by looking."""

    def likelihood(loss: float) -> float:
        chances = (loss + difference, loss, 1.0 - 2.0 * loss - difference)
        seen = (wins, losses, pairs - wins - losses)
        return sum(n * math.log(max(p, 1e-300)) for n, p in zip(seen, chances, strict=True) if n)

    low, high = max(0.0, -difference), (1.0 - difference) / 2.0
    for _ in range(200):
        first, second = low + (high - low) * 0.45, low + (high - low) * 0.55
        low, high = (low, second) if likelihood(first) > likelihood(second) else (first, high)
    variance = 2.0 * low + difference - difference**2
    expected = (wins - losses - pairs * difference) / math.sqrt(pairs * variance)
    assert score(wins, losses, pairs, difference) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("trials", [1, 7, 40, 400])
@pytest.mark.parametrize("chance", [Fraction(1, 50), Fraction(1, 2), Fraction(9, 10)])
def test_tails_far_out_keep_their_digits(trials: int, chance: Fraction) -> None:
    ways = [
        math.comb(trials, one) * chance**one * (1 - chance) ** (trials - one)
        for one in range(trials + 1)
    ]
    for successes in {0, 1, trials // 3, trials // 2, trials - 1}:
        found = probability(successes, trials, float(chance))
        assert found == pytest.approx(float(ways[successes]), rel=1e-9)
        below = sum(ways[: successes + 1], Fraction(0))
        assert at_most(successes, trials, float(chance)) == pytest.approx(float(below), rel=1e-9)


@pytest.mark.parametrize(
    ("ways", "of", "p"),
    [(0, 4, math.ulp(0.0)), (1, 2**2000, math.ulp(0.0)), (1, 4, 0.25), (4, 4, 1.0), (5, 4, 1.0)],
)
def test_a_p_value_is_above_nothing_and_at_most_one(ways: int, of: int, p: float) -> None:
    assert as_p(ways, of) == p


def test_where_the_test_begins_to_reject() -> None:
    """All of one side: 2 / 2^n is at most the level from a number of pairs on."""
    assert critical_values(13, 0.05) == [-1] * 6 + [0, 0, 0, 1, 1, 1, 2, 2]
    assert critical_values(0, 0.05) == [-1]
    assert critical_values(3, 0.25) == [-1, -1, -1, 0]
    assert critical_values(3, 0.2499) == [-1, -1, -1, -1]


@pytest.mark.parametrize(("effect", "power"), [(0.0, 0.25), (0.5, 28 / 64), (-0.5, 28 / 64)])
def test_power_of_three_pairs_by_hand(effect: float, power: float) -> None:
    """Every pair discordant: rejected where all three are of one side."""
    found = mcnemar_power(3, discordance=1.0, effect=effect, alpha=0.25)
    assert found == pytest.approx(power)
    assert mcnemar_power(3, discordance=1.0, effect=1.0, alpha=0.25) == 1.0


@pytest.mark.parametrize("nets", [[3, 1, 2, -1], [1, 1, 1], [5, -5, 4, 4, 2, 1]])
def test_sampled_signs_are_the_bits_of_the_draws(nets: list[int]) -> None:
    nets = sorted(nets)  # the order of the units must not matter
    dice, hits = random.Random(5), 0
    for _ in range(40):
        bits = f"{dice.getrandbits(len(nets)):0{len(nets)}b}"[::-1]
        flipped = [-net if bit == "1" else net for bit, net in zip(bits, nets, strict=True)]
        hits += abs(sum(flipped)) >= abs(sum(nets))
    assert sign_flip(nets, exact=False, draws=40, seed=5).p == (1 + hits) / 41


# --- pairs and runs ---------------------------------------------------------------------


def test_one_run_a_side_is_paired_whatever_its_number() -> None:
    found = pair([outcome("a1", True, run=4)], [outcome("a1", False, run=7)])
    assert found == Pairs((Pair("", "", "a1", "a", TaskKind.EXECUTE, True, False, 0),), ())
    assert len(found) == 1


def test_pairs_of_models_and_runs_with_everything_about_them() -> None:
    first = [
        outcome("a1", True, model=model, run=run, domain="d") for model in "mn" for run in (1, 2)
    ]
    second = [
        outcome("a1", False, model="m", run=1, domain="d"),
        outcome("a1", None, model="m", run=2, domain="d"),
        outcome("a1", True, model="n", run=1, domain="d", goal="other"),
        outcome("b1r", True, model="n", run=1, domain="d"),
    ]
    found = pair(first, second)
    assert found.pairs == (Pair("m", "d", "a1", "d/a", TaskKind.EXECUTE, True, False, 1),)
    assert found.dropped == (
        Dropped("not judged in the second", ("m/d/a1/run 2",)),
        Dropped("goal or kind differs between the two", ("n/d/a1/run 1",)),
        Dropped("only in the first", ("n/d/a1/run 2",)),
        Dropped("only in the second", ("n/d/b1r/run 1",)),
    )
    assert [one.count for one in found.dropped] == [1, 1, 1, 1]
    assert found.by_cluster() == {"d/a": Discordance(1, 0)}


def test_a_kind_that_differs_is_no_pair() -> None:
    (dropped,) = pair([outcome("a1", True)], [outcome("a1", True, kind=TaskKind.REFUSE)]).dropped
    assert dropped == Dropped("goal or kind differs between the two", ("a1",))


def test_runs_and_tasks_where_there_are_none() -> None:
    missing = Undefined("no task has 2 judged runs")
    assert pass_k([outcome("a1", True)], 2) == PassK(2, missing, missing, 0, 1)
    assert pass_k([], 2) == PassK(2, missing, missing, 0, 0)
    never = Undefined("no task was judged in every run")
    assert run_to_run([]) == RunSpread((), 0, never, never, never)
    apart = [outcome("a1", True, run=1), outcome("a2", True, run=2)]
    assert run_to_run(apart) == RunSpread((), 0, never, never, never)
    alone = Undefined("a variance needs at least two runs")
    assert run_to_run([outcome("a1", False)]) == RunSpread(((1, 0.0),), 1, 0.0, alone, alone)


@pytest.mark.parametrize("seed", range(6))
def test_repeated_runs_beside_every_choice_of_them(seed: int) -> None:
    dice = random.Random(seed)
    table = {
        f"a{task}": [dice.random() < 0.6 for _ in range(dice.randint(2, 5))] for task in range(4)
    }
    outcomes = [
        outcome(task, passed, run=run)
        for task, verdicts in table.items()
        for run, passed in enumerate(verdicts, 1)
    ]
    for k in (1, 2, 3):
        enough = [list(combinations(one, k)) for one in table.values() if len(one) >= k]
        found = pass_k(outcomes, k)
        assert (found.k, found.tasks, found.short) == (k, len(enough), len(table) - len(enough))
        at = statistics.fmean(statistics.fmean(map(any, one)) for one in enough)
        every = statistics.fmean(statistics.fmean(map(all, one)) for one in enough)
        assert (found.at, found.every) == pytest.approx((at, every))


# --- files and figures in words ---------------------------------------------------------

GOOD = {"task": "a", "goal": "g", "kind": "execute", "passed": True}


def told(text: str) -> list[Diagnostic]:
    with pytest.raises(UserMistake) as refused:
        outcomes_from(read_rows(text, "f"))
    return list(refused.value.diagnostics)


def test_places_of_what_is_no_row() -> None:
    first, second, *more = told('{"a": 1}\n \nno\n7')
    assert (first.code, first.place) == ("not-json", Place("f", 3, 1))
    assert first.message.startswith("not a line of JSON: ")
    assert second == Diagnostic("not-an-object", "a row must be an object", Place("f", 4, 1))
    assert more == []
    assert told("[1, {}]")[0] == Diagnostic(
        "not-an-object", "a row must be an object", Place("f", path="[0]")
    )
    assert told("[]") == [Diagnostic("empty", "no rows", Place("f"))]
    assert [place for place, _ in read_rows('{"a": 1}\n\n{"a": 2}', "f")] == [
        Place("f", 1, 1),
        Place("f", 3, 1),
    ]
    assert [place for place, _ in read_rows('{"outcomes": [{}, {}]}', "f")] == [
        Place("f", path="[0]"),
        Place("f", path="[1]"),
    ]
    assert read_rows('{"a": 1}') == [(Place("", path="[0]"), {"a": 1})]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"goal": "é" * 3, "kind": "é"}, "`kind` must be `execute` or `refuse`, not `\"é\"`"),
        ({"run": True}, "`run` must be a count, not `true`"),
        ({"run": 1.0}, "`run` must be a count, not `1.0`"),
        ({"post_goal_calls": -1}, "`post_goal_calls` must be a count or `null`, not `-1`"),
        ({"arm": 3}, "`arm` must be a text, not `3`"),
        ({"goal": ""}, '`goal` must be a text, not `""`'),
        ({"task": "x" * 50, "passed": "x" * 38},
         "`passed` must be `true`, `false` or `null`, not `\"" + "x" * 38 + '"`'),
        ({"passed": "x" * 39},
         "`passed` must be `true`, `false` or `null`, not `\"" + "x" * 39 + "…`"),
    ],
)  # fmt: skip
def test_a_field_that_is_wrong_is_shown(wrong: dict[str, Any], message: str) -> None:
    (found,) = told(json.dumps([GOOD | wrong]))
    assert (found.code, found.message, found.place) == (
        "bad-field", message, Place("f", path="[0]"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ({}, "run", 1), ({"run": 0}, "run", 0), ({}, "post_goal_calls", None),
        ({"post_goal_calls": None}, "post_goal_calls", None),
        ({"post_goal_calls": 0}, "post_goal_calls", 0),
        ({}, "arm", ""), ({"arm": None}, "arm", ""), ({"model": 0}, "model", ""),
    ],
)  # fmt: skip
def test_what_a_row_need_not_say(said: dict[str, Any], field: str, value: object) -> None:
    (found,) = outcomes_from(read_rows(json.dumps(GOOD | said)))
    assert getattr(found, field) == value


@pytest.mark.parametrize(
    ("rows", "models"),
    [
        ([{"tools": "x"}, {"tools": "y"}], ["(tools x)", "(tools y)"]),
        ([{"model": "m", "tools": "x"}, {"model": "m"}], ["m (tools x)", "m (tools None)"]),
        ([{"model": "m", "tools": "x"}, {"model": "m", "tools": "x"}], ["m", "m"]),
        ([{"user": 1, "language": "en"}, {"user": 2, "language": "zh"}],
         ["(user 1, language en)", "(user 2, language zh)"]),
    ],
)  # fmt: skip
def test_models_that_are_told_apart(rows: list[dict[str, Any]], models: list[str]) -> None:
    found = outcomes_from(read_rows(json.dumps([GOOD | row for row in rows])))
    assert [one.model for one in found] == models


def test_figures_in_lines_and_for_scripts() -> None:
    missing = Undefined("no pairs")
    report = {
        "n": 3, "a long name": 0.123456, "yes": True, "no": False, "none": None, "empty": "",
        "dropped": {"late": 2, "early": 1}, "nothing": {}, "open": missing,
        "rows": [{"kind": "execute", "p": 0.5}, {"kind": "x", "p": missing}],
    }  # fmt: skip
    assert list(figure_lines(report)) == [
        "n            3",
        "a long name  0.1235",
        "yes          yes",
        "no           no",
        "none         –",
        "empty        –",
        "dropped      2 late, 1 early",
        "nothing      none",
        "open         undefined (no pairs)",
        "kind     p",
        "execute  0.5",
        "x        undefined (no pairs)",
    ]
    plain = figure_json(report)
    assert plain["undefined"] == {"open": "no pairs"}
    assert plain["open"] is None
    assert plain["rows"] == [
        {"kind": "execute", "p": 0.5},
        {"kind": "x", "p": None, "undefined": {"p": "no pairs"}},
    ]
    assert figure_json({"n": 3}) == {"n": 3}
    assert list(figure_lines({"rows": [{"a": 1}]})) == ["a", "1"]


def test_files_of_several_arms_are_refused_by_name() -> None:
    one = (outcome("a1", True, arm="x"),)
    two = (outcome("a1", True, arm="y"), outcome("a2", True, arm="x"))
    for sides in ([("f", two), ("g", one)], [("g", one), ("f", two)]):
        with pytest.raises(UserMistake, match=r"`f` holds several arms \(x, y\): one file an arm"):
            figures.compared(sides, None, confidence=0.9, draws=9, seed=1)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (lambda: least_pairs(margin=0.0), "margin must lie strictly between 0 and 1, not `0.0`"),
        (lambda: least_pairs(margin=0.1, alpha=1.0), "alpha must lie strictly between 0 and 1"),
        (lambda: most_losses(9, margin=0.1, alpha=0.0), "alpha must lie strictly between 0"),
        (lambda: non_inferiority(0, 0, 9, margin=1.0), "margin must lie strictly between 0"),
        (lambda: non_inferiority(1, 2, 2, margin=0.1), "`1` wins and `2` losses do not fit into"),
        (lambda: clopper_pearson(1, 2, 1.0), "confidence must lie strictly between 0 and 1"),
        (lambda: clopper_pearson(3, 2), "passed must lie between 0 and trials, not `3` of `2`"),
        (lambda: mcnemar_power(9, discordance=0.3, effect=0.1, alpha=0.0), "alpha must lie"),
        (lambda: mcnemar_power(-1, discordance=0.3, effect=0.1), "tasks is a count, not `-1`"),
        (lambda: tasks_needed(discordance=0.3, effect=0.1, power=1.0), "power must lie strictly"),
        (lambda: benjamini_hochberg([0.5], 1.0), "q must lie strictly between 0 and 1"),
        (lambda: benjamini_hochberg([1.5]), "a p-value lies between 0 and 1, not `1.5`"),
        (lambda: sign_flip([1], exact=False, draws=0), "draws must be positive, not `0`"),
        (lambda: pass_k([], 0), "k must be at least 1, not `0`"),
    ],
)
def test_what_cannot_be_asked_says_so_by_its_name(asked: Callable[[], object], says: str) -> None:
    with pytest.raises(UserMistake, match=re.escape(says)):
        asked()


def test_two_models_in_two_files_have_a_joint_test() -> None:
    first = tuple(outcome("a1", True, model=model, arm="x") for model in "mn")
    second = tuple(outcome("a1", False, model=model, arm="y") for model in "mn")
    found = figures.compared([("f", first), ("g", second)], None, confidence=0.9, draws=9, seed=1)
    kept = {name: found[name] for name in ("pairs", "models", "runs", "p_joint", "p_goal", "goals")}
    assert kept == {"pairs": 2, "models": 2, "runs": 1, "p_joint": 1.0, "p_goal": 1.0, "goals": 1}
    assert list(found) == [
        *("pairs", "passed_a", "passed_b", "wins", "losses", "difference", "confidence"),
        *("goal_low", "goal_high", "goals", "p_goal", "p", "models", "runs", "p_joint"),
        *("logo_max_p", "logo_goal", "low", "high", "dropped", "by_kind"),
    ]


@pytest.mark.parametrize(
    ("margin", "alpha", "pairs"),
    [(0.3, 0.05, 10), (0.5, 0.01, 8), (0.25, 0.01, 19), (0.3, 0.01, 16), (0.2, 0.05, 14)],
)
def test_the_fewest_pairs_that_agree_and_show_it(margin: float, alpha: float, pairs: int) -> None:
    """A few more than the outcome's own chance asks for, where a share of wins is possible."""
    assert least_pairs(margin=margin, alpha=alpha) == pairs
    enough = non_inferiority(0, 0, pairs, margin=margin)
    short = non_inferiority(0, 0, pairs - 1, margin=margin)
    assert isinstance(enough, float)
    assert isinstance(short, float)
    assert enough <= alpha < short
