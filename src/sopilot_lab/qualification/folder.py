"""A check on disk: its configuration, what is finished, the verdict, the page.

    check.json     what was planned; another plan is another folder
    runs.jsonl     one run a line; a torn last line is no run
    probe.jsonl    one question a line, with its grade if it was answered
    verdict.json   the verdict with its evidence
    report.html    the same for people

``latest.json`` beside the folders of a model is its last verdict that found something, if
there is one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

from sopilot.files.text import whole_bytes, write_whole
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot.runner.qualifications import LATEST, answer_of, model_folder, read_verdict
from sopilot.values.json import JSON, Fields
from sopilot_lab.qualification.cases import Effort, RunRecord, record_from_json
from sopilot_lab.qualification.checking import Journal
from sopilot_lab.qualification.probe import ProbeGrade, grade_from_json


class CheckFolder(Journal):
    """A line is on disk before it counts."""

    def __init__(self, path: Path, configuration: Mapping[str, JSON], *, restart: bool = False):
        super().__init__()
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            if restart:
                for name in ("runs.jsonl", "probe.jsonl"):
                    (path / name).unlink(missing_ok=True)
            write_whole(path / "check.json", _text(configuration))
        except OSError as error:
            message = f"the check cannot be kept: {error.strerror}"
            raise mistake("cannot-write", message, Place(str(path))) from error
        for value in self._lines("runs.jsonl"):
            super().add_run(record_from_json(value))
        for value in self._lines("probe.jsonl"):
            known = {each.name: value[each.name] for each in fields(Effort) if each.name in value}
            spent = Effort(**{"requests": 1, **known})
            result = value["grade"]
            graded = None if result is None else grade_from_json(result)
            super().add_question(value["number"], graded, spent)

    def add_run(self, record: RunRecord) -> None:
        self._append("runs.jsonl", record.as_json())
        super().add_run(record)

    def add_question(self, number: int, grade: ProbeGrade | None, spent: Effort) -> None:
        stored = None if grade is None else grade.as_json()
        self._append("probe.jsonl", {"number": number, "grade": stored, **asdict(spent)})
        super().add_question(number, grade, spent)

    def finish(self, verdict: Mapping[str, JSON], page: str) -> None:
        """Keep the verdict; one without a finding doesn't replace an earlier finding."""
        write_whole(self.path / "verdict.json", _text(verdict))
        write_whole(self.path / "report.html", page, private=True)
        latest = self.path.parent / LATEST
        before = read_verdict(latest)
        if answer_of(verdict).is_finding or before is None or not answer_of(before).is_finding:
            write_whole(latest, _text(verdict))

    def _lines(self, name: str) -> list[Fields]:
        path = self.path / name
        if not path.exists():
            return []
        whole = whole_bytes(path).split(b"\n")
        if whole[-1]:
            # Cut off a torn line, or the next one would continue it.
            path.write_bytes(b"".join(line + b"\n" for line in whole[:-1]))
        try:
            return [json.loads(line) for line in whole[:-1]]
        except (ValueError, RecursionError) as error:
            message = f"the check is damaged: {error}"
            cure = "begin it again with --restart"
            place = Place(str(path))
            raise mistake("damaged-check", message, place, cure) from error

    def _append(self, name: str, value: Mapping[str, JSON]) -> None:
        with (self.path / name).open("ab") as file:
            file.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def check_path(home: Path, model: str, configuration: Mapping[str, JSON]) -> Path:
    text = json.dumps(configuration, sort_keys=True, ensure_ascii=False)
    return model_folder(home, model) / hashlib.sha256(text.encode()).hexdigest()[:12]


def _text(value: Mapping[str, JSON]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
