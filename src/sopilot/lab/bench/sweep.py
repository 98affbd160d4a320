"""All tasks of a selection that have no record yet, on as many workers as there are."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from sopilot.adapters.worker_processes import On, processes
from sopilot.desks.tasks import Task
from sopilot.lab.bench._contestants import DEFAULT_USER, OFFLINE, domain_budgets
from sopilot.lab.bench._run_folder import RunFolder
from sopilot.lab.bench._shard import (
    Runner,
    Seen,
    Shard,
    SweepStopped,
    nobody,
    run_shard,
    shares,
)
from sopilot.lab.bench._source_fingerprint import deciding_sources
from sopilot.lab.bench._trial import Reference
from sopilot.lab.bench.contestant import Contestant, Patience
from sopilot.lab.bench.own_tasks import OwnReference
from sopilot.lab.bench.record import RunConfiguration
from sopilot.lab.bench.reference import DOMAINS
from sopilot.lab.bench.selection import should_succeed
from sopilot.lab.bench.sopbench_process import ToolList, Upstream, shared_upstream
from sopilot.runtime.agent import Ending, arm_named

ALONE: Final = frozenset({"local"})
"""Models that answer one request at a time: waiting in a row would spend the wall clock."""
NO_UPSTREAM: Final = "none"
_AT_ONCE = 8
_FEW = 24
"""Fewer tasks than this are not worth a second process."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """``asked`` are the tasks of the selection, ``ran`` those that were run just now.
    ``stopped`` says why not all of them."""

    folder: RunFolder
    asked: tuple[Reference, ...]
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
    given = dict(budgets or {})
    return RunConfiguration(
        arm=arm_named(arm).name,
        model=model,
        tools=tools,
        user=user,
        hash_seed=0 if upstream is None else upstream.hash_seed,
        upstream_commit=NO_UPSTREAM if upstream is None else upstream.checkout.commit or "unknown",
        budgets={name: asdict(replace(each, **given)) for name, each in known.items()},
        language=language,
        sources=deciding_sources().fingerprint,
        run=run,
        hypotheses=hypotheses,
    )


def run_sweep(
    path: Path,
    configuration: RunConfiguration,
    references: Sequence[Reference],
    *,
    contestant: Contestant | None = None,
    user: Contestant | None = None,
    patience: Patience | None = None,
    own: Mapping[str, Task] | None = None,
    on: On = "local",
    runner: Runner | None = None,
    workers: int | None = None,
    at_once: int | None = None,
    keep_traces: bool = False,
    seen: Seen = nobody,
) -> Sweep:
    """Continues what is in the folder: a task with a judged run is not run again."""
    chosen: Runner = runner or ("inspect" if inspect_is_here() else "plain")
    who = contestant or Contestant(configuration.model)
    offline = who.name in OFFLINE and not own
    folder = RunFolder.create(path, configuration)
    begun = time.perf_counter()
    stopped = ""
    with folder.leader():
        folder.ask({str(each): _should(each, configuration, own or {}) for each in references})
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
                at_once=at_once or (1 if who.name in OFFLINE | ALONE else _AT_ONCE),
                keep_traces=keep_traces,
                contestant=who,
                user=user,
                patience=patience or Patience(),
                own=own or {},
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
        from sopilot.lab.bench._ray_pool import run_on_ray

        run_on_ray(parts)
    elif len(parts) == 1:
        run_shard(parts[0], seen)
    else:
        with processes(len(parts)) as pool:
            for unfinished in pool.map(run_shard, parts):
                del unfinished  # tasks that stayed without a record are told by the summary
