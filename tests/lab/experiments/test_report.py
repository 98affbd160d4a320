"""Reports: one harness each, every table and figure, and what is missing says so."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from bench_records import fill, record, verdict, write_runs

from sopilot.messages.errors import UserMistake
from sopilot_lab.experiments.report.document import Document, build_document, to_html
from sopilot_lab.experiments.report.files import report_files, to_markdown, write_report
from sopilot_lab.experiments.report.formats import Table, filled_tables, p_text, to_csv, to_latex
from sopilot_lab.experiments.report.mechanism import read_mechanism
from sopilot_lab.experiments.report.runs import load_runs
from sopilot_lab.experiments.report.tables import full_denominators, source_lines
from sopilot_lab.experiments.run_folder import BenchRecord
from sopilot_lab.sopbench.recorded import everything_stays, sequence_only, tally
from sopilot_lab.statistics.paired import mcnemar

TASKS = [f"sopbench:{domain}/goal_{place % 4}#{place}" for domain in ("bank", "dmv")
         for place in range(12)]  # fmt: skip


def all_of(ok: bool) -> dict[str, bool]:
    return dict.fromkeys(TASKS, ok)


def document(*paths: Path, vary: tuple[str, ...] = (), **how: Any) -> Document:
    return build_document(load_runs(paths, vary=vary), upstream=None, **how)


def table_of(found: Document, name: str) -> Table:
    return next(each for each in found.tables if each.name == name)


def rows(found: Document, name: str) -> list[dict[str, str]]:
    return table_of(found, name).as_dicts()


def contrasts(found: Document, scope: str, name: str) -> list[dict[str, str]]:
    return [
        row
        for row in rows(found, "contrasts")
        if (row["scope"], row["contrast"], row["kind"]) == (scope, name, "all")
    ]


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("upstream_commit", "d" * 40, "cccccccccccc… there, dddddddddddd… here"),
        ("sources", "2:other", "ssssssssssss… there, 2:other here"),
        ("budgets", {"bank": {"user_turns": 10}}, "bank.user_turns 3 there, 10 here"),
        ("user", "somebody", "user default there, somebody here"),
        ("hash_seed", 7, "hash_seed 0 there, 7 here"),
    ],
)
def test_another_harness_is_refused_with_what_differs(
    tmp_path: Path, field: str, value: Any, told: str
) -> None:
    one = fill(tmp_path / "flat", all_of(True), arm="flat")
    other = fill(tmp_path / "pg", all_of(False), **{field: value})
    with pytest.raises(UserMistake, match=f"`{field}` differs from .*flat`") as refused:
        load_runs([one, other])
    assert told in str(refused.value)
    assert f"--vary {field}" in str(refused.value)
    # Another model in another harness is another experiment too.
    stranger = fill(tmp_path / "n", all_of(True), model="n", **{field: value})
    with pytest.raises(UserMistake, match=field):
        load_runs([one, stranger])


def test_what_varies_on_purpose_is_never_paired(tmp_path: Path) -> None:
    folders = [
        fill(tmp_path / f"{arm}-{turns}", all_of(arm == "pg-paper"), arm=arm,
             budgets={"bank": {"user_turns": turns}})
        for arm in ("pg-paper", "flat") for turns in (3, 10)
    ]  # fmt: skip
    found = document(*folders, vary=("budgets",))
    conditions = contrasts(found, "screen `paper`", "pg-paper:flat")
    assert ["user_turns 3" in conditions[0]["series"], "user_turns 10" in conditions[1]["series"]]
    assert [row["wins:losses"] for row in conditions] == ["24:0", "24:0"]


def test_folders_of_one_configuration_are_put_together(tmp_path: Path) -> None:
    half = {task: True for task in TASKS if "bank" in task}
    rest = {task: True for task in TASKS if "dmv" in task}
    folders = [
        fill(tmp_path / "pg-bank", half),
        fill(tmp_path / "pg-dmv", rest),
        fill(tmp_path / "flat", all_of(False), arm="flat"),
    ]
    (whole,) = [row for row in rows(document(*folders), "headline")
                if (row["contrast"], row["kind"]) == ("pg-paper:flat", "all")]  # fmt: skip
    assert (whole["pairs"], whole["wins:losses"]) == ("24", "24:0")


def test_headlines_are_clustered_by_goal_with_kinds_apart(tmp_path: Path) -> None:
    wins = {task: "goal_0" in task or "goal_1" in task for task in TASKS}
    found = document(
        fill(tmp_path / "pg", wins), fill(tmp_path / "flat", all_of(False), arm="flat")
    )
    lines = {
        row["kind"]: row for row in rows(found, "headline") if row["contrast"] == "pg-paper:flat"
    }
    assert [lines[kind]["pairs"] for kind in ("all", "execute", "refuse")] == ["24", "12", "12"]
    # Twelve tasks, but four goals: 2 of 16 assignments of signs are as extreme.
    assert lines["all"]["wins:losses"] == "12:0"
    assert lines["all"]["goal p"] == ".1250"
    assert lines["all"]["task p"] == f"{mcnemar(12, 0):.4f}".lstrip("0")
    assert lines["all"]["difference"] == "+50.0"
    assert " to " in lines["all"]["95 % by goals"]
    nets = [(row["goal"], row["first alone"], row["net"]) for row in rows(found, "goal-nets")]
    assert nets == [(f"{place}/goal_{n}", "3", "+3") for place in ("bank", "dmv") for n in (0, 1)]


def test_missing_tasks_are_named_counted_and_bounded(tmp_path: Path) -> None:
    lost = TASKS[:6]
    kept = {task: True for task in TASKS if task not in lost}
    broken = dict.fromkeys(lost[:4], "rate")
    found = document(
        fill(tmp_path / "pg", kept, broken=broken),
        fill(tmp_path / "flat", all_of(True), arm="flat"),
    )
    (row,) = [row for row in rows(found, "missing") if row["arm"] == "pg-paper"]
    # Two tasks were never asked of this arm: they're neither missing nor failed.
    assert (row["asked"], row["judged"], row["missing"]) == ("22", "18", "4")
    assert row["why"] == "4 rate"
    assert (row["pass % of judged"], row["pass % of asked"]) == ("100.0", "81.8")
    (contrast,) = contrasts(found, "screen `paper`", "pg-paper:flat")
    assert (contrast["pairs"], contrast["difference"]) == ("18", "+0.0")
    assert contrast["worst to best"] == "-18.2 to +0.0"
    assert contrast["left out"] == "6 only in flat"
    assert [line for line in found.alarms if "pg-paper: 4 tasks (18.2 %)" in line]
    assert not document(tmp_path, most_missing=0.3).alarms


def test_a_planned_part_of_a_domain_has_no_rate_over_all_its_tasks(tmp_path: Path) -> None:
    """A run of 4 of 12 tasks hasn't failed the other 8."""
    runs = load_runs([fill(tmp_path / "flat", dict.fromkeys(TASKS[:4], True), arm="flat")])
    scoring = {"bank": {"goal_0": [True] * 12}}
    table = full_denominators(runs, scoring, everything_stays)
    assert table.rows[0][5].startswith("– [")
    assert "m (official tools), flat: 4 of 12 tasks were asked" in table.missing
    whole = full_denominators(runs, {"bank": {"goal_0": [True] * 4}}, everything_stays)
    assert whole.rows[0][5] == "100.0"


