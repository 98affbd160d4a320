"""What `run` and `chat` are asked for: plain values that are kept with the session, so that
`resume` can do the same again."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from sopilot.adapters.store_by_name import data_folder
from sopilot.desks.bundled import bundled_names
from sopilot.desks.folders import is_workflow_folder
from sopilot.desks.tasks import Task
from sopilot.doors.sources._source import FolderSource, TaskSource
from sopilot.doors.sources.given_values import taken
from sopilot.language.diagnostics import Place, UserMistake, did_you_mean, mistake
from sopilot.runtime.session import Store
from sopilot.runtime.session.protocols import JSON
from sopilot.runtime.vm.values import Fields

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """``person`` means that somebody at the terminal is served; ``out`` is where the tools of a
    workflow folder keep and make their files; ``text`` the handbook file as it stood when the
    session began."""

    source: str
    goal: str | None = None
    task: str | None = None
    model: str = "reference"
    arm: str = "pg"
    language: str = "en"
    person: bool = False
    request: str | None = None
    knows: Mapping[str, JSON] = field(default_factory=dict)
    results: Mapping[str, JSON] | None = None
    approvers: tuple[str, ...] = ()
    budgets: Fields = field(default_factory=dict)
    out: str | None = None
    text: str | None = None

    def to_keep(self, source: TaskSource) -> dict[str, JSON]:
        """What a session keeps of it: resumed from another folder, the source is still found."""
        if source.bundled:
            return asdict(self)
        path = str(Path(self.source).resolve())
        return asdict(replace(self, source=path, text=source.text))


def options_from_json(value: Fields) -> RunOptions:
    known = {item.name: value[item.name] for item in fields(RunOptions) if item.name in value}
    if "source" not in known:
        raise UserMistake("this session was not made by `run` or `chat`, and cannot be resumed so")
    return RunOptions(**{**known, "approvers": tuple(known.get("approvers", ()))})


async def kept_options(store: Store, session_id: str) -> RunOptions | None:
    """``None`` for a session of another door, whose client goes on with it."""
    record = await store.record(session_id)
    extra = record.metadata.get("extra", {})
    return options_from_json(extra) if "source" in extra else None


def chosen_task(options: RunOptions, source: TaskSource) -> Task:
    if options.results is not None:
        task = _with_results(options, options.results, source)
    else:
        task = source.task(options.task, goal=options.goal, language=options.language)
    if options.person:
        # Whoever talks decides what becomes of it, and asks people who are really there.
        task = replace(task.changed(request=""), approvers=(), operator=None)
    if source.bundled and options.request is not None:
        # Nothing says that the desk's first task is what this is about.
        task = replace(task, names_goal=options.goal is not None)
    return task.changed(request=options.request, knows=options.knows, approvers=options.approvers)


def world_file(session_id: str, store_spec: str | None) -> Path:
    """Where a simulated desk outlives the process: beside the store, if that is a file. Ids may
    come from a caller: one that could lead elsewhere is named by its hash."""
    folder = data_folder()
    if store_spec and store_spec.startswith("sqlite:"):
        folder = Path(store_spec.removeprefix("sqlite:")).expanduser().parent
    plain = _PLAIN_ID.fullmatch(session_id)
    name = (
        session_id if plain else hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()
    )
    return folder / "worlds" / f"{name}.json"


def forget_worlds(session_ids: Sequence[str], store_spec: str | None) -> None:
    """What a simulated desk has of erased sessions."""
    for session_id in session_ids:
        file = world_file(session_id, store_spec)
        file.unlink(missing_ok=True)
        file.with_suffix(".part").unlink(missing_ok=True)


def _with_results(options: RunOptions, results: Mapping[str, JSON], source: TaskSource) -> Task:
    whose = None
    if source.own_world:
        whose = "are simulated"
    elif isinstance(source, FolderSource):
        whose = "are its own"
    if whose is not None:
        message = f"the tools of `{source.name}` {whose}, no file answers for them"
        cure = "leave --results out; --task NAME chooses another task, and with it another state"
        raise mistake("results-unused", message, Place("--results"), cure)
    if options.task is not None:
        raise UserMistake("--task names a scenario, which has results of its own: drop --results")
    return source.with_results(
        results, goal=options.goal, person=options.person, language=options.language
    )


def run_folder(source: str, task: str | None, out: str | None) -> str | None:
    """Where the tools of a run work: a folder that holds nothing yet. ``None`` for sources
    that need none."""
    if source in bundled_names() or not is_workflow_folder(source):
        if out is not None:
            raise UserMistake("--out is for workflow folders, whose tools write files")
        return None
    named = f"{Path(source).resolve().name}-{task or 'first'}-{secrets.token_hex(3)}"
    path = Path(out) if out is not None else Path(named)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserMistake(f"{path} is not empty: name another folder with --out")
    return str(path.resolve())


def who_answers(options: RunOptions, source: TaskSource) -> str:
    """For the tools of one's own handbook, and what was told for nothing; empty where that needs
    no word."""
    if isinstance(source, FolderSource):
        return ""
    said = _told_for_nothing(options, source)
    if not source.own_world and options.results is None:
        task = source.task(options.task, goal=options.goal, language=options.language)
        said.append(f"the tools answer as in the scenario `{task.name}`")
    elif not source.own_world:
        offered = [name for name, action in source.handbook.actions.items() if action.offered]
        silent = ", ".join(f"`{one}`" for one in offered if one not in (options.results or {}))
        if silent:
            said.append(f"no result is written down for {silent}: a call of it fails")
    return "\n".join(said)


def _told_for_nothing(options: RunOptions, source: TaskSource) -> list[str]:
    names = set(taken(source.briefing(options.goal).programs)) if options.knows else set()
    return [
        f"no procedure takes `{name}` (--knows): {did_you_mean(name, names)}"
        for name in options.knows
        if names and name not in names
    ]
