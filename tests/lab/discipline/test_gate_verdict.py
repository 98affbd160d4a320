"""The frozen rule, condition by condition."""

from __future__ import annotations

import pytest
from gate_records import all_but, records
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.lab.discipline import ProbeGrade, Verdict, decide
from sopilot.lab.discipline import _rule as rule
from sopilot.lab.discipline._advice import missing_wins
from sopilot.lab.stats import mcnemar

GOOD = all_but(range(0))
HELPED = {"prose": all_but(range(14)), "flat": all_but(range(14)), "pg": GOOD}


def names(verdict: Verdict) -> set[str]:
    return {one.name for one in verdict.failed}


def verdict_of(passed: dict[str, dict[int, bool]], **rest: object) -> Verdict:
    planned = rest.pop("planned", 60)
    assert isinstance(planned, int)
    return decide("m", records(passed, **rest), planned=planned)  # type: ignore[arg-type]


def test_rule_is_the_frozen_one() -> None:
    assert rule.RULE_VERSION == 1
    frozen = (rule.LEVEL, rule.INTERIM_LEVEL, rule.HARM_LEVEL, rule.LEAST_PAIRS)
    assert frozen == (0.05, 0.005, 0.05, 20)
    assert (rule.CLUSTERED_FROM_GOALS, rule.LEAST_SUCCESSES) == (6, 5)
    assert (rule.LARGEST_DELTA_R2, rule.R2_CONFIDENCE, rule.LEAST_LOCALISATION) == (0.3, 0.9, 0.5)


def test_a_helped_model_is_paged() -> None:
    verdict = verdict_of(HELPED)
    assert verdict.page
    assert verdict.arm == "pg"
    assert verdict.failed == ()
    assert verdict.changes == ()


def test_an_indifferent_model_is_not_paged_and_hears_what_is_missing() -> None:
    verdict = verdict_of({"prose": GOOD, "flat": GOOD, "pg": GOOD})
    assert not verdict.page
    assert verdict.arm == "prose"
    assert names(verdict) == {"benefit", "across-goals"}
    assert verdict.changes[0].startswith("5 more cases that only pg passes")


