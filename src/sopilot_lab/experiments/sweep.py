"""All tasks of a selection that have no record yet, on as many workers as there are.

A share of a sweep's tasks, run in this process. Whatever runs it (a plain loop, Inspect, a
worker of a pool or of Ray) writes the same records.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from sopilot.agent.result import Ending
from sopilot.messages.errors import RunEnded
from sopilot.runner.processes import On, processes
from sopilot.tasks.task import Task
from sopilot.views.catalogue import view_named
from sopilot_lab.experiments.entrants import (
    DEFAULT_USER,
    OFFLINE,
    Contestant,
    Party,
    concerns_all,
    lasting,
)
from sopilot_lab.experiments.run_folder import (
    BenchRecord,
    JournalWriter,
    RunConfiguration,
    RunFolder,
)
from sopilot_lab.experiments.selection import should_succeed
from sopilot_lab.experiments.source_fingerprint import deciding_sources
from sopilot_lab.experiments.trial import Reference, Trial, TrialRunner
from sopilot_lab.sopbench.process import ToolList, Upstream, shared_upstream
from sopilot_lab.sopbench.reference import DOMAINS, domain_budgets
from sopilot_lab.sopbench.tasks import OwnReference

Runner = Literal["inspect", "plain"]
Seen = Callable[[BenchRecord], None]


class SweepStopped(RunEnded):
    """The failure concerns all tasks, or too many tasks failed."""


@dataclass(frozen=True, slots=True)
class Shard:
    """``at_once`` runs go on together: worth it only where a model is waited for."""

    folder: Path
    configuration: RunConfiguration
    references: tuple[Reference, ...]
    party: Party
    runner: Runner = "plain"
    at_once: int = 1


@dataclass(slots=True)
class Standing:
    """The progress of a shard: where its records go, and when the sweep stops."""

    shard: Shard
    runner: TrialRunner
    folder: RunFolder
    writer: JournalWriter
    seen: Seen
    tried: int = 0
    missing: int = 0

    def keep(self, trial: Trial) -> None:
        if trial.trace and not trial.record.discarded:
            self.folder.keep_trace(trial.record.task, trial.trace)
        self.writer.write(trial.record)
        self.seen(trial.record)
        if concerns_all(trial.record.fault) and not self.runner.answered:
            raise SweepStopped(f"every task would end so: {trial.record.reason}")

    def count(self, judged: Trial | None) -> None:
        patience = self.shard.party.patience
        self.tried += 1
        self.missing += judged is None
        enough = self.tried >= min(patience.fewest_tried, len(self.shard.references))
        if enough and self.missing > patience.most_missing * self.tried:
            raise SweepStopped(
                f"{self.missing} of {self.tried} tasks stayed without a judged run; "
                f"more than {100 * patience.most_missing:g} % are too many"
            )


def nobody(record: BenchRecord) -> None:
    """The default watcher: ignores records."""


def run_shard(shard: Shard, seen: Seen = nobody) -> None:
    """Run the tasks and record every run."""
    needed = any(not isinstance(each, OwnReference) for each in shard.references)
    upstream = shared_upstream(shard.configuration.hash_seed) if needed else None
    if shard.runner == "inspect":
        from sopilot_lab.experiments.inspect import run_in_inspect

        run_in_inspect(shard, upstream, seen)
    else:
        asyncio.run(_run_plainly(shard, upstream, seen))


async def _run_plainly(shard: Shard, upstream: Upstream | None, seen: Seen) -> None:
    runner = TrialRunner(shard.configuration, upstream, shard.party)
    folder = RunFolder.open(shard.folder)
    free = asyncio.Semaphore(shard.at_once)
    with folder.writer() as writer:
        standing = Standing(shard, runner, folder, writer, seen)

        async def run_free(reference: Reference) -> None:
            async with free:
                await run_and_record(reference, standing, runner.run)

        await asyncio.gather(*(run_free(each) for each in shard.references))


async def run_and_record(
    reference: Reference, standing: Standing, run: Callable[[Reference], Awaitable[Trial]]
) -> Trial | None:
    """Until a run is judged. Broken runs are recorded and, where that may help, made again
    under a new identity."""
    judged: Trial | None = None
    for _ in range(1 + standing.shard.party.patience.redraws):
        trial = await run(reference)
        standing.keep(trial)
        if not trial.record.discarded:
            judged = trial
        if judged is not None or lasting(trial.record.fault):
            break
    standing.count(judged)
    return judged


def shares(references: Sequence[Reference], count: int) -> list[tuple[Reference, ...]]:
    """Interleaved, so that a domain with long tasks is spread over all of them."""
    parts = [tuple(references[start::count]) for start in range(max(1, count))]
    return [part for part in parts if part]


ALONE: Final = frozenset({"local"})
"""Models that answer one request at a time: waiting in a row would spend the wall clock."""
NO_UPSTREAM: Final = "none"
AT_ONCE = 8
_FEW = 24
"""Fewer tasks than this are not worth a second process."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """``planned`` are the tasks of the selection, ``ran`` counts those that ran just now.
    ``stopped`` says why some didn't."""

    folder: RunFolder
    planned: tuple[Reference, ...]
    ran: int
    seconds: float
    runner: Runner
    workers: int
    stopped: str = ""


