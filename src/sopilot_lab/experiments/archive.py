"""Runs packed for publication: everything that a reader elsewhere needs to check them.

The archive's own README (``_readme``) says what is where. `environment.json`, `COMMIT_PIN.txt` and
`SHA256SUMS` say what made it and what it holds.

Traces, logs, the models' words, response ids and addresses stay at home. An archive with
credentials, paths of this machine, names of people or SOPBench's text is refused."""

from __future__ import annotations

import asyncio
import functools
import getpass
import hashlib
import importlib.metadata
import json
import platform
import re
import socket
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

import yaml

import sopilot
from sopilot import __version__
from sopilot.agent.reference.executor import Reference
from sopilot.messages.diagnostic import Diagnostic, Place
from sopilot.messages.errors import UserMistake
from sopilot.models.open import public_name
from sopilot.program.codec import program_to_yaml
from sopilot.program.model import Act, Check, Program, ReturnStep, Step
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.folders import folder_task, load_folder
from sopilot.tasks.run import Conditions, run_task
from sopilot.tasks.task import Result
from sopilot.trace.events import Event
from sopilot.views.catalogue import VIEWS
from sopilot_lab.experiments.run_folder import (
    BenchRecord,
    RunFolder,
    configuration_text,
    score_lines,
)
from sopilot_lab.experiments.source_fingerprint import deciding_sources
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.reference import DOMAINS, is_sopbench, task_references
from sopilot_lab.sopbench.source import load_task, tool_list

Files = dict[str, str | bytes]
PAPER_PIN: Final = "b30bb29c3438"
"""The commit of SOPBench that the paper names, by its first digits."""
_SOURCES: Final = Path(sopilot.__file__).parents[1]
_ROOT: Final = _SOURCES.parent
"""The root of a checkout of this project; an installation has none."""
_SKIPPED: Final = frozenset({"__pycache__", ".mypy_cache", ".pytest_cache"})
_PROJECTED: Final = ("goal", "function", "step", "action", "operation", "label")


def example_case() -> Path | None:
    """The industrial case, where a checkout of this project is at hand."""
    path = _ROOT / "examples" / "quotation"
    return path if path.is_dir() else None


def source_files() -> Files:
    """Compiler, runtime, adapters and analysis as they are installed; the campaigns' scripts and
    the pinned requirements where the project lies beside them."""
    files: Files = {
        f"source/{package}/{name}": data
        for package in ("sopilot", "sopilot_lab")
        for name, data in _below(_SOURCES / package).items()
    }
    scripts = _ROOT / "benchmarks"
    if (scripts / "evidence.py").exists():
        files |= {f"source/benchmarks/{name}": data for name, data in _below(scripts).items()}
    for name in ("pyproject.toml", "constraints.txt", "LICENSE"):
        if (_ROOT / name).exists():
            files[f"source/{name}"] = (_ROOT / name).read_bytes()
    return files


def _below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _SKIPPED & set(path.parts)
    }


def environment_files(upstream_commits: Mapping[str, str]) -> Files:
    """``upstream_commits``: configuration → the commit of SOPBench it ran on."""
    installed = {
        each.metadata["Name"].lower(): each.version
        for each in importlib.metadata.distributions()
        if each.metadata["Name"]
    }
    environment = {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "sopilot": __version__,
        "sources": deciding_sources().fingerprint,
        "packages": dict(sorted(installed.items())),
    }
    pins = sorted(set(upstream_commits.values()))
    lines = [
        f"SOPBench, runs in here: {', '.join(pins) or 'none'}",
        f"SOPBench, the paper: {PAPER_PIN} (by its first digits, as the paper gives it)",
        f"sopilot: {__version__}, sources {deciding_sources().fingerprint}",
    ]
    return {
        "environment.json": json.dumps(environment, indent=1) + "\n",
        "COMMIT_PIN.txt": "\n".join(lines) + "\n",
    }


