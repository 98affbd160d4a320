"""The tasks of other people's benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sopilot.agent.budgets import Budgets
from sopilot.agent.reference.judging import Seen, VerdictJudge
from sopilot.tasks.benchmarks import BenchmarkSimulation, BenchmarkTask, KnowsTruth
from sopilot.tasks.task import FinishedRun, ReplayedTools, Surroundings, Task
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing

DIALOG = Budgets(user_turns=30, domain_calls=200, agent_turns=300)
"""A policy that asks its users before it acts needs more turns than one request."""


def benchmark_task(
    source: str,
    entry: BenchmarkTask,
    briefing: Briefing,
    open_simulation: Callable[[], BenchmarkSimulation],
    *,
    budgets: Budgets | None = None,
) -> Task:
    reader = _Reader(briefing.handbook)

    def surround(keep: Path | None) -> Surroundings:
        simulation = reader.simulation = open_simulation()

        def score(messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]:
            return simulation.verdict(messages, None if run is None else _said(run))

        async def close() -> None:
            simulation.close()

        return Surroundings(ReplayedTools(simulation.tools), score, close)

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
    """By the truth of the simulator that was opened last, where it knows it, else by the handbook's
    verdicts."""

    simulation: object = None

    def __call__(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        if isinstance(self.simulation, KnowsTruth):
            return self.simulation.holds(predicate, arguments, evidence)
        return super().__call__(predicate, arguments, evidence)


def _said(run: FinishedRun) -> list[str]:
    return [
        message.content
        for message in run.result.messages
        if message.role == "assistant" and message.content
    ]
