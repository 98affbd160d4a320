"""Options of `run`, `chat` and `resume`, and the values that people write on the command line."""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from sopilot.agent.budgets import Budgets
from sopilot.files.text import read_text
from sopilot.messages.diagnostic import Diagnostic, Place, did_you_mean
from sopilot.messages.errors import UserMistake, mistake
from sopilot.program.model import Act, Program, Unknown
from sopilot.records.store import Store
from sopilot.runner.sources import FolderSource, TaskSource
from sopilot.stores.open import data_folder
from sopilot.tasks.examples.example import bundled_names
from sopilot.tasks.folders import is_workflow_folder
from sopilot.tasks.task import Task
from sopilot.values.json import JSON, Fields
from sopilot.values.schema import violation

DEEPEST = 64
MOST_VALUES = 100_000
"""In one file, aliases expanded: a few lines of them can stand for more than fits in memory."""

LARGEST_BUDGET = 10**9


def typed_inputs(written: tuple[str, ...], programs: Mapping[str, Program]) -> dict[str, Any]:
    """The values of ``--input``, as the procedures take them."""
    texts = _texts("--input", written)
    result = {name: typed_value(name, text, programs) for name, text in texts.items()}
    check_values(result, Place("--input"))
    check_inputs(result, programs, "--input")
    return result


def typed_value(name: str, text: str, programs: Mapping[str, Program]) -> JSON:
    """The JSON value of a text; ``17`` stays a text if the procedures take nothing else."""
    value = _json_or_text(text)
    if isinstance(value, bool | int | float) and misfit(name, value, programs):
        return value if misfit(name, text, programs) else text
    return value


def check_inputs(inputs: Mapping[str, Any], programs: Mapping[str, Program], where: str) -> None:
    """Refuse values that no procedure takes: the runtime would refuse them at every step."""
    secrets = {name for program in programs.values() for name in program.secrets}
    wrong = [
        Diagnostic(
            "wrong-type",
            problem if name in secrets else f"{problem}, not {json.dumps(value)}",
            Place(where),
        )
        for name, value in inputs.items()
        if (problem := misfit(name, value, programs))
    ]
    if wrong:
        raise UserMistake(wrong)


def misfit(name: str, value: Any, programs: Mapping[str, Program]) -> str:
    """Why the value fits no place that takes this name; empty if it fits one."""
    problems = [violation(value, kind, f"`{name}`") for kind in taken(programs).get(name, ())]
    return next((problem for problem in problems if problem), "") if all(problems) else ""


def taken(programs: Mapping[str, Program]) -> dict[str, list[Mapping[str, object]]]:
    """Names that the user may be asked for, each with its possible JSON Schemas: inputs of
    procedures, and other values of calls, such as a password."""
    kinds: dict[str, list[Mapping[str, object]]] = {}
    for program in programs.values():
        for name, kind in program.types.items():
            kinds.setdefault(name, []).append(kind)
        for step in (item for function in program.functions.values() for item in function.steps):
            wanted = step.arguments if isinstance(step, Act) else ()
            facts = program.actions.get(step.action) if isinstance(step, Act) else None
            for argument, value in wanted:
                if isinstance(value, Unknown):
                    kind = facts.inputs.get(argument, {}) if facts else {}
                    kinds.setdefault(value.name, []).append(kind)
    return kinds


def pairs(option: str, written: tuple[str, ...]) -> dict[str, Any]:
    """Parse ``name=value``; a value that isn't JSON is a text."""
    values = {name: _json_or_text(text) for name, text in _texts(option, written).items()}
    check_values(values, Place(option))
    return values


