"""SOPBench's tasks as tasks like any other, scored by upstream's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sopilot.desks.tasks import FinishedRun, ReplayedTools, Surroundings, Task
from sopilot.lab.bench import sopbench_process
from sopilot.lab.bench._contestants import domain_budgets
from sopilot.lab.bench._upstream_judge import UpstreamJudge
from sopilot.lab.bench._world import open_world
from sopilot.lab.bench.programs import ProgramShelf
from sopilot.lab.bench.sopbench_process import ToolList, Upstream
from sopilot.lab.bench.source import SopbenchTask, load_tasks, offered_actions
from sopilot.lab.bench.wording import own_text
from sopilot.language.diagnostics import InternalBug, UserMistake
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
    opened: list[UpstreamJudge] = []
    handbook = own.handbook.offering(offered_actions(own.handbook, offered))

    def surround(keep: Path | None) -> Surroundings:
        simulator, domain_tools = open_world(own, offered, upstream)
        opened.append(UpstreamJudge(own, program, simulator, upstream))

        def score(messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]:
            return simulator.evaluate(messages=messages)

        async def close() -> None:
            simulator.close()

        return Surroundings(ReplayedTools(domain_tools), score, close)

    def read(predicate: str, arguments: Mapping[str, JSON], evidence: Sequence[Seen]) -> bool:
        """As upstream's state stands in the world that was opened last."""
        if not opened:
            raise InternalBug("a task is read before its world is opened")
        return opened[-1](predicate, arguments, evidence)

    return Task(
        source=str(own.reference).partition("/")[0],
        name=str(own.reference).partition("/")[2],
        goal=own.goal,
        briefing=Briefing(
            handbook,
            {own.goal: program},
            language,
            own_text(own, offered, upstream, language),
        ),
        surround=surround,
        request=own.user_prompt,
        reader=read,
        knows=own.user_known,
        budgets=domain_budgets(own.domain),
        names_goal=False,
    )
