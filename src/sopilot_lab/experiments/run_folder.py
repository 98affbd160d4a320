"""A folder of runs: one configuration, one line per run, and recorded traces."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, fields
from operator import add
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

from sopilot import __version__
from sopilot.files.text import read_text, whole_bytes, whole_text, write_whole
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import TraceError, UserMistake, mistake
from sopilot.protocols import Usage
from sopilot.trace.files import TraceFile, read_trace
from sopilot_lab.experiments.source_fingerprint import (
    Sources,
    deciding_sources,
    describe_difference,
)
from sopilot_lab.sopbench.recorded import sequence_only
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind

FORMAT = 1


@dataclass(frozen=True, slots=True)
class RunConfiguration:
    """Everything that two runs must share to be the same experiment. ``budgets`` maps a
    domain to its limits; ``language`` is the scaffold's; ``sources`` is the hash of the code
    that decides a run, empty in folders of releases that did not record it. ``run`` counts the
    repetitions of one configuration; ``hypotheses`` is the hash of those that a study fixed
    before it. The model's address isn't part of it: it may change, and only its owner needs it."""

    arm: str
    model: str
    tools: str
    user: str
    hash_seed: int
    upstream_commit: str
    budgets: Mapping[str, Mapping[str, float]]
    language: str = "en"
    compiler: str = __version__
    sources: str = ""
    run: int = 1
    hypotheses: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def fingerprint(self) -> str:
        covered = self.as_json()
        for name, usual in (("sources", ""), ("run", 1), ("hypotheses", "")):
            if covered[name] == usual:  # as it was before there was such a field
                del covered[name]
        text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def label(self) -> str:
        language = "" if self.language == "en" else f" / {self.language}"
        again = f" / run {self.run}" if self.run > 1 else ""
        return f"{self.model} / {self.arm} / {self.tools}{language}{again}"

    @property
    def folder_name(self) -> str:
        """Unique among configurations, and a name that every file system takes."""
        again = f"-run{self.run}" if self.run > 1 else ""
        language = "" if self.language == "en" else f"-{self.language}"
        named = f"{self.model}-{self.arm}-{self.tools}{language}{again}-{self.fingerprint[:8]}"
        return re.sub(r"[^\w.+-]+", "_", named)


@dataclass(frozen=True, slots=True)
class Effort:
    """The requests and tokens of some runs, or of one on the average; ``user_tokens`` are the
    prompt tokens of a user that a model plays."""

    requests: float = 0
    prompt_tokens: float = 0
    completion_tokens: float = 0
    user_tokens: float = 0

    def __add__(self, other: Effort) -> Effort:
        return Effort(*map(add, astuple(self), astuple(other)))

    def times(self, factor: float) -> Effort:
        return Effort(*(each * factor for each in astuple(self)))

    @property
    def usage(self) -> Usage:
        return Usage(round(self.prompt_tokens), 0, round(self.completion_tokens))

    def as_json(self) -> dict[str, int]:
        """The model's own, as whole numbers."""
        return {
            "requests": round(self.requests),
            "prompt_tokens": round(self.prompt_tokens),
            "completion_tokens": round(self.completion_tokens),
        }


