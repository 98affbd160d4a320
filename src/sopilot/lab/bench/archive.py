"""Runs packed for publication: programs, results, configurations, tables, with a manifest.

Only what is listed here goes in; traces, logs and raw records stay at home.
Programs carry upstream's sentences, which are not ours to publish: they are
packed without their wording, beside the hash of the whole.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sopilot import __version__
from sopilot.lab.bench._archive_checks import ArchiveRefusal, check_file
from sopilot.lab.bench._run_folder import RunFolder
from sopilot.lab.bench.programs import ProgramShelf
from sopilot.lab.bench.reference import task_references
from sopilot.lab.bench.sopbench_process import ToolList, Upstream
from sopilot.lab.bench.source import load_task
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake
from sopilot.language.program import (
    Act,
    Check,
    Function,
    Program,
    Return,
    Step,
    program_to_yaml,
)

_EPOCH = (1980, 1, 1, 0, 0, 0)


def build_archive(
    folders: Sequence[RunFolder],
    target: Path,
    *,
    analysis: Mapping[str, str],
    upstream: Upstream | None,
    forbidden: Sequence[str] = (),
) -> list[str]:
    """The packed names. Raises ``UserMistake`` with everything that must not go out; then
    nothing is written. ``analysis`` maps file names to text; ``forbidden`` are words that
    name a person or a place."""
    files = {f"analysis/{name}": text for name, text in analysis.items()}
    for folder in folders:
        files |= _results(folder)
    if upstream is not None:
        files |= _programs(folders, upstream)
    files["README.txt"] = _readme(upstream)
    refusals = [
        refusal
        for name, text in files.items()
        for refusal in check_file(name, text, upstream=upstream, forbidden=forbidden)
    ]
    if refusals:
        raise UserMistake([_diagnostic(each) for each in refusals])
    manifest = "".join(
        f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n"
        for name, text in sorted(files.items())
    )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted({**files, "SHA256SUMS": manifest}.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return sorted([*files, "SHA256SUMS"])


def _results(folder: RunFolder) -> dict[str, str]:
    c = folder.configuration
    base = f"results/{c.model}-{c.arm}-{c.tools}-{c.fingerprint[:8]}".replace(":", "_")
    rows = [
        json.dumps(record.score(c), sort_keys=True, ensure_ascii=False)
        for _, record in sorted(folder.records().items())
    ]
    configuration = {"fingerprint": c.fingerprint, "configuration": c.as_json()}
    return {
        f"{base}/configuration.json": json.dumps(configuration, indent=2, sort_keys=True) + "\n",
        f"{base}/scores.jsonl": "".join(f"{row}\n" for row in rows),
    }


def _programs(folders: Sequence[RunFolder], upstream: Upstream) -> dict[str, str]:
    files: dict[str, str] = {}
    hashes: dict[str, Any] = {}
    for tools in sorted({folder.configuration.tools for folder in folders}):
        listed: ToolList = "full-state" if tools == "full-state" else "official"
        shelf = ProgramShelf(listed, upstream)
        tasks = {
            task
            for folder in folders
            if folder.configuration.tools == tools
            for task in folder.records()
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
    if isinstance(step, Check | Act | Return):
        return replace(step, says="")
    return step


def _readme(upstream: Upstream | None) -> str:
    commit = upstream.checkout.commit if upstream is not None else "not known"
    return (
        f"Packed by sopilot {__version__}.\n\n"
        "results/   one folder a configuration: its fingerprint and the scores of its tasks\n"
        "programs/  compiled programs without the source's sentences; hashes.json names the whole\n"
        "analysis/  the tables\n\n"
        f"SOPBench is a public dependency at commit {commit}; nothing of it is in here.\n"
        "Check with: sha256sum -c SHA256SUMS\n"
    )


def _diagnostic(refusal: ArchiveRefusal) -> Diagnostic:
    return Diagnostic(refusal.code, refusal.message, Place(refusal.name), refusal.help)
