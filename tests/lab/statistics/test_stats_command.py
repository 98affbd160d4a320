"""`sopilot lab stats` as a person and as a script see it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sopilot.cli.main import main, sopilot
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import mcnemar


def as_json(*arguments: object) -> dict[str, Any]:
    result = CliRunner().invoke(sopilot, ["lab", "stats", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def as_text(*arguments: object) -> str:
    return CliRunner().invoke(sopilot, ["lab", "stats", *map(str, arguments)]).stdout


def misuse(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["lab", "stats", *map(str, arguments)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two models, two arms, three runs: `pg` passes everything, `flat` fails goals a and b."""
    rows = [
        RunOutcome(
            task=f"{goal}{place}",
            goal=goal,
            kind=TaskKind.REFUSE if place % 2 else TaskKind.EXECUTE,
            passed=arm == "pg" or goal not in "ab",
            arm=arm,
            model=model,
            run=run,
            post_goal_calls=None if place % 2 else int(arm == "flat") + run,
        )
        for arm in ("pg", "flat")
        for model in ("m", "n")
        for run in range(3)
        for goal in "abcd"
        for place in range(4)
    ]
    file = tmp_path / "results.jsonl"
    file.write_text("\n".join(json.dumps(asdict(row)) for row in rows), encoding="utf-8")
    return file


def split_by_arm(results: Path) -> tuple[Path, Path]:
    rows = results.read_text(encoding="utf-8").splitlines()
    files = []
    for arm in ("pg", "flat"):
        file = results.with_name(f"{arm}.jsonl")
        file.write_text("\n".join(row for row in rows if f'"arm": "{arm}"' in row))
        files.append(file)
    return files[0], files[1]


def test_small_tests_give_their_figures_as_json_and_as_text() -> None:
    assert as_json("mcnemar", 26, 6) == {"wins": 26, "losses": 6, "p": mcnemar(26, 6)}
    assert as_json("sign", "9:1", "13:7") == {"wins": 22, "losses": 8, "p": mcnemar(22, 8)}
    exact = as_json("clopper-pearson", 86, 86)
    assert (round(exact["low"], 3), exact["high"]) == (0.958, 1.0)
    some = as_json("clopper-pearson", 58, 60)
    assert (round(some["low"], 3), round(some["high"], 3)) == (0.885, 0.996)
    assert as_json("clopper-pearson", 86, 86, "--confidence", 0.9)["low"] > exact["low"]
    nothing = as_json("clopper-pearson", 0, 0)
    assert (nothing["low"], nothing["undefined"]["low"]) == (None, "no trials")
    several = as_json("bh", 0.01, 0.02, 0.9)
    assert several["rejected"] == 2
    assert [row["rejected"] for row in several["contrasts"]] == [True, True, False]
    assert as_text("mcnemar", 26, 6) == "wins    26\nlosses  6\np       0.0005351\n"
    assert "low          undefined (no trials)" in as_text("clopper-pearson", 0, 0)
    assert as_text("bh", 0.01, 0.9).splitlines()[2:] == [
        "   p  adjusted  rejected",
        "----  --------  --------",
        "0.01      0.02  yes",
        " 0.9       0.9  no",
    ]


def test_compare_by_goal(results: Path) -> None:
    report = as_json("compare", results, "--run", 0, "--arms", "pg", "flat", "--draws", 200)
    assert (report["pairs"], report["passed_first"], report["passed_second"]) == (32, 32, 16)
    assert (report["wins"], report["losses"], report["difference"]) == (16, 0, 0.5)
    assert report["p"] == pytest.approx(mcnemar(16, 0))
    assert (report["goals"], report["goals_with_net"], report["p_goal"]) == (4, 2, 0.5)
    assert report["logo_max_p"] == pytest.approx(mcnemar(8, 0))
    assert report["low"] < 0.5 < report["high"]
    assert (report["goal_low"], report["goal_high"]) == (0.0, 1.0)
    rows = report["by_goal"]
    assert [(row["goal"], row["net"]) for row in rows] == [("a", 8), ("b", 8), ("c", 0), ("d", 0)]
    sampled = as_json("compare", results, "--run", 0, "--monte-carlo", "--draws", 10)
    assert sampled["draws"] == 20_000
    assert abs(sampled["p_goal"] - 0.5) < 0.05


def test_compare_across_models_and_runs(results: Path) -> None:
    report = as_json("compare", results, "--run", 1, "--draws", 10)
    assert (report["models"], report["pairs"], report["wins"]) == (2, 32, 16)
    assert report["p_joint"] == pytest.approx(mcnemar(8, 0))
    several = as_json("compare", *split_by_arm(results), "--draws", 10)
    assert (several["pairs"], several["runs"], several["dropped"]) == (96, 3, {})
    assert [row["kind"] for row in several["by_kind"]] == ["execute", "refuse"]
    assert sum(row["pairs"] for row in several["by_kind"]) == 96


