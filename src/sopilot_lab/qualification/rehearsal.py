"""The check rehearsed with the reference executor: what it will cost, where cursors stand.

The reference executor makes no detours, so its figures are a lower estimate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sopilot.agent.budgets import Budgets
from sopilot.agent.reference.executor import Reference
from sopilot.machine.machine import Machine
from sopilot.records.store import Store
from sopilot.tasks.task import Task
from sopilot.views.catalogue import VIEWS
from sopilot_lab.qualification.cursor import Cursor, cursors_of
from sopilot_lab.qualification.rule import FLAT, FUSED, PAGED
from sopilot_lab.qualification.running import ProgramSets, run_case

CHARACTERS_PER_TOKEN = 4


REPLY_TOKENS = 60
"""A tool call or a short message."""


_MOST_CURSORS = 400


_BUDGETS = Budgets(user_turns=20, agent_turns=1_000, domain_calls=200)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Requests and tokens of one case under one arm."""

    requests: int
    prompt_tokens: int
    completion_tokens: int

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


NOTHING = Estimate(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """``estimates``: case key → arm → estimate. ``turns``: requests under ``pg``, by case."""

    estimates: Mapping[str, Mapping[str, Estimate]]
    turns: Mapping[str, int]
    cursors: tuple[Cursor, ...]
    unreachable: tuple[str, ...]
    """Cases that the reference executor itself fails: no model is asked about them."""

    def of_arm(self, arm: str) -> Estimate:
        return sum((estimate[arm] for estimate in self.estimates.values()), NOTHING)

    @property
    def total(self) -> Estimate:
        return sum((arm for arms in self.estimates.values() for arm in arms.values()), NOTHING)


async def rehearse(
    cases: Sequence[Task], arms: Sequence[str], *, store_for: Callable[[], Store]
) -> Rehearsal:
    programs = ProgramSets()
    estimates: dict[str, dict[str, Estimate]] = {}
    turns: dict[str, int] = {}
    cursors: list[Cursor] = []
    unreachable: list[str] = []
    for case in cases:
        model = Reference(case.reader)
        sizes: dict[str, Estimate] = {}
        passed = True
        for arm in (FLAT, PAGED, *(item for item in arms if item == FUSED)):
            record, result, session = await run_case(
                case, arm, model, store=store_for(), budgets=_BUDGETS,
                programs=programs.of(case.briefing, VIEWS[arm]),
            )  # fmt: skip
            passed = passed and record.passed is True
            characters = sum(request.characters for request in result.requests)
            characters += len(result.requests) * _tool_characters(case)
            sizes[arm] = _estimate(len(result.requests), characters)
            if arm == PAGED:
                turns[case.key] = len(result.requests)
                events = session.own_events
                # A cursor costs a replay: a few cases have all the places there are.
                if len(cursors) < _MOST_CURSORS:
                    machine: Machine = session.machine
                    cursors += cursors_of(machine, events, case.key)
        if not passed:
            unreachable.append(case.key)
        estimates[case.key] = {arm: _of(arm, case, sizes) for arm in arms}
    return Rehearsal(estimates, turns, tuple(cursors), tuple(unreachable))


def _of(arm: str, case: Task, sizes: Mapping[str, Estimate]) -> Estimate:
    """Arms that the reference executor cannot read go as the one it can, with their text."""
    if arm in sizes:
        return sizes[arm]
    base = sizes[PAGED] if VIEWS[arm].machine else sizes[FLAT]
    if VIEWS[arm].machine:
        more = len(case.briefing.rendering("flat", case.goal)) if arm == "full-cursor" else 0
    else:
        shown, flat = (
            VIEWS[arm].first_message(case.briefing),
            VIEWS[FLAT].first_message(case.briefing),
        )
        more = len(shown) - len(flat)
    extra = base.requests * more // CHARACTERS_PER_TOKEN
    return Estimate(base.requests, max(0, base.prompt_tokens + extra), base.completion_tokens)


def _tool_characters(case: Task) -> int:
    schemas = case.open().tools.schemas()
    return sum(len(schema.description) + len(json.dumps(schema.parameters)) for schema in schemas)


def _estimate(requests: int, characters: int) -> Estimate:
    return Estimate(requests, characters // CHARACTERS_PER_TOKEN, requests * REPLY_TOKENS)