def test_repetitions_pair_by_number_and_pool(tmp_path: Path) -> None:
    folders = []
    for number in (1, 2, 3):
        some = {task: place % 4 != number for place, task in enumerate(TASKS)}
        folders.append(fill(tmp_path / f"pg{number}", some, run=number))
        folders.append(fill(tmp_path / f"flat{number}", all_of(False), arm="flat", run=number))
    found = document(*folders)
    flat, pg = rows(found, "repeats")
    assert (pg["runs"], pg["pass % by run"]) == ("3", "75.0/75.0/75.0")
    # A quarter of the tasks fails in each run, another quarter each time.
    assert (pg["pass@k %"], pg["pass^k %"], pg["agreement %"]) == ("100.0", "25.0", "25.0")
    assert (flat["pass^k %"], flat["agreement %"]) == ("0.0", "100.0")
    for number in (1, 2, 3):
        (row,) = contrasts(found, f"run {number}", "pg-paper:flat")
        assert row["wins:losses"] == "18:0"
    (row,) = contrasts(found, "all runs", "pg-paper:flat")
    assert (row["wins:losses"], row["task-joint p"]) == ("54:0", f"{2 / 2**24:.1e}")
    # The other rows stay with the first run.
    (row,) = contrasts(found, "screen `paper`", "pg-paper:flat")
    assert row["pairs"] == "24"


def test_two_models_pooled_flip_a_task_together(tmp_path: Path) -> None:
    for model, wins in (("a", TASKS[:9]), ("b", TASKS[:6])):
        won = {task: task in wins for task in TASKS}
        fill(tmp_path / f"{model}-pg", won, model=model)
        fill(tmp_path / f"{model}-flat", all_of(False), model=model, arm="flat")
    (row,) = contrasts(document(tmp_path), "two models", "pg-paper:flat")
    assert row["wins:losses"] == "15:0"
    assert row["task-joint p"] == f"{2 / 2**9:.4f}".lstrip("0")