def published_study(text: str) -> str:
    """The study's file without addresses and names of variables."""
    document = yaml.safe_load(text)
    entrants = [*document.get("models", ()), document.get("user")]
    blocks = [run for item in entrants if isinstance(item, dict) for run in item.get("runs", ())]
    entrants += [block.get("user") for block in blocks]
    for entrant in entrants:
        if isinstance(entrant, dict):
            entrant.setdefault("alias", public_name(str(entrant.get("model", ""))))
            entrant["model"] = public_name(str(entrant.get("model", "")))
            entrant.pop("key", None)
    document["models"] = [
        {"model": public_name(item)} if isinstance(item, str) else item
        for item in document.get("models", ())
    ]
    if isinstance(document.get("user"), str):
        document["user"] = public_name(document["user"])
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return f"# As it was run, without addresses and keys.\n{text}"


def case_files(folder: Path) -> Files:
    """A workflow folder with its projections: the program as each arm shows it, the events of its
    first task without payloads, the audit."""
    files: Files = {f"case/{folder.name}/{n}": data for n, data in _below(folder).items()}
    loaded = load_folder(str(folder))
    if folder == example_case():
        # The example is part of this project, so its code is trusted.
        loaded.code().trust_for_now()
    with tempfile.TemporaryDirectory() as scratch:
        task = folder_task(loaded, loaded.tasks[0], Path(scratch, "out"))
        conditions = Conditions(VIEWS["pg"], Reference(task.reader), model_name="reference")
        result = asyncio.run(run_task(task, task.open(), conditions, store=MemoryStore()))
    base = f"case/projections/{folder.name}"
    events = [_projected(sealed.event) for sealed in result.events]
    files[f"{base}/events.jsonl"] = "".join(f"{json.dumps(event)}\n" for event in events)
    files[f"{base}/validation.json"] = json.dumps(_validation(result), indent=1) + "\n"
    for arm in ("pg", "flat", "prose"):
        files[f"{base}/{arm}.txt"] = VIEWS[arm].first_message(task.briefing) + "\n"
    return files


def _projected(event: Event) -> dict[str, Any]:
    """Which action, function and step; never a value."""
    stored = {name: event.payload[name] for name in _PROJECTED if name in event.payload}
    plain = {name: value for name, value in stored.items() if isinstance(value, str | int)}
    return {"seq": event.seq, "kind": event.kind, "actor": str(event.actor), **plain}


def _validation(result: Result) -> dict[str, Any]:
    return {
        "ending": str(result.ending),
        "as_expected": result.passed,
        "events": len(result.events),
        "requests": result.run.agent_turns,
        "domain_calls": result.run.domain_calls,
        "findings": [finding.code for finding in result.audit.findings],
    }


_CREDENTIALS: Final = (
    re.compile(r"\b(sk|rk|pk)-[A-Za-z0-9_-]{16,}"),
    re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b"),
    re.compile(r"\b(ghp|gho|ghs|github_pat|hf|xox[bap])_[A-Za-z0-9_]{16,}"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    re.compile(
        r"(?i)\b(api[_-]?key|secret|token|authorization)\b['\"]?\s*[:=]\s*['\"]?[\w.-]{16,}"
    ),
    re.compile(r"(?i)\bbearer\s+[\w.-]{16,}"),
    re.compile(r"\b\w+://[^/\s:@]+:[^/\s:@]+@"),
)
_PATHS: Final = re.compile(
    r"(?<![\w.:/])/(home|root|Users|tmp|var|work|mnt|opt|srv|private|data)/[\w.-]+"
    r"|\b[A-Za-z]:\\\\?[\w.-]+\\"
)
_ADDRESS: Final = re.compile(r"\bhttps?://(?!www\.w3\.org/)[^\s\"'<>]+")
_MAIL: Final = re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.]{2,}\b")
_ORDINARY: Final = frozenset({"root", "user", "runner", "admin", "localhost", "ubuntu", "debian"})
_FRAGMENT = 48
"""Characters in a row that can't agree by coincidence."""
_FEWEST_SPACES = 3


