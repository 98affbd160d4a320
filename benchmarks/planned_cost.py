"""Compare the plan of a study with a run whose requests are counted.

    python benchmarks/planned_cost.py [--per-domain 12] [--seed 2026] [--json FILE]

Requests and tokens are counted with a real tokenizer; the answers are the reference executor's. It
can't read the official text: under `official` it gets the compiled program beside the text that is
counted, so this row says what `official` costs if a model takes the turns of `flat`. Exits 1 if
requests or cost are more than 15 % away from the plan.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from campaign import main
from population import ReadsProse
from sopilot.models.wire import wire_request
from sopilot.protocols import Model, ModelReply, ModelRequest
from sopilot_lab.experiments import trial
from sopilot_lab.experiments.entrants import Party
from sopilot_lab.experiments.study.cells import study_cells
from sopilot_lab.experiments.study.estimate import plan_document
from sopilot_lab.experiments.study.plan import load_study
from sopilot_lab.experiments.sweep import run_sweep
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.programs import ProgramShelf
from sopilot_lab.sopbench.source import load_tasks
from vocabulary import smollm2

ARMS = ("official", "flat", "pg-paper", "full-cursor", "fused")
PRICE = (1.0, 4.0)
CLOSE = 0.15


class Counting:
    """Counts a model's requests as they would be sent, schemas included, and its replies."""

    def __init__(self, model: Model, counts: Counter[str]) -> None:
        self.name = model.name
        self._model, self._counts = model, counts

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await self._model.complete(request)
        count, body = smollm2().count, wire_request(request, "m")
        text = reply.content + "".join(f"{call.name}{call.arguments}" for call in reply.tool_calls)
        parts = [*body.get("tools", ()), *body["messages"]]
        prompt = sum(count(json.dumps(part, ensure_ascii=False)) for part in parts)
        self._counts.update(requests=1, prompt=prompt, completion=count(text))
        return reply


def measure(per_domain: int, seed: int) -> dict[str, Any]:
    counts = {arm: Counter[str]() for arm in ARMS}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "study.yaml")
        file.write_text(
            f"study: planned\nmodels: [{{model: reference, price: {list(PRICE)}}}]\n"
            f"arms: {list(ARMS)}\ntasks: {{per_domain: {per_domain}, seed: {seed}}}\n"
        )
        study, upstream = load_study(file), shared_upstream()
        plan = plan_document(study, Path(scratch, "runs"), upstream)
        honest = trial.playing
        cells = study_cells(study, Path(scratch, "runs"), upstream)
        shelf = ProgramShelf("official", upstream)

        def playing(who: Any, reader: Any, about: Mapping[str, str]) -> Model:
            model = honest(who, reader, about)
            if about["arm"] == "official":
                (task,) = load_tasks(about["task"], upstream=upstream)
                model = ReadsProse(model, {task.goal: shelf.program(task).program})
            return Counting(model, counts[about["arm"]])

        with patch.object(trial, "playing", playing):
            for cell in cells:
                run_sweep(
                    cell.folder,
                    cell.configuration,
                    cell.tasks,
                    Party(cell.entrant.who),
                    runner="plain",
                    workers=1,  # other processes would count for themselves
                )
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
