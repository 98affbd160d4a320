"""One task, run by one contestant under one arm and scored by the official evaluator."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sopilot.adapters.memory_store import MemoryStore
from sopilot.desks.scenarios.made_calls import calls_made, post_goal_calls
from sopilot.desks.tasks import Conditions, open_task, play_task
from sopilot.lab.bench._contestants import contestant, served_user
from sopilot.lab.bench._timed import TimedModel, TimedScore, TimedTools
from sopilot.lab.bench.programs import ProgramShelf
from sopilot.lab.bench.record import BenchRecord, RunConfiguration
from sopilot.lab.bench.reference import TaskReference
from sopilot.lab.bench.sopbench_process import ToolList, Upstream, UpstreamLost, UpstreamTimeout
from sopilot.lab.bench.source import SopbenchTask, load_task, offered_actions
from sopilot.lab.bench.tasks import as_task
from sopilot.runtime.agent import Arm, Budgets, Ending, SessionResult, arm_named, audit_session
from sopilot.runtime.agent.progress import Watch, nobody_watches
from sopilot.runtime.audit import Finding
from sopilot.runtime.session import export_trace, write_trace


@dataclass(frozen=True, slots=True)
class Trial:
    """What a run left behind. ``trace`` is its trace file, ``findings`` the audit's."""

    record: BenchRecord
    findings: Sequence[Finding] = ()
    trace: str = ""
    result: SessionResult | None = None


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

    async def _run(self, own: SopbenchTask, record: BenchRecord, watch: Watch) -> Trial:
        begun = time.perf_counter()
        program = self._shelf.program(own).program
        task = as_task(own, program, self._tools, self._upstream, self.configuration.language)
        world = task.open()
        opened = time.perf_counter() - begun
        model = TimedModel(contestant(self.configuration.model, task.reader))
        tools, score = TimedTools(world.tools), TimedScore(world.score)
        world = replace(world, tools=tools, score=score)
        conditions = Conditions(
            self._arm,
            model,
            model_name=self.configuration.model,
            user=served_user(self.configuration.user, own, self._upstream),
            budgets=self._budgets.get(own.domain),
            watch=watch,
        )
        store = MemoryStore()
        try:
            session = await open_task(
                task, world, conditions, store=store, session_id=record.run_id
            )
            result, verdict = await play_task(task, world, conditions, session)
        finally:
            await world.close()
        report = await audit_session(
            session,
            own.handbook,
            self._arm,
            goal=own.goal,
            offered=offered_actions(own.handbook, self._tools),
        )
        findings = report.findings
        trace = ""
        if self._keep_traces:
            trace = write_trace(await export_trace(store, session.id))
        await session.release()
        calls = calls_made(await session.whole_events())
        usage = result.usage
        record = replace(
            record,
            ending=str(result.ending),
            reason=result.reason,
            verdict=verdict,
            calls=tuple(call.action for call in calls),
            r2=post_goal_calls(calls, own.goal),
            findings=dict(sorted(Counter(each.code for each in findings).items())),
            agent_turns=result.agent_turns,
            user_turns=result.user_turns,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
            system_characters=model.system_characters,
            seconds=round(time.perf_counter() - begun, 6),
            model_seconds=round(model.seconds, 6),
            world_seconds=round(tools.seconds + score.seconds + opened, 6),
        )
        return Trial(record, findings, trace, result)