def test_compare_goal_tables(tmp_path: Path) -> None:
    file = tmp_path / "goals.json"
    rows = [("a", 3, 0), ("b", 0, 1), ("a", 2, 0)]
    file.write_text(
        json.dumps([dict(zip(("goal", "wins", "losses"), r, strict=True)) for r in rows])
    )
    report = as_json("compare", file)
    assert (report["wins"], report["losses"], report["p_goal"]) == (5, 1, 1.0)
    assert report["logo_goal"] == "a"
    file.write_text('{"goal": "g", "wins": 2, "losses": 1}')
    alone = as_json("compare", file)
    assert alone["logo_max_p"] is None
    shown = dict(line.split(maxsplit=1) for line in as_text("compare", file).splitlines()[:9])
    assert (shown["logo_goal"], shown["draws"]) == ("–", "exact")
    assert "at least two goals" in alone["undefined"]["logo_max_p"]


def test_goals_are_listed_by_their_net_and_gains_before_losses(tmp_path: Path) -> None:
    file = tmp_path / "goals.jsonl"
    counts = {"even": (3, 3), "lost": (1, 6), "small": (0, 2), "alike": (2, 0), "won": (6, 1)}
    rows = [{"goal": goal, "wins": won, "losses": lost} for goal, (won, lost) in counts.items()]
    file.write_text("\n".join(map(json.dumps, rows)))
    listed = [(row["goal"], row["net"]) for row in as_json("compare", file)["by_goal"]]
    assert listed == [("won", 5), ("lost", -5), ("alike", 2), ("small", -2), ("even", 0)]


def test_compare_says_what_it_dropped(results: Path, tmp_path: Path) -> None:
    pg, flat = split_by_arm(results)
    short = tmp_path / "short.jsonl"
    short.write_text("\n".join(flat.read_text().splitlines()[:10]))
    assert as_json("compare", pg, short, "--draws", 10)["dropped"] == {"only in the first": 86}
    assert "86 only in the first" in as_text("compare", pg, short, "--draws", 10)


def test_compare_calls_after_the_goal(results: Path) -> None:
    report = as_json("compare", results, "--arms", "flat", "pg", "--draws", 200)
    rows = report["post_goal_calls"]
    assert [(row["model"], row["delta"]) for row in rows] == [("m", 1.0), ("n", 1.0)]
    assert rows[0]["first_runs"] == 24


def test_describe(results: Path) -> None:
    report = as_json("describe", results, "-k", 2)
    sides = [("m", "pg", 1.0), ("n", "pg", 1.0), ("m", "flat", 0.5), ("n", "flat", 0.5)]
    assert [(row["model"], row["arm"], row["balanced"]) for row in report["rates"]] == sides
    repeats = report["repeats"]
    assert [(row["pass_at_k"], row["pass_hat_k"], row["variance"]) for row in repeats] == [
        (rate, rate, 0.0) for _, _, rate in sides
    ]
    assert repeats[0]["agreement"] == 1.0
    assert as_json("describe", results, "-k", 4)["repeats"][0]["pass_at_k"] is None


def test_mde() -> None:
    effect = as_json("mde", "--tasks", 125, "--discordance", 0.08)["minimum_detectable_effect"]
    assert 0.05 < effect < 0.08
    assert as_json("mde", "--effect", 0.05, "--discordance", 0.1)["tasks_needed"] == 337
    both = as_json("mde", "--tasks", 337, "--effect", 0.05, "--discordance", 0.1)
    assert both["power"] >= 0.8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mcnemar", "1", "x"], "is not a valid integer"),
        (["mcnemar", "1"], "Missing argument 'LOSSES'"),
        (["sign", "9-1"], "`9-1` is not W:L"),
        (["sign"], "Missing argument"),
        (["clopper-pearson", "3", "2"], "passed must lie between 0 and trials"),
        (["clopper-pearson", "1", "2", "--confidence", "1"], "confidence must lie strictly"),
        (["bh", "1.5"], "a p-value lies between 0 and 1"),
        (["mde", "--discordance", "0.1"], "give --tasks, --effect"),
        (["mde", "--discordance", "0.1", "--effect", "0.3"], "needs at least that much"),
        (["compare", "missing.jsonl"], "does not exist"),
        (["nonsense"], "No such command"),
    ],
)
def test_misuse_exits_two_and_says_why(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in misuse(capsys, *arguments)


def test_files_are_refused_with_reasons(
    capsys: pytest.CaptureFixture[str], results: Path, tmp_path: Path
) -> None:
    assert "no outcome of arm `x`" in misuse(capsys, "compare", results, "--arms", "pg", "x")
    assert "no outcome of run `9`" in misuse(capsys, "compare", results, "--run", 9)
    pg, _ = split_by_arm(results)
    assert "name two arms with --arms; the files hold `pg`" in misuse(capsys, "compare", pg)
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in misuse(capsys, "describe", garbage)


def test_non_inferiority(capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json("non-inferiority", 0, 1, 100)
    assert (found["pairs"], found["margin"], found["most_losses"]) == (100, 0.05, 1)
    assert found["p"] == pytest.approx(0.0371, abs=5e-5)
    few = as_json("non-inferiority", 0, 0, 20)
    assert few["p"] > 0.05
    assert "20 pairs cannot show it" in few["undefined"]["most_losses"]
    assert "do not fit" in misuse(capsys, "non-inferiority", 3, 3, 5)
