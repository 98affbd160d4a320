"""The ten tasks, end to end, by the reference executor through the durable session."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from quotation_runs import EXAMPLE

from commands import run, shown
from sopilot.cli.run import run_all
from sopilot.runner.options import RunOptions
from sopilot.runner.sources import FolderSource
from sopilot.runner.store_access import StoreAccess
from sopilot.tasks.folders import TaskRun, folder_coverage, load_folder

Runs = tuple[dict[str, TaskRun], Path]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    out = tmp_path_factory.mktemp("tasks")
    options = RunOptions(source=str(EXAMPLE), out=str(out))
    store = StoreAccess(f"sqlite:{out}/sessions.db")
    made = run_all(options, FolderSource(str(EXAMPLE), out), store)
    return {run.task.id: run for run in made}, out


def artifacts(run: TaskRun) -> dict[str, Any]:
    events = [sealed.event for sealed in run.result.events]
    found = {e.payload["name"]: e.payload["content"] for e in events if e.kind == "emit_artifact"}
    # The tool's schema gives content one type, so objects travel as JSON text.
    return {n: json.loads(c) if isinstance(c, str) else c for n, c in found.items()}


def actions(run: TaskRun) -> Sequence[str]:
    events = [sealed.event for sealed in run.result.events]
    return [e.payload["action"] for e in events if e.kind == "domain_result" and e.payload["ok"]]


def test_every_task_ends_as_it_should_and_the_audit_finds_nothing(runs: Runs) -> None:
    made, _ = runs
    assert {i: str(run.result.run.ending) for i, run in made.items()} == {
        "1": "executed", "2": "executed", "3": "refused", "4": "refused", "5": "refused",
        "6": "executed", "7": "refused", "8": "refused", "9": "refused", "10": "refused",
    }  # fmt: skip
    assert {
        i: run.result.audit.findings for i, run in made.items() if run.result.audit.findings
    } == {}
    assert all(run.result.good for run in made.values())


def test_the_tasks_reach_every_step_and_branch(runs: Runs) -> None:
    coverage = folder_coverage(load_folder(str(EXAMPLE)), [run.result for run in runs[0].values()])
    assert (coverage.steps_reached, coverage.steps) == (87, 87)
    assert coverage.branches_reached == coverage.branches
    assert coverage.gaps == ()


def test_artifacts_name_the_files_that_were_made(runs: Runs) -> None:
    made, out = runs
    for task_id in ("1", "2", "6"):
        folder = out / f"task-{task_id}"
        found = artifacts(made[task_id])
        assert set(found) == {
            "profile", "output_plan", "workbook", "render_report", "calculation_trace", "hand_over",
        }  # fmt: skip
        for name in ("workbook", "render_report", "calculation_trace", "hand_over"):
            content = (folder / found[name]["file"]).read_bytes()
            assert hashlib.sha256(content).hexdigest() == found[name]["sha256"]
        trace = json.loads((folder / "calculation-trace.json").read_text(encoding="utf-8"))
        assert len(trace) == found["calculation_trace"]["entries"]


def test_the_approved_order_was_approved_by_a_person_before_it_left(runs: Runs) -> None:
    events = [sealed.event for sealed in runs[0]["2"].result.events]
    [approved] = [e.seq for e in events if e.kind == "decision"]
    released = [
        e.seq
        for e in events
        if e.kind == "domain_call" and e.payload["action"] == "release_under_approval"
    ]
    assert [approved < seq for seq in released] == [True]
    assert artifacts(runs[0]["2"])["hand_over"]["released_by"] == "the sales manager"


def test_the_rejected_order_never_left(runs: Runs) -> None:
    made, out = runs
    assert "rejected by sales_manager" in made["3"].result.run.reason
    assert not (out / "task-3" / "outbox").exists()
    assert "release_under_approval" not in actions(made["3"])


@pytest.mark.parametrize(
    ("task_id", "rule"),
    [
        ("4", "profile_complete"),
        ("5", "nothing_open"),
        ("7", "customer_in_good_standing"),
        ("8", "margin_above_floor"),
        ("9", "workbook_consistent"),
        ("10", "nothing_open"),
    ],
)
def test_a_refusal_names_the_rule_its_evidence_and_a_remedy(
    task_id: str, rule: str, runs: Runs
) -> None:
    made, out = runs
    refusals = {one.rule: one for one in made[task_id].result.run.refusals}
    assert rule in refusals
    assert refusals[rule].evidence
    assert refusals[rule].remedy
    assert not (out / f"task-{task_id}" / "outbox").exists()


def test_the_cut_off_run_went_on_and_released_once(runs: Runs) -> None:
    run = runs[0]["6"]
    assert run.resumed
    events = [sealed.event for sealed in run.result.events]
    assert any(e.kind == "note" and e.payload["name"] == "run_resumed" for e in events)
    assert actions(run).count("release_quotation") == 1
    assert actions(run).count("settle_item") == 6


def test_the_same_run_comes_to_the_same_workbook(runs: Runs, tmp_path: Path) -> None:
    from quotation.checking import read_cells

    document = shown("run", EXAMPLE, "--task", "1", "--out", tmp_path / "again")
    assert document["task"] == {"passed": True, "expected": "executed", "reasons": []}
    first = read_cells(runs[1] / "task-1" / "Q-2041.xlsx")
    assert read_cells(tmp_path / "again" / "Q-2041.xlsx") == first


def test_a_person_makes_the_moves(tmp_path: Path) -> None:
    typed = '\n\n\nread_customer {"customer": "C-155"}\n' + "\n" * 20
    person = ("--task", "7", "--model", "person", "--out", tmp_path)
    result = run("run", EXAMPLE, *person, typed=typed)
    assert result.exit_code == 3, result.output
    assert "[step {" in result.output
    assert "refused, as the task expects" in result.output
