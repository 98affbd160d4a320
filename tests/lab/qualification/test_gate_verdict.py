"""The frozen rule, condition by condition."""

from __future__ import annotations

import pytest
from gate_records import all_but, changed, records
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.runner.qualifications import Answer
from sopilot_lab.qualification import rule
from sopilot_lab.qualification.conditions import foresight, missing_wins
from sopilot_lab.qualification.paging_decision import Verdict, decide
from sopilot_lab.qualification.probe import ProbeGrade
from sopilot_lab.statistics.paired import mcnemar

GOOD = all_but(range(0))
ORIENTED = [ProbeGrade("c", 2, 1.0, 1.0, None, 1.0, 1.0) for _ in range(24)]
LOST = [ProbeGrade("c", 2, 0.0, 0.0, None, 0.0, 0.0) for _ in range(24)]
HELPED = {"prose": all_but(range(14)), "flat": all_but(range(14)), "pg": GOOD}


def names(verdict: Verdict) -> set[str]:
    return {one.name for one in verdict.conditions if not one.met}


def verdict_of(passed: dict[str, dict[int, bool]], **rest: object) -> Verdict:
    planned = rest.pop("planned", 60)
    assert isinstance(planned, int)
    return decide("m", records(passed, **rest), ORIENTED, planned=planned)  # type: ignore[arg-type]


def test_a_helped_model_is_paged() -> None:
    verdict = verdict_of(HELPED)
    assert verdict.page
    assert (verdict.arm, verdict.guarded_arm) == ("pg", "pg")
    assert verdict.answer is Answer.PAGE
    assert names(verdict) == set()
    assert verdict.changes == ()


def test_a_strong_model_may_page_and_hears_what_a_benefit_would_take() -> None:
    """It passes everything with `flat`, so paging cannot win."""
    verdict = verdict_of({"prose": GOOD, "flat": GOOD, "pg": GOOD})
    assert verdict.answer is Answer.MAY_PAGE
    assert not verdict.page
    assert (verdict.arm, verdict.guarded_arm) == ("prose", "pg")
    assert names(verdict) == {"benefit", "across-goals"}
    assert verdict.changes[0].startswith("5 more cases that only pg passes")
    assert "adds guards and proof" in verdict.reasons[-1]


@pytest.mark.parametrize(
    ("cases", "lost", "answer"),
    [
        (58, 0, Answer.DO_NOT_PAGE),
        (59, 0, Answer.MAY_PAGE),
        (60, 1, Answer.DO_NOT_PAGE),
        (100, 1, Answer.MAY_PAGE),
        (100, 2, Answer.DO_NOT_PAGE),
    ],
)
def test_the_margin_is_excluded_or_it_is_not(cases: int, lost: int, answer: Answer) -> None:
    good, paged = all_but(range(0), cases), all_but(range(lost), cases)
    verdict = verdict_of({"flat": good, "pg": paged}, planned=cases)
    assert verdict.answer is answer
    assert ("not-inferior" in names(verdict)) is (answer is Answer.DO_NOT_PAGE)


