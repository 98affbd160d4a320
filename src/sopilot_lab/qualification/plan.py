"""The plan of a check: its cases and their order, what they take, what identifies the check.

A check can also judge runs that were recorded before: a model's own sweeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sopilot.agent.budgets import Budgets
from sopilot.agent.result import Ending
from sopilot.machine.machine import Machine
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.replay import program_changes, whole_events
from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_hash
from sopilot.program.model import Program
from sopilot.tasks.task import Task
from sopilot.trace.files import TraceFile
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS
from sopilot_lab.experiments.rehearsal import Rehearsal
from sopilot_lab.experiments.run_folder import Effort, RecordedRun, RunConfiguration
from sopilot_lab.experiments.sweep import make_configuration
from sopilot_lab.qualification.probe import Cursor, cursors_of, spread
from sopilot_lab.qualification.rule import ARMS_CHECKED, FLAT, FUSED, PAGED, RULE_VERSION
from sopilot_lab.sopbench.tasks import OwnReference, own_references
from sopilot_lab.statistics.outcomes import TaskKind

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


TIMEOUT: Final = 180.0
"""Seconds for one answer."""
_TURNS_FACTOR = 3
_SPARE_TURNS = 10
_MOST_CURSORS = 400
_REHEARSED = Budgets(user_turns=20, agent_turns=1_000, domain_calls=200)


def run_budgets(reference_requests: int, timeout: float = TIMEOUT) -> Budgets:
    """Budgets for every arm of a case, from the requests that the reference executor needed."""
    return Budgets(
        request_seconds=timeout,
        agent_turns=_TURNS_FACTOR * reference_requests + _SPARE_TURNS,
        user_turns=5,
        domain_calls=30,
    )


def arm_configuration(model: str, arm: str) -> RunConfiguration:
    """``model`` is the name that may be published. Cases bring their own budgets."""
    return make_configuration(None, arm=arm, model=model, tools="official")


@dataclass(frozen=True, slots=True)
class RehearsedCases:
    """``estimates``: case → arm → what the reference executor took. ``turns``: its requests under
    ``pg``, by case."""

    estimates: Mapping[str, Mapping[str, Effort]]
    turns: Mapping[str, int]
    cursors: tuple[Cursor, ...]
    unreachable: tuple[str, ...]
    """Cases that the reference executor itself fails: no model is asked about them."""

    def of_arm(self, arm: str) -> Effort:
        return sum((estimate[arm] for estimate in self.estimates.values()), Effort())

    @property
    def total(self) -> Effort:
        return sum((arm for arms in self.estimates.values() for arm in arms.values()), Effort())


async def rehearse(cases: Sequence[Task], arms: Sequence[str]) -> RehearsedCases:
    own = {str(each): task for each, task in own_references(cases).items()}
    rehearsal = Rehearsal(
        arm_configuration("reference", FLAT),
        own={name: replace(task, budgets=_REHEARSED) for name, task in own.items()},
    )
    estimates: dict[str, dict[str, Effort]] = {}
    turns: dict[str, int] = {}
    cursors: list[Cursor] = []
    unreachable: list[str] = []
    for reference in own_references(cases):
        case = str(reference)
        efforts: dict[str, Effort] = {}
        passed = True
        for arm in dict.fromkeys((FLAT, PAGED, *arms)):
            trial, efforts[arm] = await rehearsal.run(arm, reference)
            if arm in (FLAT, PAGED, FUSED):
                passed = passed and trial.record.passed
            if arm == PAGED:
                turns[case] = round(efforts[arm].requests)
                session = trial.session
                # A cursor costs a replay: a few cases have all the places there are.
                if session is not None and len(cursors) < _MOST_CURSORS:
                    cursors += cursors_of(session.machine, session.own_events, case)
        if not passed:
            unreachable.append(case)
        estimates[case] = {arm: efforts[arm] for arm in arms}
    return RehearsedCases(estimates, turns, tuple(cursors), tuple(unreachable))


READ_BY_REFERENCE: Final = frozenset({"flat", "pg", "fused", "full-cursor"})
Questions = list[tuple[Cursor, Program]]


@dataclass(frozen=True, slots=True)
class PreparedCheck:
    """``configuration`` identifies it; ``planned`` cases are to be run under ``arms``. One on
    runs that are there already has ``runs`` and no ``cases``; ``recorded`` is whose they are,
    ``sessions`` how many the questions come from."""

    configuration: dict[str, JSON]
    arms: tuple[str, ...]
    planned: int
    rehearsal: RehearsedCases
    questions: Questions
    cases: Mapping[OwnReference, Task]
    runs: tuple[RecordedRun, ...] = ()
    recorded: str = ""
    sessions: int = 0


async def rehearsed_check(
    model: str, tasks: Sequence[Task], wanted: Sequence[str], cases: int, probe: int, scope: str
) -> PreparedCheck:
    """Plan a check of ``cases`` cases, without those that the reference executor fails."""
    arms = tuple(
        arm
        for arm in ARMS_CHECKED
        if arm in wanted and (model != "reference" or arm in READ_BY_REFERENCE)
    )
    plan = planned(tasks, cases)
    rehearsal = await rehearse(plan, arms)
    chosen = {
        each: case
        for each, case in own_references(plan).items()
        if str(each) not in rehearsal.unreachable
    }
    programs: dict[str, JSON] = {
        f"{case.source}/{goal}": program_hash(program)
        for case in chosen.values()
        for goal, program in case.briefing.programs.items()
    }
    configuration: dict[str, JSON] = {
        "model": model,
        "arms": list(arms),
        "cases": [str(each) for each in chosen],
        "programs": programs,
        "sources": arm_configuration(model, FLAT).sources,
        "scope": scope,
        "probe": probe,
        "rule_version": RULE_VERSION,
    }
    questions: Questions = []
    if probe and model != "reference":
        known = {str(each): case.briefing.programs for each, case in chosen.items()}
        usable = [cursor for cursor in rehearsal.cursors if cursor.case in known]
        questions = [(each, known[each.case][each.goal]) for each in spread(usable, probe)]
    return PreparedCheck(configuration, arms, len(chosen), rehearsal, questions, chosen)


_MOST_RUNS = 60
"""A cursor costs a replay: so many runs have more places than a probe has questions."""
_NOTHING = RehearsedCases({}, {}, (), ())


def recorded_check(
    model: str, label: str, recorded: Sequence[RecordedRun], probe: int
) -> PreparedCheck:
    """The runs of one model, by its ``label`` in them, under the arms that a check knows. The
    probe asks about places in those that passed under a machine."""
    others = sorted({item.configuration.model for item in recorded} - {label})
    if others:
        raise UserMistake(
            f"these are runs of {', '.join(others)}, which say nothing about {label}: name the "
            "folders of one model, and the model as `lab run` did"
        )
    runs = tuple(item for item in recorded if item.arm in ARMS_CHECKED)
    if not runs:
        arms = ", ".join(sorted({item.arm for item in recorded}))
        raise UserMistake(
            f"these runs are under {arms}: the rule covers only {', '.join(ARMS_CHECKED)}"
        )
    if len({(run.record.task, run.arm) for run in runs}) < len(runs):
        raise UserMistake(
            "some task was run twice under one arm: name the folder of one repetition and tool list"
        )
    questions, sessions = _questions(runs, probe)
    under = {run.arm for run in runs}
    arms_run = tuple(arm for arm in ARMS_CHECKED if arm in under)
    tasks = sorted({run.record.task for run in runs})
    configuration: dict[str, JSON] = {
        "model": model,
        "arms": list(arms_run),
        "cases": [*tasks],
        "recorded": sorted({item.record.fingerprint for item in runs}),
        "probe": probe,
        "rule_version": RULE_VERSION,
    }
    return PreparedCheck(
        configuration, arms_run, len(tasks), _NOTHING, questions, {},
        runs=runs, recorded=label, sessions=sessions,
    )  # fmt: skip


def _questions(runs: Sequence[RecordedRun], count: int) -> tuple[Questions, int]:
    if not count:
        return [], 0
    passed = [run for run in runs if VIEWS[run.arm].machine and run.passed]
    stored = [run for run in passed if run.file is not None]
    if passed and not stored:
        raise UserMistake(
            "these runs have no traces, so the probe can't ask about places in them: run the sweep "
            "with `--traces`, or ask nothing with `--probe 0`"
        )
    share = max(1, -(-len(stored) // _MOST_RUNS))
    cursors: list[Cursor] = []
    programs: dict[tuple[str, str], Program] = {}
    sessions = 0
    for item in stored[::share]:
        trace = item.trace()
        if trace is None:
            continue
        result = _cursors(trace, f"{item.record.task}/{item.arm}", programs)
        sessions += bool(result)
        cursors += result
    return [(entry, programs[entry.case, entry.goal]) for entry in spread(cursors, count)], sessions


def _cursors(trace: TraceFile, case: str, programs: dict[tuple[str, str], Program]) -> list[Cursor]:
    events = whole_events(trace.events, trace.payloads)
    if program_changes(events):
        return []
    held = ProgramSet.from_texts(trace.programs, trace.program_texts).programs
    programs.update({(case, goal): program for goal, program in held.items()})
    return cursors_of(Machine(held), events, case)
