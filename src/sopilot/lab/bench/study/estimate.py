"""What a study will ask for and what it can see, before the first request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sopilot.lab.bench._trial import TrialRunner
from sopilot.lab.bench.reference import TaskReference
from sopilot.lab.bench.selection import should_succeed, stratified
from sopilot.lab.bench.sopbench_process import Upstream
from sopilot.lab.bench.study.cells import Cell
from sopilot.lab.bench.study.hypotheses import Hypothesis
from sopilot.lab.bench.study.plan import Study
from sopilot.lab.bench.sweep import make_configuration
from sopilot.lab.stats import Undefined, mcnemar_power, minimum_detectable_effect
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.session.protocols import Usage

REHEARSED: Final = 12
"""Tasks that the reference executor runs to see how long an arm's requests are."""
_CHARACTERS_PER_TOKEN: Final = 4.0
_REPLY_TOKENS: Final = 120
_LIKE_FLAT: Final = "flat"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of one cell. ``like`` is the arm whose requests were measured."""

    cell: str
    tasks: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    like: str


def estimate(
    study: Study, cells: Sequence[Cell], tasks: Sequence[TaskReference], upstream: Upstream
) -> list[Estimate]:
    """From a rehearsal by the reference executor, whose runs have no detour: a model takes
    more. Arms in prose, which it cannot read, are taken to be like `flat`."""
    few = stratified(tasks, lambda each: should_succeed(each, upstream), min(REHEARSED, len(tasks)))
    measured: dict[str, tuple[float, float]] = {}
    found = []
    for cell in cells:
        like = cell.arm
        if like not in measured:
            try:
                measured[like] = _rehearsed(study, like, few, upstream)
            except UserMistake:
                like = _LIKE_FLAT
                if like not in measured:
                    measured[like] = _rehearsed(study, like, few, upstream)
                measured[cell.arm] = measured[like]
        requests, tokens = (int(len(tasks) * each) for each in measured[cell.arm])
        used = Usage(tokens, 0, requests * _REPLY_TOKENS)
        found.append(
            Estimate(
                cell.label, len(tasks), requests, tokens, used.completion_tokens,
                cell.entrant.who.cost(used), like,
            )
        )  # fmt: skip
    return found


def _rehearsed(
    study: Study, arm: str, tasks: Sequence[TaskReference], upstream: Upstream
) -> tuple[float, float]:
    """Requests and prompt tokens a task."""
    configuration = make_configuration(upstream, arm=arm, model="reference", tools=study.tools)
    runner = TrialRunner(configuration, upstream)

    async def run() -> list[Any]:
        return [(await runner.run(each)).record for each in tasks]

    records = asyncio.run(run())
    characters = sum(one["characters"] for each in records for one in each.requests)
    requests = sum(each.agent_turns for each in records)
    return requests / len(records), characters / _CHARACTERS_PER_TOKEN / len(records)


def power_rows(
    study: Study, tasks: Sequence[TaskReference], upstream: Upstream
) -> list[dict[str, Any]]:
    """Of each hypothesis, for one model and independent tasks: an upper bound, since tasks of
    a goal fall together."""
    return [_power(study, each, tasks, upstream) for each in study.fixed.hypotheses]


def _power(
    study: Study, one: Hypothesis, tasks: Sequence[TaskReference], upstream: Upstream
) -> dict[str, Any]:
    chosen = [
        each
        for each in tasks
        if each.domain in one.domains
        and one.kind in ("both", "execute" if should_succeed(each, upstream) else "refuse")
    ]
    level = one.level / sum(
        len(other.models) for other in study.fixed.hypotheses if other.family == one.family
    )
    least = minimum_detectable_effect(
        len(chosen), discordance=study.discordance, alpha=level, power=0.8
    )
    return {
        "hypothesis": one.name,
        "tasks": len(chosen),
        "goals": len({(each.domain, each.goal) for each in chosen}),
        "level": level,
        "power": mcnemar_power(
            len(chosen),
            discordance=study.discordance,
            effect=min(study.effect, study.discordance),
            alpha=level,
        ),
        "least_effect": None if isinstance(least, Undefined) else least,
        "why_none": least.reason if isinstance(least, Undefined) else "",
    }
