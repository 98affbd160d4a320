"""The cost and the power of a study before the first request, and its progress."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sopilot.protocols import Usage
from sopilot.values.text import counted, table
from sopilot_lab.experiments.entrants import DEFAULT_USER
from sopilot_lab.experiments.rehearsal import CHARACTERS, Rehearsal
from sopilot_lab.experiments.run_folder import Effort
from sopilot_lab.experiments.selection import should_succeed, stratified
from sopilot_lab.experiments.study.cells import Cell, study_cells, study_tasks
from sopilot_lab.experiments.study.plan import Hypothesis, Study
from sopilot_lab.experiments.sweep import AT_ONCE
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.reference import TaskReference
from sopilot_lab.statistics.intervals import Undefined
from sopilot_lab.statistics.outcomes import TaskKind
from sopilot_lab.statistics.power import mcnemar_power, minimum_detectable_effect

REHEARSED: Final = 9
"""Tasks per domain that the reference executor runs to see what an arm's requests hold."""
SECONDS: Final = 15.0
"""Per request: about what the paper's models took on Bank."""


def estimate(cells: Sequence[Cell], upstream: Upstream) -> list[dict[str, Any]]:
    """Estimate cells from a rehearsal of a few tasks per domain, arm and language. ``like`` is the
    arm whose requests were measured; ``user_tokens`` are those of a model in the user's place."""
    rehearsals: dict[str, Rehearsal] = {}
    means: dict[tuple[str, str, str], Effort] = {}
    results = []
    for cell in cells:
        domains: dict[str, list[TaskReference]] = {}
        for task in cell.tasks:
            domains.setdefault(task.domain, []).append(task)
        language = cell.configuration.language
        rehearsal = rehearsals.setdefault(language, Rehearsal(cell.configuration, upstream))
        total = Effort()
        for domain, tasks in domains.items():
            key = (cell.arm, language, domain)
            if key not in means:
                few = stratified(
                    tasks, lambda each: should_succeed(each, upstream), min(REHEARSED, len(tasks))
                )
                means[key] = asyncio.run(_mean_effort(rehearsal, cell.arm, few))
            total += means[key].times(len(tasks))
        played = round(total.user_tokens) if cell.user.name != DEFAULT_USER else 0
        cost, users = cell.entrant.who.cost(total.usage), cell.user.cost(Usage(played))
        results.append(
            {
                "cell": cell.label,
                "domains": list(domains),
                "tasks": len(cell.tasks),
                **total.as_json(),
                "user_tokens": played,
                "cost": cost if users is None or cost is None else cost + users,
                "hours": round(total.requests * SECONDS / AT_ONCE / 3600, 2),
                "like": rehearsal.arm_of(cell.arm),
            }
        )
    return results


async def _mean_effort(rehearsal: Rehearsal, arm: str, tasks: Sequence[TaskReference]) -> Effort:
    efforts = [(await rehearsal.run(arm, each))[1] for each in tasks]
    return sum(efforts, Effort()).times(1 / len(tasks))


def power_rows(study: Study, cells: Sequence[Cell], upstream: Upstream) -> list[dict[str, Any]]:
    """The power of each hypothesis, for one model and independent tasks: an upper bound, since
    tasks of a goal fall together."""
    return [
        _power(study, each, _compared(each, cells), upstream) for each in study.fixed.hypotheses
    ]


def _compared(hypothesis: Hypothesis, cells: Sequence[Cell]) -> Sequence[TaskReference]:
    """The tasks that a model runs under both arms; of the model with most of them."""
    shared: list[Sequence[TaskReference]] = [()]
    for model in hypothesis.models:
        sides = [
            {task: None for cell in cells if (cell.configuration.model, cell.arm) == (model, arm)
             for task in cell.tasks}
            for arm in hypothesis.contrast
        ]  # fmt: skip
        shared.append([task for task in sides[0] if task in sides[1]])
    return max(shared, key=len)


def _power(
    study: Study, hypothesis: Hypothesis, tasks: Sequence[TaskReference], upstream: Upstream
) -> dict[str, Any]:
    chosen = [
        each
        for each in tasks
        if each.domain in hypothesis.domains
        and hypothesis.kind in ("both", TaskKind.of(should_succeed(each, upstream)))
    ]
    level = hypothesis.level / sum(
        len(other.models) for other in study.fixed.hypotheses if other.family == hypothesis.family
    )
    least = minimum_detectable_effect(
        len(chosen), discordance=study.discordance, alpha=level, power=0.8
    )
    return {
        "hypothesis": hypothesis.name,
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


def plan_document(study: Study, base: Path, upstream: Upstream) -> dict[str, Any]:
    """Cells, tasks, requests, tokens, cost and power, before the first request."""
    cells = study_cells(study, base, upstream)
    tasks = study_tasks(cells)
    estimates = estimate(cells, upstream)
    costs = [item["cost"] for item in estimates if item["cost"] is not None]
    summed = ("requests", "prompt_tokens", "completion_tokens", "user_tokens")
    return {
        "study": study.name,
        "hypotheses": study.fixed.sha256,
        "tasks": len(tasks),
        "goals": len({(each.domain, each.goal) for each in tasks}),
        "cells": estimates,
        **{name: sum(item[name] for item in estimates) for name in summed},
        "hours": round(sum(item["hours"] for item in estimates), 2),
        "cost": round(sum(costs), 4) if costs else None,
        "without_price": len(estimates) - len(costs),
        "power": power_rows(study, cells, upstream),
    }


def plan_lines(plan: Mapping[str, Any], effect: float) -> Iterator[str]:
    cells = plan["cells"]
    yield f"{plan['study']}: {counted(len(cells), 'cell')} × {counted(plan['tasks'], 'task')}"
    yield f"hypotheses: {plan['hypotheses'] or 'none: everything is exploratory'}\n"
    runs = sum(cell["tasks"] for cell in cells)
    total = {**plan, "cell": "total", "tasks": runs, "like": "total"}
    rows = [
        (
            entry["cell"],
            entry["tasks"],
            entry["requests"],
            entry["prompt_tokens"],
            entry["completion_tokens"],
            entry["user_tokens"],
            "–" if entry["cost"] is None else f"{entry['cost']:.2f}",
            f"{entry['hours']:.1f}",
            "" if entry["like"] in entry["cell"] else f"as {entry['like']}",
        )
        for entry in (*cells, total)
    ]
    counted_tokens = ["prompt tokens", "reply tokens", "user tokens"]
    yield table(rows, ["cell", "tasks", "requests", *counted_tokens, "cost", "hours", ""])
    yield "at least: the reference executor makes no detour and explains nothing"
    yield (
        f"{CHARACTERS} characters per token, {SECONDS:g} s per request, {AT_ONCE} tasks at a time, "
        "cells one after the other"
    )
    for item in plan["power"]:
        least = item["why_none"] or f"{100 * item['least_effect']:.1f} points with power 0.8"
        yield (
            f"\n{item['hypothesis']}: {item['tasks']} tasks of {item['goals']} goals; power "
            f"{item['power']:.2f} for {100 * effect:g} points at {item['level']:.4f}; "
            f"smallest detectable effect: {least} (independent tasks: an upper bound)"
        )


def status_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    shown = [
        (
            row["cell"],
            f"{row['judged']}/{row['asked']}",
            row["missing"],
            row["broken"],
            "–" if row["cost"] is None else f"{row['cost']:.4f}",
            ", ".join(f"{name} ×{count}" for name, count in row["reasons"].items()),
        )
        for row in rows
    ]
    yield table(shown, ["cell", "judged", "missing", "broken runs", "cost", "why"])
