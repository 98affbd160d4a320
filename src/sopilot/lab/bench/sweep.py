"""All tasks of a selection that have no record yet, on as many workers as there are."""

from __future__ import annotations

import importlib.util
import multiprocessing
import multiprocessing.connection
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from sopilot.lab.bench._contestants import DEFAULT_USER, domain_budgets
from sopilot.lab.bench._control_models import CONTROLS
from sopilot.lab.bench._run_folder import RunFolder
from sopilot.lab.bench._shard import Runner, Seen, Shard, nobody, run_shard, shares
from sopilot.lab.bench._source_fingerprint import deciding_sources
from sopilot.lab.bench.record import RunConfiguration
from sopilot.lab.bench.reference import DOMAINS, TaskReference, task_references
from sopilot.lab.bench.screen import Screen, everything_stays
from sopilot.lab.bench.sopbench_process import ToolList, Upstream
from sopilot.language.diagnostics import Diagnostic, UserMistake
from sopilot.runtime.agent import arm_named

On = Literal["local", "ray"]
_AT_ONCE = 8
_FEW = 24
"""Fewer tasks than this are not worth a second process."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """``asked`` are the tasks of the selection, ``ran`` those that were run just now."""

    folder: RunFolder
    asked: tuple[TaskReference, ...]
    ran: int
    seconds: float
    runner: Runner
    workers: int


def inspect_is_here() -> bool:
    return importlib.util.find_spec("inspect_ai") is not None


def make_configuration(
    upstream: Upstream,
    *,
    arm: str,
    model: str,
    tools: ToolList,
    user: str = DEFAULT_USER,
    language: str = "en",
    run: int = 1,
) -> RunConfiguration:
    return RunConfiguration(
        arm=arm_named(arm).name,
        model=model,
        tools=tools,
        user=user,
        hash_seed=upstream.hash_seed,
        upstream_commit=upstream.checkout.commit or "unknown",
        budgets={domain: asdict(domain_budgets(domain)) for domain in DOMAINS},
        language=language,
        sources=deciding_sources().fingerprint,
        run=run,
    )


def select_tasks(
    domain: str,
    upstream: Upstream,
    *,
    goal: str | None = None,
    limit: int | None = None,
    screen: Screen = everything_stays,
) -> tuple[TaskReference, ...]:
    """``limit`` tasks of what a screen leaves of the selection, spread evenly over it."""
    named = task_references(f"sopbench:{domain}" + (f"/{goal}" if goal else ""), upstream=upstream)
    chosen = tuple(
        each for each in named if screen(each, upstream.scoring(each.domain)[each.goal][each.index])
    )
    if limit is None or limit >= len(chosen):
        return chosen
    if limit < 1:
        raise UserMistake([Diagnostic("bench-limit", "a limit must be at least 1")])
    return tuple(chosen[place * len(chosen) // limit] for place in range(limit))


def run_sweep(
    path: Path,
    configuration: RunConfiguration,
    references: Sequence[TaskReference],
    *,
    on: On = "local",
    runner: Runner | None = None,
    workers: int | None = None,
    keep_traces: bool = False,
    seen: Seen = nobody,
) -> Sweep:
    """Continues what is in the folder: a task with a judged run is not run again."""
    chosen: Runner = runner or ("inspect" if inspect_is_here() else "plain")
    offline = configuration.model == "reference" or configuration.model in CONTROLS
    folder = RunFolder.create(path, configuration)
    begun = time.perf_counter()
    with folder.leader():
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
                runner=chosen,
                at_once=1 if offline else _AT_ONCE,
                keep_traces=keep_traces,
            )
            for part in shares(pending, count)
        ]
        if parts:
            _run_parts(parts, on, seen)
        folder.write_scores()
    seconds = time.perf_counter() - begun
    return Sweep(folder, tuple(references), len(pending), seconds, chosen, max(1, len(parts)))


def _run_parts(parts: Sequence[Shard], on: On, seen: Seen) -> None:
    if on == "ray":
        from sopilot.lab.bench._ray_pool import run_on_ray

        run_on_ray(parts)
    elif len(parts) == 1:
        run_shard(parts[0], seen)
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            len(parts), mp_context=context, initializer=end_with_the_leader
        ) as pool:
            for unfinished in pool.map(run_shard, parts):
                del unfinished  # tasks that stayed without a record are told by the summary


def end_with_the_leader() -> None:
    """A worker of a pool whose leader was killed waits for more work for ever, else."""
    leader = multiprocessing.parent_process()
    if leader is not None:
        threading.Thread(target=_outlive_nobody, args=(leader.sentinel,), daemon=True).start()


def _outlive_nobody(leader: int) -> None:
    multiprocessing.connection.wait([leader])
    os._exit(1)  # a record is one write: what was under way is run again
