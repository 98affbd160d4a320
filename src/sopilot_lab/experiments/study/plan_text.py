"""What a study will cost and can see, and where it stands: for scripts and for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sopilot.values.text import counted, table
from sopilot_lab.experiments.study.cells import study_cells, study_tasks
from sopilot_lab.experiments.study.estimate import (
    AT_ONCE,
    CHARACTERS,
    SECONDS,
    estimate,
    power_rows,
)
from sopilot_lab.experiments.study.plan import Study
from sopilot_lab.sopbench.process import Upstream


def plan_document(study: Study, base: Path, upstream: Upstream) -> dict[str, Any]:
    """Cells, tasks, requests, tokens, cost and power, before the first request."""
    cells = study_cells(study, base, upstream)
    tasks = study_tasks(cells)
    estimates = estimate(study, cells, upstream)
    costs = [one.cost for one in estimates if one.cost is not None]
    return {
        "study": study.name,
        "hypotheses": study.fixed.sha256,
        "tasks": len(tasks),
        "goals": len({(each.domain, each.goal) for each in tasks}),
        "cells": [asdict(one) for one in estimates],
        "requests": sum(one.requests for one in estimates),
        "prompt_tokens": sum(one.prompt_tokens for one in estimates),
        "completion_tokens": sum(one.completion_tokens for one in estimates),
        "user_tokens": sum(one.user_tokens for one in estimates),
        "hours": round(sum(one.hours for one in estimates), 2),
        "cost": round(sum(costs), 4) if costs else None,
        "without_price": len(estimates) - len(costs),
        "power": power_rows(study, cells, upstream),
    }


def plan_lines(plan: Mapping[str, Any], effect: float) -> Iterator[str]:
    cells = plan["cells"]
    yield f"{plan['study']}: {counted(len(cells), 'cell')} × {counted(plan['tasks'], 'task')}"
    yield f"hypotheses: {plan['hypotheses'] or 'none: everything is exploratory'}\n"
    runs = sum(one["tasks"] for one in cells)
    total = {**plan, "cell": "total", "tasks": runs, "like": "total"}
    rows = [
        (
            one["cell"],
            one["tasks"],
            one["requests"],
            one["prompt_tokens"],
            one["completion_tokens"],
            one["user_tokens"],
            "–" if one["cost"] is None else f"{one['cost']:.2f}",
            f"{one['hours']:.1f}",
            "" if one["like"] in one["cell"] else f"as {one['like']}",
        )
        for one in (*cells, total)
    ]
    counted_tokens = ["prompt tokens", "reply tokens", "user tokens"]
    yield table(rows, ["cell", "tasks", "requests", *counted_tokens, "cost", "hours", ""])
    yield "at least: the reference executor makes no detour and explains nothing"
    yield (
        f"{CHARACTERS} characters a token; {SECONDS:g} s a request, {AT_ONCE} tasks at a time, "
        "cells one after the other"
    )
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
