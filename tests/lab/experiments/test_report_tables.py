from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from bench_records import configuration, record

from sopilot.messages.errors import UserMistake
from sopilot_lab.experiments.report.document import build_document, to_html
from sopilot_lab.experiments.report.files import report_files, to_markdown, write_report
from sopilot_lab.experiments.report.formats import Table, filled_tables, p_text, to_csv, to_latex
from sopilot_lab.experiments.report.runs import load_runs
from sopilot_lab.experiments.report.tables import source_lines
from sopilot_lab.experiments.run_folder import RunFolder


def make_arm(path: Path, arm: str, passed: list[bool]) -> None:
    folder = RunFolder.create(path / arm, configuration(arm=arm))
    folder.ask({f"sopbench:bank/goal_{n % 5}#{n}": n % 2 == 0 for n in range(len(passed))})
    with folder.writer() as writer:
        for index, ok in enumerate(passed):
            task = f"sopbench:bank/goal_{index % 5}#{index}"
            writer.write(
                record(
                    task,
                    passed=ok,
                    should=index % 2 == 0,
                    agent_turns=index,
                    r2=index % 3,
                    seconds=2.0,
                )
            )


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two arms with the study's 26:6 discordant pairs on 125 tasks."""
    make_arm(tmp_path, "flat", [True] * 26 + [False] * 6 + [True] * 93)
    make_arm(tmp_path, "official", [False] * 26 + [True] * 6 + [True] * 93)
    return tmp_path


def table_of(runs: Path, name: str) -> Table:
    document = build_document(load_runs([runs]), upstream=None)
    return next(each for each in document.tables if each.name == name)


def test_the_contrast_and_its_p_value_are_the_studys(runs: Path) -> None:
    table = table_of(runs, "contrasts")
    (row,) = [
        shown
        for shown in (dict(zip(table.header, row, strict=True)) for row in table.rows)
        if (shown["scope"], shown["contrast"]) == ("bank, screen `paper`", "flat:official")
    ]
    assert (row["pairs"], row["wins:losses"]) == ("125", "26:6")
    assert (row["task p"], row["BH"]) == (".0005", ".0005")


def test_a_missing_arm_says_so_in_every_format(runs: Path) -> None:
    document = build_document(load_runs([runs]), upstream=None)
    table = next(each for each in document.tables if each.name == "headline")
    place = next(n for n, row in enumerate(table.rows) if row[1] == "pg-paper:flat")
    assert table.rows[place][4].startswith("– [")
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows[place + 1][4] == "missing: m (official tools): no runs of pg-paper"
    assert "no runs of pg-paper" in to_markdown(document)
    assert "no runs of pg-paper" in to_html(document)


def test_every_table_of_the_study_is_there_and_says_its_method(runs: Path) -> None:
    document = build_document(load_runs([runs]), upstream=None)
    names = {table.name for table in document.tables}
    assert names >= {
        "headline", "contrasts", "official-configurations", "classes-bank", "classes-domains",
        "cost", "wall-clock", "goal-nets", "repeats", "compiler-effort", "unreachable",
    }  # fmt: skip
    assert all(table.method for table in document.tables)
    for table in document.tables:
        assert all(len(row) == len(table.header) for row in table.rows), table.name


def test_the_page_loads_nothing_and_escapes(runs: Path, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "evil", configuration(model="<script>x</script>"))
    folder.ask({"sopbench:bank/goal_0#0": True})
    with folder.writer() as writer:
        writer.write(record("sopbench:bank/goal_0#0"))
    page = to_html(build_document(load_runs([tmp_path]), upstream=None))
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "<script" not in page
    assert page.count("<svg") >= 2


def test_a_task_that_two_folders_judged_is_refused(runs: Path, tmp_path: Path) -> None:
    make_arm(tmp_path / "more", "flat", [True])
    with pytest.raises(UserMistake, match="was judged in another folder"):
        load_runs([runs / "flat", tmp_path / "more"])


def test_no_runs_at_all_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match="no bench runs here"):
        load_runs([tmp_path])


def test_source_lines_leave_out_blanks_comments_and_docstrings() -> None:
    text = '"""Doc.\n\nMore."""\n\n# why\nx = "a string"  # here\n\n\n'
    text += 'def f():\n    """Doc."""\n    return x\n'
    assert source_lines(text) == (11, 3)


@pytest.mark.parametrize(("p", "text"), [(0.0215, ".0215"), (1.0, "1.000"), (3.4e-6, "3.4e-06")])
def test_p_values_keep_their_size(p: float, text: str) -> None:
    assert p_text(p) == text


def test_classes_and_wall_clock_by_domain(runs: Path) -> None:
    (flat,) = [
        row for row in table_of(runs, "classes-domains").rows if row[1:3] == ["bank", "flat"]
    ]
    assert flat[3:9] == ["125", "95.2", "63", "95.2", "62", "95.2"]
    clock = {row[2]: row for row in table_of(runs, "wall-clock").rows if row[1] == "bank"}
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


def test_every_table_and_figure_is_a_file(runs: Path, tmp_path: Path) -> None:
    document = build_document(load_runs([runs]), upstream=None)
    files = report_files(document)
    for table in document.tables:
        assert {f"csv/{table.name}.csv", f"tex/{table.name}.tex"} <= files.keys()
    figures = [name for name in files if name.endswith(".svg")]
    assert len(figures) == len(document.plots) >= 3
    pytest.importorskip("cairosvg")
    written = write_report(tmp_path / "report", document)
    for name in figures:
        pdf = name.replace(".svg", ".pdf")
        assert pdf in written
        assert (tmp_path / "report" / pdf).read_bytes().startswith(b"%PDF")
