"""One task, run by one contestant under one arm and scored by its oracle."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sopilot.adapters.memory_store import MemoryStore
from sopilot.adapters.model_by_name import close_model
from sopilot.desks.scenarios.made_calls import calls_made, post_goal_calls
from sopilot.desks.tasks import Conditions, Task, open_task, play_task
from sopilot.lab.bench._contestants import DEFAULT_USER, playing, served_user
from sopilot.lab.bench._timed import TimedModel, TimedScore, TimedTools
from sopilot.lab.bench.contestant import Contestant, Patience
from sopilot.lab.bench.own_tasks import OwnReference, as_official
from sopilot.lab.bench.programs import ProgramShelf
from sopilot.lab.bench.record import BenchRecord, RunConfiguration
from sopilot.lab.bench.reference import TaskReference
from sopilot.lab.bench.sopbench_process import ToolList, Upstream, UpstreamLost, UpstreamTimeout
from sopilot.lab.bench.source import load_task, offered_actions
from sopilot.lab.bench.tasks import as_task
from sopilot.language.diagnostics import InternalBug, UserMistake
from sopilot.language.handbook.codec import handbook_hash
from sopilot.language.program.codec import program_hash
from sopilot.runtime.agent import Arm, Budgets, Ending, SessionResult, arm_named, audit_session
from sopilot.runtime.agent.progress import Watch, nobody_watches
from sopilot.runtime.audit import Finding
from sopilot.runtime.session import export_trace, write_trace
from sopilot.runtime.session.protocols import Usage, User

Reference = TaskReference | OwnReference


@dataclass(frozen=True, slots=True)
class Trial:
    """What a run left behind. ``trace`` is its trace file, ``findings`` the audit's."""

    record: BenchRecord
    findings: Sequence[Finding] = ()
    trace: str = ""
    result: SessionResult | None = None


@dataclass(frozen=True, slots=True)
class _Opened:
    """A task on its way: whose tools are ``offered`` where not all of them are, and the user
    who is served in place of its own."""

    task: Task
    user: User | None = None
    offered: Collection[str] | None = None


