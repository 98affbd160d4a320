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
    costs = [item.cost for item in estimates if item.cost is not None]
    return {
        "study": study.name,
        "hypotheses": study.fixed.sha256,
        "tasks": len(tasks),
        "goals": len({(each.domain, each.goal) for each in tasks}),
        "cells": [asdict(item) for item in estimates],
        "requests": sum(item.requests for item in estimates),
        "prompt_tokens": sum(item.prompt_tokens for item in estimates),
        "completion_tokens": sum(item.completion_tokens for item in estimates),
        "user_tokens": sum(item.user_tokens for item in estimates),
        "hours": round(sum(item.hours for item in estimates), 2),
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
        f"{CHARACTERS} characters a token; {SECONDS:g} s a request, {AT_ONCE} tasks at a time, "
        "cells one after the other"
    )
    for item in plan["power"]:
        least = item["why_none"] or f"{100 * item['least_effect']:.1f} points with power 0.8"
        yield (
            f"\n{item['hypothesis']}: {item['tasks']} tasks of {item['goals']} goals; power "
            f"{item['power']:.2f} for {100 * effect:g} points at {item['level']:.4f}; "
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
