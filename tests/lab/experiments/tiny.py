"""The checkout in miniature: the harness runs on it wherever SOPBench is not at hand."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from sopilot_lab.sopbench.checkout import find_checkout
from sopilot_lab.sopbench.process import Upstream
from warm import warm_python

HOME = Path(__file__).parent / "tiny_checkout"
GOAL = "lend_tool"
LOADED = (
    "sopilot_lab.cli.run",
    "sopilot_lab.cli.study",
    "sopilot_lab.cli.archive",
    "sopilot_lab.experiments.source_fingerprint:deciding_sources",
)
INSPECT = ("sopilot_lab.experiments.inspect", "openai.types.responses", "anthropic.types.beta")
"""With the libraries that it loads when it first runs anything."""


def tiny_upstream() -> Upstream:
    return Upstream(find_checkout({"SOPBENCH_HOME": str(HOME)}))


def bench_command(*words: str) -> list[str]:
    inspects = any("inspect" in word for word in words)
    loaded = (*LOADED, *INSPECT) if inspects else LOADED
    return [*warm_python(*loaded), "-m", "sopilot.cli.main", "lab", *words]


def run_bench(cache: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`sopilot lab …` on it, in a process of its own, as a person would: Inspect owns its
    event loop and warnings."""
    environment = {**os.environ, "SOPBENCH_HOME": str(HOME), "XDG_CACHE_HOME": str(cache)}
    environment |= variables
    return subprocess.run(
        bench_command(*words), capture_output=True, text=True, env=environment, check=False
    )


def bench(cache: Path, *words: str) -> dict[str, Any]:
    done = run_bench(cache, *words, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
