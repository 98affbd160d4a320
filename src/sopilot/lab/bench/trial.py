"""One task, run by one contestant under one arm and scored by the official evaluator."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sopilot.adapters.memory_store import MemoryStore
from sopilot.lab.bench.contestants import contestant, domain_budgets, served_user
from sopilot.lab.bench.programs import ProgramShelf
from sopilot.lab.bench.record import BenchRecord, RunConfiguration
from sopilot.lab.bench.reference import TaskReference
from sopilot.lab.bench.sopbench_process import ToolList, Upstream, UpstreamLost, UpstreamTimeout
from sopilot.lab.bench.source import SopbenchTask, load_task, offered_actions
from sopilot.lab.bench.timed import TimedModel, TimedTools
from sopilot.lab.bench.world import MadeCall, calls_after_goal, open_world
from sopilot.runtime.agent import (
    Arm,
    Briefing,
    Budgets,
    Ending,
    SessionResult,
    arm_named,
    open_run,
    run_session,
)
from sopilot.runtime.agent.progress import Watch, nobody_watches
from sopilot.runtime.audit import Finding, audit_trace
from sopilot.runtime.audit.transcript import Transcript, TranscriptCall
from sopilot.runtime.audit.transcripts import audit_transcript
from sopilot.runtime.session import Session, SystemClock, export_trace, write_trace


@dataclass(frozen=True, slots=True)
class Trial:
    """What a run left behind. ``trace`` is its trace file, ``findings`` the audit's."""

    record: BenchRecord
    findings: Sequence[Finding] = ()
    trace: str = ""
    result: SessionResult | None = None


Sink = Callable[[Trial], None]


class TrialRunner:
    """Runs tasks one after the other or at once; keeps what tasks share."""

    def __init__(
        self,
        configuration: RunConfiguration,
        upstream: Upstream,
        *,
        budgets: Mapping[str, Budgets] | None = None,
        keep_traces: bool = False,
    ) -> None:
        self.configuration = configuration
        self._arm: Arm = arm_named(configuration.arm)
        self._tools: ToolList = "full-state" if configuration.tools == "full-state" else "official"
        self._upstream = upstream
        self._budgets = budgets or {}
        self._keep_traces = keep_traces
        self._shelf = ProgramShelf(self._tools, upstream)

    async def run(self, reference: TaskReference, watch: Watch = nobody_watches) -> Trial:
        """A fresh identity every time. A failure of the infrastructure gives a record
        without a verdict."""
        task = load_task(reference, upstream=self._upstream)
        shelved = self._shelf.program(task)
        record = BenchRecord(
            run_id=uuid.uuid4().hex,
            task=str(reference),
            domain=task.domain,
            goal=task.goal,
            fingerprint=self.configuration.fingerprint,
            handbook_sha256=shelved.handbook_sha256,
            program_sha256=shelved.program_sha256,
            ending=str(Ending.INFRASTRUCTURE_FAILURE),
        )
        try:
            return await self._run(task, record, watch)
        except (UpstreamLost, UpstreamTimeout) as broken:
            return Trial(replace(record, reason=str(broken)))

    async def _run(self, task: SopbenchTask, record: BenchRecord, watch: Watch) -> Trial:
        begun = time.perf_counter()
        program = self._shelf.program(task).program
        simulator, tools = open_world(task, self._tools, self._upstream)
        opened = time.perf_counter() - begun
        try:
            model = TimedModel(
                contestant(self.configuration.model, task, program, simulator, self._upstream)
            )
            world = TimedTools(tools)
            briefing = Briefing(task.handbook, {task.goal: program}, self.configuration.language)
            store = MemoryStore()
            session = await open_run(
                store,
                briefing,
                self._arm,
                tools=world,
                clock=SystemClock(),
                model=self.configuration.model,
                unguarded=True,
                session_id=record.run_id,
            )
            result = await run_session(
                session,
                briefing,
                arm=self._arm,
                model=model,
                user=served_user(self.configuration.user, task, self._upstream),
                budgets=self._budgets.get(task.domain, domain_budgets(task.domain)),
                watch=watch,
            )
            judged = time.perf_counter()
            verdict = None
            if result.ending is not Ending.INFRASTRUCTURE_FAILURE:
                verdict = simulator.evaluate(messages=len(result.messages))
            evaluated = time.perf_counter() - judged
        finally:
            simulator.close()
        findings = self._findings(task, session, tools.made, result.user_turns)
        trace = ""
        if self._keep_traces:
            trace = write_trace(await export_trace(store, session.id))
        await session.release()
        usage = result.usage
        record = replace(
            record,
            ending=str(result.ending),
            reason=result.reason,
            verdict=verdict,
            calls=tuple(call.action for call in tools.made),
            r2=calls_after_goal(tools.made, task.goal),
            findings=dict(sorted(Counter(each.code for each in findings).items())),
            agent_turns=result.agent_turns,
            user_turns=result.user_turns,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            system_characters=model.system_characters,
            seconds=round(time.perf_counter() - begun, 6),
            model_seconds=round(model.seconds, 6),
            world_seconds=round(world.seconds + opened + evaluated, 6),
        )
        return Trial(record, findings, trace, result)

    def _findings(
        self, task: SopbenchTask, session: Session, made: Sequence[MadeCall], replies: int
    ) -> Sequence[Finding]:
        if self._arm.machine:
            programs = {task.goal: self._shelf.program(task).program}
            return audit_trace(programs, session.events, session_id=session.id).findings
        calls = tuple(
            TranscriptCall(
                index, index, call.action, call.arguments, call.ok, call.value, True, call.ok
            )
            for index, call in enumerate(made)
        )
        transcript = Transcript(calls, len(calls), replies)
        offered = offered_actions(task.handbook, self._tools)
        report = audit_transcript(task.handbook, transcript, goal=task.goal, offered=offered)
        return report.findings