@dataclass(frozen=True, slots=True)
class BenchRecord:
    """``run_id`` is new for every attempt. ``verdict`` is the official evaluator's, ``None``
    for a run that the infrastructure broke, ``fault`` is how: such a run is discarded and, if
    that may help, made again. ``r2`` counts calls after the goal had succeeded, ``None`` where
    it never did. ``requests`` are those to the model as they were sent and answered: tokens,
    attempts, seconds, finish reason, served model, fingerprint, response id.
    ``discarded_tokens`` were spent on answers that could not be used, ``discarded_prompt_tokens``
    of them on prompts, and ``simulator_tokens`` on a user that a model plays."""

    run_id: str
    task: str
    domain: str
    goal: str
    fingerprint: str
    handbook_sha256: str
    program_sha256: str
    ending: str
    reason: str = ""
    verdict: Mapping[str, Any] | None = None
    calls: Sequence[str] = ()
    r2: int | None = None
    findings: Mapping[str, int] | None = None
    agent_turns: int = 0
    user_turns: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    system_characters: int = 0
    seconds: float = 0.0
    model_seconds: float = 0.0
    world_seconds: float = 0.0
    format: int = FORMAT
    run: int = 1
    fault: str = ""
    hypotheses: str = ""
    attempts: int = 0
    reasoning_tokens: int = 0
    discarded_tokens: int = 0
    simulator_tokens: int = 0
    cost: float | None = None
    requests: Sequence[Mapping[str, Any]] = ()
    system_by_call: Sequence[int] = ()
    discarded_prompt_tokens: int = 0

    @property
    def discarded(self) -> bool:
        return self.verdict is None

    @property
    def passed(self) -> bool:
        return self.verdict is not None and bool(self.verdict["success"])

    @property
    def should_succeed(self) -> bool:
        return self.verdict is not None and bool(self.verdict["action_should_succeed"])

    @property
    def overhead_seconds(self) -> float:
        """The harness's time beside model and simulator."""
        return max(0.0, self.seconds - self.model_seconds - self.world_seconds)

    @property
    def effort(self) -> Effort:
        """What the model took, unusable answers included."""
        prompt = self.discarded_prompt_tokens
        return Effort(
            self.attempts,
            self.prompt_tokens + prompt,
            self.completion_tokens + self.discarded_tokens - prompt,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def outcome(
        self, arm: str, model: str, run: int = 0, *, should_succeed: bool | None = None
    ) -> RunOutcome:
        """``should_succeed`` is needed for a broken run alone."""
        executes = self.should_succeed if should_succeed is None else should_succeed
        return RunOutcome(
            task=self.task,
            goal=self.goal,
            kind=TaskKind.of(executes),
            passed=None if self.discarded else self.passed,
            arm=arm,
            model=model,
            domain=self.domain,
            run=run,
            post_goal_calls=self.r2,
        )

    def score(self, configuration: RunConfiguration) -> dict[str, Any]:
        """The fields that don't depend on time and place; also a row for ``sopilot lab stats``."""
        verdict = self.verdict or {}
        return {
            "task": self.task,
            "domain": self.domain,
            "goal": self.goal,
            "kind": str(TaskKind.of(self.should_succeed)),
            "passed": self.passed,
            "arm": configuration.arm,
            "model": configuration.model,
            "tools": configuration.tools,
            **({"run": configuration.run} if configuration.run > 1 else {}),
            "post_goal_calls": self.r2,
            "sequence_only": bool(verdict) and sequence_only(verdict),
            "verdict": dict(verdict),
            "ending": self.ending,
            "calls": list(self.calls),
            "findings": dict(self.findings or {}),
            "fingerprint": self.fingerprint,
            "program_sha256": self.program_sha256,
            "handbook_sha256": self.handbook_sha256,
        }


_FIELDS = frozenset(each.name for each in fields(BenchRecord))


def record_from_json(row: Mapping[str, Any]) -> BenchRecord:
    """Ignore fields that a later release added."""
    return BenchRecord(**{key: value for key, value in row.items() if key in _FIELDS})


def score_lines(records: Iterable[BenchRecord], configuration: RunConfiguration) -> str:
    rows = (
        json.dumps(each.score(configuration), sort_keys=True, ensure_ascii=False)
        for each in records
    )
    return "".join(f"{row}\n" for row in rows)


def configuration_text(configuration: RunConfiguration) -> str:
    """The file ``configuration.json`` of a folder of runs."""
    row = {
        "format": FORMAT,
        "fingerprint": configuration.fingerprint,
        "configuration": configuration.as_json(),
    }
    return json.dumps(row, indent=2, sort_keys=True) + "\n"


NOT_RUN: Final = "not-run"
_ORPHANS_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Missing:
    """A task without a judged run: how its last run broke, and how many of them did."""

    task: str
    should_succeed: bool
    fault: str
    reason: str
    runs: int


class RunFolder:
    def __init__(self, path: Path, configuration: RunConfiguration) -> None:
        self.path = path
        self.configuration = configuration

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @classmethod
    def create(cls, path: Path, configuration: RunConfiguration) -> RunFolder:
        """The folder, new or continued. Another configuration's folder is refused."""
        named = path / "configuration.json"
        if named.exists():
            known = cls.open(path)
            if known.configuration.fingerprint != configuration.fingerprint:
                old, new = known.configuration.as_json(), configuration.as_json()
                fields = [key for key in old if old[key] != new[key] and key != "sources"]
                code = known._other_code(configuration)
                join = ", ".join([*(f"{name} differs" for name in fields), *code])
                help_text = "name another folder with -o"
                if not fields:
                    help_text += ", or resume with the code that made it"
                raise _mistake(
                    path, f"this folder belongs to `{known.configuration.label}`: {join}", help_text
                )
            return known
        try:
            (path / "records").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _mistake(
                path, f"the folder cannot be made: {error.strerror}", "name one you may write to"
            ) from error
        here = deciding_sources()
        if configuration.sources == here.fingerprint:
            write_whole(path / "sources.json", json.dumps({"files": here.files}, indent=1) + "\n")
        write_whole(named, configuration_text(configuration))
        return cls(path, configuration)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        try:
            row = json.loads(whole_text(path / "configuration.json"))
            known = {each.name for each in fields(RunConfiguration)}
            stored = {key: value for key, value in row["configuration"].items() if key in known}
            configuration = RunConfiguration(**stored)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _mistake(
                path, "this is not a folder of runs", "create one with `lab run -o`"
            ) from error
        return cls(path, configuration)

    def _other_code(self, wanted: RunConfiguration) -> list[str]:
        """Describe the code that made this folder, if it isn't ``wanted``'s."""
        made = self.configuration.sources
        if made == wanted.sources:
            return []
        try:
            row = json.loads(whole_text(self.path / "sources.json"))
            then = Sources(row["files"])
        except (OSError, ValueError, KeyError, TypeError):
            return ["other code made it, and its sources.json is missing"]
        return [f"other code made it: {describe_difference(then, deciding_sources())}"]

    # --- records ---------------------------------------------------------------------

    def records(self) -> dict[str, BenchRecord]:
        """Task → its first judged run, sorted by task, whichever worker finished first."""
        bench_records: dict[str, BenchRecord] = {}
        for record in self._rows():
            if not record.discarded:
                bench_records.setdefault(record.task, record)
        return dict(sorted(bench_records.items(), key=task_order))

    def discarded(self) -> list[BenchRecord]:
        """Runs that the infrastructure broke, sorted by task; those of one task as they were
        made."""
        results = [(record.task, record) for record in self._rows() if record.discarded]
        return [record for _, record in sorted(results, key=task_order)]

    def planned(self) -> dict[str, bool]:
        """Task → whether its goal should be executed, for every planned task."""
        path = self.path / "asked.json"
        flags: dict[str, bool] = json.loads(whole_text(path)) if path.exists() else {}
        return flags

    def ask(self, tasks: Mapping[str, bool]) -> None:
        """Record the planned tasks before they run, so that missing ones are known afterwards."""
        known = self.planned()
        if tasks.items() <= known.items():
            return
        everything = dict(sorted({**known, **tasks}.items(), key=task_order))
        write_whole(self.path / "asked.json", json.dumps(everything, indent=1) + "\n")

    def missing(self) -> dict[str, Missing]:
        """The planned tasks without a judged run, with the reason."""
        judged = self.records()
        broken: dict[str, list[BenchRecord]] = {}
        for record in self.discarded():
            broken.setdefault(record.task, []).append(record)
        results = {}
        for task, should in self.planned().items():
            if task not in judged:
                runs = broken.get(task, [])
                fault = runs[-1].fault or "provider" if runs else NOT_RUN
                reason = runs[-1].reason if runs else "no run has ended"
                results[task] = Missing(task, should, fault, reason, len(runs))
        return results

    def _rows(self) -> Iterator[BenchRecord]:
        return map(record_from_json, journal_rows(self.path / "records"))

    def runs(self) -> Iterator[RecordedRun]:
        """The judged run of every planned task, or its last broken run, in the order of tasks."""
        judged = self.records()
        broken = {record.task: record for record in self.discarded()}
        for task, should in self.planned().items():
            record = judged.get(task) or broken.get(task)
            if record is not None:
                file = self.trace_file(task)
                trace = file if task in judged and file.exists() else None
                yield RecordedRun(record, self.configuration, should, trace)

    @contextmanager
    def writer(self) -> Iterator[JournalWriter]:
        """A writer with a file of its own. While it is open, no new leader begins."""
        with (
            (self.path / "workers.lock").open("w") as lock,
            journal_writer(self.path / "records") as writer,
        ):
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield writer

    @contextmanager
    def leader(self) -> Iterator[None]:
        """One sweep at a time; waits until workers of a killed one have stopped."""
        with (self.path / "leader.lock").open("w") as lead:
            if not _locked(lead):
                message = "another sweep runs in this folder"
                raise _mistake(self.path, message, "wait for it, or use another")
            self._wait_for_orphans()
            yield

    def _wait_for_orphans(self) -> None:
        until = time.monotonic() + _ORPHANS_SECONDS
        with (self.path / "workers.lock").open("w") as lock:
            while not _locked(lock):
                if time.monotonic() > until:
                    message = "workers of an earlier sweep still run"
                    raise _mistake(self.path, message, "end them first")
                time.sleep(0.05)

    # --- what is derived -------------------------------------------------------------

    def write_scores(self) -> Path:
        path = self.path / "scores.jsonl"
        write_whole(path, score_lines(self.records().values(), self.configuration))
        return path

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        write_whole(self.path / "summary.json", json.dumps(summary, indent=2) + "\n")

    def keep_trace(self, task: str, text: str) -> None:
        file = self.trace_file(task)
        file.parent.mkdir(exist_ok=True)
        write_whole(file, text)

    def trace_file(self, task: str) -> Path:
        name = re.sub(r"[^\w.-]+", "-", task.removeprefix("sopbench:"))
        return self.path / "traces" / f"{name}.jsonl"


class JournalRow(Protocol):
    def as_json(self) -> dict[str, Any]: ...


class JournalWriter:
    """A row is one write, on the disk before the next task begins."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, row: JournalRow) -> None:
        line = json.dumps(row.as_json(), ensure_ascii=False, separators=(",", ":"))
        os.write(self._descriptor, f"{line}\n".encode())
        os.fsync(self._descriptor)


@contextmanager
def journal_writer(folder: Path) -> Iterator[JournalWriter]:
    """A new file in a folder of rows: writers never share one."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.jsonl"
    with (folder / name).open("ab") as stream:
        yield JournalWriter(stream.fileno())


def journal_rows(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of a folder's files, oldest first, without a last line that was torn."""
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(whole_bytes(path).split(b"\n")[:-1], 1):
            try:
                if line:
                    yield json.loads(line)
            except (ValueError, RecursionError) as error:
                place = Place(str(path), number, 1)
                raise mistake("bench-folder", f"this row is damaged: {error}", place) from error


def _locked(file: TextIO) -> bool:
    """Try to lock the file; false if another process has the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def task_order(item: tuple[str, object]) -> tuple[str, int, str]:
    """Sort key of a pair whose first half is a task: `#9` comes before `#10`."""
    task, _, name = item[0].rpartition("#")
    return task, int(name) if name.isdecimal() else -1, name


def _mistake(path: Path, message: str, help_text: str) -> UserMistake:
    return mistake("bench-folder", message, Place(str(path)), help_text)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run with its folder's configuration; ``file`` is its trace, ``None`` without a trace."""

    record: BenchRecord
    configuration: RunConfiguration
    should_succeed: bool
    file: Path | None = None

    @property
    def arm(self) -> str:
        return self.configuration.arm

    @property
    def passed(self) -> bool | None:
        """``None`` for a broken run."""
        return None if self.record.discarded else self.record.passed

    def outcome(self, model: str) -> RunOutcome:
        return self.record.outcome(self.arm, model, should_succeed=self.should_succeed)

    def trace(self) -> TraceFile | None:
        if self.file is None:
            return None
        try:
            trace = read_trace(read_text(self.file))
        except TraceError as error:
            message = f"this trace cannot be read: {error}"
            raise mistake("bad-trace", message, Place(str(self.file))) from error
        if trace.session_id != self.record.run_id:
            return None  # that of a run which was made again
        return trace


def recorded_runs(paths: Iterable[Path]) -> list[RecordedRun]:
    """The judged runs of each folder, or of the run folders in it."""
    results: list[RecordedRun] = []
    for path in paths:
        folders = folders_below(path)
        if not folders:
            message, cure = "it contains no runs", "name a folder that `lab run -o` made"
            raise mistake("empty", message, Place(str(path)), cure)
        for folder in folders:
            results += (run for run in folder.runs() if run.passed is not None)
    return results


def folders_below(path: Path) -> list[RunFolder]:
    """The folder itself, or those in it."""
    if (path / "configuration.json").exists():
        return [RunFolder.open(path)]
    return [RunFolder.open(each.parent) for each in sorted(path.rglob("configuration.json"))]
