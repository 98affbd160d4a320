"""Other people's benchmarks: their tasks, a simulator for each, and their own evaluator.

A benchmark folder has ``handbook.yaml``, the policy as a handbook, and ``benchmark.py`` with
``open_benchmark()``, which returns a ``Benchmark``. See ``docs/research/benchmarks.md``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from sopilot.agent.budgets import Budgets
from sopilot.agent.reference.judging import Seen, VerdictJudge
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot.protocols import Tools
from sopilot.tasks.task import FinishedRun, ReplayedTools, Simulation, Task
from sopilot.tasks.trust import call_hook, checked_tools, folder_code, own_code
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing

HANDBOOK, BENCHMARK = "handbook.yaml", "benchmark.py"

DIALOG = Budgets(user_turns=30, domain_calls=200, agent_turns=300)
"""A policy that asks its users before it acts needs more turns than one request."""


@dataclass(frozen=True, slots=True)
class BenchmarkTask:
    """``name`` is unique in its benchmark. ``request`` opens the dialog, ``inputs`` is what the
    user can tell, ``answers`` the user's answers to the runtime's questions, by subject. ``goal``
    is a procedure of the handbook, or empty if the user hasn't said which."""

    name: str
    request: str
    goal: str = ""
    inputs: Mapping[str, JSON] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class BenchmarkSimulation(Protocol):
    """One fresh simulation, and the evaluator of what was done in it."""

    @property
    def tools(self) -> Tools:
        """May have a ``time()``, which is the clock then."""
        ...

    def verdict(self, messages: int, texts: Sequence[str] | None) -> Mapping[str, JSON]:
        """``success``, and ``reasons`` if there are any. ``texts`` is what the user was told,
        ``None`` if it isn't recorded."""
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
        cure = "write one that returns the benchmark: see docs/research/benchmarks.md"
        raise mistake("no-benchmark", message, place, cure)
    wanted = "an object with `tasks()` and `open(task)`"
    return _CheckedBenchmark(call_hook(file, "open_benchmark()", maker, Benchmark, wanted), file)


@dataclass(frozen=True, slots=True)
class _CheckedBenchmark:
    """Reports the benchmark's mistakes as its own."""

    benchmark: Benchmark
    file: Path

    def tasks(self) -> Sequence[BenchmarkTask]:
        def listed() -> Sequence[BenchmarkTask]:
            value = self.benchmark.tasks()
            return list(value) if isinstance(value, Iterable) else value

        def right(value: object) -> bool:
            tasks = value if isinstance(value, list) else []
            return bool(tasks) and all(isinstance(item, BenchmarkTask) for item in tasks)

        wanted = "a list of `BenchmarkTask(name, request, …)`"
        return call_hook(self.file, "tasks()", listed, right, wanted)

    def open(self, task: BenchmarkTask) -> BenchmarkSimulation:
        simulation = call_hook(
            self.file, "open(task)", lambda: self.benchmark.open(task), BenchmarkSimulation,
            "an object with `tools`, `verdict(messages, said)` and `close()`",
        )  # fmt: skip
        with own_code(self.file, "open(task)"):
            checked_tools(self.file, "tools", simulation.tools)
        kind = _TruthfulSimulation if isinstance(simulation, KnowsTruth) else _CheckedSimulation
        return kind(simulation, self.file)


class _CheckedSimulation:
    def __init__(self, simulation: BenchmarkSimulation, file: Path) -> None:
        self._simulation = simulation
        self._file = file

    @property
    def tools(self) -> Tools:
        return self._simulation.tools

    def verdict(self, messages: int, texts: Sequence[str] | None) -> Mapping[str, JSON]:
        def right(value: object) -> bool:
            return isinstance(value, Mapping) and isinstance(value.get("success"), bool)

        return call_hook(
            self._file, "verdict(messages, said)",
            lambda: self._simulation.verdict(messages, texts), right,
            'a mapping: {"success": True or False, "reasons": […]}',
        )  # fmt: skip

    def close(self) -> None:
        with own_code(self._file, "close()"):
            self._simulation.close()


class _TruthfulSimulation(_CheckedSimulation):
    def holds(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        truth = self._simulation
        assert isinstance(truth, KnowsTruth)
        return call_hook(
            self._file, "holds(predicate, arguments, evidence)",
            lambda: truth.holds(predicate, arguments, evidence), bool, "True or False",
        )  # fmt: skip


def benchmark_task(
    source: str,
    entry: BenchmarkTask,
    briefing: Briefing,
    open_simulation: Callable[[], BenchmarkSimulation],
    *,
    budgets: Budgets | None = None,
) -> Task:
    reader = _Reader(briefing.handbook)

    def surround(keep: Path | None) -> Simulation:
        simulation = reader.simulation = open_simulation()

        def score(messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]:
            return simulation.verdict(messages, None if run is None else _texts_of_agent(run))

        async def close() -> None:
            simulation.close()

        return Simulation(ReplayedTools(simulation.tools), score=score, close=close)

    return Task(
        source=source,
        name=entry.name,
        goal=entry.goal,
        briefing=briefing,
        surround=surround,
        request=entry.request,
        reader=reader,
        inputs=entry.inputs,
        answers=entry.answers,
        budgets=budgets or DIALOG,
        names_goal=False,
    )


class _Reader(VerdictJudge):
    """Judges by the truth of the simulator that was opened last, if it knows it, else by the
    handbook's verdicts."""

    simulation: object = None

    def __call__(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        if isinstance(self.simulation, KnowsTruth):
            return self.simulation.holds(predicate, arguments, evidence)
        return super().__call__(predicate, arguments, evidence)


def _texts_of_agent(run: FinishedRun) -> list[str]:
    messages = run.result.messages
    return [item.content for item in messages if item.role == "assistant" and item.content]
