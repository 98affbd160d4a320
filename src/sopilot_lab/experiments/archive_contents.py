"""What an archive holds beside results: the code, the environment, the pins, a case."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

import sopilot
from sopilot import __version__
from sopilot.agent.reference.executor import Reference
from sopilot.models.open import public_name
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.folder_tasks import folder_task
from sopilot.tasks.folders import load_folder
from sopilot.tasks.run import Conditions, run_task
from sopilot.tasks.task import Result
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS
from sopilot_lab.experiments.source_fingerprint import deciding_sources

Files = dict[str, str | bytes]


PAPER_PIN: Final = "b30bb29c3438"
"""The commit of SOPBench that the paper names, by its first digits."""


_SOURCES: Final = Path(sopilot.__file__).parents[1]


_ROOT: Final = _SOURCES.parent
"""Of a checkout of this project; in an installation there is nothing of it."""


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
    """A workflow folder, and what can be seen of it without running anything of it: the program
    in every form that arms show, the events of its first task without payloads, the audit."""
    files: Files = {f"case/{folder.name}/{n}": data for n, data in _below(folder).items()}
    loaded = load_folder(str(folder))
    if folder == example_case():
        # It comes with the code that runs here, and is no less ours.
        loaded.code().trust_for_now()
    with tempfile.TemporaryDirectory() as scratch:
        task = folder_task(loaded, loaded.tasks[0], Path(scratch, "out"))
        result = asyncio.run(_run(task))
        briefing = task.briefing
    base = f"case/projections/{folder.name}"
    events = [_projected(sealed.event) for sealed in result.events]
    files[f"{base}/events.jsonl"] = "".join(f"{json.dumps(event)}\n" for event in events)
    files[f"{base}/validation.json"] = json.dumps(_validation(result), indent=1) + "\n"
    return files | {f"{base}/{arm}.txt": _shown(arm, briefing) for arm in ("pg", "flat", "prose")}


async def _run(task: Any) -> Result:
    conditions = Conditions(VIEWS["pg"], Reference(task.reader), model_name="reference")
    return await run_task(task, task.open(), conditions, store=MemoryStore())


def _projected(event: Any) -> dict[str, Any]:
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


def _shown(arm: str, briefing: Briefing) -> str:
    return VIEWS[arm].first_message(briefing) + "\n"