def check_file(
    name: str, text: str, *, upstream: Upstream | None, forbidden: Sequence[str] = ()
) -> Iterator[Diagnostic]:
    """The reasons why this file must not be published."""

    def refusal(code: str, message: str, cure: str) -> Diagnostic:
        return Diagnostic(f"archive-{code}", message, Place(name), cure)

    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        yield refusal("path", "this name points outside the archive", "rename it")
    if any(part.startswith(".") for part in path.parts):
        yield refusal("hidden", "this is a hidden file", "leave it out")
    if any(pattern.search(text) for pattern in _CREDENTIALS):
        yield refusal("credential", "this looks like a credential", "remove it, and revoke it")
    if match := _PATHS.search(text):
        yield refusal("absolute-path", f"an absolute path: `{match[0]}`", "make it relative")
    if _ADDRESS.search(text):
        alias = "give the model an alias (`lab run --alias`)"
        yield refusal(
            "address", "an address: the archive must not show where a model is served", alias
        )
    for word in {*_own_names(), *forbidden}:
        if word and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text):
            yield refusal("person", f"it names `{word}`", "remove the name")
    if _MAIL.search(text):
        yield refusal("person", "it contains an email address", "remove the address")
    if upstream is not None and (quoted := _quoted_from(upstream, text)):
        cure = "SOPBench has no licence: leave its text out"
        yield refusal("upstream", f"text of SOPBench: `{quoted[:24]}…`", cure)


def _quoted_from(upstream: Upstream, text: str) -> str | None:
    known = _fragments(upstream)
    fragments = (text[at : at + _FRAGMENT] for at in range(len(text) - _FRAGMENT + 1))
    return next((fragment for fragment in fragments if fragment in known), None)


@functools.cache
def _fragments(upstream: Upstream) -> frozenset[str]:
    """Every run of so many characters in what upstream wrote for people: descriptions,
    instructions, requests. Names, however long, are no text."""
    texts: list[str] = []
    for domain in DOMAINS:
        texts += _strings(upstream.metadata(domain))
        for tasks in upstream.tasks(domain).values():
            for task in tasks:
                texts += [task["user_prompt"], task["user_instruction"]]
    pieces = [piece for text in texts for piece in re.split(r"\{[^}]*\}|\n", text)]
    return frozenset(
        fragment
        for piece in {piece.strip() for piece in pieces}
        for start in range(len(piece) - _FRAGMENT + 1)
        if (fragment := piece[start : start + _FRAGMENT]).count(" ") >= _FEWEST_SPACES
    )


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(item)


@functools.cache
def _own_names() -> frozenset[str]:
    """The names of this machine and its user, without the usual ones."""
    try:
        names = {getpass.getuser(), socket.gethostname(), socket.gethostname().split(".")[0]}
    except (OSError, KeyError):
        return frozenset()
    return frozenset(name for name in names if len(name) > 3 and name not in _ORDINARY)


MANIFEST = "SHA256SUMS"
STUDY = "study/study.yaml"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_CHECKED: Final = {
    "source/": {"archive-upstream"},
    "case/": {"archive-upstream", "archive-credential"},
}
"""Folder → the refusals that count there. Elsewhere all of them do."""


