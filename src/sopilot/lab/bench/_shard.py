"""A share of a sweep's tasks, run in this process. Whatever runs it (a plain loop, Inspect, a
worker of a pool or of Ray) writes the same records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sopilot.lab.bench._run_folder import RecordWriter, RunFolder
from sopilot.lab.bench._trial import Trial, TrialRunner
from sopilot.lab.bench.record import BenchRecord, RunConfiguration
from sopilot.lab.bench.reference import TaskReference
from sopilot.lab.bench.sopbench_process import Upstream, shared_upstream

Runner = Literal["inspect", "plain"]
Seen = Callable[[BenchRecord], None]
MOST_ATTEMPTS = 3
"""Runs of a task that the infrastructure may break before the sweep goes on without it."""


@dataclass(frozen=True, slots=True)
class Shard:
    """``at_once`` runs go on together: worth it only where a model is waited for."""

    folder: Path
    configuration: RunConfiguration
    references: tuple[TaskReference, ...]
    runner: Runner = "plain"
    at_once: int = 1
    keep_traces: bool = False


def nobody(record: BenchRecord) -> None:
    """Does not look."""


def run_shard(shard: Shard, seen: Seen = nobody) -> int:
    """How many tasks have no record afterwards."""
    upstream = shared_upstream(shard.configuration.hash_seed)
    if shard.runner == "inspect":
        from sopilot.lab.bench._inspect_runner import run_in_inspect

        return run_in_inspect(shard, upstream, seen)
    return asyncio.run(_run_plainly(shard, upstream, seen))


async def _run_plainly(shard: Shard, upstream: Upstream, seen: Seen) -> int:
    runner = TrialRunner(shard.configuration, upstream, keep_traces=shard.keep_traces)
    folder = RunFolder.open(shard.folder)
    free = asyncio.Semaphore(shard.at_once)
    with folder.writer() as writer:

        async def one(reference: TaskReference) -> bool:
            async with free:
                trial = await run_and_record(runner, reference, folder, writer, seen)
                return trial is not None

        done = await asyncio.gather(*(one(each) for each in shard.references))
    return done.count(False)


async def run_and_record(
    runner: TrialRunner,
    reference: TaskReference,
    folder: RunFolder,
    writer: RecordWriter,
    seen: Seen,
    run: Callable[[TaskReference], object] | None = None,
) -> Trial | None:
    """Until a run is judged. Broken runs are recorded and made again under a new identity."""
    for _ in range(MOST_ATTEMPTS):
        trial = await runner.run(reference)
        keep(trial, folder, writer, seen)
        if not trial.record.discarded:
            return trial
    return None


def keep(trial: Trial, folder: RunFolder, writer: RecordWriter, seen: Seen) -> None:
    if trial.trace and not trial.record.discarded:
        folder.keep_trace(trial.record.task, trial.trace)
    writer.write(trial.record)
    seen(trial.record)


def shares(references: Sequence[TaskReference], count: int) -> list[tuple[TaskReference, ...]]:
    """Interleaved, so that a domain with long tasks is spread over all of them."""
    parts = [tuple(references[start::count]) for start in range(max(1, count))]
    return [part for part in parts if part]