class TrialRunner:
    """Runs tasks one after the other or at once; keeps what tasks share. ``own`` are tasks
    that are not SOPBench's, by their references."""

    def __init__(
        self,
        configuration: RunConfiguration,
        upstream: Upstream | None,
        *,
        contestant: Contestant | None = None,
        user: Contestant | None = None,
        patience: Patience | None = None,
        own: Mapping[str, Task] | None = None,
        keep_traces: bool = False,
    ) -> None:
        self.configuration = configuration
        self.answered = False
        """Whether the model has answered anything yet."""
        self._contestant = contestant or Contestant(configuration.model)
        self._user = user or Contestant(configuration.user)
        self._retries = (patience or Patience()).retries
        self._arm: Arm = arm_named(configuration.arm)
        self._tools: ToolList = "full-state" if configuration.tools == "full-state" else "official"
        self._upstream = upstream
        self._own = own or {}
        self._keep_traces = keep_traces
        self._shelf = None if upstream is None else ProgramShelf(self._tools, upstream)

    async def run(self, reference: Reference, watch: Watch = nobody_watches) -> Trial:
        """A fresh identity every time. A failure of the infrastructure gives a record
        without a verdict."""
        begun = time.perf_counter()
        hashes = self._hashes(reference)
        record = BenchRecord(
            run_id=uuid.uuid4().hex,
            task=str(reference),
            domain=reference.domain,
            goal=reference.goal,
            fingerprint=self.configuration.fingerprint,
            handbook_sha256=hashes[0],
            program_sha256=hashes[1],
            ending=str(Ending.INFRASTRUCTURE_FAILURE),
            run=self.configuration.run,
            hypotheses=self.configuration.hypotheses,
        )
        try:
            return await self._run(self._open(reference), record, watch, begun)
        except (UpstreamLost, UpstreamTimeout) as broken:
            return Trial(replace(record, reason=str(broken), fault="simulator"))

    def _hashes(self, reference: Reference) -> tuple[str, str]:
        if isinstance(reference, OwnReference):
            briefing = self._own[str(reference)].briefing
            program = briefing.programs[reference.goal]
            return handbook_hash(briefing.handbook), program_hash(program)
        if self._shelf is None or self._upstream is None:
            raise InternalBug("a SOPBench task needs a checkout")
        shelved = self._shelf.program(load_task(reference, upstream=self._upstream))
        return shelved.handbook_sha256, shelved.program_sha256

    def _open(self, reference: Reference) -> _Opened:
        if isinstance(reference, OwnReference):
            if self._user.name != DEFAULT_USER:
                raise UserMistake("a model plays the user of SOPBench's tasks alone")
            return _Opened(self._own[str(reference)])
        if self._shelf is None or self._upstream is None:
            raise InternalBug("a SOPBench task needs a checkout")
        own = load_task(reference, upstream=self._upstream)
        program = self._shelf.program(own).program
        language = self.configuration.language
        task = as_task(own, program, self._tools, self._upstream, language)
        user = served_user(
            self._user, own, self._upstream,
            about=self._about(str(reference)), budgets=self._budgets(task), retries=self._retries,
        )  # fmt: skip
        return _Opened(task, user, offered_actions(own.handbook, self._tools))

    def _answer(self) -> None:
        self.answered = True

    def _budgets(self, task: Task) -> Budgets:
        known = self.configuration.budgets.get(task.source.rpartition(":")[2])
        return task.budgets if known is None else Budgets(**dict(known))  # type: ignore[arg-type]

    def _about(self, task: str) -> dict[str, str]:
        c = self.configuration
        return {
            "task": task,
            "arm": c.arm,
            "tools": c.tools,
            "language": c.language,
            "user": c.user,
            "run": str(c.run),
        }

    async def _run(self, opened: _Opened, record: BenchRecord, watch: Watch, begun: float) -> Trial:
        task = opened.task
        world = task.open()
        ready = time.perf_counter() - begun
        playing_model = playing(self._contestant, task.reader, self._about(record.task))
        model = TimedModel(playing_model, self._answer)
        tools, score = TimedTools(world.tools), TimedScore(world.score)
        world = replace(world, tools=tools, score=score)
        conditions = Conditions(
            self._arm,
            model,
            model_name=self.configuration.model,
            user=opened.user,
            budgets=self._budgets(task),
            retries=self._retries,
            watch=watch,
        )
        store = MemoryStore()
        try:
            session = await open_task(
                task, world, conditions, store=store, session_id=record.run_id
            )
            result, verdict = await play_task(task, world, conditions, session)
        finally:
            await close_model(model)
            await close_model(opened.user)
            await world.close()
        report = await audit_session(
            session, task.briefing.handbook, self._arm, goal=task.goal, offered=opened.offered
        )
        trace = ""
        if self._keep_traces:
            trace = write_trace(await export_trace(store, session.id, payloads=True, secrets=True))
        await session.release()
        calls = calls_made(await session.whole_events())
        after = post_goal_calls(calls, task.goal_action)
        if verdict is not None and opened.offered is None:
            verdict = as_official(verdict, task, goal_reached=after is not None)
        record = replace(
            record,
            ending=str(result.ending),
            reason=result.reason,
            verdict=verdict,
            fault=result.fault,
            calls=tuple(call.action for call in calls),
            r2=after,
            findings=dict(sorted(Counter(each.code for each in report.findings).items())),
            system_characters=model.system_characters,
            system_by_call=tuple(model.system_by_call),
            seconds=round(time.perf_counter() - begun, 6),
            model_seconds=round(model.seconds, 6),
            world_seconds=round(tools.seconds + score.seconds + ready, 6),
            **self._spent(result, opened.user),
        )
        return Trial(record, report.findings, trace, result)

    def _spent(self, result: SessionResult, user: User | None) -> dict[str, Any]:
        usage = result.usage
        played: Usage = getattr(user, "usage", Usage())
        lost = result.lost.prompt_tokens + result.lost.completion_tokens
        costs = [self._contestant.cost(usage, result.lost), self._user.cost(played)]
        known = [one for one in costs if one is not None]
        return {
            "agent_turns": result.agent_turns,
            "user_turns": result.user_turns,
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "completion_tokens": usage.completion_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "attempts": sum(one.attempts for one in result.requests),
            "discarded_tokens": lost + sum(one.discarded_tokens for one in result.requests),
            "simulator_tokens": played.prompt_tokens + played.completion_tokens,
            "cost": round(sum(known), 8) if known else None,
            "requests": [one.as_json() for one in result.requests],
        }