def build_archive(
    folders: Sequence[RunFolder],
    target: Path,
    *,
    analysis: Mapping[str, str],
    upstream: Upstream | None,
    forbidden: Sequence[str] = (),
    study: str | None = None,
    case: Path | None = None,
    source: bool = False,
) -> list[str]:
    """The packed names. Raises ``UserMistake`` with everything that must not go out; then
    nothing is written. ``analysis`` maps file names to text; ``forbidden`` are words that
    name a person or a place; ``study`` is the text of its file."""
    if not any(folder.records() for folder in folders):
        raise UserMistake("there is no judged run in these folders: nothing to pack")
    files: Files = {f"analysis/{name}": text for name, text in analysis.items()}
    for folder, base in _named(folders):
        files |= _results(folder, base)
    if upstream is not None:
        files |= _programs(folders, upstream)
    if study is not None:
        files[STUDY] = published_study(study)
    if source:
        files |= source_files()
    if case is not None:
        files |= case_files(case)
    commits = {f.configuration.label: f.configuration.upstream_commit for f in folders}
    files |= environment_files(commits)
    files["README.txt"] = _readme(upstream)
    packed = {
        name: data.encode() if isinstance(data, str) else data
        for name, data in sorted(files.items())
    }
    refusals = [
        refusal
        for name, data in packed.items()
        for refusal in _refusals(name, data, upstream, forbidden)
    ]
    if refusals:
        raise UserMistake(refusals)
    digests = (f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in packed.items())
    packed[MANIFEST] = "".join(digests).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(packed.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return sorted(packed)


def _refusals(
    name: str, data: bytes, upstream: Upstream | None, forbidden: Sequence[str]
) -> list[Diagnostic]:
    text = data.decode("utf-8", "replace")
    folder = name[: name.find("/") + 1]
    return [
        refusal
        for refusal in check_file(name, text, upstream=upstream, forbidden=forbidden)
        if folder not in _CHECKED or refusal.code in _CHECKED[folder]
    ]


def published_record(record: BenchRecord) -> BenchRecord:
    """The record without the model's words and the provider's response ids."""
    requests = [
        {name: value for name, value in request.items() if name != "response_id"}
        for request in record.requests
    ]
    return replace(record, run_id="", reason="", requests=requests)


def _named(folders: Sequence[RunFolder]) -> Iterator[tuple[RunFolder, str]]:
    """Each folder with its place in the archive. A configuration may have several folders, one
    per domain for example."""
    often: Counter[str] = Counter()
    for folder in folders:
        name = folder.configuration.folder_name
        often[name] += 1
        yield folder, f"results/{name}" + (f"-{often[name]}" if often[name] > 1 else "")


def _results(folder: RunFolder, base: str) -> dict[str, str | bytes]:
    c = folder.configuration
    judged = [published_record(each) for each in folder.records().values()]
    broken = [published_record(each) for each in folder.discarded()]
    records = [json.dumps(each.as_json(), ensure_ascii=False) for each in (*judged, *broken)]
    return {
        f"{base}/configuration.json": configuration_text(c),
        f"{base}/asked.json": json.dumps(folder.planned(), indent=1) + "\n",
        f"{base}/records/published.jsonl": "".join(f"{row}\n" for row in records),
        f"{base}/scores.jsonl": score_lines(judged, c),
    }


def _programs(folders: Sequence[RunFolder], upstream: Upstream) -> Files:
    files: Files = {}
    hashes: dict[str, Any] = {}
    for tools in sorted({folder.configuration.tools for folder in folders}):
        shelf = ProgramShelf(tool_list(tools), upstream)
        tasks = {
            task
            for folder in folders
            if folder.configuration.tools == tools
            for task in folder.records()
            if is_sopbench(task)
        }
        for each in sorted(tasks):
            reference = task_references(each, upstream=upstream)[0]
            shelved = shelf.program(load_task(reference, upstream))
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
    functions = {
        name: replace(
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
        for name, function in program.functions.items()
    }
    return replace(program, functions=functions, constants={})


def _silent_step(step: Step) -> Step:
    return replace(step, says="") if isinstance(step, Check | Act | ReturnStep) else step


def _readme(upstream: Upstream | None) -> str:
    commit = upstream.checkout.commit if upstream is not None else "not known"
    return (
        f"Packed by sopilot {__version__}.\n\n"
        "results/   one folder per configuration: its fingerprint, its runs, the scores\n"
        "study/     the study's file, without addresses\n"
        "programs/  compiled programs without the source's sentences; hashes.json names the whole\n"
        "analysis/  the tables, as text and as data\n"
        "source/    compiler, runtime, adapters, analysis and campaigns as they were\n"
        "case/      the industrial case and its projections\n\n"
        f"SOPBench is a public dependency at commit {commit}; nothing of it is in here.\n"
        "Check with: sha256sum -c SHA256SUMS, or: sopilot lab verify ARCHIVE, which counts\n"
        "the tables again; sopilot lab report ARCHIVE prints them. Neither needs SOPBench.\n"
    )
