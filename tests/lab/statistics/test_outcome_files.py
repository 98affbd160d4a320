"""Files of outcomes: read in every shape, and refused with their lines."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import run
from sopilot.messages.diagnostic import Diagnostic
from sopilot.messages.errors import UserMistake
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.reading import discordances_from, outcomes_from, read_rows

QUICK = settings(deadline=None, max_examples=60)
TEXT = st.text(max_size=6)
stats = partial(run, "lab", "stats")
OUTCOMES = st.builds(
    RunOutcome,
    task=TEXT.filter(bool),
    goal=TEXT.filter(bool),
    kind=st.sampled_from(TaskKind),
    passed=st.sampled_from([True, False, None]),
    arm=TEXT,
    model=TEXT,
    domain=TEXT,
    cluster=TEXT,
    run=st.integers(0, 9),
    post_goal_calls=st.none() | st.integers(0, 9),
)


@QUICK
@given(st.lists(OUTCOMES, min_size=1, max_size=5))
def test_outcomes_survive_every_shape_of_file(outcomes: list[RunOutcome]) -> None:
    rows = [asdict(item) for item in outcomes]
    for text in (
        "\n".join(json.dumps(row) for row in rows),
        json.dumps(rows, indent=2),
        json.dumps({"outcomes": rows, "seconds": 3}),
    ):
        assert outcomes_from(read_rows(text)) == tuple(outcomes)


@QUICK
@given(st.text(max_size=60) | st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")))
def test_arbitrary_text_is_read_or_refused_as_the_readers_mistake(text: str) -> None:
    diagnosed: tuple[Diagnostic, ...] = ()
    found: tuple[RunOutcome, ...] = ()
    try:
        found = outcomes_from(read_rows(text))
    except UserMistake as mistake:
        diagnosed = mistake.diagnostics
    assert bool(found) != bool(diagnosed)


def test_every_mistake_of_a_file_is_reported_with_its_line() -> None:
    text = "\n".join(
        [
            '{"task": "a", "goal": "g", "kind": "execute", "passed": true}',
            '{"task": "a", "goal": "g", "kind": "wait", "passd": true}',
            '{"task": 3, "goal": "g", "kind": "refuse", "passed": 1, "run": -1}',
        ]
    )
    assert list(map(str, mistakes_in(text))) == [
        'f.json:2:1: error[bad-field]: `kind` must be `execute` or `refuse`, not `"wait"`',
        "f.json:2:1: error[missing-field]: `passed` is missing (`true`, `false` or `null`)"
        "\n  help: did you mean `passd`?",
        "f.json:3:1: error[bad-field]: `task` must be a non-empty string, not `3`",
        "f.json:3:1: error[bad-field]: `passed` must be `true`, `false` or `null`, not `1`",
        "f.json:3:1: error[bad-field]: `run` must be a count, not `-1`",
    ]


def test_outcomes_of_a_foreign_archive_are_imported(tmp_path: Path) -> None:
    archive, made = tmp_path / "theirs.zip", tmp_path / "ours.jsonl"
    with zipfile.ZipFile(archive, "w") as file:
        for arm, passes in (("flat", (True, False)), ("pg", (True, True))):
            rows = [
                {"id": f"t{n}", "meta": {"goal": "pay"}, "should": n == 0, "success": int(ok)}
                for n, ok in enumerate(passes)
            ]
            file.writestr(f"results/{arm}/run.json", json.dumps(rows))
        file.writestr("results/notes.json", '{"about": "the runs"}')
    names = ["task=id", "goal=meta.goal", "kind=should", "passed=success"]
    options = [part for name in names for part in ("--field", name)]
    result = stats("import", archive, *options, "--set", "arm={folder}", "-o", made)
    assert result.exit_code == 0, result.output
    compared = stats("compare", made, "--arms", "pg", "flat", "--json")
    figures = json.loads(compared.stdout)
    assert (figures["pairs"], figures["wins"], figures["losses"]) == (2, 1, 0)
    (tmp_path / "theirs.csv").write_text("id,goal,class,ok\nt1,pay,refusal,true\n")
    renamed = ["task=id", "goal=goal", "kind=class", "passed=ok"]
    options = [part for name in renamed for part in ("--field", name)]
    again = stats("import", tmp_path / "theirs.csv", *options, "-o", tmp_path / "c.jsonl")
    assert again.exit_code == 0, again.output
    (row,) = map(json.loads, (tmp_path / "c.jsonl").read_text().splitlines())
    assert row == {"task": "t1", "goal": "pay", "kind": "refuse", "passed": True}
    wrong = stats("import", archive, "--field", "task=nothing", "-o", tmp_path / "n")
    assert "no row in it has `nothing`" in str(wrong.exception)


GOOD = {"task": "t", "goal": "g", "kind": "execute", "passed": True}


def mistakes_in(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(UserMistake) as caught:
        outcomes_from(read_rows(text, "f.json"))
    return caught.value.diagnostics


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": ""}, '`task` must be a non-empty string, not `""`'),
        ({"arm": 1}, "`arm` must be a string, not `1`"),
        ({"run": True}, "`run` must be a count, not `true`"),
        ({"post_goal_calls": 1.5}, "`post_goal_calls` must be a count or `null`, not `1.5`"),
        ({"post_goal_calls": "x" * 38}, f'a count or `null`, not `"{"x" * 38}"`'),
        ({"post_goal_calls": "x" * 39}, f'a count or `null`, not `"{"x" * 39}…`'),
    ],
)
def test_a_field_of_the_wrong_kind(change: dict[str, Any], message: str) -> None:
    (first,) = mistakes_in(json.dumps([{**GOOD, **change}]))
    assert (first.code, first.place.path) == ("bad-field", "[0]")
    assert first.message.endswith(message)


def test_what_may_be_left_out_and_what_may_be_null() -> None:
    (bare,) = outcomes_from(read_rows(json.dumps(GOOD)))
    assert bare == RunOutcome(task="t", goal="g", kind=TaskKind.EXECUTE, passed=True)
    more = {**GOOD, "passed": None, "arm": None, "run": 0, "post_goal_calls": 0, "model": "m"}
    (full,) = outcomes_from(read_rows(json.dumps({"outcomes": [more]})))
    assert (full.passed, full.arm, full.run, full.post_goal_calls) == (None, "", 0, 0)


def test_rows_that_differ_in_tools_are_models_apart() -> None:
    def models(*changes: dict[str, Any]) -> list[str]:
        text = json.dumps([{**GOOD, **one} for one in changes])
        return [one.model for one in outcomes_from(read_rows(text))]

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
        ("[" * 100_000, [("not-json", 1)]),
        ("9" * 5000, [("not-json", 1)]),
    ],
)
def test_what_is_no_file_of_rows(text: str, places: list[tuple[str, int | None]]) -> None:
    assert [(one.code, one.place.line) for one in mistakes_in(text)] == places


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
        discordances_from(read_rows(json.dumps(row)))
    assert [one.message.split("`")[1] for one in refused.value.diagnostics] == names
