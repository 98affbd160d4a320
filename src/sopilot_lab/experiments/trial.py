"""One task, run by one contestant under one arm and scored by its evaluator.

Stopwatches on model, tools and evaluator separate their time from the harness's own.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from sopilot.agent.approvers import KeepsUnmadeCalls
from sopilot.agent.budgets import Budgets
from sopilot.agent.loop import run_programs
from sopilot.agent.reference.judging import PredicateJudge
from sopilot.agent.result import Ending, SessionResult, Watch, nobody_watches
from sopilot.agent.retries import ProviderError
from sopilot.audit.findings import Finding
from sopilot.handbook.writer import handbook_hash
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import InternalBug, UserMistake
from sopilot.models.open import close_model
from sopilot.program.codec import program_hash
from sopilot.protocols import (
    Model,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolResult,
    Tools,
    ToolSchema,
    Usage,
    User,
)
from sopilot.records.loading import export_trace
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.run import Conditions, open_task
from sopilot.tasks.scenario_verdict import calls_made, post_goal_calls
from sopilot.tasks.task import FinishedRun, Task
from sopilot.trace.files import write_trace
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named
from sopilot.views.view import View
from sopilot_lab.experiments.entrants import DEFAULT_USER, Contestant, Party, playing, served_user
from sopilot_lab.experiments.run_folder import BenchRecord, RunConfiguration
from sopilot_lab.sopbench.process import ToolList, Upstream, UpstreamLost, UpstreamTimeout
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.reference import TaskReference
from sopilot_lab.sopbench.source import SopbenchTask, load_task, task_actions, tool_list
from sopilot_lab.sopbench.tasks import OwnReference, as_official, as_task


class Stopwatch:
    """Adds up the seconds that are spent inside of it; blocks may overlap."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - begun


class MeteredModel:
    """``system_by_call`` is the system text of every attempt, in characters: first message and
    frame message. ``discarded`` is the cost of unusable answers. ``answered`` sees every
    exchange."""

    def __init__(
        self, model: Model, watch: Stopwatch, answered: Callable[[ModelRequest, ModelReply], None]
    ) -> None:
        self._model, self._watch, self._answered = model, watch, answered
        self.system_by_call: list[int] = []
        self.discarded = Usage()

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        shown = sum(len(m.content) for m in request.messages if m.role == "system")
        self.system_by_call.append(shown)
        with self._watch.running():
            try:
                reply = await self._model.complete(request)
            except ProviderError as error:
                self.discarded += error.usage
                raise
            self._answered(request, reply)
            return reply

    async def close(self) -> None:
        await close_model(self._model)


class TimedTools:
    """Implements ``KeepsUnmadeCalls`` for tools that do."""

    def __init__(self, tools: Tools, watch: Stopwatch) -> None:
        self._tools, self._watch = tools, watch

    def schemas(self) -> Sequence[ToolSchema]:
        return self._tools.schemas()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        with self._watch.running():
            return await self._tools.call(name, arguments, key=key)

    async def unmade(self, call: ToolCall, problem: str) -> bool:
        tools: object = self._tools
        return isinstance(tools, KeepsUnmadeCalls) and await tools.unmade(call, problem)


Reference = TaskReference | OwnReference
Play = Callable[[Contestant, PredicateJudge, Mapping[str, str]], Model]
UNSCAFFOLDED: Final = frozenset({"official", "official-recipes"})
"""Arms that show SOPBench's text as it is. The paper's scaffold is Chinese in compiled arms
alone, so that these are English whatever the language of a series is."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A finished run. ``trace`` is its trace file, ``findings`` the audit's; ``result`` and
    ``session`` are missing if SOPBench's process was lost."""

    record: BenchRecord
    findings: Sequence[Finding] = ()
    trace: str = ""
    result: SessionResult | None = None
    session: Session | None = None


@dataclass(frozen=True, slots=True)
class _Opened:
    """A task on its way; ``own`` is SOPBench's."""

    task: Task
    handbook_sha256: str
    program_sha256: str
    own: SopbenchTask | None = None


