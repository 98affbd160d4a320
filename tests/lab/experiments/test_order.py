"""Tables depend on outcomes alone: not on workers, interruptions or the order of folders."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from bench_records import configuration, record, write_runs
from click.testing import CliRunner

from sopilot.cli.main import sopilot
from sopilot_lab.experiments.archive import build_archive
from sopilot_lab.experiments.report.document import Document, build_document
from sopilot_lab.experiments.report.files import archive_analysis, report_files
from sopilot_lab.experiments.report.runs import load_runs, run_folders
from sopilot_lab.experiments.run_folder import BenchRecord

TASKS = [f"sopbench:{domain}/goal_{place % 5}#{place}" for domain in ("dmv", "bank")
         for place in range(15)]  # fmt: skip
ARMS = ("official", "flat", "pg-paper", "fused")


def judged(arm: str, task: str) -> BenchRecord:
    """The outcome of a task under an arm: the same whoever runs it and when."""
    dice = random.Random(f"{arm} {task}")
    fields = {
        "fingerprint": configuration(arm).fingerprint,
        "cost": 0.1 * int(task.rpartition("#")[2]),
    }
    return record(task, passed=dice.random() < 0.6, **fields)


def swept(base: Path, workers: int, *, interrupted: bool, seed: int) -> list[Path]:
    """The folders of four arms, as ``workers`` that finish in any order leave them."""
    dice = random.Random(seed)
    for arm in ARMS:
        made = configuration(arm)
        left = TASKS[:-1]  # the last one never gets a verdict
        dice.shuffle(left)
        for part in (left[:11], left[11:]) if interrupted else (left,):
            for worker in range(workers):
                runs = (judged(arm, task) for task in part[worker::workers])
                write_runs(base / arm, *runs, made=made)
            if interrupted:
                with next((base / arm / "records").glob("*.jsonl")).open("ab") as torn:
                    torn.write(b'{"run_id": "torn')
        rest = (
            record(TASKS[-1], broken=fault, fingerprint=made.fingerprint)
            for fault in ("http-503", "timeout")
        )
        write_runs(base / arm, *rest, made=made).write_scores()
    return [base / arm for arm in ARMS]


@pytest.mark.parametrize(("workers", "interrupted"), [(2, False), (4, True)])
def test_untouched_archives_verify_and_tables_are_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, interrupted: bool
) -> None:
    monkeypatch.delenv("SOPBENCH_HOME", raising=False)
    expected = report_files(document(swept(tmp_path / "one", 1, interrupted=False, seed=1)))
    folders = swept(tmp_path / "more", workers, interrupted=interrupted, seed=workers)
    for number, order in enumerate((folders, folders[::-1])):
        assert report_files(document(order)) == expected
        analysis = archive_analysis(document(order), {"screen": "paper", "vary": []})
        archive = tmp_path / f"{number}.zip"
        build_archive(run_folders(order), archive, analysis=analysis, upstream=None)
        answer = CliRunner().invoke(sopilot, ["lab", "verify", str(archive), "--json"])
        assert json.loads(answer.stdout)["problems"] == []
        assert archive.read_bytes() == (tmp_path / "0.zip").read_bytes()


def document(folders: Sequence[Path]) -> Document:
    return build_document(load_runs(folders), upstream=None)


def test_folders_of_one_configuration_are_all_packed(tmp_path: Path) -> None:
    """One folder per domain: the archive holds both, and they verify."""
    for domain in ("bank", "dmv"):
        runs = (judged("flat", task) for task in TASKS if f":{domain}/" in task)
        write_runs(tmp_path / domain, *runs, made=configuration("flat"))
    paths = [tmp_path / "dmv", tmp_path / "bank", tmp_path / os.curdir / "bank"]
    analysis = archive_analysis(document(paths), {"screen": "paper", "vary": []})
    build_archive(run_folders(paths), tmp_path / "a.zip", analysis=analysis, upstream=None)
    answer = json.loads(
        CliRunner().invoke(sopilot, ["lab", "verify", str(tmp_path / "a.zip"), "--json"]).stdout
    )
    assert (answer["runs"], answer["configurations"], answer["problems"]) == (30, 2, [])
