"""One task under any view, with a meter on the model and the trace at hand; SOPBench's tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metered import MeteredModel, Sent
from sopilot.agent.reference.executor import Reference
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.run import Conditions, open_task
from sopilot.tasks.scenario_verdict import calls_made
from sopilot.tasks.task import Result, Task
from sopilot.trace.chain import SealedEvent
from sopilot.views.view import View
from sopilot_lab.sopbench.process import ToolList, Upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.reference import TaskReference, task_references
from sopilot_lab.sopbench.source import load_task
from sopilot_lab.sopbench.tasks import as_task


@dataclass(frozen=True, slots=True)
class MeteredRun:
    task: str
    view: View
    result: Result
    sent: Sequence[Sent]

    @property
    def passed(self) -> bool:
        return bool(self.result.verdict and self.result.verdict["success"])

    @property
    def events(self) -> Sequence[SealedEvent]:
        return self.result.events

    @property
    def findings(self) -> list[str]:
        """Without a machine there is no procedure to depart from."""
        findings = self.result.audit.findings if self.view.machine else ()
        return [f"{each.code} {each.predicate}" for each in findings]

    @property
    def calls(self) -> list[tuple[str, bool]]:
        calls = calls_made(each.event for each in self.events)
        return [(call.action, call.ok) for call in calls]

    @property
    def prompt_tokens(self) -> int:
        return sum(each.prompt for each in self.sent)

    @property
    def cached_tokens(self) -> int:
        return sum(each.cached for each in self.sent)

    @property
    def completion_tokens(self) -> int:
        return sum(each.completion for each in self.sent)

    @property
    def verdicts(self) -> list[tuple[str, bool]]:
        """Rule and gate verdicts in their order, whoever made the return."""
        return [
            (each.event.payload["function"], each.event.payload["bound"]["holds"])
            for each in self.events
            if each.event.kind == "return" and each.event.payload["function_kind"] != "group"
        ]


async def metered_run(task: Task, view: View, *, supplied: bool = False) -> MeteredRun:
    """Let the reference executor run the task. ``supplied``: the application supplies what the
    task's user knows."""
    model = MeteredModel(Reference(task.reader))
    conditions = Conditions(view, model, "reference")
    simulation = task.open()
    try:
        async with open_task(task, simulation, conditions, store=MemoryStore()) as opened:
            if supplied:
                opened.session.supplied.update(task.inputs)
            result = await opened.run()
    finally:
        await simulation.close()
    return MeteredRun(task.key, view, result, tuple(model.sent))


class Bench:
    def __init__(self, upstream: Upstream, tools: ToolList) -> None:
        self.upstream = upstream
        self._tools: ToolList = tools
        self._shelf = ProgramShelf(tools, upstream)

    def tasks(self, domain: str, limit: int | None) -> Sequence[TaskReference]:
        """The tasks of a domain, or so many spread over it."""
        tasks = task_references(f"sopbench:{domain}", upstream=self.upstream)
        return tasks if limit is None else tasks[:: max(1, len(tasks) // limit)][:limit]

    async def run(self, reference: TaskReference, view: View) -> MeteredRun:
        own = load_task(reference, self.upstream)
        program = self._shelf.program(own).program
        return await metered_run(as_task(own, program, self._tools, self.upstream, "en"), view)
