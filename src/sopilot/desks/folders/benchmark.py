"""Other people's benchmarks: their tasks, a world for each, and their own oracle.

A benchmark folder has ``handbook.yaml``, the policy as a handbook, and ``benchmark.py`` with
``open_benchmark()``, which gives a ``Benchmark``. Its Python runs because somebody named the
folder. See ``docs/benchmarks.md``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from sopilot.desks.folders.trust import folder_code
from sopilot.language.diagnostics import Place, mistake
from sopilot.runtime.agent import Seen
from sopilot.runtime.session.protocols import JSON, Tools

HANDBOOK, BENCHMARK = "handbook.yaml", "benchmark.py"


@dataclass(frozen=True, slots=True)
class BenchmarkTask:
    """``name`` is unique in its benchmark. ``request`` opens the dialog, ``knows`` is what the
    user can tell, ``answers`` what is said to the machine's questions, by what they are about.
    ``goal`` is a procedure of the handbook, or empty where the user has not said which."""

    name: str
    request: str
    goal: str = ""
    knows: Mapping[str, JSON] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)


class BenchmarkWorld(Protocol):
    """One fresh world, and who judges what was done in it."""

    @property
    def tools(self) -> Tools:
        """May have a ``time()``: then that is the clock."""
        ...

    def verdict(self, messages: int, said: Sequence[str] | None) -> Mapping[str, JSON]:
        """``success``, and ``reasons`` where there are any. ``said`` is what the user was told,
        ``None`` where nobody has kept it."""
        ...

    def close(self) -> None: ...


class Benchmark(Protocol):
    def tasks(self) -> Sequence[BenchmarkTask]: ...

    def open(self, task: BenchmarkTask) -> BenchmarkWorld: ...


@runtime_checkable
class KnowsTruth(Protocol):
    """A world that can say what holds in it, for handbooks whose predicates have no verdicts."""

    def holds(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool: ...


def is_benchmark_folder(source: str) -> bool:
    return all(os.path.isfile(Path(source) / name) for name in (HANDBOOK, BENCHMARK))


def load_benchmark(source: str) -> Benchmark:
    folder = Path(source).resolve()
    maker = getattr(folder_code(folder).module(Path(BENCHMARK).stem), "open_benchmark", None)
    if maker is None:
        place = Place(str(folder / BENCHMARK))
        message = "there is no function `open_benchmark()`"
        cure = "write one that gives the benchmark: see docs/benchmarks.md"
        raise mistake("no-benchmark", message, place, cure)
    made: Benchmark = maker()
    return made
