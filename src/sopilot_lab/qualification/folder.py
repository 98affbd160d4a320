"""A check on disk: its configuration, what is finished, the verdict, the page.

    check.json     what was planned; another plan is another folder
    runs/ARM/      the runs under one arm, as `lab run` keeps them
    probe/         one row per question, with its grade if it was answered
    verdict.json   the verdict with its evidence
    report.html    the same for people

``latest.json`` beside the folders of a model is its last verdict that found something, if
there is one.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sopilot.files.text import write_whole
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot.runner.qualifications import LATEST, answer_of, model_folder, read_verdict
from sopilot.values.json import JSON, Fields
from sopilot_lab.experiments.run_folder import (
    Effort,
    RecordedRun,
    RunConfiguration,
    RunFolder,
    journal_rows,
)
from sopilot_lab.qualification.probe import ProbeGrade, grade_from_json
from sopilot_lab.qualification.rule import ARMS_CHECKED


@dataclass(frozen=True, slots=True)
class Question:
    """A question that was asked. ``grade`` is ``None`` if it wasn't answered."""

    number: int
    grade: ProbeGrade | None
    effort: Effort

    def as_json(self) -> dict[str, Any]:
        grade = None if self.grade is None else self.grade.as_json()
        return {"number": self.number, "grade": grade, **self.effort.as_json()}


def _question(row: Fields) -> Question:
    grade = None if row["grade"] is None else grade_from_json(row["grade"])
    effort = Effort(row["requests"], row["prompt_tokens"], row["completion_tokens"])
    return Question(row["number"], grade, effort)


class CheckFolder:
    def __init__(self, path: Path, configuration: Mapping[str, JSON], *, restart: bool = False):
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            if restart:
                for finished in (self.probe, path / "runs"):
                    shutil.rmtree(finished, ignore_errors=True)
            write_whole(path / "check.json", _text(configuration))
        except OSError as error:
            message = f"the check cannot be kept: {error.strerror}"
            raise mistake("cannot-write", message, Place(str(path))) from error

    @property
    def probe(self) -> Path:
        return self.path / "probe"

    def create_arm(self, configuration: RunConfiguration) -> RunFolder:
        return RunFolder.create(self.path / "runs" / configuration.arm, configuration)

    def runs(self) -> list[RecordedRun]:
        """The judged run of every case and arm, or its last broken run."""
        return [run for folder in self._arms() for run in folder.runs()]

    def graded(self) -> dict[int, ProbeGrade]:
        """Question → the grade of its answer."""
        questions = map(_question, journal_rows(self.probe))
        grades = {each.number: each.grade for each in questions if each.grade is not None}
        return dict(sorted(grades.items()))

    def spent(self) -> Effort:
        """What all runs and questions took, those that were made again included."""
        efforts = [
            record.effort
            for arm in self._arms()
            for record in (*arm.records().values(), *arm.discarded())
        ]
        efforts += (_question(row).effort for row in journal_rows(self.probe))
        return sum(efforts, Effort())

    def _arms(self) -> Sequence[RunFolder]:
        """In the order in which a check runs them."""
        paths = (self.path / "runs" / arm for arm in ARMS_CHECKED)
        return [RunFolder.open(path) for path in paths if path.exists()]

    def finish(self, verdict: Mapping[str, JSON], page: str) -> None:
        """Keep the verdict; one without a finding doesn't replace an earlier finding."""
        write_whole(self.path / "verdict.json", _text(verdict))
        write_whole(self.path / "report.html", page, private=True)
        latest = self.path.parent / LATEST
        before = read_verdict(latest)
        if answer_of(verdict).is_finding or before is None or not answer_of(before).is_finding:
            write_whole(latest, _text(verdict))


def check_path(home: Path, model: str, configuration: Mapping[str, JSON]) -> Path:
    text = json.dumps(configuration, sort_keys=True, ensure_ascii=False)
    return model_folder(home, model) / hashlib.sha256(text.encode()).hexdigest()[:12]


def _text(value: Mapping[str, JSON]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
