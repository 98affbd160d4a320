"""Other people's benchmarks: their tasks, a simulator for each, and their own oracle.

A benchmark folder has ``handbook.yaml``, the policy as a handbook, and ``benchmark.py`` with
``open_benchmark()``, which gives a ``Benchmark``. Its Python runs because somebody named the
folder. See ``docs/research/benchmarks.md``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from sopilot.agent.reference.judging import Seen
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot.protocols import Tools
from sopilot.tasks.trust import checked_tools, folder_code, own_code, wrong_kind
from sopilot.values.json import JSON

HANDBOOK, BENCHMARK = "handbook.yaml", "benchmark.py"


@dataclass(frozen=True, slots=True)
class BenchmarkTask:
    """``name`` is unique in its benchmark. ``request`` opens the dialog, ``inputs`` is what the
    user can tell, ``answers`` what is said to the machine's questions, by what they are about.
    ``goal`` is a procedure of the handbook, or empty where the user has not said which."""

    name: str
    request: str
    goal: str = ""
    inputs: Mapping[str, JSON] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class BenchmarkSimulation(Protocol):
    """One fresh simulation, and who judges what was done in it."""

    @property
    def tools(self) -> Tools:
        """May have a ``time()``: then that is the clock."""
        ...

    def verdict(self, messages: int, texts: Sequence[str] | None) -> Mapping[str, JSON]:
        """``success``, and ``reasons`` where there are any. ``said`` is what the user was told,
        ``None`` where nobody has kept it."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Benchmark(Protocol):
    def tasks(self) -> Sequence[BenchmarkTask]: ...

    def open(self, task: BenchmarkTask) -> BenchmarkSimulation: ...


@runtime_checkable
class KnowsTruth(Protocol):
    """A simulator that knows its own truth, for handbooks whose predicates have no verdicts."""

    def holds(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool: ...


def is_benchmark_folder(source: str) -> bool:
    return all(os.path.isfile(Path(source) / name) for name in (HANDBOOK, BENCHMARK))


def load_benchmark(source: str) -> Benchmark:
    folder = Path(source).resolve()
    file, code = folder / BENCHMARK, folder_code(folder)
    with own_code(file, BENCHMARK):
        maker = getattr(code.module(Path(BENCHMARK).stem), "open_benchmark", None)
    if maker is None:
        place = Place(str(file))
        message = "there is no function `open_benchmark()`"
        cure = "write one that gives the benchmark: see docs/research/benchmarks.md"
        raise mistake("no-benchmark", message, place, cure)
    with own_code(file, "open_benchmark()"):
        made = maker()
    if not isinstance(made, Benchmark):
        wanted = "an object with `tasks()` and `open(task)`"
        raise wrong_kind(file, "open_benchmark()", made, wanted)
    return _Checked(made, file)


class _Checked:
    """A benchmark whose mistakes are told as its own."""

    def __init__(self, benchmark: Benchmark, file: Path) -> None:
        self._benchmark = benchmark
        self._file = file

    def tasks(self) -> Sequence[BenchmarkTask]:
        with own_code(self._file, "tasks()"):
            value: object = self._benchmark.tasks()
            listed = list(value) if isinstance(value, Iterable) else []
        if not listed or not all(isinstance(item, BenchmarkTask) for item in listed):
            wanted = "a list of `BenchmarkTask(name, request, …)`"
            raise wrong_kind(self._file, "tasks()", value, wanted)
        return listed

    def open(self, task: BenchmarkTask) -> BenchmarkSimulation:
        with own_code(self._file, "open(task)"):
            simulation: object = self._benchmark.open(task)
            if not isinstance(simulation, BenchmarkSimulation):
                wanted = "an object with `tools`, `verdict(messages, said)` and `close()`"
                raise wrong_kind(self._file, "open(task)", simulation, wanted)
            checked_tools(self._file, "tools", simulation.tools)
        return _CheckedSimulation(simulation, self._file)


class _CheckedSimulation:
    def __init__(self, simulation: BenchmarkSimulation, file: Path) -> None:
        self._simulation = simulation
        self._file = file
        if isinstance(simulation, KnowsTruth):
            self.holds = partial(self._holds, simulation)

    @property
    def tools(self) -> Tools:
        return self._simulation.tools

    def verdict(self, messages: int, texts: Sequence[str] | None) -> Mapping[str, JSON]:
        hook = "verdict(messages, said)"
        with own_code(self._file, hook):
            value: object = self._simulation.verdict(messages, texts)
        if not isinstance(value, Mapping) or not isinstance(value.get("success"), bool):
            wanted = 'a mapping: {"success": True or False, "reasons": […]}'
            raise wrong_kind(self._file, hook, value, wanted)
        return value

    def close(self) -> None:
        with own_code(self._file, "close()"):
            self._simulation.close()

    def _holds(
        self,
        truth: KnowsTruth,
        predicate: str,
        arguments: Mapping[str, JSON],
        evidence: Sequence[Seen],
    ) -> bool:
        hook = "holds(predicate, arguments, evidence)"
        with own_code(self._file, hook):
            value: object = truth.holds(predicate, arguments, evidence)
        if not isinstance(value, bool):
            raise wrong_kind(self._file, hook, value, "True or False")
        return value
