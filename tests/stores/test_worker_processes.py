"""Workers end with whoever led them, however that ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LEADER = """
import multiprocessing, time
from concurrent.futures import ProcessPoolExecutor
from sopilot.runner.processes import end_with_the_leader

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=end_with_the_leader) as pool:
        for started in [pool.submit(time.sleep, 0.5) for _ in range(2)]:
            started.result()
        print(*pool._processes, flush=True)
        pool.submit(time.sleep, 600)  # one works, the other waits
        time.sleep(600)
"""


def gone(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the workers in /proc")
def test_no_worker_outlives_a_killed_leader(tmp_path: Path) -> None:
    script = tmp_path / "leader.py"
    script.write_text(LEADER)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True
    ) as leader:
        assert leader.stdout is not None
        workers = [int(word) for word in leader.stdout.readline().split()]
        assert workers
        assert not any(gone(pid) for pid in workers)
        os.kill(leader.pid, signal.SIGKILL)
    until = time.monotonic() + 60
    while not all(gone(pid) for pid in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert all(gone(pid) for pid in workers)
