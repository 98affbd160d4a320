"""Files of outcomes: read in every shape, and refused with their lines."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.messages.diagnostic import Diagnostic
from sopilot.messages.errors import UserMistake
from sopilot_lab.cli.stats import command
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import Discordance
from sopilot_lab.statistics.reading import discordances_from, outcomes_from, read_rows

QUICK = settings(deadline=None, max_examples=60)
TEXT = st.text(max_size=6)
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


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ('""', 'not `""`'),
        ("5", "not `5`"),
        (f'["{"x" * 36}"]', f'not `["{"x" * 36}"]`'),
        (f'["{"x" * 37}"]', f'not `["{"x" * 37}"…`'),
    ],
)
def test_a_goal_that_is_none_is_told_in_forty_characters(goal: str, said: str) -> None:
    with pytest.raises(UserMistake) as caught:
        discordances_from(read_rows(f'{{"goal": {goal}, "wins": 1, "losses": 2}}', "r.jsonl"))
    (told,) = caught.value.diagnostics
    assert told.message == f"`goal` must be a text, {said}"


def test_every_mistake_of_a_file_is_reported_with_its_line() -> None:
    text = "\n".join(
        [
            '{"task": "a", "goal": "g", "kind": "execute", "passed": true}',
            '{"task": "a", "goal": "g", "kind": "wait", "passd": true}',
            '{"task": 3, "goal": "g", "kind": "refuse", "passed": 1, "run": -1}',
        ]
    )
    with pytest.raises(UserMistake) as caught:
        outcomes_from(read_rows(text, "results.jsonl"))
    said = [str(diagnostic) for diagnostic in caught.value.diagnostics]
    assert said == [
        'results.jsonl:2:1: error[bad-field]: `kind` must be `execute` or `refuse`, not `"wait"`',
        "results.jsonl:2:1: error[missing-field]: `passed` is missing (`true`, `false` or `null`)"
        "\n  help: did you mean `passd`?",
        "results.jsonl:3:1: error[bad-field]: `task` must be a text, not `3`",
        "results.jsonl:3:1: error[bad-field]: `passed` must be `true`, `false` or `null`, not `1`",
        "results.jsonl:3:1: error[bad-field]: `run` must be a count, not `-1`",
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("[]", "empty"),
        ("[1]", "not-an-object"),
        ("3", "not-an-object"),
        ("{", "not-json"),
        ('{"task": NaN}', "not-json"),
        ("[" * 100_000, "not-json"),
        ('{"outcomes": 3}', "not-an-object"),
        ("9" * 5000, "not-json"),
    ],
)
def test_files_that_are_no_results(text: str, code: str) -> None:
    with pytest.raises(UserMistake) as caught:
        outcomes_from(read_rows(text))
    assert caught.value.diagnostics[0].code == code


def test_goal_tables_are_read_and_added_up() -> None:
    text = '{"goal": "a", "wins": 2, "losses": 0}\n{"goal": "a", "wins": 1, "losses": 3}'
    assert discordances_from(read_rows(text)) == {"a": Discordance(3, 3)}
    with pytest.raises(UserMistake, match="`losses` is missing"):
        discordances_from(read_rows('{"goal": "a", "wins": 2}'))
    with pytest.raises(UserMistake, match="`wins` must be a count"):
        discordances_from(read_rows('{"goal": "a", "wins": true, "losses": 1}'))


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
    result = CliRunner().invoke(
        command, ["import", str(archive), *options, "--set", "arm={folder}", "-o", str(made)]
    )
    assert result.exit_code == 0, result.output
    compared = CliRunner().invoke(command, ["compare", str(made), "--arms", "pg", "flat", "--json"])
    figures = json.loads(compared.stdout)
    assert (figures["pairs"], figures["wins"], figures["losses"]) == (2, 1, 0)
    (tmp_path / "theirs.csv").write_text("id,goal,class,ok\nt1,pay,refusal,true\n")
    again = CliRunner().invoke(
        command,
        ["import", str(tmp_path / "theirs.csv"), "--field", "task=id", "--field", "goal=goal",
         "--field", "kind=class", "--field", "passed=ok", "-o", str(tmp_path / "c.jsonl")],
    )  # fmt: skip
    assert again.exit_code == 0, again.output
    (row,) = map(json.loads, (tmp_path / "c.jsonl").read_text().splitlines())
    assert row == {"task": "t1", "goal": "pay", "kind": "refuse", "passed": True}
    wrong = ["import", str(archive), "--field", "task=nothing", "-o", str(tmp_path / "n")]
    assert "no row in it has `nothing`" in str(CliRunner().invoke(command, wrong).exception)
