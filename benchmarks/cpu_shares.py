"""Processes that have a part of a core each, as containers do: control groups of the system.

Needs the right to make them (root, or a delegated tree); elsewhere `limited` says why not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_PERIOD_MICROSECONDS = 10_000
_TREES = (
    # Where, and how the quota is written there.
    (Path("/sys/fs/cgroup/cpu"), "cpu.cfs_quota_us"),
    (Path("/sys/fs/cgroup"), "cpu.max"),
)


@contextmanager
def limited(processes: Sequence[int], share: float) -> Iterator[str]:
    """Each of them in a group of its own; what keeps from it, or nothing."""
    made: list[tuple[Path, int]] = []
    problem = ""
    try:
        for process in processes:
            group = _group(f"sopilot-{os.getpid()}-{process}", share)
            made.append((group, process))
            (group / "cgroup.procs").write_text(str(process))
    except OSError as refused:
        problem = f"no part of a core can be given to a process here: {refused.strerror}"
    try:
        yield problem
    finally:
        for group, process in made:
            with suppress(OSError):
                (group.parent / "cgroup.procs").write_text(str(process))
            for _ in range(50):
                try:
                    group.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)  # until its processes have gone


def _group(name: str, share: float) -> Path:
    quota = round(_PERIOD_MICROSECONDS * share)
    for tree, kind in _TREES:
        group = tree / name
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / kind).exists():
            if kind == "cpu.max":
                (group / kind).write_text(f"{quota} {_PERIOD_MICROSECONDS}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(_PERIOD_MICROSECONDS))
                (group / kind).write_text(str(quota))
            return group
        group.rmdir()
    raise OSError(0, "there is no control group for processors")
