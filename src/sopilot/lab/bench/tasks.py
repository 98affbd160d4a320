"""SOPBench's tasks as tasks like any other, scored by upstream's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.desks.folders.benchmark import BenchmarkTask
from sopilot.desks.tasks import Task
from sopilot.desks.tasks.benchmark_tasks import benchmark_task
from sopilot.lab.bench import sopbench_process
from sopilot.lab.bench._contestants import domain_budgets
from sopilot.lab.bench._upstream_judge import UpstreamJudge
from sopilot.lab.bench._world import open_world
from sopilot.lab.bench.programs import ProgramShelf
from sopilot.lab.bench.sopbench_process import ToolList, Upstream
from sopilot.lab.bench.source import SopbenchTask, load_tasks, offered_actions
from sopilot.lab.bench.wording import own_text
from sopilot.language.diagnostics import UserMistake
from sopilot.language.program import Program
from sopilot.runtime.agent import Briefing, Seen
from sopilot.runtime.session.protocols import JSON


def sopbench_task(reference: str, *, tools: str = "official", language: str = "en") -> Task:
    """The one task that ``sopbench:bank/get_loan#3`` names, with this tool list."""
    upstream = sopbench_process.shared_upstream()
    found = load_tasks(reference, upstream=upstream)
    if len(found) != 1:
        raise UserMistake(f"`{reference}` names {len(found)} tasks; add `#0`, `#1`, … for one")
    offered: ToolList = "full-state" if tools == "full-state" else "official"
    program = ProgramShelf(offered, upstream).program(found[0]).program
    return as_task(found[0], program, offered, upstream, language)


def as_task(
    own: SopbenchTask, program: Program, offered: ToolList, upstream: Upstream, language: str
) -> Task:
    source, _, name = str(own.reference).partition("/")
    handbook = own.handbook.offering(offered_actions(own.handbook, offered))
    text = own_text(own, offered, upstream, language)
    return benchmark_task(
        source,
        BenchmarkTask(name, own.user_prompt, own.goal, own.user_known),
        Briefing(handbook, {own.goal: program}, language, text),
        lambda: SopbenchWorld(own, program, offered, upstream),
        budgets=domain_budgets(own.domain),
    )


class SopbenchWorld:
    """Upstream's simulator, with its evaluator and its predicates as the oracle. Implements
    ``BenchmarkWorld`` and ``KnowsTruth``."""

    def __init__(
        self, own: SopbenchTask, program: Program, offered: ToolList, upstream: Upstream
    ) -> None:
        self._simulator, self.tools = open_world(own, offered, upstream)
        self._judge = UpstreamJudge(own, program, self._simulator, upstream)

    def verdict(self, messages: int, said: Sequence[str] | None) -> Mapping[str, JSON]:
        return self._simulator.evaluate(messages=messages)

    def holds(
        self, predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]
    ) -> bool:
        return self._judge(predicate, arguments, evidence)

    def close(self) -> None:
        self._simulator.close()