def test_pairs_of_a_goal_may_hang_together() -> None:
    """The exact test excludes the margin; one goal that is lost as a whole does not."""
    flat = {case: (case // 2) % 10 not in (1, 2) for case in range(200)}
    pg = {case: (case // 2) % 10 != 0 for case in range(200)}
    verdict = verdict_of({"flat": flat, "pg": pg}, planned=200)
    (found,) = (one for one in verdict.contrasts if one.first == "pg")
    assert isinstance(found.inferior_p, float)
    assert found.inferior_p <= rule.LEVEL
    assert "not-inferior" in names(verdict)


def test_an_interim_look_shows_no_harmlessness_by_luck() -> None:
    assert verdict_of({"flat": GOOD, "pg": GOOD}, planned=80).answer is Answer.DO_NOT_PAGE


def test_may_page_needs_a_quiet_and_oriented_model() -> None:
    same = {"flat": GOOD, "pg": GOOD}
    loud = verdict_of(same, after={"pg": 1})
    assert loud.answer is Answer.DO_NOT_PAGE
    assert "quiet" in names(loud)
    lost = decide("m", records(same), LOST, planned=60)
    assert lost.answer is Answer.DO_NOT_PAGE
    assert "oriented" in names(lost)
    unasked = decide("m", records(same), planned=60)
    assert unasked.answer is Answer.DO_NOT_PAGE
    assert "oriented" in names(unasked)
    assert decide("m", records(same), planned=60, scripted=True).answer is Answer.MAY_PAGE


def test_may_page_needs_harmlessness_against_the_chosen_text_too() -> None:
    weak = all_but(range(14))
    verdict = verdict_of({"prose": GOOD, "flat": weak, "pg": weak})
    assert verdict.representation == "prose"
    assert verdict.answer is Answer.DO_NOT_PAGE
    assert "not-inferior" in names(verdict)


def test_a_model_that_may_page_gets_fused_where_it_is_harmless_too() -> None:
    same = {"flat": GOOD, "pg": GOOD}
    assert verdict_of({**same, "fused": GOOD}, tokens={"fused": 150}).guarded_arm == "fused"
    worse = verdict_of({**same, "fused": all_but(range(9))})
    assert (worse.answer, worse.guarded_arm) == (Answer.MAY_PAGE, "pg")


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
    blind = [changed(run, r2=None) if run.arm == "flat" else run for run in records(HELPED)]
    verdict = decide("m", blind, ORIENTED, planned=60)
    assert names(verdict) == {"sighted", "quiet"}
    assert not verdict.page


def test_few_pairs_are_not_enough() -> None:
    few = {arm: {c: good for c, good in held.items() if c < 18} for arm, held in HELPED.items()}
    verdict = verdict_of(few, planned=18)
    assert names(verdict) == {"enough"}
    assert verdict.changes == ("2 more cases",)
    assert verdict.answer is Answer.TOO_FEW
    assert "too few" in verdict.reasons[-1]


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
    assert names(verdict) == {"not-below-choice", "not-inferior"}


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
    assert verdict.reasons[-1] == "do not page: paged and flat runs are missing"


def test_a_lost_model_is_not_paged() -> None:
    verdict = decide("m", records(HELPED), LOST, planned=60)
    assert "oriented" in names(verdict)
    assert verdict.answer is Answer.DO_NOT_PAGE
    assert decide("m", records(HELPED), ORIENTED, planned=60).page


@pytest.mark.parametrize(("questions", "met"), [(0, False), (1, False), (5, False), (6, True)])
def test_a_probe_that_could_not_fail_shows_nothing(questions: int, met: bool) -> None:
    verdict = decide("m", records(HELPED), ORIENTED[:questions], planned=60)
    (oriented,) = (one for one in verdict.conditions if one.name == "oriented")
    assert oriented.met is met
    assert verdict.page is met
    said = f"only {questions} questions, the probe can't rule out one half"
    assert (said in oriented.figures) is (0 < questions < 6)


def test_undefined_conditions_are_not_met() -> None:
    """No run whose goal succeeded, no pair of a class that was planned, no pair at all."""
    failing = {case: case % 2 == 1 for case in range(60)}
    refusals = [one for one in records({"flat": failing, "pg": failing}) if not one.should_succeed]
    broken = [
        changed(one, verdict=None, ending="infrastructure_failure", r2=None)
        for one in records({"flat": {0: True}, "pg": {0: True}})
    ]
    verdict = decide("m", [*refusals, *broken], ORIENTED, planned=31)
    assert {"quiet", "sighted", "no-class-harmed"} <= names(verdict)
    (classes,) = (one for one in verdict.conditions if one.name == "no-class-harmed")
    assert "execute undefined (no pairs)" in classes.figures
    nothing = decide("m", [], planned=60, arms_planned=("prose", "flat", "pg"))
    assert all(not one.met for one in nothing.conditions)
    assert nothing.answer is Answer.TOO_FEW


def test_a_broken_endpoint_is_no_verdict_on_a_model() -> None:
    broken = [
        changed(one, verdict=None, ending="infrastructure_failure", reason="m: HTTP 500: oh")
        for one in records({"flat": GOOD, "pg": GOOD})
    ]
    verdict = decide("m", broken, planned=60)
    assert verdict.answer is Answer.BROKEN
    assert (verdict.arm, verdict.representation, verdict.conditions) == (None, None, ())
    assert verdict.reasons == (
        "broken: the model's endpoint broke 120 of 120 runs: m: HTTP 500: oh",
    )
    silent = decide("m", [], planned=60, problem="no answer within 360 s")
    assert silent.answer is Answer.BROKEN
    assert "no answer within 360 s" in silent.reasons[0]
    judged = list(records(HELPED))
    assert decide("m", judged, ORIENTED, planned=60, problem="HTTP 500").page


def test_what_a_check_can_show_is_known_before_it() -> None:
    few, forty, sixty, hundred = (foresight(pairs) for pairs in (12, 40, 60, 100))
    assert few["says"] == ["no verdict: 12 pairs are too few, 20 are the least"]
    assert forty["most_losses"] is None
    assert "59 pairs without a loss" in forty["says"][1]
    assert (sixty["most_losses"], hundred["most_losses"]) == (0, 1)
    assert sixty["may_page_with_slips"] == pytest.approx(0.587, abs=0.001)
    assert "at most 1 of 100 pairs lost" in hundred["says"][1]


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
        assert names(verdict)
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
