"""The cases of a check: which are run, in which order, and one run of one case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from time import monotonic

from sopilot.agent.budgets import Budgets
from sopilot.agent.loop import run_programs
from sopilot.agent.providers import ProviderError, Retries
from sopilot.agent.result import Ending, SessionResult
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import UserMistake
from sopilot.protocols import Model, ModelReply, ModelRequest, Usage
from sopilot.records.store import Store
from sopilot.session.session import Session
from sopilot.tasks.run import Conditions, open_task, play_task
from sopilot.tasks.scenario_verdict import calls_made, post_goal_calls
from sopilot.tasks.task import Task
from sopilot.values.json import JSON, Fields
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS
from sopilot.views.view import View
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind

CASES = 100
"""So many that a strong model may be paged although it lost one case."""
_KINDS = {Ending.EXECUTED: TaskKind.EXECUTE, Ending.REFUSED: TaskKind.REFUSE}


def kind_of(case: Task) -> TaskKind | None:
    return _KINDS.get(case.expected) if case.expected is not None else None


def checkable(tasks: Sequence[Task], *, whole_handbook: bool = True) -> list[Task]:
    """The tasks that end in an execution or a refusal; a task that waits for people has no
    counterpart without the runtime. Without ``whole_handbook`` a case shows only its own goals."""
    cases = [task for task in tasks if kind_of(task) is not None]
    if whole_handbook:
        return cases
    narrow: dict[tuple[int, tuple[str, ...]], Briefing] = {}
    return [replace(case, briefing=_narrow(case, narrow)) for case in cases]


def _narrow(case: Task, made: dict[tuple[int, tuple[str, ...]], Briefing]) -> Briefing:
    whole = case.briefing
    goals = tuple(goal for goal in whole.programs if goal in (case.goal, case.opening_goal))
    key = (id(whole), goals)
    if key not in made:
        programs = {goal: whole.programs[goal] for goal in goals}
        made[key] = Briefing(whole.handbook, programs, whole.language)
    return made[key]


def planned(cases: Sequence[Task], count: int = CASES) -> list[Task]:
    """Goals in turn, execute and refuse alternating within a goal: a check that ends early
    has seen as many goals and both kinds as evenly as it could."""
    queues: dict[tuple[str, str], Iterator[Task]] = {}
    for case in cases:
        goal = (case.source, case.goal)
        if goal not in queues:
            own = [item for item in cases if (item.source, item.goal) == goal]
            # Every other goal begins with a refusal, so that a round has both kinds.
            queues[goal] = _alternating(own, refusal_first=len(queues) % 2 == 1)
    # Domains take turns too.
    order = sorted(queues, key=lambda goal: _place(goal, list(queues)))
    chosen: list[Task] = []
    while order and len(chosen) < count:
        for goal in list(order):
            following = next(queues[goal], None)
            if following is None:
                order.remove(goal)
            elif len(chosen) < count:
                chosen.append(following)
    return chosen


def _place(goal: tuple[str, str], goals: Sequence[tuple[str, str]]) -> tuple[int, int]:
    own = [item for item in goals if item[0] == goal[0]]
    return own.index(goal), goals.index(goal)


def _alternating(cases: Sequence[Task], *, refusal_first: bool) -> Iterator[Task]:
    kinds = [[case for case in cases if kind_of(case) is kind] for kind in TaskKind]
    if refusal_first:
        kinds.reverse()
    for index in range(max(map(len, kinds))):
        for held in kinds:
            yield from held[index : index + 1]


@dataclass(frozen=True, slots=True)
class Effort:
    """The requests and tokens of some runs or questions."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Effort) -> Effort:
        return Effort(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """``passed`` is ``None`` when the provider broke the run. ``reasons`` say why it failed."""

    case: str
    domain: str
    goal: str
    kind: str
    arm: str
    passed: bool | None
    ending: str
    reasons: tuple[str, ...] = ()
    post_goal_calls: int | None = None
    requests: int = 0
    domain_calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        return f"{self.domain}/{self.case}", self.arm

    @property
    def effort(self) -> Effort:
        return Effort(self.requests, self.prompt_tokens, self.completion_tokens)

    @property
    def broken(self) -> bool:
        return self.ending == Ending.INFRASTRUCTURE_FAILURE

    def as_json(self) -> dict[str, JSON]:
        return asdict(self) | {"reasons": list(self.reasons)}

    def outcome(self, model: str) -> RunOutcome:
        return RunOutcome(
            task=self.case,
            goal=self.goal,
            kind=TaskKind(self.kind),
            passed=self.passed,
            arm=self.arm,
            model=model,
            domain=self.domain,
            post_goal_calls=self.post_goal_calls,
        )


def record_from_json(value: Fields) -> RunRecord:
    known = {item.name: value[item.name] for item in fields(RunRecord) if item.name in value}
    try:
        return RunRecord(**{**known, "reasons": tuple(known.get("reasons", ()))})
    except TypeError as error:
        raise UserMistake("this is not a record of a qualification") from error


def by_arm(records: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    result: dict[str, list[RunRecord]] = {}
    for record in records:
        result.setdefault(record.arm, []).append(record)
    return result


USER_TURNS = 5
DOMAIN_CALLS = 30
SPARE_TURNS = 10
TURNS_FACTOR = 3
TIMEOUT = 180.0
"""Seconds for one answer."""
ONLY_EMPTY = "every answer was an empty message"
StoreFor = Callable[[], Store]
"""A store for one run; sessions of a check need not outlive it."""


def run_budgets(reference_requests: int, timeout: float = TIMEOUT) -> Budgets:
    """Budgets for every arm of a case, from the requests that the reference executor needed."""
    return Budgets(
        request_seconds=timeout,
        agent_turns=TURNS_FACTOR * reference_requests + SPARE_TURNS,
        user_turns=USER_TURNS,
        domain_calls=DOMAIN_CALLS,
    )


class ProgramSets:
    """Prepared programs, one set a briefing and kind of arm: preparing costs more than a run."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, bool], tuple[Briefing, ProgramSet]] = {}

    def of(self, briefing: Briefing, arm: View) -> ProgramSet:
        key = (id(briefing), arm.machine)
        if key not in self._made:
            # The briefing is kept with it, so that its id stays its own.
            self._made[key] = (briefing, run_programs(briefing, arm, unguarded=True))
        return self._made[key][1]


class _Heard:
    """Pass requests on and count the attempts ``made`` and their ``usage``, unusable answers
    included."""

    def __init__(self, model: Model, tell: Callable[[], None]) -> None:
        self._model = model
        self._tell = tell
        self.made = 0
        self.usage = Usage()
        self._replies = 0
        self._empty = 0

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def said_nothing(self) -> bool:
        return self._replies > 0 and self._replies == self._empty

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.made += 1
        try:
            reply = await self._model.complete(request)
        except ProviderError as error:
            self.usage += error.usage
            raise
        self.usage += reply.usage
        self._replies += 1
        if is_empty(reply):
            self._empty += 1
        else:
            self._tell()
        return reply


def is_empty(reply: ModelReply) -> bool:
    return not reply.tool_calls and not reply.content.strip()


async def run_case(
    case: Task,
    arm: View | str,
    model: Model,
    *,
    store: Store,
    budgets: Budgets,
    programs: ProgramSet | None = None,
    retries: Retries | None = None,
    on_word: Callable[[], None] = lambda: None,
) -> tuple[RunRecord, SessionResult, Session]:
    """``on_word`` hears of every answer that is not empty."""
    arm = VIEWS[arm] if isinstance(arm, str) else arm
    simulation = case.open()
    heard = _Heard(model, on_word)
    conditions = Conditions(arm, heard, budgets=budgets, retries=retries)
    begun = monotonic()
    session = await open_task(case, simulation, conditions, store=store, programs=programs)
    async with session:
        result, verdict = await play_task(case, simulation, conditions, session)
    await simulation.close()
    events = session.own_events
    failed = result.ending is Ending.INFRASTRUCTURE_FAILURE
    # A model that says nothing has neither done the task nor refused it.
    broken = failed or heard.said_nothing
    reasons = tuple(verdict["reasons"]) if verdict is not None else ()
    if broken:
        reasons = (result.reason if failed else f"{model.name}: {ONLY_EMPTY}",)
    record = RunRecord(
        case=case.name,
        domain=case.source,
        goal=case.goal,
        kind=str(kind_of(case)),
        arm=arm.name,
        passed=None if broken else not reasons,
        ending=str(Ending.INFRASTRUCTURE_FAILURE if broken else result.ending),
        reasons=reasons,
        post_goal_calls=post_goal_calls(calls_made(events), case.goal_action),
        requests=heard.made,
        domain_calls=result.domain_calls,
        prompt_tokens=heard.usage.prompt_tokens,
        cached_tokens=heard.usage.cached_tokens,
        completion_tokens=heard.usage.completion_tokens,
        seconds=round(monotonic() - begun, 3),
    )
    return record, result, session