def test_no_pairs_is_no_tie(tmp_path: Path) -> None:
    found = document(
        fill(tmp_path / "pg", {TASKS[0]: True}),
        fill(tmp_path / "flat", {TASKS[1]: True}, arm="flat"),
    )
    (row,) = contrasts(found, "screen `paper`", "pg-paper:flat")
    assert row["wins:losses"].startswith("– [")


def test_what_is_no_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match="no runs here"):
        load_runs([tmp_path])
    empty = [fill(tmp_path / "pg", {}), fill(tmp_path / "flat", {}, arm="flat")]
    with pytest.raises(UserMistake, match="no run was judged here"):
        load_runs(empty)
    twice = [fill(tmp_path / name, {TASKS[0]: True}, arm="flat") for name in "ab"]
    with pytest.raises(UserMistake, match="was judged in another folder"):
        load_runs(twice)


def test_the_mechanism_is_read_from_checks_and_lenses(tmp_path: Path) -> None:
    probe, lens = tmp_path / "probe.json", tmp_path / "lens.json"
    probe.write_text(
        '{"model": "m", "probe": {"score": 0.91, "interval": [0.6, 0.7], '
        '"score_interval": [0.8, 0.97]}}'
    )
    lens.write_text(
        '{"model": "m", "regions": [{"region": "frame", "presentation": "own", "parity": 0.15}]}'
    )
    runs = [fill(tmp_path / "pg", all_of(True)), fill(tmp_path / "flat", all_of(True), arm="flat")]
    found = document(*runs, mechanism=read_mechanism([probe, lens]))
    panels = {row["panel"]: row["value"] for row in rows(found, "mechanism")}
    assert panels == {"probe": "0.91", "ΔR2": "+0.00", "parity": "0.15"}
    assert rows(found, "mechanism")[0]["95 %"] == "0.80 to 0.97"
    assert rows(found, "mechanism")[-1]["95 %"] == "", "parity has no interval"
    picture = found.plots[-1].as_file()
    assert all(f"({panel})" in picture for panel in "abc")
    (tmp_path / "other.json").write_text('{"model": "x"}')
    with pytest.raises(UserMistake, match="neither a probe nor attention"):
        read_mechanism([tmp_path / "other.json"])


def test_cost_is_told_by_task_and_by_call(tmp_path: Path) -> None:
    def costing(task: str, *calls: int) -> BenchRecord:
        asked = [{"prompt_tokens": each, "finish_reason": "stop"} for each in calls]
        sizes = tuple(10 * each for each in calls)
        fields = {"requests": asked, "system_by_call": sizes, "cost": 0.5, "r2": None}
        return record(task, prompt_tokens=sum(calls), **fields)

    write_runs(tmp_path / "pg", costing(TASKS[0], 100, 300), costing(TASKS[1], 500))
    found = document(tmp_path)
    table = table_of(found, "cost")
    (row,) = table.rows
    cells = list(zip(table.header, row, strict=True))
    assert ("prompt tokens", "450 [425–475]") in cells
    assert ("a call", "300 [200–400]") in cells
    assert ("system characters a call", "3,000 [2,000–4,000]") in cells
    assert [value for name, value in cells if name == "mean a call"] == ["300", "3,000"]
    (spent,) = rows(found, "spending")
    assert (spent["requests"], spent["money"], spent["finish reasons"]) == ("3", "1.0000", "3 stop")


@pytest.fixture
def study(tmp_path: Path) -> Document:
    """Two arms with the study's 26:6 discordant pairs on 125 tasks."""
    tasks = [f"sopbench:bank/goal_{place % 5}#{place}" for place in range(125)]
    for arm, wins in (("flat", True), ("official", False)):
        passed = {task: not 0 <= place < 32 or (place < 26) is wins
                  for place, task in enumerate(tasks)}  # fmt: skip
        fill(tmp_path / arm, passed, arm=arm)
    return document(tmp_path)


def test_the_contrast_and_its_p_value_are_the_studys(study: Document) -> None:
    (row,) = contrasts(study, "bank, screen `paper`", "flat:official")
    assert (row["pairs"], row["wins:losses"]) == ("125", "26:6")
    assert (row["task p"], row["BH"]) == (".0005", ".0005")


def test_the_page_loads_nothing_and_escapes(tmp_path: Path) -> None:
    page = to_html(document(fill(tmp_path / "evil", all_of(True), model="<script>x</script>")))
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "<script" not in page
    assert page.count("<svg") >= 2


def test_a_missing_arm_says_so_in_every_format(study: Document) -> None:
    table = table_of(study, "headline")
    place = next(n for n, row in enumerate(table.rows) if row[1] == "pg-paper:flat")
    assert table.rows[place][4].startswith("– [")
    written = list(csv.reader(io.StringIO(to_csv(table))))
    assert written[place + 1][4] == "missing: m (official tools): no runs of pg-paper"
    assert "no runs of pg-paper" in to_markdown(study)
    assert "no runs of pg-paper" in to_html(study)


