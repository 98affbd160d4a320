"""Compare the plan of a study with a run whose requests are counted.

    python benchmarks/planned_cost.py [--per-domain 12] [--seed 2026] [--json FILE]

Requests and tokens are counted with a real tokenizer; the answers are the reference executor's. It
can't read the official text: under `official` it gets the compiled program beside the text that is
counted, so this row says what `official` costs if a model takes the turns of `flat`. Exits 1 if
requests or cost are more than 15 % away from the plan.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from campaign import main
from population import ReadsProse
from sopilot.agent.reference.judging import PredicateJudge
from sopilot.models.wire import wire_request
from sopilot.protocols import Model, ModelReply, ModelRequest
from sopilot_lab.experiments.entrants import Contestant, Party, playing
from sopilot_lab.experiments.study.cells import Cell, study_cells
from sopilot_lab.experiments.study.estimate import plan_document
from sopilot_lab.experiments.study.plan import load_study
from sopilot_lab.experiments.trial import TrialRunner
from sopilot_lab.sopbench.process import Upstream, shared_upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.source import load_tasks
from vocabulary import smollm2

ARMS = ("official", "flat", "pg-paper", "full-cursor", "fused")
PRICE = (1.0, 4.0)
CLOSE = 0.15


def counter(counts: Counter[str]) -> Callable[[ModelRequest, ModelReply], None]:
    """Counts a model's requests as they would be sent, schemas included, and its replies."""

    def count(request: ModelRequest, reply: ModelReply) -> None:
        tokens, body = smollm2().count, wire_request(request, "m")
        text = reply.content + "".join(f"{call.name}{call.arguments}" for call in reply.tool_calls)
        parts = [*body.get("tools", ()), *body["messages"]]
        prompt = sum(tokens(json.dumps(part, ensure_ascii=False)) for part in parts)
        counts.update(requests=1, prompt=prompt, completion=tokens(text))

    return count


async def run(cell: Cell, upstream: Upstream) -> Counter[str]:
    """Run the tasks of a cell, and count what its model was asked."""
    counts, shelf = Counter[str](), ProgramShelf("official", upstream)

    def play(who: Contestant, reader: PredicateJudge, about: Mapping[str, str]) -> Model:
        model = playing(who, reader, about)
        if cell.arm != "official":
            return model
        (task,) = load_tasks(about["task"], upstream=upstream)
        return ReadsProse(model, {task.goal: shelf.program(task).program})

    party = Party(cell.entrant.who)
    runner = TrialRunner(cell.configuration, upstream, party, exchanged=counter(counts), play=play)
    for task in cell.tasks:
        await runner.run(task)
    return counts


def measure(per_domain: int, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "study.yaml")
        file.write_text(
            f"study: planned\nmodels: [{{model: reference, price: {list(PRICE)}}}]\n"
            f"arms: {list(ARMS)}\ntasks: {{per_domain: {per_domain}, seed: {seed}}}\n"
        )
        study, upstream = load_study(file), shared_upstream()
        plan = plan_document(study, Path(scratch, "runs"), upstream)
        cells = study_cells(study, Path(scratch, "runs"), upstream)
        counts = {cell.arm: asyncio.run(run(cell, upstream)) for cell in cells}
    rows = []
    for planned, arm in zip(plan["cells"], ARMS, strict=True):
        counted = counts[arm]
        cost = (counted["prompt"] * PRICE[0] + counted["completion"] * PRICE[1]) / 1e6
        rows.append(
            {
                "arm": arm,
                "tasks": planned["tasks"],
                "requests": counted["requests"],
                "requests_planned_over_counted": round(
                    planned["requests"] / counted["requests"], 3
                ),
                "cost_planned_over_counted": round(planned["cost"] / cost, 3),
            }
        )
    ratios = [value for row in rows for key, value in row.items() if "_over_" in key]
    within = all(abs(ratio - 1) <= CLOSE for ratio in ratios)
    return {"seed": seed, "close": CLOSE, "cells": rows, "passed": within}


if __name__ == "__main__":
    main(__doc__, measure, per_domain=12, seed=2026)  # seed 7 set the plan
