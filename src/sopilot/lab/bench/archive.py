"""Runs packed for publication: everything that somebody elsewhere needs to check them.

results/     one folder a configuration: what it was, the judged and the broken runs, scores
study/       the study's file, without addresses
programs/    compiled programs without SOPBench's sentences, beside the hash of the whole
analysis/    the tables, as text and as data, and what was learnt from the checkout
source/      compiler, runtime, adapters, analysis, campaigns
case/        the industrial case and its projections
environment.json, COMMIT_PIN.txt, SHA256SUMS

Traces, logs, what models said, response ids and addresses stay at home.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sopilot import __version__
from sopilot.adapters.model_by_name import public_name
from sopilot.lab.bench._archive_checks import ArchiveRefusal, check_file
from sopilot.lab.bench._archive_contents import (
    Files,
    case_files,
    environment_files,
    example_case,
    published_study,
    source_files,
)
from sopilot.lab.bench._run_folder import RunFolder
from sopilot.lab.bench.programs import ProgramShelf
from sopilot.lab.bench.record import BenchRecord, RunConfiguration
from sopilot.lab.bench.reference import is_sopbench, task_references
from sopilot.lab.bench.sopbench_process import ToolList, Upstream
from sopilot.lab.bench.source import load_task
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake
from sopilot.language.program import (
    Act,
    Check,
    Function,
    Program,
    ReturnStep,
    Step,
    program_to_yaml,
)

__all__ = ["MANIFEST", "STUDY", "Beside", "build_archive", "example_case", "without_wording"]

MANIFEST = "SHA256SUMS"
STUDY = "study/study.yaml"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_OUR_OWN = ("source/", "case/")
"""Published anyway: looked through for credentials alone."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What goes in beside results and tables. ``study`` is its file's text."""

    study: str | None = None
    case: Path | None = None
    source: bool = True


def build_archive(
    folders: Sequence[RunFolder],
    target: Path,
    *,
    analysis: Mapping[str, str],
    upstream: Upstream | None,
    forbidden: Sequence[str] = (),
    beside: Beside | None = None,
) -> list[str]:
    """The packed names. Raises ``UserMistake`` with everything that must not go out; then
    nothing is written. ``analysis`` maps file names to text; ``forbidden`` are words that
    name a person or a place."""
    if not any(folder.records() for folder in folders):
        raise UserMistake("there is no judged run in these folders: nothing to be packed")
    more = beside or Beside(source=False)
    files: Files = {f"analysis/{name}": text for name, text in analysis.items()}
    for folder in folders:
        files |= _results(folder)
    if upstream is not None:
        files |= _programs(folders, upstream)
    if more.study is not None:
        files[STUDY] = published_study(more.study)
    if more.source:
        files |= source_files()
    if more.case is not None:
        files |= case_files(more.case)
    commits = {f.configuration.label: f.configuration.upstream_commit for f in folders}
    files |= environment_files(commits)
    files["README.txt"] = _readme(upstream)
    refusals = [
        refusal
        for name, data in files.items()
        for refusal in _refusals(name, data, upstream, forbidden)
    ]
    if refusals:
        raise UserMistake([_diagnostic(each) for each in refusals])
    manifest = "".join(
        f"{hashlib.sha256(_bytes(data)).hexdigest()}  {name}\n"
        for name, data in sorted(files.items())
    )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted({**files, MANIFEST: manifest}.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, _bytes(data))
    return sorted([*files, MANIFEST])


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


def _refusals(
    name: str, data: str | bytes, upstream: Upstream | None, forbidden: Sequence[str]
) -> list[ArchiveRefusal]:
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    found = check_file(name, text, upstream=upstream, forbidden=forbidden)
    if name.startswith(_OUR_OWN):
        return [one for one in found if one.code == "archive-upstream"]
    return list(found)


def published_configuration(configuration: RunConfiguration) -> RunConfiguration:
    """Folders of older releases know a model by its address."""
    return replace(
        configuration,
        model=public_name(configuration.model),
        user=public_name(configuration.user),
    )


