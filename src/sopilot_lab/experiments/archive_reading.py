"""Read an archive without SOPBench: recompute its tables from the runs in it."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from sopilot.files.text import whole_bytes, whole_text
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot.program.codec import program_from_yaml
from sopilot.program.verifier import require_valid
from sopilot_lab.experiments.archive import MANIFEST, STUDY, check_file
from sopilot_lab.experiments.report.document import Document
from sopilot_lab.experiments.report.files import (
    FROM_CHECKOUT,
    document_data,
    read_packed,
    whole_document,
)
from sopilot_lab.experiments.report.runs import load_runs
from sopilot_lab.experiments.run_folder import RunFolder, score_lines
from sopilot_lab.experiments.source_fingerprint import deciding_sources, read_sources
from sopilot_lab.experiments.study.plan import load_study
from sopilot_lab.experiments.study.results import study_document

_MOST_BYTES = 2_000_000_000


@dataclass(slots=True)
class Verification:
    """``problems`` contradict the manifest or the runs; ``notes`` couldn't be checked here."""

    files: int = 0
    configurations: int = 0
    runs: int = 0
    programs: int = 0
    tables: int = 0
    tables_taken: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def is_archive(path: Path) -> bool:
    return (path.is_dir() and (path / MANIFEST).is_file()) or (
        path.is_file() and zipfile.is_zipfile(path)
    )


@contextmanager
def opened_archive(path: Path) -> Iterator[Path]:
    """The folder of an archive; a packed archive is unpacked until the block ends."""
    if path.is_dir():
        yield path
        return
    if not path.is_file():
        raise _mistake(path, "this isn't a file")
    with tempfile.TemporaryDirectory(prefix="sopilot-archive-") as scratch:
        try:
            with zipfile.ZipFile(path) as archive:
                _check_entries(path, archive)
                archive.extractall(scratch)
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
            raise _mistake(path, f"the archive cannot be read: {error}") from error
        yield Path(scratch)


