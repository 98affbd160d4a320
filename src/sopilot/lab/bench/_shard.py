"""A share of a sweep's tasks, run in this process. Whatever runs it (a plain loop, Inspect, a
worker of a pool or of Ray) writes the same records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sopilot.desks.tasks import Task
from sopilot.lab.bench._run_folder import RecordWriter, RunFolder
from sopilot.lab.bench._trial import Reference, Trial, TrialRunner
from sopilot.lab.bench.contestant import Contestant, Patience, concerns_all, lasting
from sopilot.lab.bench.own_tasks import OwnReference
from sopilot.lab.bench.record import BenchRecord, RunConfiguration
from sopilot.lab.bench.sopbench_process import Upstream, shared_upstream
from sopilot.language.diagnostics import RunEnded

Runner = Literal["inspect", "plain"]
Seen = Callable[[BenchRecord], None]


class SweepStopped(RunEnded):
    """What broke concerns all tasks, or too many of them broke."""


@dataclass(frozen=True, slots=True)
class Shard:
    """``at_once`` runs go on together: worth it only where a model is waited for. ``own`` are
    tasks that are not SOPBench's; they cannot leave this process."""

    folder: Path
    configuration: RunConfiguration
    references: tuple[Reference, ...]
    runner: Runner = "plain"
    at_once: int = 1
    keep_traces: bool = False
    contestant: Contestant | None = None
    user: Contestant | None = None
    patience: Patience = field(default_factory=Patience)
    own: Mapping[str, Task] = field(default_factory=dict)

    def trial_runner(self, upstream: Upstream | None) -> TrialRunner:
        return TrialRunner(
            self.configuration,
            upstream,
            contestant=self.contestant,
            user=self.user,
            patience=self.patience,
            own=self.own,
            keep_traces=self.keep_traces,
        )


@dataclass(slots=True)
class Standing:
    """How a shard fares: where its records go, and whether it is worth going on."""

    shard: Shard
    runner: TrialRunner
    folder: RunFolder
    writer: RecordWriter
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
        patience = self.shard.patience
        self.tried += 1
        self.missing += judged is None
        enough = self.tried >= min(patience.fewest_tried, len(self.shard.references))
        if enough and self.missing > patience.most_missing * self.tried:
            raise SweepStopped(
                f"{self.missing} of {self.tried} tasks stayed without a judged run; "
                f"more than {100 * patience.most_missing:g} % are too many"
            )


def nobody(record: BenchRecord) -> None:
    """Does not look."""


def run_shard(shard: Shard, seen: Seen = nobody) -> int:
    """How many tasks have no record afterwards."""
    needed = any(not isinstance(each, OwnReference) for each in shard.references)
    upstream = shared_upstream(shard.configuration.hash_seed) if needed else None
    if shard.runner == "inspect":
        from sopilot.lab.bench._inspect_runner import run_in_inspect

        return run_in_inspect(shard, upstream, seen)
    return asyncio.run(_run_plainly(shard, upstream, seen))


async def _run_plainly(shard: Shard, upstream: Upstream | None, seen: Seen) -> int:
    runner = shard.trial_runner(upstream)
    folder = RunFolder.open(shard.folder)
    free = asyncio.Semaphore(shard.at_once)
    with folder.writer() as writer:
        standing = Standing(shard, runner, folder, writer, seen)

        async def one(reference: Reference) -> bool:
            async with free:
                return await run_and_record(reference, standing, runner.run) is not None

        done = await asyncio.gather(*(one(each) for each in shard.references))
    return done.count(False)


async def run_and_record(
    reference: Reference, standing: Standing, run: Callable[[Reference], Awaitable[Trial]]
) -> Trial | None:
    """Until a run is judged. Broken runs are recorded and, where that may help, made again
    under a new identity."""
    judged: Trial | None = None
    for _ in range(1 + standing.shard.patience.redraws):
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
