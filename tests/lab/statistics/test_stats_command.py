"""`sopilot stats` as a person and as a script see it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sopilot.cli.main import main
from sopilot_lab.cli.stats import command
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import mcnemar


def as_json(*arguments: object) -> dict[str, Any]:
    result = CliRunner().invoke(command, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def misuse(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["stats", *map(str, arguments)])
    assert ended.value.code == 2
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


def test_mcnemar() -> None:
    assert as_json("mcnemar", 26, 6) == {"wins": 26, "losses": 6, "p": mcnemar(26, 6)}
    shown = CliRunner().invoke(command, ["mcnemar", "26", "6"])
    assert shown.stdout == "wins    26\nlosses  6\np       0.0005351\n"


def test_sign_pools() -> None:
    assert as_json("sign", "9:1", "13:7") == {"wins": 22, "losses": 8, "p": mcnemar(22, 8)}


def test_clopper_pearson() -> None:
    found = as_json("clopper-pearson", 86, 86)
    assert round(found["low"], 3) == 0.958
    assert found["high"] == 1.0
    assert as_json("clopper-pearson", 86, 86, "--confidence", 0.9)["low"] > found["low"]


def test_undefined_is_null_with_a_reason() -> None:
    found = as_json("clopper-pearson", 0, 0)
    assert found["low"] is None
    assert found["undefined"]["low"] == "no trials"
    shown = CliRunner().invoke(command, ["clopper-pearson", "0", "0"])
    assert "low          undefined (no trials)" in shown.stdout


def test_bh() -> None:
    found = as_json("bh", 0.01, 0.02, 0.9)
    assert found["rejected"] == 2
    assert [row["rejected"] for row in found["contrasts"]] == [True, True, False]
    shown = CliRunner().invoke(command, ["bh", "0.01", "0.9"])
    assert shown.stdout.splitlines()[2:] == [
        "p     adjusted  rejected",
        "0.01  0.02      yes",
        "0.9   0.9       no",
    ]


def test_clustered_reads_outcomes(results: Path) -> None:
    found = as_json("clustered", results, "--run", 0, "--arms", "pg", "flat")
    assert (found["wins"], found["losses"], found["goals"]) == (16, 0, 4)
    assert found["p_task"] == mcnemar(16, 0)
    assert (found["goals_with_net"], found["p_goal"]) == (2, 0.5)
    assert found["logo_max_p"] == mcnemar(16, 0) * 2**8
    sampled = as_json("clustered", results, "--run", 0, "--monte-carlo", "--draws", 2000)
    assert sampled["draws"] == 2000
    assert abs(sampled["p_goal"] - 0.5) < 0.05


def test_clustered_reads_goal_tables(tmp_path: Path) -> None:
    file = tmp_path / "goals.json"
    file.write_text(
        '[{"goal": "a", "wins": 5, "losses": 0}, {"goal": "b", "wins": 0, "losses": 1}]'
    )
    found = as_json("clustered", file)
    assert (found["wins"], found["losses"], found["p_goal"]) == (5, 1, 1.0)
    assert found["logo_goal"] == "a"


def test_joint(results: Path) -> None:
    found = as_json("joint", results, "--run", 1)
    assert (found["models"], found["pairs"], found["wins"]) == (2, 32, 16)
    assert found["p_joint"] == mcnemar(8, 0)


def test_pairs(results: Path) -> None:
    found = as_json("pairs", *split_by_arm(results), "--run", 0, "--draws", 200)
    assert (found["pairs"], found["passed_a"], found["passed_b"]) == (32, 32, 16)
    assert (found["wins"], found["losses"], found["difference"]) == (16, 0, 0.5)
    assert found["low"] < 0.5 < found["high"]
    assert (found["goal_low"], found["goal_high"]) == (0.0, 1.0)
    assert found["dropped"] == {}


def test_pairs_of_several_runs_flip_a_task_as_a_whole(results: Path) -> None:
    found = as_json("pairs", *split_by_arm(results), "--draws", 10)
    assert (found["pairs"], found["runs"], found["dropped"]) == (96, 3, {})
    assert [row["kind"] for row in found["by_kind"]] == ["execute", "refuse"]
    assert sum(row["pairs"] for row in found["by_kind"]) == 96


def test_pairs_says_what_it_dropped(results: Path, tmp_path: Path) -> None:
    pg, flat = split_by_arm(results)
    short = tmp_path / "short.jsonl"
    short.write_text("\n".join(flat.read_text().splitlines()[:10]))
    found = as_json("pairs", pg, short, "--draws", 10)
    assert found["dropped"] == {"only in the first": 86}
    shown = CliRunner().invoke(command, ["pairs", str(pg), str(short), "--draws", "10"])
    assert "86 only in the first" in shown.stdout


def test_clustered_has_a_row_a_goal(results: Path) -> None:
    found = as_json("clustered", results, "--run", 1)
    rows = found["by_goal"]
    assert len(rows) == found["goals"]
    assert sum(row["wins"] for row in rows) == found["wins"]
    assert [abs(row["net"]) for row in rows] == sorted((abs(r["net"]) for r in rows), reverse=True)


def test_tool_lists_are_never_pooled(tmp_path: Path) -> None:
    row = {"task": "t", "goal": "g", "kind": "execute", "arm": "pg", "model": "m"}
    both = tmp_path / "both.jsonl"
    rows = [row | {"tools": tools, "passed": tools == "a"} for tools in ("a", "b")]
    both.write_text("\n".join(map(json.dumps, rows)))
    groups = as_json("accuracy", both)["groups"]
    assert [(each["model"], each["pass"]) for each in groups] == [
        ("m (tools a)", 1.0),
        ("m (tools b)", 0.0),
    ]


def test_accuracy(results: Path) -> None:
    rows = as_json("accuracy", results)["groups"]
    assert [(row["model"], row["arm"], row["balanced"]) for row in rows] == [
        ("m", "pg", 1.0),
        ("n", "pg", 1.0),
        ("m", "flat", 0.5),
        ("n", "flat", 0.5),
    ]


def test_pass_k(results: Path) -> None:
    rows = as_json("pass-k", results, "-k", 2)["groups"]
    assert [(row["pass_at_k"], row["pass_hat_k"], row["variance"]) for row in rows] == [
        (1.0, 1.0, 0.0),
        (1.0, 1.0, 0.0),
        (0.5, 0.5, 0.0),
        (0.5, 0.5, 0.0),
    ]
    assert as_json("pass-k", results, "-k", 4)["groups"][0]["pass_at_k"] is None


def test_mde() -> None:
    effect = as_json("mde", "--tasks", 125, "--discordance", 0.08)["minimum_detectable_effect"]
    assert 0.05 < effect < 0.08
    assert as_json("mde", "--effect", 0.05, "--discordance", 0.1)["tasks_needed"] == 337
    both = as_json("mde", "--tasks", 337, "--effect", 0.05, "--discordance", 0.1)
    assert both["power"] >= 0.8


def test_r2(results: Path) -> None:
    found = as_json("r2", results, "--arms", "flat", "pg", "--draws", 200)
    assert [(row["model"], row["delta"]) for row in found["groups"]] == [("m", 1.0), ("n", 1.0)]
    assert found["groups"][0]["first_runs"] == 24


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
        (["clustered", "missing.jsonl"], "does not exist"),
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
    assert "no outcome of arm `x`" in misuse(capsys, "clustered", results, "--arms", "pg", "x")
    assert "holds several arms" in misuse(capsys, "pairs", results, results)
    assert "no outcome of run `9`" in misuse(capsys, "joint", results, "--run", 9)
    pg, _ = split_by_arm(results)
    assert "name two arms with --arms; the file holds `pg`" in misuse(capsys, "r2", pg)
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in misuse(capsys, "accuracy", garbage)


def test_non_inferiority(capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json("non-inferiority", 0, 1, 100)
    assert (found["pairs"], found["margin"], found["most_losses"]) == (100, 0.05, 1)
    assert found["p"] == pytest.approx(0.0371, abs=5e-5)
    few = as_json("non-inferiority", 0, 0, 20)
    assert few["p"] > 0.05
    assert "20 pairs cannot show it" in few["undefined"]["most_losses"]
    assert "do not fit" in misuse(capsys, "non-inferiority", 3, 3, 5)
