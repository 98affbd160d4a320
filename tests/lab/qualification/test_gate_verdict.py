"""The frozen rule, condition by condition."""

from __future__ import annotations

from typing import Any

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
SAME = {"flat": GOOD, "pg": GOOD}
WEAK = all_but(range(14))
HELPED = {"prose": all_but(range(14)), "flat": all_but(range(14)), "pg": GOOD}


ONE_GOAL = {case: (case // 2) % 10 != 0 for case in range(60)}
LUCK = {"benefit", "across-goals"}
"""Conditions of a gain, which equal arms don't meet."""
CASES: dict[str, tuple[dict[str, dict[int, bool]], dict[str, Any], str, set[str]]] = {
    "helped": (HELPED, {}, "page with pg", set()),
    "passes everything": ({**SAME, "prose": GOOD}, {}, "may page with pg, else prose", LUCK),
    **{
        f"{lost} of {cases} lost": (
            {"flat": all_but(range(0), cases), "pg": all_but(range(lost), cases)},
            {"planned": cases}, answer, failed,
        )
        for cases, lost, answer, failed in (
            (58, 0, "do not page, flat", {*LUCK, "not-inferior"}),
            (59, 0, "may page with pg, else flat", LUCK),
            (60, 1, "do not page, flat", {*LUCK, "not-inferior"}),
            (100, 1, "may page with pg, else flat", LUCK),
            (100, 2, "do not page, flat", {*LUCK, "not-inferior"}),
        )
    },
    # The exact test excludes the margin; one goal that is lost as a whole does not.
    "pairs of a goal hang together": (
        {"flat": {case: (case // 2) % 10 not in (1, 2) for case in range(200)},
         "pg": {case: (case // 2) % 10 != 0 for case in range(200)}},
        {"planned": 200}, "do not page, flat", {"across-goals", "not-inferior"},
    ),
    "interim look at equal arms": (
        SAME, {"planned": 80}, "do not page, flat", {*LUCK, "not-inferior"}
    ),
    "calls after the goal": (SAME, {"after": {"pg": 1}}, "do not page, flat", {*LUCK, "quiet"}),
    "lost": (SAME, {"grades": LOST}, "do not page, flat", {*LUCK, "oriented"}),
    "not asked": (SAME, {"grades": []}, "do not page, flat", {*LUCK, "oriented"}),
    "a program": (SAME, {"grades": [], "scripted": True}, "may page with pg, else flat", LUCK),
    "weaker than the chosen text": (
        {"prose": GOOD, "flat": WEAK, "pg": WEAK}, {}, "do not page, prose",
        {*LUCK, "not-below-choice", "not-inferior"},
    ),
    "harmless fused": (
        {**SAME, "fused": GOOD}, {"tokens": {"fused": 150}}, "may page with fused, else flat", LUCK
    ),
    "harmful fused": (
        {**SAME, "fused": all_but(range(9))}, {}, "may page with pg, else flat", LUCK
    ),
    "a gain in one goal": (
        {"flat": ONE_GOAL, "pg": GOOD}, {}, "may page with pg, else flat", {"across-goals"}
    ),
    "few goals": ({"flat": WEAK, "pg": GOOD}, {"goals": 3}, "page with pg", set()),
    "harmed class": (
        {"flat": {case: case % 2 == 0 or case > 50 for case in range(60)},
         "pg": {case: case % 2 == 1 or case > 11 for case in range(60)}},
        {}, "do not page, flat", {"no-class-harmed"},
    ),
    "helped but loud": (HELPED, {"after": {"pg": 1}}, "do not page, prose", {"quiet"}),
    "louder without paging": (HELPED, {"after": {"flat": 1}}, "page with pg", set()),
    "few pairs": (
        {arm: dict(list(held.items())[:18]) for arm, held in HELPED.items()}, {"planned": 18},
        "too few, prose", {"enough"},
    ),
    # 6:0 in six goals, p = .016
    "slight gain": ({"flat": all_but(range(0, 12, 2)), "pg": GOOD}, {}, "page with pg", set()),
    "interim look at a slight gain": (
        {"flat": all_but(range(0, 12, 2)), "pg": GOOD}, {"planned": 80},
        "may page with pg, else flat", LUCK,
    ),
    "below the chosen text": (
        {"prose": GOOD, "flat": all_but(range(20)), "pg": all_but(range(4))}, {},
        "do not page, prose", {"not-below-choice", "not-inferior"},
    ),
    "helped but lost": (HELPED, {"grades": LOST}, "do not page, prose", {"oriented"}),
    **{
        f"{questions} questions": (
            HELPED, {"grades": ORIENTED[:questions]},
            *(("do not page, prose", {"oriented"}) if questions < 6 else ("page with pg", set())),
        )
        for questions in (0, 1, 5, 6)
    },
    "cheaper fused": (
        {**HELPED, "fused": GOOD}, {"tokens": {"fused": 50}}, "page with fused", set()
    ),
    "dearer fused": (
        {**HELPED, "fused": GOOD}, {"tokens": {"fused": 150}}, "page with pg", set()
    ),
    "worse fused": (
        {**HELPED, "fused": all_but(range(13))}, {"tokens": {"fused": 50}}, "page with pg", set()
    ),
    "fused alone helps": (
        {**HELPED, "pg": WEAK, "fused": GOOD}, {"tokens": {"fused": 50}},
        "may page with fused, else prose", LUCK,
    ),
    **{
        f"prose {prose}, official {official}, flat {flat}": (
            {arm: all_but(range(count)) for arm, count in
             (("official", official), ("prose", prose), ("flat", flat))},
            {}, f"do not page, {chosen}", set(),
        )
        for official, prose, flat, chosen in (
            (0, 0, 0, "prose"), (0, 12, 12, "official"), (12, 12, 0, "flat"),
            (12, 0, 0, "prose"), (0, 12, 0, "official"), (0, 3, 3, "prose"),
        )
    },
}  # fmt: skip
SAYS = {
    "passes everything": ["5 more cases that only pg passes", "adds guards and proof"],
    "few goals": ["the verdict is about these 3 goals and no others"],
    "harmed class": ["would have to stop losing execute tasks"],
    "few pairs": ["2 more cases", "too few"],
    "interim look at a slight gain": ["60 of 80"],
    "1 questions": ["only 1 questions, the probe can't rule out one half"],
    "5 questions": ["only 5 questions, the probe can't rule out one half"],
    "prose 0, official 0, flat 0": ["do not page: paged and flat runs are missing"],
}


def names(verdict: Verdict) -> set[str]:
    return {one.name for one in verdict.conditions if not one.met}


def verdict_of(
    passed: dict[str, dict[int, bool]],
    *,
    planned: int = 60,
    grades: list[ProbeGrade] = ORIENTED,
    scripted: bool = False,
    **made: Any,
) -> Verdict:
    return decide("m", records(passed, **made), grades, planned=planned, scripted=scripted)


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_and_the_conditions_not_met(case: str) -> None:
    passed, how, answer, failed = CASES[case]
    verdict = verdict_of(passed, **how)
    shown = f"{verdict.answer}, {verdict.arm}"
    if verdict.guarded_arm is not None:
        other = "" if verdict.arm == verdict.guarded_arm else f", else {verdict.arm}"
        shown = f"{verdict.answer} with {verdict.guarded_arm}{other}"
    assert (shown, names(verdict)) == (answer, failed)
    assert verdict.page is shown.startswith("page")
    if verdict.page:
        judged = {one.name for one in verdict.conditions}
        assert "benefit" in judged
        assert "not-inferior" not in judged, "needed to page without a benefit alone"
    interim = how.get("planned", 60) > 60 and len(next(iter(passed.values()))) == 60
    assert verdict.level == (rule.INTERIM_LEVEL if interim else rule.LEVEL)
    assert bool(verdict.changes) is bool(failed)
    told = [*verdict.reasons, *verdict.changes, *verdict.notes]
    told += [one.figures for one in verdict.conditions]
    for text in SAYS.get(case, ()):
        assert any(text in line for line in told), told


def test_without_successes_the_harm_detector_is_blind() -> None:
    blind = [changed(run, r2=None) if run.arm == "flat" else run for run in records(HELPED)]
    verdict = decide("m", blind, ORIENTED, planned=60)
    assert names(verdict) == {"sighted", "quiet"}
    assert not verdict.page


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