def test_a_gain_in_one_goal_is_not_enough() -> None:
    one_goal = {case: (case // 2) % 10 != 0 for case in range(60)}
    verdict = verdict_of({"flat": one_goal, "pg": GOOD})
    assert names(verdict) == {"across-goals"}


def test_with_few_goals_the_verdict_is_about_them() -> None:
    verdict = verdict_of({"flat": all_but(range(14)), "pg": GOOD}, goals=3)
    assert verdict.page
    assert "across-goals" not in {one.name for one in verdict.conditions}
    assert verdict.notes == ("the verdict is about these 3 goals and no others",)


def test_a_harmed_class_forbids_paging() -> None:
    flat = {case: case % 2 == 0 or case > 50 for case in range(60)}  # fails refusals
    pg = {case: case % 2 == 1 or case > 11 for case in range(60)}  # fails some executions
    verdict = verdict_of({"flat": flat, "pg": pg})
    assert "benefit" not in names(verdict)
    assert names(verdict) == {"no-class-harmed"}
    assert "execute" in verdict.changes[0]


def test_calls_after_the_goal_forbid_paging() -> None:
    verdict = verdict_of(HELPED, after={"pg": 1})
    assert names(verdict) == {"quiet"}
    assert verdict_of(HELPED, after={"flat": 1}).page


def test_without_successes_the_harm_detector_is_blind() -> None:
    blind = [
        record
        if record.arm != "flat"
        else type(record)(
            **{name: getattr(record, name) for name in record.__dataclass_fields__}
            | {"post_goal_calls": None}
        )
        for record in records(HELPED)
    ]
    assert names(decide("m", blind, planned=60)) == {"sighted"}


def test_few_pairs_are_not_enough() -> None:
    few = {arm: {c: good for c, good in held.items() if c < 18} for arm, held in HELPED.items()}
    verdict = verdict_of(few, planned=18)
    assert names(verdict) == {"enough"}
    assert verdict.changes == ("2 more cases",)


def test_an_interim_look_is_held_to_the_stricter_level() -> None:
    slight = {"flat": all_but(range(0, 12, 2)), "pg": GOOD}  # 6:0 in six goals, p = .016
    assert verdict_of(slight).page
    verdict = verdict_of(slight, planned=80)
    assert not verdict.page
    assert verdict.level == rule.INTERIM_LEVEL
    assert "60 of 80" in verdict.notes[0]


def test_paging_must_not_fall_below_the_representation_chosen() -> None:
    verdict = verdict_of({"prose": GOOD, "flat": all_but(range(20)), "pg": all_but(range(4))})
    assert verdict.representation == "prose"
    assert names(verdict) == {"not-below-choice"}


@pytest.mark.parametrize(
    ("official", "prose", "flat", "chosen"),
    [
        (0, 0, 0, "prose"),
        (0, 12, 12, "official"),
        (12, 12, 0, "flat"),
        (12, 0, 0, "prose"),
        (0, 12, 0, "official"),
        (0, 3, 3, "prose"),
    ],
)
def test_representation(official: int, prose: int, flat: int, chosen: str) -> None:
    failed = {"official": official, "prose": prose, "flat": flat}
    verdict = verdict_of({arm: all_but(range(count)) for arm, count in failed.items()})
    assert verdict.representation == chosen
    assert not verdict.page


def test_a_lost_model_is_not_paged() -> None:
    lost = [ProbeGrade("c", 2, 0.0, 0.0, None, 0.0, 0.0) for _ in range(24)]
    verdict = decide("m", records(HELPED), lost, planned=60)
    assert names(verdict) == {"oriented"}
    found = [ProbeGrade("c", 2, 1.0, 1.0, None, 1.0, 1.0) for _ in range(24)]
    assert decide("m", records(HELPED), found, planned=60).page


@pytest.mark.parametrize(("questions", "blind"), [(1, True), (5, True), (6, False)])
def test_too_few_questions_are_said(questions: int, blind: bool) -> None:
    """The rule counts the condition as met; a reader must see that it could not have failed."""
    lost = [ProbeGrade("c", 2, 0.0, 0.0, None, 0.0, 0.0) for _ in range(questions)]
    verdict = decide("m", records(HELPED), lost, planned=60)
    (oriented,) = (one for one in verdict.conditions if one.name == "oriented")
    assert oriented.met is blind
    said = f"only {questions} questions: it could not have excluded one half"
    assert (said in oriented.found) is blind


def test_fused_takes_over_when_it_is_as_good_and_cheaper() -> None:
    both = {**HELPED, "fused": GOOD}
    assert verdict_of(both, tokens={"fused": 50}).arm == "fused"
    assert verdict_of(both, tokens={"fused": 150}).arm == "pg"
    worse = {**HELPED, "fused": all_but(range(13))}
    assert verdict_of(worse, tokens={"fused": 50}).arm == "pg"
    without = {**HELPED, "pg": all_but(range(14)), "fused": GOOD}
    assert not verdict_of(without, tokens={"fused": 50}).page


def test_no_runs_no_verdict_but_the_default() -> None:
    verdict = decide("m", [], planned=60)
    assert (verdict.page, verdict.arm) == (False, None)
    planned = ("flat", "pg", "prose", "official")
    one_run = list(records({"official": {0: True}}))
    for held in ([], one_run):
        verdict = decide("m", held, planned=60, arms_planned=planned)
        assert (verdict.page, verdict.arm, verdict.cases) == (False, "prose", 0)
        assert not verdict.complete
        assert {"enough", "benefit", "sighted"} <= names(verdict)


Passes = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=70)


@settings(deadline=None, max_examples=60)
@given(Passes, st.integers(1, 12))
def test_never_paged_without_a_significant_gain(pairs: list[tuple[bool, bool]], goals: int) -> None:
    pg = {number: first for number, (first, _) in enumerate(pairs)}
    flat = {number: second for number, (_, second) in enumerate(pairs)}
    verdict = verdict_of({"flat": flat, "pg": pg}, goals=goals, planned=len(pairs))
    wins = sum(first and not second for first, second in pairs)
    losses = sum(second and not first for first, second in pairs)
    if verdict.page:
        assert wins > losses
        assert mcnemar(wins, losses) / 2 <= rule.LEVEL
        assert len(pairs) >= rule.LEAST_PAIRS
    else:
        assert verdict.failed
        assert verdict.changes


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 40), st.integers(0, 40))
def test_missing_wins_are_just_enough(wins: int, losses: int) -> None:
    more = missing_wins(wins, losses, 0.05)
    assert wins + more > losses
    assert mcnemar(wins + more, losses) / 2 <= 0.05
    if more:
        fewer = wins + more - 1
        assert fewer <= losses or mcnemar(fewer, losses) / 2 > 0.05
