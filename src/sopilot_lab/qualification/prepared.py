"""A check before it begins: what it asks, what it takes, what identifies it.

The reference executor rehearses it. It makes no detours, so its figures are a lower estimate. A
check can also judge runs that were recorded before: a model's own sweeps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sopilot.agent.budgets import Budgets
from sopilot.agent.reference.executor import Reference
from sopilot.machine.machine import Machine
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.replay import program_changes, whole_events
from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_hash
from sopilot.program.model import Program
from sopilot.records.store import Store
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.task import Task
from sopilot.trace.files import TraceFile
from sopilot.values.json import JSON
from sopilot.views.catalogue import VIEWS
from sopilot_lab.experiments.run_folder import RecordedRun
from sopilot_lab.qualification.cases import Effort, ProgramSets, RunRecord, planned, run_case
from sopilot_lab.qualification.probe import Cursor, cursors_of, spread
from sopilot_lab.qualification.rule import ARMS_CHECKED, FLAT, FUSED, PAGED, RULE_VERSION
from sopilot_lab.statistics.outcomes import TaskKind

CHARACTERS_PER_TOKEN = 4
REPLY_TOKENS = 60
"""A tool call or a short message."""
_MOST_CURSORS = 400
_BUDGETS = Budgets(user_turns=20, agent_turns=1_000, domain_calls=200)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """``estimates``: case key → arm → estimate. ``turns``: requests under ``pg``, by case."""

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


async def rehearse(
    cases: Sequence[Task], arms: Sequence[str], *, store_for: Callable[[], Store]
) -> Rehearsal:
    programs = ProgramSets()
    estimates: dict[str, dict[str, Effort]] = {}
    turns: dict[str, int] = {}
    cursors: list[Cursor] = []
    unreachable: list[str] = []
    for case in cases:
        model = Reference(case.reader)
        sizes: dict[str, Effort] = {}
        passed = True
        for arm in (FLAT, PAGED, *(item for item in arms if item == FUSED)):
            record, result, session = await run_case(
                case, arm, model, store=store_for(), budgets=_BUDGETS,
                programs=programs.of(case.briefing, VIEWS[arm]),
            )  # fmt: skip
            passed = passed and record.passed is True
            characters = sum(request.characters for request in result.requests)
            characters += len(result.requests) * _tool_characters(case)
            tokens = characters // CHARACTERS_PER_TOKEN
            requests = len(result.requests)
            sizes[arm] = Effort(requests, tokens, requests * REPLY_TOKENS)
            if arm == PAGED:
                turns[case.key] = len(result.requests)
                # A cursor costs a replay: a few cases have all the places there are.
                if len(cursors) < _MOST_CURSORS:
                    cursors += cursors_of(session.machine, session.own_events, case.key)
        if not passed:
            unreachable.append(case.key)
        estimates[case.key] = {arm: _of(arm, case, sizes) for arm in arms}
    return Rehearsal(estimates, turns, tuple(cursors), tuple(unreachable))


def _of(arm: str, case: Task, sizes: Mapping[str, Effort]) -> Effort:
    """Arms that the reference executor cannot read go as the one it can, with their text."""
    if arm in sizes:
        return sizes[arm]
    base = sizes[PAGED] if VIEWS[arm].machine else sizes[FLAT]
    if VIEWS[arm].machine:
        more = len(case.briefing.rendering("flat", case.goal)) if arm == "full-cursor" else 0
    else:
        own, flat = (len(VIEWS[each].first_message(case.briefing)) for each in (arm, FLAT))
        more = own - flat
    extra = base.requests * more // CHARACTERS_PER_TOKEN
    return Effort(base.requests, max(0, base.prompt_tokens + extra), base.completion_tokens)


def _tool_characters(case: Task) -> int:
    schemas = case.open().tools.schemas()
    return sum(len(schema.description) + len(json.dumps(schema.parameters)) for schema in schemas)


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
    rehearsal: Rehearsal
    questions: Questions
    cases: tuple[Task, ...] = ()
    runs: tuple[RunRecord, ...] = ()
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
    if not plan:
        raise UserMistake("there is no case that ends in an execution or a refusal")
    rehearsal = await rehearse(plan, arms, store_for=MemoryStore)
    plan = [case for case in plan if case.key not in rehearsal.unreachable]
    programs: dict[str, JSON] = {
        f"{case.source}/{goal}": program_hash(program)
        for case in plan
        for goal, program in case.briefing.programs.items()
    }
    configuration: dict[str, JSON] = {
        "model": model,
        "arms": list(arms),
        "cases": [case.key for case in plan],
        "programs": programs,
        "scope": scope,
        "probe": probe,
        "rule_version": RULE_VERSION,
    }
    questions: Questions = []
    if probe and model != "reference":
        known = {case.key: case.briefing.programs for case in plan}
        usable = [cursor for cursor in rehearsal.cursors if cursor.case in known]
        questions = [(each, known[each.case][each.goal]) for each in spread(usable, probe)]
    return PreparedCheck(configuration, arms, len(plan), rehearsal, questions, tuple(plan))


_MOST_RUNS = 60
"""A cursor costs a replay: so many runs have more places than a probe has questions."""
_NOTHING = Rehearsal({}, {}, (), ())


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
    counted = [item for item in recorded if item.configuration.arm in ARMS_CHECKED]
    if not counted:
        arms = ", ".join(sorted({item.configuration.arm for item in recorded}))
        raise UserMistake(
            f"these runs are under {arms}: the rule knows {', '.join(ARMS_CHECKED)} alone"
        )
    runs = tuple(_run(item) for item in counted)
    if len({run.key for run in runs}) < len(runs):
        raise UserMistake(
            "some task was run twice under one arm: name the folder of one repetition and tool list"
        )
    questions, sessions = _questions(counted, probe)
    under = {run.arm for run in runs}
    arms_run = tuple(arm for arm in ARMS_CHECKED if arm in under)
    tasks = sorted({run.case for run in runs})
    configuration: dict[str, JSON] = {
        "model": model,
        "arms": list(arms_run),
        "cases": [*tasks],
        "recorded": sorted({item.record.fingerprint for item in counted}),
        "probe": probe,
        "rule_version": RULE_VERSION,
    }
    return PreparedCheck(
        configuration, arms_run, len(tasks), _NOTHING, questions,
        runs=runs, recorded=label, sessions=sessions,
    )  # fmt: skip


def _run(recorded_run: RecordedRun) -> RunRecord:
    record = recorded_run.record
    kind = TaskKind.EXECUTE if record.should_succeed else TaskKind.REFUSE
    return RunRecord(
        case=record.task,
        domain=record.domain,
        goal=record.goal,
        kind=str(kind),
        arm=recorded_run.configuration.arm,
        passed=record.passed,
        ending=record.ending,
        reasons=(record.reason,) if record.reason else (),
        post_goal_calls=record.r2,
        requests=record.agent_turns,
        domain_calls=len(record.calls),
        prompt_tokens=record.prompt_tokens,
        cached_tokens=record.cached_tokens,
        completion_tokens=record.completion_tokens,
        seconds=record.seconds,
    )


def _questions(counted: Sequence[RecordedRun], count: int) -> tuple[Questions, int]:
    if not count:
        return [], 0
    passed = [
        entry for entry in counted if VIEWS[entry.configuration.arm].machine and entry.record.passed
    ]
    stored = [entry for entry in passed if entry.file is not None]
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
        result = _cursors(trace, f"{item.record.task}/{item.configuration.arm}", programs)
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
