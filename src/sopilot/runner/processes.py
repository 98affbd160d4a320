"""Work in other processes: of this machine, or of a Ray cluster (extra ``ray``)."""

from __future__ import annotations

import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from types import ModuleType


On = Literal["local", "ray"]
_SAFE_PATH = "PYTHONSAFEPATH"
Part = TypeVar("Part")
Done = TypeVar("Done")


def in_parts(
    work: Callable[[Part], Done], parts: Sequence[Part], *, workers: int, on: On
) -> Iterator[Done]:
    """Yield the result of ``work`` for each part. ``work`` is a module's function and keeps no
    state between parts: any worker can get any part."""
    if on == "ray":
        yield from _on_ray(work, parts, workers)
    elif workers == 1 or len(parts) <= 1:
        yield from map(work, parts)
    else:
        with processes(min(workers, len(parts))) as pool:
            yield from pool.map(work, parts)


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool that ends with this process, and at once when this process is interrupted."""
    context = multiprocessing.get_context("spawn")
    with (
        _safe_path(),
        ProcessPoolExecutor(count, mp_context=context, initializer=end_with_the_leader) as pool,
    ):
        try:
            yield pool
        except KeyboardInterrupt:
            for child in multiprocessing.active_children():
                child.terminate()
            raise


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep processes that start meanwhile from importing modules of the present folder."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def end_with_the_leader() -> None:
    """End this worker when its leader was killed; else it would wait for work for ever. The leader
    handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    leader = multiprocessing.parent_process()
    if leader is not None:
        threading.Thread(target=_exit_after, args=(leader.sentinel,), daemon=True).start()


def _exit_after(leader: int) -> None:
    multiprocessing.connection.wait([leader])
    os._exit(1)  # results are written whole, so unfinished work is repeated


@contextmanager
def ray_cluster(processors: int) -> Iterator[ModuleType]:
    """The cluster of ``RAY_ADDRESS``, or a cluster on this machine that ends with the work. Ray
    reports dead workers on stdout, which belongs to the command's answer."""
    import ray

    with redirect_stdout(sys.stderr):
        started = not ray.is_initialized()
        if started:
            address = os.environ.get("RAY_ADDRESS")
            ray.init(
                address=address,
                num_cpus=None if address else processors,
                include_dashboard=False,
                log_to_driver=False,
                configure_logging=False,
            )
        try:
            yield ray
        finally:
            if started:
                ray.shutdown()


def _on_ray(work: Callable[[Part], Done], parts: Sequence[Part], processors: int) -> Iterator[Done]:
    with ray_cluster(processors) as ray:
        remote = ray.remote(max_retries=3, num_cpus=1)(work)
        waiting = [remote.remote(part) for part in parts]
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1)
            yield from ray.get(ready)
