"""What a study will cost and can see, and where it stands: for scripts and for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sopilot.lab.bench.sopbench_process import Upstream
from sopilot.lab.bench.study.cells import study_cells, study_tasks
from sopilot.lab.bench.study.estimate import estimate, power_rows
from sopilot.lab.bench.study.plan import Study
from sopilot.language.diagnostics.plain_text import counted, table


def plan_document(study: Study, base: Path, upstream: Upstream) -> dict[str, Any]:
    """Cells, tasks, requests, tokens, cost and power, before the first request."""
    tasks = study_tasks(study, upstream)
    estimates = estimate(study, study_cells(study, base, upstream), tasks, upstream)
    costs = [one.cost for one in estimates if one.cost is not None]
    return {
        "study": study.name,
        "hypotheses": study.fixed.sha256,
        "tasks": len(tasks),
        "goals": len({(each.domain, each.goal) for each in tasks}),
        "cells": [asdict(one) for one in estimates],
        "requests": sum(one.requests for one in estimates),
        "prompt_tokens": sum(one.prompt_tokens for one in estimates),
        "cost": round(sum(costs), 4) if costs else None,
        "without_price": len(estimates) - len(costs),
        "power": power_rows(study, tasks, upstream),
    }


def plan_lines(plan: Mapping[str, Any], effect: float) -> Iterator[str]:
    cells = plan["cells"]
    yield f"{plan['study']}: {counted(len(cells), 'cell')} × {counted(plan['tasks'], 'task')}"
    yield f"hypotheses: {plan['hypotheses'] or 'none: everything is exploratory'}\n"
    rows = [
        (
            one["cell"],
            one["requests"],
            one["prompt_tokens"],
            "–" if one["cost"] is None else f"{one['cost']:.2f}",
            "" if one["like"] in one["cell"] else f"as {one['like']}",
        )
        for one in cells
    ]
    yield table(rows, ["cell", "requests", "prompt tokens", "cost", ""])
    yield "at least: the reference executor makes no detour; four characters a token"
    for one in plan["power"]:
        least = one["why_none"] or f"{100 * one['least_effect']:.1f} points with power 0.8"
        yield (
            f"\n{one['hypothesis']}: {one['tasks']} tasks of {one['goals']} goals; power "
            f"{one['power']:.2f} for {100 * effect:g} points at {one['level']:.4f}; "
            f"least it can see: {least} (independent tasks: an upper bound)"
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
