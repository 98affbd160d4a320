"""Folders of runs, as series of arms that differ in nothing else.

Two folders may differ in arm, model, run, tool list and language: each of these is a row or a
column of the tables. Everything else that decides a run must be the same, or the difference
between two arms is a difference between two experiments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sopilot.messages.diagnostic import Diagnostic, Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot.views.catalogue import VIEWS
from sopilot_lab.experiments.run_folder import (
    BenchRecord,
    Missing,
    RunConfiguration,
    RunFolder,
    folders_below,
    task_order,
)
from sopilot_lab.sopbench.recorded import Screen
from sopilot_lab.sopbench.reference import SCHEME, TaskReference
from sopilot_lab.statistics.outcomes import RunOutcome

COMPARED: Final = ("arm", "model", "run", "tools", "language")
SHARED: Final = (
    "upstream_commit",
    "sources",
    "budgets",
    "user",
    "hash_seed",
    "compiler",
)
"""These must agree between models too; what else a configuration has is a model's own."""


def harness_fingerprint(configuration: RunConfiguration) -> str:
    row = configuration.as_json()
    shared = {name: row[name] for name in SHARED}
    text = json.dumps(shared, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def require_one_harness(
    result: Sequence[tuple[Path, RunConfiguration]], vary: Sequence[str] = ()
) -> None:
    """Raises ``UserMistake`` that says what differs, and where."""
    diagnostics: dict[str, Diagnostic] = {}
    for place, (path, configuration) in enumerate(result):
        for other_path, other in result[:place]:
            for name, change in _differences(other, configuration):
                if name in vary or name in diagnostics:
                    continue
                diagnostics[name] = Diagnostic(
                    "other-harness",
                    f"`{name}` differs from `{other_path}`: {change}",
                    Place(str(path)),
                    f"run both with the same, or report them apart with `--vary {name}`",
                )
    if diagnostics:
        raise UserMistake(list(diagnostics.values()))


def varied_label(
    configuration: RunConfiguration, all_of_them: Sequence[RunConfiguration], vary: Sequence[str]
) -> str:
    """The difference between this configuration and the others, in the fields that vary."""
    parts = []
    for name in vary:
        flat = [_flat(name, each.as_json().get(name)) for each in all_of_them]
        own = _flat(name, configuration.as_json().get(name))
        keys = dict.fromkeys(key for each in flat for key in each)
        differ = [key for key in keys if len({str(each.get(key)) for each in flat}) > 1]
        parts += [f"{key} {_short(own.get(key))}" for key in differ]
    return ", ".join(dict.fromkeys(parts))


def _differences(
    run_configuration: RunConfiguration, other: RunConfiguration
) -> list[tuple[str, str]]:
    left, right = run_configuration.as_json(), other.as_json()
    fields = [*left, *(key for key in right if key not in left)]
    if run_configuration.model == other.model:
        names = [name for name in fields if name not in COMPARED]
    else:
        names = [name for name in fields if name in SHARED]
    return [
        (name, _change(name, left.get(name), right.get(name)))
        for name in names
        if left.get(name) != right.get(name)
    ]


def _change(name: str, left: Any, right: Any) -> str:
    before, after = _flat(name, left), _flat(name, right)
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    shown = [
        f"{key} {_short(before.get(key))} there, {_short(after.get(key))} here" for key in keys
    ]
    return "; ".join([*shown[:3], "…"] if len(shown) > 3 else shown)


def _flat(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {name: value}
    values: dict[str, Any] = {}
    for key, inner in value.items():
        values |= _flat(str(key) if name == "budgets" else f"{name}.{key}", inner)
    return values


def _short(value: Any) -> str:
    if value in (None, ""):
        return "not recorded"
    text = str(value)
    return text if len(text) <= 20 else f"{text[:12]}…"


_ARM_ORDER: Final = {name: place for place, name in enumerate(VIEWS)}
Keep = Callable[[str, bool], bool]
"""``keep(task, should_succeed)``: whether a table is about the task."""


@dataclass(slots=True)
class ArmRuns:
    """The records of an arm: run → task → the judged record; the planned tasks without
    a record; how many runs broke."""

    runs: dict[int, dict[str, BenchRecord]] = field(default_factory=dict)
    missing: dict[int, dict[str, Missing]] = field(default_factory=dict)
    broken: dict[int, int] = field(default_factory=dict)

    @property
    def first(self) -> int:
        return min(self.runs)


@dataclass(frozen=True, slots=True)
class Series:
    """One model with one tool list and language, in one harness; only the arm varies. Tables
    of pass@1 read the run with the lowest number."""

    label: str
    model: str
    tools: str
    language: str
    varied: str = ""
    arms: dict[str, ArmRuns] = field(default_factory=dict)

    def judged(self, arm: str, keep: Keep, run: int | None = None) -> list[BenchRecord]:
        if arm not in self.arms:
            return []
        of_arm = self.arms[arm]
        records = of_arm.runs.get(of_arm.first if run is None else run, {})
        return [each for each in records.values() if keep(each.task, each.should_succeed)]

    def outcomes(self, arm: str, keep: Keep, run: int | None = None) -> list[RunOutcome]:
        return [each.outcome(arm, self.label) for each in self.judged(arm, keep, run)]

    def every_run(self, arm: str, keep: Keep) -> list[RunOutcome]:
        """The outcomes of all runs, each with its run's number."""
        return [
            each.outcome(arm, self.label, run)
            for run in sorted(self.arms[arm].runs if arm in self.arms else ())
            for each in self.judged(arm, keep, run)
        ]

    def missing(self, arm: str, keep: Keep) -> dict[str, str]:
        """Task → why it has no verdict, for the planned tasks of the arm."""
        of_arm = self.arms[arm]
        records, absent = of_arm.runs[of_arm.first], of_arm.missing.get(of_arm.first, {})
        return {
            task: each.fault
            for task, each in absent.items()
            if task not in records and keep(task, each.should_succeed)
        }

    def planned(self, arm: str, keep: Keep) -> set[str]:
        """The planned tasks of the arm, judged or not."""
        if arm not in self.arms:
            return set()
        return {each.task for each in self.judged(arm, keep)} | self.missing(arm, keep).keys()

    def tasks(self) -> set[str]:
        """The planned tasks of all arms."""
        tasks: set[str] = set()
        for of_arm in self.arms.values():
            tasks.update(*of_arm.runs.values(), *of_arm.missing.values())
        return tasks


@dataclass(frozen=True, slots=True)
class RunSet:
    series: Sequence[Series]
    configurations: Sequence[RunConfiguration]
    discarded: int
    domains: Sequence[str]
    vary: Sequence[str] = ()


def load_runs(paths: Iterable[Path], *, vary: Sequence[str] = ()) -> RunSet:
    """A folder may hold folders of runs; several folders of one configuration are one, if no
    task was judged in two of them. ``vary`` names what may differ beside arm, model, run, tool
    list and language; each value of it makes a series of its own."""
    folders = run_folders(paths)
    require_one_harness([(each.path, each.configuration) for each in folders], vary)
    configurations = [each.configuration for each in folders]
    serieses: dict[tuple[str, ...], Series] = {}
    discarded = 0
    domains: dict[str, None] = {}
    for folder in folders:  # sorted: so are the arms of a series, and the series
        c = folder.configuration
        varied = varied_label(c, configurations, vary)
        key = (c.model, c.tools, c.language, varied)
        if key not in serieses:
            serieses[key] = Series(_label(c, varied), c.model, c.tools, c.language, varied)
        discarded += _take(serieses[key].arms.setdefault(c.arm, ArmRuns()), folder)
        domains |= dict.fromkeys(record.domain for record in folder.records().values())
    if not domains:
        place = folders[0].path if folders else Path()
        raise _mistake(place, "no run was judged here", "finish the sweep; see its summary.json")
    return RunSet(tuple(serieses.values()), configurations, discarded, sorted(domains), tuple(vary))


def run_folders(paths: Iterable[Path]) -> list[RunFolder]:
    """Sorted by configuration and tasks, so that no table depends on the order of ``paths`` or
    on the names of folders. A folder that is named twice counts once."""
    results: dict[Path, RunFolder] = {}
    for path in paths:
        below = folders_below(path)
        if not below:
            raise _mistake(path, "no runs here", "name folders that `lab run -o` made")
        results |= {each.path.resolve(): each for each in below}
    return sorted(results.values(), key=_folder_order)


def _folder_order(folder: RunFolder) -> tuple[Any, ...]:
    c = folder.configuration
    budgets = sorted(
        (domain, name, -1.0 if limit is None else limit)
        for domain, limits in c.budgets.items()
        for name, limit in limits.items()
    )
    arm = _ARM_ORDER.get(c.arm, len(_ARM_ORDER))
    named = (c.model, c.tools, c.language, arm, c.arm, c.user, budgets, c.run, c.fingerprint)
    return (*named, [*folder.planned()])


def screened(screen: Screen, *domains: str) -> Keep:
    """The tasks of some domains, or of all, that a screen leaves in."""

    def keep(task: str, should_succeed: bool) -> bool:
        where = place_of(task)
        return (not domains or where.domain in domains) and screen(where, should_succeed)

    return keep


def place_of(task: str) -> TaskReference:
    """Domain and goal; tasks of one's own handbooks have names in place of numbers."""
    domain, _, rest = task.removeprefix(SCHEME).partition("/")
    goal, _, index = rest.partition("#")
    return TaskReference(domain, goal, int(index) if index.isdecimal() else 0)


def _take(of_arm: ArmRuns, folder: RunFolder) -> int:
    """The records of a folder into its arm; how many of them broke."""
    number = folder.configuration.run
    records = of_arm.runs.setdefault(number, {})
    for task, record in folder.records().items():
        if task in records:
            raise _mistake(
                folder.path,
                f"`{task}` was judged in another folder of `{folder.configuration.label}` too",
                "give repetitions a number of their own: `lab run --run 2`",
            )
        records[task] = record
    of_arm.runs[number] = dict(sorted(records.items(), key=task_order))
    of_arm.missing.setdefault(number, {}).update(folder.missing())
    broken = len(folder.discarded())
    of_arm.broken[number] = of_arm.broken.get(number, 0) + broken
    return broken


def _label(configuration: RunConfiguration, varied: str) -> str:
    extra = [f"{configuration.tools} tools"]
    if configuration.language != "en":
        extra.append(configuration.language)
    if varied:
        extra.append(varied)
    return f"{configuration.model} ({', '.join(extra)})"


def _mistake(path: Path, message: str, help_text: str) -> UserMistake:
    return mistake("bench-report", message, Place(str(path)), help_text)