class TrialRunner:
    """Runs tasks one after the other or at once; keeps what tasks share. ``play`` makes the model
    of a run in place of ``playing``."""

    def __init__(
        self,
        configuration: RunConfiguration,
        upstream: Upstream | None,
        party: Party | None = None,
        *,
        exchanged: Callable[[ModelRequest, ModelReply], None] = lambda request, reply: None,
        play: Play | None = None,
    ) -> None:
        self._exchanged = exchanged
        self._play = play or playing
        self.configuration = configuration
        self.answered = False
        """Whether the model has answered anything yet."""
        self._party = party or Party(
            Contestant(configuration.model), Contestant(configuration.user)
        )
        self._arm: View = view_named(configuration.arm)
        self._tools: ToolList = tool_list(configuration.tools)
        self._upstream = upstream
        self._shelf = None if upstream is None else ProgramShelf(self._tools, upstream)
        self._own_programs: dict[int, ProgramSet] = {}
        self._own_hashes: dict[tuple[int, str], tuple[str, str]] = {}

    async def run(self, reference: Reference, watch: Watch = nobody_watches) -> Trial:
        """A fresh identity every time. A failure of the infrastructure gives a record
        without a verdict."""
        begun = time.perf_counter()
        opened = self._open(reference)
        record = BenchRecord(
            run_id=uuid.uuid4().hex,
            task=str(reference),
            domain=reference.domain,
            goal=reference.goal,
            fingerprint=self.configuration.fingerprint,
            handbook_sha256=opened.handbook_sha256,
            program_sha256=opened.program_sha256,
            ending=str(Ending.INFRASTRUCTURE_FAILURE),
            run=self.configuration.run,
            hypotheses=self.configuration.hypotheses,
        )
        try:
            return await self._run(opened, record, watch, begun)
        except (UpstreamLost, UpstreamTimeout) as broken:
            return Trial(replace(record, reason=str(broken), fault="simulator"))

    def _open(self, reference: Reference) -> _Opened:
        if isinstance(reference, OwnReference):
            if self._party.user.name != DEFAULT_USER:
                raise UserMistake("a model can play the user only in SOPBench tasks")
            task = self._party.own[str(reference)]
            key = (id(task.briefing), reference.goal)
            if key not in self._own_hashes:
                program = task.briefing.programs[reference.goal]
                self._own_hashes[key] = handbook_hash(task.briefing.handbook), program_hash(program)
            return _Opened(task, *self._own_hashes[key])
        if self._shelf is None or self._upstream is None:
            raise InternalBug("a SOPBench task needs a checkout")
        own = load_task(reference, self._upstream)
        shelved = self._shelf.program(own)
        language = self.configuration.language
        if self.configuration.arm in UNSCAFFOLDED:
            language = "en"
        task = as_task(own, shelved.program, self._tools, self._upstream, language)
        return _Opened(task, shelved.handbook_sha256, shelved.program_sha256, own)

    def _user(self, opened: _Opened) -> User | None:
        """The user who is served in place of the task's own."""
        if opened.own is None or self._upstream is None:
            return None
        return served_user(
            self._party, opened.own, self._upstream,
            about=about_run(self.configuration, str(opened.own.reference)),
            budgets=self._budgets(opened.task),
        )  # fmt: skip

    def _answer(self, request: ModelRequest, reply: ModelReply) -> None:
        self.answered = True
        self._exchanged(request, reply)

    def first_message(self, reference: Reference) -> str:
        """The resident text of a task, which no request goes without."""
        return self._arm.first_message(self._open(reference).task.briefing)

    def _budgets(self, task: Task) -> Budgets:
        known = self.configuration.budgets.get(task.source.rpartition(":")[2])
        return task.budgets if known is None else Budgets(**dict(known))  # type: ignore[arg-type]

    def _prepared(self, briefing: Briefing) -> ProgramSet:
        """The programs of one's own tasks, which share a briefing: preparing them takes longer than
        a run."""
        key = id(briefing)
        if key not in self._own_programs:
            self._own_programs[key] = run_programs(briefing, self._arm, unguarded=True)
        return self._own_programs[key]

    async def _run(self, opened: _Opened, record: BenchRecord, watch: Watch, begun: float) -> Trial:
        task, user = opened.task, self._user(opened)
        thinking, acting = Stopwatch(), Stopwatch()
        opened_simulation = task.open()
        acting.seconds = time.perf_counter() - begun

        def score(messages: int, run: FinishedRun | None = None) -> Mapping[str, JSON]:
            assert opened_simulation.score is not None
            with acting.running():
                return opened_simulation.score(messages, run)

        tools = TimedTools(opened_simulation.tools, acting)
        simulation = replace(opened_simulation, tools=tools, score=score)
        about = about_run(self.configuration, record.task)
        player = self._play(self._party.model, task.reader, about)
        model = MeteredModel(player, thinking, self._answer)
        conditions = Conditions(
            self._arm,
            model,
            model_name=self.configuration.model,
            user=user,
            budgets=self._budgets(task),
            retries=self._party.patience.retries,
            watch=watch,
            offered=None if opened.own is None else task_actions(opened.own, self._tools),
            final=True,
        )
        store = MemoryStore()
        try:
            async with open_task(
                task, simulation, conditions, store=store, session_id=record.run_id,
                programs=self._prepared(task.briefing) if opened.own is None else None,
            ) as running:  # fmt: skip
                done = await running.run()
        finally:
            await close_model(model)
            await close_model(user)
            await simulation.close()
        session, result, report, verdict = running.session, done.run, done.audit, done.verdict
        trace = ""
        if self._party.keep_traces:
            trace = write_trace(await export_trace(store, session.id, payloads=True, secrets=True))
        calls = calls_made(await session.whole_events())
        after = post_goal_calls(calls, task.goal_action)
        if verdict is not None and opened.own is None:
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
            system_characters=max(model.system_by_call, default=0),
            system_by_call=tuple(model.system_by_call),
            seconds=round(time.perf_counter() - begun, 6),
            model_seconds=round(thinking.seconds, 6),
            world_seconds=round(acting.seconds, 6),
            **self._spent(result, model, user),
        )
        return Trial(record, report.findings, trace, result, session)

    def _spent(
        self, result: SessionResult, model: MeteredModel, user: User | None
    ) -> dict[str, Any]:
        usage, discarded = result.usage, model.discarded
        played: Usage = getattr(user, "usage", Usage())
        costs = [self._party.model.cost(usage, discarded), self._party.user.cost(played)]
        known = [cost for cost in costs if cost is not None]
        return {
            "agent_turns": result.agent_turns,
            "user_turns": result.user_turns,
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "completion_tokens": usage.completion_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "attempts": len(model.system_by_call),
            "discarded_tokens": discarded.prompt_tokens + discarded.completion_tokens,
            "discarded_prompt_tokens": discarded.prompt_tokens,
            "simulator_tokens": played.prompt_tokens + played.completion_tokens,
            "cost": round(sum(known), 8) if known else None,
            "requests": [request.as_json() for request in result.requests],
        }


def about_run(configuration: RunConfiguration, task: str) -> dict[str, str]:
    """What a mailbox learns about the run of a task."""
    c = configuration
    return {
        "task": task,
        "arm": c.arm,
        "tools": c.tools,
        "language": c.language,
        "user": c.user,
        "run": str(c.run),
    }