def published_record(record: BenchRecord) -> BenchRecord:
    """What tables need; not what was said, nor by which answer of which account."""
    requests = [
        {name: value for name, value in one.items() if name != "response_id"}
        for one in record.requests
    ]
    return replace(record, run_id="", reason="", requests=requests)


def _results(folder: RunFolder) -> dict[str, str | bytes]:
    known, c = folder.configuration, published_configuration(folder.configuration)
    base = f"results/{c.folder_name}"
    judged = folder.records()
    rows = [*judged.values(), *folder.discarded()]
    records = sorted(
        json.dumps(published_record(each).as_json(), ensure_ascii=False) for each in rows
    )
    scores = [
        json.dumps(published_record(each).score(c), sort_keys=True, ensure_ascii=False)
        for _, each in sorted(judged.items())
    ]
    configuration: dict[str, Any] = {
        "format": 1,
        "fingerprint": known.fingerprint,
        "configuration": c.as_json(),
    }
    if c != known:
        configuration["withheld"] = "an address"
    return {
        f"{base}/configuration.json": json.dumps(configuration, indent=2, sort_keys=True) + "\n",
        f"{base}/asked.json": json.dumps(folder.asked(), indent=1) + "\n",
        f"{base}/records/published.jsonl": "".join(f"{row}\n" for row in records),
        f"{base}/scores.jsonl": "".join(f"{row}\n" for row in scores),
    }


def _programs(folders: Sequence[RunFolder], upstream: Upstream) -> Files:
    files: Files = {}
    hashes: dict[str, Any] = {}
    for tools in sorted({folder.configuration.tools for folder in folders}):
        listed: ToolList = "full-state" if tools == "full-state" else "official"
        shelf = ProgramShelf(listed, upstream)
        tasks = {
            task
            for folder in folders
            if folder.configuration.tools == tools
            for task in folder.records()
            if is_sopbench(task)
        }
        for each in sorted(tasks):
            reference = task_references(each, upstream=upstream)[0]
            shelved = shelf.program(load_task(reference, upstream=upstream))
            name = each.removeprefix("sopbench:").replace("/", "-").replace("#", "-")
            hashes[f"{tools}/{name}"] = shelved.program_sha256
            files[f"programs/{tools}/{name}.yaml"] = program_to_yaml(
                without_wording(shelved.program)
            )
    if hashes:
        files["programs/hashes.json"] = json.dumps(hashes, indent=1, sort_keys=True) + "\n"
    return files


def without_wording(program: Program) -> Program:
    """Names, steps, order and arguments stay; the source's sentences go."""
    functions = {name: _silent(function) for name, function in program.functions.items()}
    return replace(program, functions=functions, constants={})


def _silent(function: Function) -> Function:
    return replace(
        function,
        says="",
        says_not="",
        remedy="",
        notes=(),
        steps=tuple(_silent_step(step) for step in function.steps),
        fallbacks=tuple(
            tuple(replace(act, says="") for act in recipe) for recipe in function.fallbacks
        ),
    )


def _silent_step(step: Step) -> Step:
    if isinstance(step, Check | Act | ReturnStep):
        return replace(step, says="")
    return step


def _readme(upstream: Upstream | None) -> str:
    commit = upstream.checkout.commit if upstream is not None else "not known"
    return (
        f"Packed by sopilot {__version__}.\n\n"
        "results/   one folder a configuration: its fingerprint, its runs, the scores\n"
        "study/     the study's file, without addresses\n"
        "programs/  compiled programs without the source's sentences; hashes.json names the whole\n"
        "analysis/  the tables, as text and as data\n"
        "source/    compiler, runtime, adapters, analysis and campaigns as they were\n"
        "case/      the industrial case and its projections\n\n"
        f"SOPBench is a public dependency at commit {commit}; nothing of it is in here.\n"
        "Check with: sha256sum -c SHA256SUMS, or: sopilot bench verify ARCHIVE, which counts\n"
        "the tables again; sopilot bench report ARCHIVE prints them. Neither needs SOPBench.\n"
    )


def _diagnostic(refusal: ArchiveRefusal) -> Diagnostic:
    return Diagnostic(refusal.code, refusal.message, Place(refusal.name), refusal.help)
