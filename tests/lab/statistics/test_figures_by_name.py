"""The figures of `sopilot stats`, each by its name, on data small enough to count by hand."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from sopilot.messages.errors import UserMistake
from sopilot_lab.statistics import figures, reading
from sopilot_lab.statistics.figures import figure_json, figure_lines
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import Discordance
from sopilot_lab.statistics.repeats import pass_k
from sopilot_lab.statistics.undefined import Undefined


def outcome(task: str, passed: bool | None, **more: Any) -> RunOutcome:
    kind = TaskKind.REFUSE if task.endswith("r") else TaskKind.EXECUTE
    return RunOutcome(**{"task": task, "goal": task[0], "kind": kind, "passed": passed, **more})


def rows(*outcomes: RunOutcome) -> list[reading.Row]:
    return reading.read_rows("\n".join(json.dumps(asdict(one)) for one in outcomes))


def arms(*tasks: tuple[str, bool | None, bool | None], **more: Any) -> list[RunOutcome]:
    """First arm `x`, second arm `y`."""
    return [
        outcome(task, passed, arm=arm, **more)
        for arm, place in (("x", 1), ("y", 2))
        for task, passed in ((one[0], one[place]) for one in tasks)
    ]


THREE = (("a1", True, False), ("a2r", True, False), ("b1", False, True))


def plain(found: dict[str, Any]) -> dict[str, Any]:
    return {name: "?" if isinstance(one, Undefined) else one for name, one in found.items()}


def test_one_goal_alone_cannot_be_left_out() -> None:
    found = figures.clustered(rows(*arms(*THREE[:2])), None, None)
    assert plain(found) == {
        "wins": 2, "losses": 0, "p_task": 0.5, "goals": 1, "goals_with_net": 1, "p_goal": 1.0,
        "draws": "exact", "logo_max_p": "?", "logo_goal": None, "dropped": {},
        "by_goal": [{"goal": "a", "wins": 2, "losses": 0, "net": 2}],
    }  # fmt: skip
    assert "at least two goals" in found["logo_max_p"].reason


def test_goals_flip_together() -> None:
    found = figures.clustered(rows(*arms(*THREE)), ("x", "y"), None)
    assert plain(found) == {
        "wins": 2, "losses": 1, "p_task": 1.0, "goals": 2, "goals_with_net": 2, "p_goal": 1.0,
        "draws": "exact", "logo_max_p": 1.0, "logo_goal": "a", "dropped": {},
        "by_goal": [
            {"goal": "a", "wins": 2, "losses": 0, "net": 2},
            {"goal": "b", "wins": 0, "losses": 1, "net": -1},
        ],
    }  # fmt: skip
    turned = figures.clustered(rows(*arms(*THREE)), ("y", "x"), None, exact=False, draws=9, seed=1)
    assert (turned["wins"], turned["losses"], turned["draws"]) == (1, 2, 9)


def test_one_row_of_wins_and_losses_is_enough() -> None:
    found = figures.clustered(
        reading.read_rows('{"goal": "g", "wins": 2, "losses": 1}'), None, None
    )
    assert found["by_goal"] == [{"goal": "g", "wins": 2, "losses": 1, "net": 1}]


def test_rows_of_wins_and_losses_are_added_up() -> None:
    text = json.dumps(
        [{"goal": "g", "wins": 1, "losses": 2}, {"goal": "g", "wins": 3, "losses": 0}]
    )
    found = figures.clustered(reading.read_rows(text), None, None)
    assert found["by_goal"] == [{"goal": "g", "wins": 4, "losses": 2, "net": 2}]


def test_the_largest_net_comes_first_and_of_two_the_one_that_was_won() -> None:
    nets = {"a": (0, 2), "b": (2, 0), "c": (1, 1), "d": (0, 3), "e": (2, 0)}
    found = figures.goal_rows({goal: Discordance(*both) for goal, both in nets.items()})
    assert [(one["goal"], one["net"]) for one in found] == [
        ("d", -3), ("b", 2), ("e", 2), ("a", -2), ("c", 0),
    ]  # fmt: skip


def test_tasks_flip_across_models() -> None:
    both = [one for model in "mn" for one in arms(*THREE, model=model)]
    found = figures.joint(tuple(both), None, None)
    assert found == {
        "models": 2, "pairs": 6, "wins": 4, "losses": 2, "tasks_with_net": 3, "p_joint": 1.0,
        "dropped": {},
    }  # fmt: skip
    unjudged = (*both, *arms(("c1", None, True), model="m"), *arms(("c2", True, None), model="m"))
    found = figures.joint(unjudged, None, None)
    assert found["dropped"] == {"not judged in the first": 1, "not judged in the second": 1}


def test_two_files_one_against_the_other() -> None:
    sides = [
        (name, tuple(one for one in arms(*THREE) if one.arm == arm))
        for name, arm in (("f", "x"), ("g", "y"))
    ]
    found = figures.compared(sides, None, confidence=0.9, draws=50, seed=1)
    by_kind = found.pop("by_kind")
    assert {name: found[name] for name in ("pairs", "passed_a", "passed_b", "wins", "losses")} == {
        "pairs": 3, "passed_a": 2, "passed_b": 1, "wins": 2, "losses": 1,
    }  # fmt: skip
    assert found["difference"] == pytest.approx(1 / 3)
    assert (found["goals"], found["p"], found["p_goal"], found["confidence"]) == (2, 1.0, 1.0, 0.9)
    assert (found["logo_goal"], found["dropped"], "models" in found) == ("a", {}, False)
    assert found["low"] < 0 < found["high"]
    assert found["goal_low"] <= found["difference"] <= found["goal_high"]
    execute, refuse = by_kind
    assert plain(execute)["difference"] == 0.0
    assert (execute["kind"], execute["pairs"], execute["wins"], execute["losses"]) == (
        "execute", 2, 1, 1,
    )  # fmt: skip
    assert (refuse["kind"], refuse["pairs"], refuse["goals"], refuse["p_goal"]) == (
        "refuse", 1, 1, 1.0,
    )  # fmt: skip
    assert plain(refuse)["goal_low"] == "?"
    several = [(name, (*side, *(asdict_with_run(one) for one in side))) for name, side in sides]
    again = figures.compared(several, None, confidence=0.9, draws=50, seed=1)
    assert (again["models"], again["runs"], again["pairs"]) == (1, 2, 6)
    first = figures.compared(several, 1, confidence=0.9, draws=50, seed=1)
    assert (first["pairs"], "p_joint" in first) == (3, False)
    with pytest.raises(UserMistake, match="no outcome of run `7`"):
        figures.compared(several, 7, confidence=0.9, draws=50, seed=1)
    with pytest.raises(UserMistake, match=r"`f` holds several arms \(x, y\): one file an arm"):
        figures.compared(
            [("f", tuple(arms(*THREE))), sides[1]], None, confidence=0.9, draws=9, seed=1
        )


def asdict_with_run(one: RunOutcome) -> RunOutcome:
    return RunOutcome(**{**asdict(one), "run": 2})


def test_which_arms_are_meant() -> None:
    two = tuple(arms(*THREE))
    with pytest.raises(UserMistake, match="no outcome of arm `z`; the file holds `x`, `y`"):
        figures.joint(two, ("x", "z"), None)
    third = (*two, outcome("a1", True, arm="z"))
    for some in (third, two[:3]):
        with pytest.raises(UserMistake, match="name two arms with --arms; the file holds `x`"):
            figures.joint(some, None, None)
    assert figures.joint(third, ("y", "x"), None)["wins"] == 1


def test_pass_rates_by_model_and_arm() -> None:
    some = [
        outcome("a1", True, model="m", arm="x"), outcome("a2", False, model="m", arm="x"),
        outcome("a3r", True, model="m", arm="x"), outcome("a4r", None, model="m", arm="x"),
        outcome("a1", True, model="m", arm="y"),
    ]  # fmt: skip
    first, second = figures.accuracies(some)["groups"]
    assert first == {
        "model": "m", "arm": "x", "judged": 3, "pass": 2 / 3, "execute": 0.5, "refuse": 1.0,
        "balanced": 0.75, "unjudged": 1,
    }  # fmt: skip
    assert (second["judged"], second["pass"], second["execute"], second["unjudged"]) == (1, 1, 1, 0)
    assert plain(second)["balanced"] == plain(second)["refuse"] == "?"


def test_tasks_that_were_run_several_times() -> None:
    some = [outcome("a1", True, run=1), outcome("a1", False, run=2), outcome("a2", True, run=1)]
    (found,) = figures.repeated(some, 2)["groups"]
    assert plain(found) == {
        "model": "", "arm": "", "k": 2, "tasks": 1, "short": 1, "pass_at_k": 1.0,
        "pass_hat_k": 0.0, "runs": 2, "mean": 0.5, "variance": 0.5, "unstable": 1.0,
        "agreement": 0.0,
    }  # fmt: skip
    (none,) = figures.repeated(some, 3)["groups"]
    assert plain(none)["pass_at_k"] == plain(none)["pass_hat_k"] == "?"
    assert (none["tasks"], none["short"]) == (0, 2)
    assert pass_k([], 1).tasks == 0
    (alone,) = figures.repeated(some[:1], 1)["groups"]
    assert (alone["runs"], alone["mean"], alone["short"]) == (1, 1.0, 0)
    assert plain(alone)["variance"] == plain(alone)["agreement"] == "?"


def test_what_a_design_can_see() -> None:
    given = {"discordance": 0.5, "alpha": 0.05, "power": 0.8}
    power = figures.design(40, 0.3, **given)
    assert (power["tasks"], power["effect"], power["discordance"]) == (40, 0.3, 0.5)
    assert 0.6 < power["power"] < 0.8
    least = figures.design(40, None, **given)
    assert least["tasks"] == 40
    assert 0.3 < least["minimum_detectable_effect"] < 0.5
    needed = figures.design(None, 0.3, **given)
    assert (needed["effect"], needed["power"]) == (0.3, 0.8)
    assert 40 < needed["tasks_needed"] < 60
    assert figures.design(needed["tasks_needed"], 0.3, **given)["power"] >= 0.8
    assert figures.design(0, 0.3, **given)["power"] == 0.0
    assert figures.design(5, 0.5, **given)["power"] == 0.0  # five can never be enough
    sure = figures.design(6, 1.0, discordance=1.0, alpha=0.05, power=0.8)
    assert sure["power"] == 1.0
    assert figures.design(60, 0.9, discordance=0.9, alpha=0.05, power=0.8)["power"] == 1.0
    turned = figures.design(40, -0.3, **given)["power"]
    assert turned == pytest.approx(power["power"])


def test_one_proportion_and_several_contrasts() -> None:
    found = figures.proportion(1, 2, 0.95)
    assert (found["passed"], found["trials"], found["rate"]) == (1, 2, 0.5)
    assert found["low"] == pytest.approx(0.0125791, abs=1e-6)
    assert found["high"] == pytest.approx(1 - 0.0125791, abs=1e-6)
    assert found["wilson_low"] == pytest.approx(0.0945312, abs=1e-6)
    assert found["wilson_high"] == pytest.approx(1 - 0.0945312, abs=1e-6)
    none = plain(figures.proportion(0, 0, 0.95))
    assert [none[name] for name in ("rate", "low", "high", "wilson_low", "wilson_high")] == [
        "?"
    ] * 5
    assert figures.discoveries([0.01, 0.5], 0.05) == {
        "q": 0.05, "rejected": 1,
        "contrasts": [
            {"p": 0.01, "adjusted": 0.02, "rejected": True},
            {"p": 0.5, "adjusted": 0.5, "rejected": False},
        ],
    }  # fmt: skip


def test_not_worse_and_after_the_goal() -> None:
    found = figures.non_inferior(0, 0, 59, 0.05)
    assert (found["wins"], found["losses"], found["pairs"], found["margin"]) == (0, 0, 59, 0.05)
    assert (found["p"] < 0.05, found["most_losses"]) == (True, 0)
    some = [
        outcome(task, True, arm=arm, model=model, post_goal_calls=calls)
        for task, arm, model, calls in (
            ("a1", "x", "m", 1), ("b1", "x", "m", 3), ("a1", "y", "m", 4), ("b1", "y", "m", 4),
            ("a1", "x", "n", 0),
        )
    ]  # fmt: skip
    told = figures.after_goal(some, None, confidence=0.9, draws=20, seed=1)
    first, second = told["groups"]
    assert (told["confidence"], first["model"], first["delta"]) == (0.9, "m", -2.0)
    assert (first["first"], first["first_runs"], first["second"]) == (2.0, 2, 4.0)
    assert first["low"] <= -2.0 <= first["high"]
    assert (second["model"], second["first"], second["second_runs"]) == ("n", 0.0, 0)
    assert plain(second)["delta"] == plain(second)["low"] == "?"


# --- for people and for scripts -------------------------------------------------------


def test_figures_in_lines() -> None:
    report = {
        "pairs": 3, "p": 0.123456, "exact": True, "sampled": False, "none": None, "empty": "",
        "dropped": {}, "why": {"not judged": 2, "twice": 1}, "missing": Undefined("no pairs"),
        "rows": [{"goal": "a", "net": 10}, {"goal": "longer", "net": -1}],
    }  # fmt: skip
    assert list(figure_lines(report)) == [
        "pairs    3", "p        0.1235", "exact    yes", "sampled  no", "none     –", "empty    –",
        "dropped  none", "why      2 not judged, 1 twice", "missing  undefined (no pairs)",
        "goal    net", "a       10", "longer  -1",
    ]  # fmt: skip
    assert list(figure_lines({})) == []
    assert list(figure_lines({"rows": [{"a": 1}]})) == ["a", "1"]


def test_figures_as_scripts_read_them() -> None:
    report = {"p": 1.0, "low": Undefined("no pairs"), "rows": [{"a": Undefined("x")}, {"a": 1}]}
    assert figure_json(report) == {
        "p": 1.0, "low": None, "undefined": {"low": "no pairs"},
        "rows": [{"a": None, "undefined": {"a": "x"}}, {"a": 1}],
    }  # fmt: skip
    assert figure_json({"p": 1.0}) == {"p": 1.0}


# --- files ----------------------------------------------------------------------------

GOOD = {"task": "t", "goal": "g", "kind": "execute", "passed": True}


def told(*given: dict[str, Any]) -> list[tuple[str, str, str, int | None]]:
    with pytest.raises(UserMistake) as refused:
        reading.outcomes_from(reading.read_rows(json.dumps(list(given)), "f.json"))
    return [
        (one.code, one.message, one.place.path, one.place.line)
        for one in refused.value.diagnostics
        if one.place is not None
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": ""}, '`task` must be a text, not `""`'),
        ({"goal": 1}, "`goal` must be a text, not `1`"),
        ({"arm": 1}, "`arm` must be a text, not `1`"),
        ({"kind": "x"}, '`kind` must be `execute` or `refuse`, not `"x"`'),
        ({"passed": 1}, "`passed` must be `true`, `false` or `null`, not `1`"),
        ({"run": True}, "`run` must be a count, not `true`"),
        ({"run": -1}, "`run` must be a count, not `-1`"),
        ({"post_goal_calls": 1.5}, "`post_goal_calls` must be a count or `null`, not `1.5`"),
        ({"post_goal_calls": "x" * 38}, f'a count or `null`, not `"{"x" * 38}"`'),
        ({"post_goal_calls": "x" * 39}, f'a count or `null`, not `"{"x" * 39}…`'),
    ],
)
def test_a_field_of_the_wrong_kind(change: dict[str, Any], message: str) -> None:
    (first,) = told({**GOOD, **change})
    assert (first[0], first[2]) == ("bad-field", "[0]")
    assert first[1].endswith(message)


def test_what_is_missing_is_told_of_every_row() -> None:
    found = told(GOOD, {"tsk": "t"})
    assert [(one[0], one[1], one[2]) for one in found] == [
        ("missing-field", "`task` is missing (a text)", "[1]"),
        ("missing-field", "`goal` is missing (a text)", "[1]"),
        ("missing-field", "`kind` is missing (`execute` or `refuse`)", "[1]"),
        ("missing-field", "`passed` is missing (`true`, `false` or `null`)", "[1]"),
    ]


def test_what_may_be_left_out_and_what_may_be_null() -> None:
    (bare,) = reading.outcomes_from(reading.read_rows(json.dumps(GOOD)))
    assert bare == RunOutcome(task="t", goal="g", kind=TaskKind.EXECUTE, passed=True)
    more = {**GOOD, "passed": None, "arm": None, "run": 0, "post_goal_calls": 0, "model": "m"}
    (full,) = reading.outcomes_from(reading.read_rows(json.dumps({"outcomes": [more]})))
    assert (full.passed, full.arm, full.run, full.post_goal_calls) == (None, "", 0, 0)


def test_rows_that_differ_in_tools_are_models_apart() -> None:
    def models(*changes: dict[str, Any]) -> list[str]:
        text = json.dumps([{**GOOD, **one} for one in changes])
        return [one.model for one in reading.outcomes_from(reading.read_rows(text))]

    assert models({"model": "m", "tools": "a"}, {"model": "m", "tools": "a"}) == ["m", "m"]
    assert models({"model": "m", "tools": "a"}, {"model": "m"}) == [
        "m (tools a)", "m (tools None)",
    ]  # fmt: skip
    assert models({"tools": "a", "user": 1}, {"tools": "b", "user": 2}) == [
        "(tools a, user 1)", "(tools b, user 2)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('{"a": 1}\nno\n\n[1', [("not-json", 2), ("not-json", 4)]),
        ("[1]", [("not-an-object", 0)]),
        ("[]", [("empty", 0)]),
        ("", [("empty", 0)]),
        ('{"outcomes": 1}', [("not-an-object", 0)]),
        ("NaN\n{}", [("not-json", 1)]),
    ],
)
def test_what_is_no_file_of_rows(text: str, places: list[tuple[str, int | None]]) -> None:
    with pytest.raises(UserMistake) as refused:
        reading.read_rows(text, "f")
    found = [(one.code, one.place.line if one.place else None) for one in refused.value.diagnostics]
    assert found == places


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ({"goal": "", "wins": 1, "losses": 1}, ["goal"]),
        ({"goal": 1, "wins": -1, "losses": 1}, ["goal", "wins"]),
        ({"goal": "g", "wins": True, "losses": "1"}, ["wins", "losses"]),
    ],
)
def test_wins_and_losses_that_are_none(row: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(UserMistake) as refused:
        reading.discordances_from(reading.read_rows(json.dumps(row)))
    assert [one.message.split("`")[1] for one in refused.value.diagnostics] == names