def inspect_is_here() -> bool:
    return importlib.util.find_spec("inspect_ai") is not None


def make_configuration(
    upstream: Upstream | None,
    *,
    arm: str,
    model: str,
    tools: ToolList,
    user: str = DEFAULT_USER,
    language: str = "en",
    run: int = 1,
    hypotheses: str = "",
    budgets: Mapping[str, Any] | None = None,
    own: Iterable[Task] = (),
) -> RunConfiguration:
    """``model`` and ``user`` are the names that may be published. ``budgets`` are those that
    differ from a domain's own; without a checkout only ``own`` tasks can be run."""
    known = {task.source: task.budgets for task in own}
    if upstream is not None:
        known |= {domain: domain_budgets(domain) for domain in DOMAINS}
    value = dict(budgets or {})
    return RunConfiguration(
        arm=view_named(arm).name,
        model=model,
        tools=tools,
        user=user,
        hash_seed=0 if upstream is None else upstream.hash_seed,
        upstream_commit=NO_UPSTREAM if upstream is None else upstream.checkout.commit or "unknown",
        budgets={name: asdict(replace(each, **value)) for name, each in known.items()},
        language=language,
        sources=deciding_sources().fingerprint,
        run=run,
        hypotheses=hypotheses,
    )


def run_sweep(
    path: Path,
    configuration: RunConfiguration,
    references: Sequence[Reference],
    party: Party | None = None,
    *,
    on: On = "local",
    runner: Runner | None = None,
    workers: int | None = None,
    at_once: int | None = None,
    seen: Seen = nobody,
) -> Sweep:
    """Continues what is in the folder: a task with a judged run is not run again."""
    chosen: Runner = runner or ("inspect" if inspect_is_here() else "plain")
    party = party or Party(Contestant(configuration.model), Contestant(configuration.user))
    offline = party.model.name in OFFLINE and not party.own
    folder = RunFolder.create(path, configuration)
    begun = time.perf_counter()
    stopped = ""
    with folder.leader():
        folder.ask({str(each): _should(each, configuration, party.own) for each in references})
        done = folder.records()
        pending = tuple(each for each in references if str(each) not in done)
        count = workers or (os.cpu_count() or 1 if offline else 1)
        if len(pending) < _FEW and workers is None:
            count = 1
        parts = [
            Shard(
                path.resolve(),
                configuration,
                part,
                party,
                runner=chosen,
                at_once=at_once or (1 if party.model.name in OFFLINE | ALONE else AT_ONCE),
            )
            for part in shares(pending, count)
        ]
        try:
            if parts:
                _run_parts(parts, on, seen)
        except SweepStopped as stop:
            stopped = str(stop)
        finally:
            folder.write_scores()
    seconds = time.perf_counter() - begun
    ran = len(folder.records().keys() - done.keys())
    return Sweep(folder, tuple(references), ran, seconds, chosen, max(1, len(parts)), stopped)


def _should(each: Reference, configuration: RunConfiguration, own: Mapping[str, Task]) -> bool:
    if isinstance(each, OwnReference):
        return own[str(each)].expected is Ending.EXECUTED
    return should_succeed(each, shared_upstream(configuration.hash_seed))


def _run_parts(parts: Sequence[Shard], on: On, seen: Seen) -> None:
    if on == "ray":
        from sopilot_lab.experiments.ray import run_on_ray

        run_on_ray(parts)
    elif len(parts) == 1:
        run_shard(parts[0], seen)
    else:
        with processes(len(parts)) as pool:
            list(pool.map(run_shard, parts))  # raises what a worker raised
