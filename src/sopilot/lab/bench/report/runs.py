"""Folders of runs, as series of arms that differ in nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sopilot.lab.bench._run_folder import RunFolder
from sopilot.lab.bench.record import BenchRecord, RunConfiguration
from sopilot.lab.bench.reference import TaskReference
from sopilot.lab.bench.screen import Screen
from sopilot.lab.stats import RunOutcome, TaskKind
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake

Records = Mapping[str, BenchRecord]
Keep = Callable[[BenchRecord], bool]


@dataclass(frozen=True, slots=True)
class Series:
    """One model with one tool list, user, language and hash seed; only the arm varies."""

    label: str
    tools: str
    arms: dict[str, Records] = field(default_factory=dict)

    def outcomes(self, arm: str, keep: Keep) -> list[RunOutcome]:
        return [_outcome(each, arm, self.label) for each in self.kept(arm, keep)]

    def kept(self, arm: str, keep: Keep) -> list[BenchRecord]:
        return [each for each in self.arms.get(arm, {}).values() if keep(each)]


@dataclass(frozen=True, slots=True)
class RunSet:
    series: Sequence[Series]
    configurations: Sequence[RunConfiguration]
    discarded: int
    domains: Sequence[str]


def load_runs(paths: Iterable[Path]) -> RunSet:
    """A folder may hold folders of runs."""
    found: dict[tuple[str, ...], Series] = {}
    configurations: list[RunConfiguration] = []
    discarded = 0
    domains: dict[str, None] = {}
    for folder in run_folders(paths):
        c = folder.configuration
        key = (c.model, c.tools, c.user, c.language, str(c.hash_seed))
        series = found.setdefault(key, Series(_label(c), c.tools))
        records = folder.records()
        if c.arm in series.arms:
            raise _mistake(folder.path, f"a second folder of `{c.label}`: give only one of them")
        series.arms[c.arm] = records
        configurations.append(c)
        discarded += len(folder.discarded())
        domains |= dict.fromkeys(record.domain for record in records.values())
    return RunSet(tuple(found.values()), configurations, discarded, sorted(domains))


def run_folders(paths: Iterable[Path]) -> list[RunFolder]:
    return [one for path in paths for one in _folders(path)]


def screened(screen: Screen, domain: str | None = None) -> Keep:
    """The records of a domain that a screen leaves in."""

    def keep(record: BenchRecord) -> bool:
        if domain is not None and record.domain != domain:
            return False
        index = int(record.task.rpartition("#")[2])
        reference = TaskReference(record.domain, record.goal, index)
        return screen(reference, record.should_succeed)

    return keep


def _folders(path: Path) -> list[RunFolder]:
    if (path / "configuration.json").exists():
        return [RunFolder.open(path)]
    below = sorted(each.parent for each in path.glob("*/configuration.json"))
    if not below:
        raise _mistake(path, "no bench runs here")
    return [RunFolder.open(each) for each in below]


def _label(configuration: RunConfiguration) -> str:
    extra = [configuration.tools]
    if configuration.user != "default":
        extra.append(f"user {configuration.user}")
    if configuration.language != "en":
        extra.append(configuration.language)
    if configuration.hash_seed:
        extra.append(f"hash seed {configuration.hash_seed}")
    return f"{configuration.model} ({', '.join(extra)})"


def _outcome(record: BenchRecord, arm: str, label: str) -> RunOutcome:
    return RunOutcome(
        task=record.task,
        goal=record.goal,
        kind=TaskKind.EXECUTE if record.should_succeed else TaskKind.REFUSE,
        passed=record.passed,
        arm=arm,
        model=label,
        domain=record.domain,
        post_goal_calls=record.r2,
    )


def _mistake(path: Path, message: str) -> UserMistake:
    help_text = "name folders that `bench run -o` made"
    return UserMistake([Diagnostic("bench-report", message, Place(str(path)), help_text)])