def test_every_table_of_the_study_is_there_and_says_its_method(study: Document) -> None:
    names = {table.name for table in study.tables}
    assert names >= {
        "headline", "contrasts", "official-configurations", "classes-bank", "classes-domains",
        "cost", "wall-clock", "goal-nets", "repeats", "compiler-effort", "unreachable",
    }  # fmt: skip
    assert all(table.method for table in study.tables)
    for table in study.tables:
        assert all(len(row) == len(table.header) for row in table.rows), table.name


def test_source_lines_leave_out_blanks_comments_and_docstrings() -> None:
    text = '"""Doc.\n\nMore."""\n\n# why\nx = "a string"  # here\n\n\n'
    text += 'def f():\n    """Doc."""\n    return x\n'
    assert source_lines(text) == (11, 3)


@pytest.mark.parametrize(("p", "text"), [(0.0215, ".0215"), (1.0, "1.000"), (3.4e-6, "3.4e-06")])
def test_p_values_keep_their_size(p: float, text: str) -> None:
    assert p_text(p) == text


def test_classes_and_wall_clock_by_domain(study: Document) -> None:
    (flat,) = [
        row for row in table_of(study, "classes-domains").rows if row[1:3] == ["bank", "flat"]
    ]
    assert flat[3:9] == ["125", "95.2", "63", "95.2", "62", "95.2"]
    clock = {row[2]: row for row in table_of(study, "wall-clock").rows if row[1] == "bank"}
    assert clock["official"][3] == "125"
    assert clock["flat"][-1] == "1.00"


def test_filled_leaves_out_what_has_no_figure() -> None:
    table = Table("t", "T", ["series", "n", "pass %", "p"])
    table.rows = [["m", "12", "86.4", table.lacks("no pair")], ["x", "all", *["– [2]"] * 2]]
    table.lacks("no runs")
    table.rows.append([table.lacks("nothing"), "–", "–", "–"])
    (shown,) = filled_tables([table, Table("u", "U", ["a"], [["– [1]"]], missing=["none"])])
    assert shown.rows == [["m", "12", "86.4", "– [1]"]]
    assert shown.missing == ["no pair"]


def test_latex_escapes_and_explains() -> None:
    table = Table("t_1", "50 % & more", ["a_b", "p"], method="x < y")
    table.rows = [["m\\n", "$<.001"], ["[1]", table.lacks("no #1")]]
    text = to_latex(table)
    assert r"a\_b & p \\" in text
    assert r"m\textbackslash{}n & \$$<$.001 \\" in text
    assert r"{}[1] & -- [1] \\" in text
    assert r"\caption{50 \% \& more. x $<$ y. [1] no \#1.}" in text
    assert text.count("{") == text.count("}")


def test_every_table_and_figure_is_a_file(study: Document, tmp_path: Path) -> None:
    files = report_files(study)
    for table in study.tables:
        assert {f"csv/{table.name}.csv", f"tex/{table.name}.tex"} <= files.keys()
    figures = [name for name in files if name.endswith(".svg")]
    assert len(figures) == len(study.plots) >= 3
    pytest.importorskip("cairosvg")
    written = write_report(tmp_path / "report", study)
    for name in figures:
        pdf = name.replace(".svg", ".pdf")
        assert pdf in written
        assert (tmp_path / "report" / pdf).read_bytes().startswith(b"%PDF")


def test_goals_not_reached_and_wrongly_reached_are_counted_apart() -> None:
    counts = tally(
        [
            verdict(should=True, passed=True),
            verdict(should=True, passed=False),
            verdict(should=False, passed=True),
            verdict(should=False, passed=False),
            verdict(should=False, passed=False, action_successfully_called=False),
        ]
    )
    assert (counts.n, counts.passed) == (5, 2)
    assert (counts.execute, counts.execute_passed) == (2, 1)
    assert (counts.refuse, counts.refuse_passed) == (3, 1)
    assert (counts.not_reached, counts.wrongly_reached) == (1, 1)
    assert counts.balanced == (1 / 2 + 1 / 3) / 2


def test_only_the_order_of_calls_makes_a_sequence_failure() -> None:
    wrong_order = {"dirgraph_satisfied": False, "action_called_correctly": True}
    assert sequence_only(verdict(should=True, passed=False, **wrong_order))
    assert not sequence_only(
        verdict(should=True, passed=False, database_match=False, **wrong_order)
    )
    assert not sequence_only(verdict(should=True, passed=True))


def test_balanced_accuracy_needs_both_classes() -> None:
    assert tally([verdict(should=True, passed=True)]).balanced is None