def _check_entries(path: Path, archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    for entry in entries:
        name = PurePosixPath(entry.filename)
        if name.is_absolute() or ".." in name.parts or "\\" in entry.filename:
            raise _mistake(path, f"the name `{entry.filename}` points outside the archive")
    if len({entry.filename for entry in entries}) != len(entries):
        raise _mistake(path, "it contains a name twice")
    if sum(entry.file_size for entry in entries) > _MOST_BYTES:
        raise _mistake(path, "it is too large for an archive of runs")


def archived_document(base: Path, **how: Any) -> Document:
    """Compute the report from the runs in the archive. Take the tables that need the checkout as
    they were packed. ``how`` is for ``build_document``."""
    packed = read_packed(base, "how")
    results = [base / "results"]
    if (base / STUDY).exists():
        study = load_study(base / STUDY)
        return study_document(study, results, lambda text: None, archived=base, **how)
    runs = load_runs(results, vary=tuple(packed.get("vary", ())))
    screen = packed.get("screen", "paper")
    return whole_document(runs, lambda text: None, archived=base, screen=screen, **how)


def verify_archive(base: Path) -> Verification:
    verification = Verification()
    _verify_manifest(base, verification)
    if not (base / "results").is_dir():
        verification.problems.append("it contains no results")
        return verification
    for path in sorted((base / "results").iterdir()):
        _verify_results(path, verification)
    if not verification.runs:
        verification.problems.append("it contains no judged run")
        return verification
    _verify_programs(base, verification)
    _verify_sources(base, verification)
    _verify_tables(base, verification)
    return verification


def _verify_manifest(base: Path, verification: Verification) -> None:
    try:
        lines = whole_text(base / MANIFEST).splitlines()
        stated = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        verification.problems.append(f"{MANIFEST} is missing or isn't a manifest")
        return
    here = {
        path.relative_to(base).as_posix()
        for path in base.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }
    verification.files = len(here)
    for name in sorted(here ^ stated.keys()):
        where = "not in the manifest" if name in here else "missing"
        verification.problems.append(f"{name}: {where}")
    for name in sorted(here & stated.keys()):
        data = whole_bytes(base / name)
        if hashlib.sha256(data).hexdigest() != stated[name]:
            verification.problems.append(f"{name}: differs from the manifest")
        if name.startswith(("results/", "study/", "analysis/")):
            text = data.decode("utf-8", "replace")
            verification.problems += [
                f"{name}: {refusal.message}" for refusal in check_file(name, text, upstream=None)
            ]


def _verify_results(path: Path, verification: Verification) -> None:
    name = path.name
    try:
        folder = RunFolder.open(path)
        row = json.loads(whole_text(path / "configuration.json"))
        judged, discarded = folder.records(), folder.discarded()
        scores = whole_text(path / "scores.jsonl")
    except (UserMistake, OSError, ValueError, KeyError, TypeError) as error:
        verification.problems.append(f"results/{name}: it cannot be read: {error}")
        return
    verification.configurations += 1
    verification.runs += len(judged)
    stated = row["fingerprint"]
    if folder.configuration.fingerprint != stated:
        verification.problems.append(
            f"results/{name}: the fingerprint doesn't match the configuration"
        )
    for record in [*judged.values(), *discarded]:
        if record.fingerprint != stated:
            verification.problems.append(
                f"results/{name}: `{record.task}` belongs to another configuration"
            )
        if record.hypotheses != folder.configuration.hypotheses:
            verification.problems.append(f"results/{name}: `{record.task}` has other hypotheses")
    if score_lines(judged.values(), folder.configuration) != scores:
        verification.problems.append(f"results/{name}: scores.jsonl doesn't match the runs")


def _verify_programs(base: Path, verification: Verification) -> None:
    for path in sorted((base / "programs").glob("*/*.yaml")):
        name = path.relative_to(base).as_posix()
        try:
            require_valid(program_from_yaml(whole_text(path), name))
        except UserMistake as mistake:
            verification.problems.append(f"{name}: {mistake}")
        verification.programs += 1


def _verify_sources(base: Path, verification: Verification) -> None:
    if not (base / "source" / "sopilot").is_dir():
        verification.notes.append("it doesn't contain the code that made the runs")
        return
    packed = read_sources(base / "source").fingerprint
    for path in sorted((base / "results").iterdir()):
        made = RunFolder.open(path).configuration.sources
        if made != packed:
            verification.notes.append(
                f"results/{path.name}: code that differs from source/ made these runs"
            )
    if packed != deciding_sources().fingerprint:
        verification.notes.append("the installed code differs from source/")


def _verify_tables(base: Path, verification: Verification) -> None:
    stated = read_packed(base, "tables")
    if not stated:
        verification.problems.append("analysis/tables.json is missing: nothing to compare with")
        return
    try:
        document = archived_document(base)
    except UserMistake as mistake:
        verification.problems.append(f"the tables cannot be computed: {mistake}")
        return
    counted = document_data(document)["tables"]
    for name in sorted(stated.keys() | counted.keys()):
        if name in FROM_CHECKOUT:
            verification.tables_taken.append(name)
        elif stated.get(name) != counted.get(name):
            verification.problems.append(f"table `{name}` comes out differently")
        else:
            verification.tables += 1
    verification.tables_taken.sort()


def _mistake(path: Path, message: str) -> UserMistake:
    return mistake("archive", message, Place(str(path)), "create it again")


def verification_lines(verification: Verification) -> Iterator[str]:
    yield (
        f"{verification.files} files, {verification.configurations} "
        f"configurations, {verification.runs} judged "
        f"runs, {verification.programs} programs; {verification.tables} tables come out the same"
    )
    if verification.tables_taken:
        yield f"not recomputed (from SOPBench): {', '.join(verification.tables_taken)}"
    for note in verification.notes:
        yield f"note: {note}"
    for problem in verification.problems:
        yield f"does not agree: {problem}"