def _texts(option: str, written: tuple[str, ...]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for pair in written:
        name, equals, texts[name] = pair.partition("=")
        if not equals or not name:
            raise UserMistake(f"{option} takes NAME=VALUE, not `{pair}`")
    return texts


def _json_or_text(text: str) -> JSON:
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def chosen_budgets(written: tuple[str, ...]) -> dict[str, Any]:
    """The values of ``--budget``; ``none`` leaves a value out of requests."""
    known = {item.name: getattr(Budgets(), item.name) for item in fields(Budgets)}
    values = pairs("--budget", written)
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise UserMistake(
            f"--budget: `{unknown[0]}` isn't a budget; known: {', '.join(sorted(known))}"
        )
    values = {name: None if value == "none" else value for name, value in values.items()}
    Budgets(**values)
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(known[name], int) and not isinstance(value, int):
            raise UserMistake(f"the budget `{name}` is a whole number, not {value}")
        if value > LARGEST_BUDGET:
            raise UserMistake(f"the budget `{name}` is at most {LARGEST_BUDGET}")
    return values


def read_results(path: str) -> dict[str, Any]:
    text = read_text(Path(path))
    try:
        value = _json_or_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # A date that no calendar has is a ValueError of the reader.
        raise UserMistake(f"{path} isn't YAML: {error}") from error
    if not isinstance(value, dict):
        raise UserMistake(
            f"{path} must map each action to its result, as in `find_order: {{state: delivered}}`"
        )
    check_values(value, Place(path))
    return value


def _json_or_yaml(text: str) -> Any:
    """Try JSON first: YAML's reader would leave its surrogate pairs apart."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return yaml.safe_load(text)


def check_values(value: object, place: Place) -> None:
    """Reject a value that JSON can't express, with its path: no tool could have returned it."""
    problem = _json_problem(value)
    if problem is not None:
        way, message, cure = problem
        where = f"`{way}`: " if way else ""
        raise mistake("not-json", f"{where}{message}", place, cure)


def is_text(value: object) -> bool:
    """Whether it is a text that can be encoded: JSON can spell half of a surrogate pair."""
    try:
        if isinstance(value, str):
            value.encode()
            return True
    except UnicodeEncodeError:
        pass
    return False


def _json_problem(value: object) -> tuple[str, str, str] | None:
    """Path, problem and cure of the first part that isn't JSON."""
    waiting: list[tuple[object, str, int]] = [(value, "", 0)]
    for seen in count(1):
        if not waiting:
            return None
        value, way, depth = waiting.pop()
        if depth > DEEPEST or seen > MOST_VALUES:
            return way[:60], "it is nested too deeply, or holds itself", "write it out, without &"
        if isinstance(value, str) and not is_text(value):
            return way, "it contains half of a surrogate pair", "write it whole"
        if isinstance(value, float) and not math.isfinite(value):
            return way, f"{value} isn't a JSON number", "write a number, or a string in quotes"
        if isinstance(value, Mapping):
            wrong = [name for name in value if not is_text(name)]
            if wrong:
                return way, f"the name {wrong[0]!r} isn't a string", "put it in quotes"
        elif not isinstance(value, str | bool | int | float | list | None):
            kind = type(value).__name__
            return way, f"a value of the type {kind} isn't JSON", "put it in quotes"
        parts = value.items() if isinstance(value, Mapping) else enumerate(_listed(value))
        inner = [(item, f"{way}.{name}" if way else str(name), depth + 1) for name, item in parts]
        waiting.extend(reversed(inner))
    return None


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def json_object(option: str, text: str) -> dict[str, Any]:
    try:
        loads = json.loads(text)
    except (ValueError, RecursionError):
        raise UserMistake(f"{option} isn't JSON: write an object in single quotes") from None
    if not isinstance(loads, dict):
        raise UserMistake(f"{option} must be a JSON object")
    return loads


_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options that a session keeps, so that `resume` can use them again. ``person``: a person
    at the terminal is served. ``out``: folder of a workflow folder's tools. ``text``: the handbook
    file as it was when the session began."""

    source: str
    goal: str | None = None
    task: str | None = None
    model: str = "reference"
    view: str = "pg"
    language: str = "en"
    person: bool = False
    request: str | None = None
    inputs: Mapping[str, JSON] = field(default_factory=dict)
    results: Mapping[str, JSON] | None = None
    approvers: tuple[str, ...] = ()
    budgets: Fields = field(default_factory=dict)
    out: str | None = None
    text: str | None = None

    def as_record(self, source: TaskSource) -> dict[str, JSON]:
        """The options with absolute paths, to be found from any folder."""
        if source.bundled:
            return asdict(self)
        path = str(Path(self.source).resolve())
        return asdict(replace(self, source=path, text=source.text))


async def stored_options(store: Store, session_id: str) -> RunOptions | None:
    """``None`` for a session of a server or of an agent, which resumes it itself."""
    extra = (await store.record(session_id)).metadata.get("extra", {})
    if "source" not in extra:
        return None
    known = {item.name: extra[item.name] for item in fields(RunOptions) if item.name in extra}
    return RunOptions(**{**known, "approvers": tuple(known.get("approvers", ()))})


def chosen_task(options: RunOptions, source: TaskSource) -> Task:
    if options.results is not None:
        task = _with_results(options, options.results, source)
    else:
        task = source.task(options.task, goal=options.goal, language=options.language)
    if options.person:
        # The person decides, and real people approve.
        task = replace(task.changed(request=""), approvers=(), operator=None)
    if source.bundled and options.request is not None:
        # The request need not be about the example's first task.
        task = replace(task, names_goal=options.goal is not None)
    return task.changed(request=options.request, inputs=options.inputs, approvers=options.approvers)


def simulator_file(session_id: str, store_spec: str | None) -> Path:
    """Where a simulator's state outlives the process: beside the store, if that is a file. An id
    that a caller chose could name another path, so it is replaced by its hash."""
    folder = data_folder()
    if store_spec and store_spec.startswith("sqlite:"):
        folder = Path(store_spec.removeprefix("sqlite:")).expanduser().parent
    name = session_id
    if not _PLAIN_ID.fullmatch(name):
        name = hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()
    return folder / "simulators" / f"{name}.json"


def forget_simulators(session_ids: Sequence[str], store_spec: str | None) -> None:
    """Delete the simulators' state of erased sessions."""
    for session_id in session_ids:
        file = simulator_file(session_id, store_spec)
        for stored in (file, *file.parent.glob(f".{file.name}.*")):  # drafts of killed processes
            stored.unlink(missing_ok=True)


def _with_results(options: RunOptions, results: Mapping[str, JSON], source: TaskSource) -> Task:
    if source.own_simulator or isinstance(source, FolderSource):
        whose = "are simulated" if source.own_simulator else "are its own"
        message = f"the tools of `{source.name}` {whose}, no file answers for them"
        cure = "leave --results out; --task NAME chooses another task, and with it another state"
        raise mistake("results-unused", message, Place("--results"), cure)
    if options.task is not None:
        raise UserMistake("--task names a scenario, which has results of its own: drop --results")
    return source.with_results(
        results, goal=options.goal, person=options.person, language=options.language
    )


def run_folder(source: str, task: str | None, out: str | None) -> str | None:
    """The empty folder in which the tools of a workflow folder work; else ``None``."""
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
    """Which answers the tools of your own handbook give, and inputs that no procedure takes."""
    if isinstance(source, FolderSource):
        return ""
    names = set(taken(source.briefing(options.goal).programs)) if options.inputs else set()
    lines = [
        f"no procedure takes `{name}` (--input): {did_you_mean(name, names)}"
        for name in options.inputs
        if names and name not in names
    ]
    if not source.own_simulator and options.results is None:
        task = source.task(options.task, goal=options.goal, language=options.language)
        lines.append(f"the tools answer as in the scenario `{task.name}`")
    elif not source.own_simulator:
        offered = [name for name, action in source.handbook.actions.items() if action.offered]
        silent = ", ".join(f"`{item}`" for item in offered if item not in (options.results or {}))
        if silent:
            lines.append(f"no result is given for {silent}: calls of it fail")
    return "\n".join(lines)
