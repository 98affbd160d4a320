"""One SOPBench task under any arm, with a meter on the model and the trace at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metered import MeteredModel, Sent
from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.loop import open_run, run_session
from sopilot.agent.reference.executor import Reference
from sopilot.agent.result import SessionResult
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import judge
from sopilot.protocols import SystemClock
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.scenario_verdict import calls_made
from sopilot.trace.chain import SealedEvent
from sopilot.views.briefing import Briefing
from sopilot.views.view import View
from sopilot_lab.sopbench.process import ToolList, Upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.reference import TaskReference, domain_budgets, task_references
from sopilot_lab.sopbench.source import load_task
from sopilot_lab.sopbench.tasks import UpstreamJudge, open_simulation


@dataclass(frozen=True, slots=True)
class MeteredRun:
    task: str
    result: SessionResult
    passed: bool
    sent: Sequence[Sent]
    events: Sequence[SealedEvent]
    findings: Sequence[str]
    calls: Sequence[tuple[str, bool]]

    @property
    def prompt_tokens(self) -> int:
        return sum(one.prompt for one in self.sent)

    @property
    def cached_tokens(self) -> int:
        return sum(one.cached for one in self.sent)

    @property
    def completion_tokens(self) -> int:
        return sum(one.completion for one in self.sent)

    @property
    def verdicts(self) -> list[tuple[str, bool]]:
        """Rule and gate verdicts in their order, whoever made the return."""
        return [
            (one.event.payload["function"], one.event.payload["bound"]["holds"])
            for one in self.events
            if one.event.kind == "return" and one.event.payload["function_kind"] != "group"
        ]


class Bench:
    def __init__(self, upstream: Upstream, tools: ToolList) -> None:
        self.upstream = upstream
        self._tools: ToolList = tools
        self._shelf = ProgramShelf(tools, upstream)

    def tasks(self, domain: str, limit: int | None) -> Sequence[TaskReference]:
        """The tasks of a domain, or so many spread over it."""
        tasks = task_references(f"sopbench:{domain}", upstream=self.upstream)
        return tasks if limit is None else tasks[:: max(1, len(tasks) // limit)][:limit]

    async def run(self, reference: TaskReference, arm: View) -> MeteredRun:
        task = load_task(reference, upstream=self.upstream)
        program = self._shelf.program(task).program
        simulator, tools = open_simulation(task, self._tools, self.upstream)
        try:
            reader = UpstreamJudge(task, program, simulator, self.upstream)
            model = MeteredModel(Reference(reader))
            briefing = Briefing(task.handbook, {task.goal: program})
            session = await open_run(
                MemoryStore(),
                briefing,
                arm,
                tools=tools,
                clock=SystemClock(),
                model="reference",
                judge=judge,
                unguarded=True,
            )
            result = await run_session(
                session,
                briefing,
                view=arm,
                model=model,
                user=ScriptedUser(task.user_prompt, task.user_known),
                budgets=domain_budgets(task.domain),
            )
            verdict = simulator.evaluate(messages=len(result.messages))
        finally:
            simulator.close()
        findings: Sequence[str] = ()
        if arm.machine:
            programs = session.programs.programs
            audited = audit_trace(programs, session.events, session_id=session.id)
            findings = [f"{each.code} {each.predicate}" for each in audited.findings]
        calls = calls_made(one.event for one in session.events)
        return MeteredRun(
            str(reference),
            result,
            verdict["success"] is True,
            tuple(model.sent),
            session.events,
            findings,
            tuple((call.action, call.ok) for call in calls),
        )
