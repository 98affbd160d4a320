"""Compare the plan of a study with a run against an endpoint that counts.

    python benchmarks/planned_cost.py [--per-domain 12] [--seed 2026] [--json FILE]

The endpoint on loopback counts requests and tokens with a real tokenizer; the answers are the
reference executor's. It can't read the official text: under `official` it gets the compiled program
beside it, and the endpoint counts the official text, so this row says what `official` costs if a
model takes the turns of `flat`. Exits 1 if requests or cost are more than 15 % away from
the plan.
"""

from __future__ import annotations

import json
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from campaign import main
from population import ReadsProse
from sopilot.models.wire import wire_request
from sopilot.protocols import Model, ModelReply, ModelRequest
from sopilot_lab.experiments import trial as _trial
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


class Meter(BaseHTTPRequestHandler):
    """Counts what it is sent, by arm: schemas and messages as they stand, and the reply."""

    counts: Mapping[str, dict[str, int]] = {}

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        counted, count = self.counts[body["arm"]], smollm2().count
        parts = [*body["request"].get("tools", ()), *body["request"]["messages"]]
        counted["requests"] += 1
        counted["prompt"] += sum(count(json.dumps(part, ensure_ascii=False)) for part in parts)
        counted["completion"] += count(body["reply"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@contextmanager
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Meter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


class Sent:
    """Sends each request to the endpoint beside the executor that answers it."""

    def __init__(self, model: Model, address: str, arm: str) -> None:
        self._model, self._address, self._arm = model, address, arm

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await self._model.complete(request)
        text = reply.content + "".join(f"{call.name}{call.arguments}" for call in reply.tool_calls)
        body = {"arm": self._arm, "request": wire_request(request, "m"), "reply": text}
        urllib.request.urlopen(
            urllib.request.Request(self._address, json.dumps(body).encode(), method="POST")
        ).close()
        return reply


def measure(per_domain: int, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch, endpoint() as address:
        file = Path(scratch, "study.yaml")
        file.write_text(
            f"study: planned\nmodels: [{{model: reference, price: {list(PRICE)}}}]\n"
            f"arms: {list(ARMS)}\ntasks: {{per_domain: {per_domain}, seed: {seed}}}\n"
        )
        study, upstream = load_study(file), shared_upstream()
        plan = plan_document(study, Path(scratch, "runs"), upstream)
        Meter.counts = {arm: {"requests": 0, "prompt": 0, "completion": 0} for arm in ARMS}
        honest = _trial.playing

        cells = study_cells(study, Path(scratch, "runs"), upstream)
        shelf = ProgramShelf("official", upstream)

        def playing(who: Any, reader: Any, about: Mapping[str, str]) -> Model:
            model = honest(who, reader, about)
            if about["arm"] == "official":
                (task,) = load_tasks(about["task"], upstream=upstream)
                model = ReadsProse(model, {task.goal: shelf.program(task).program})
            return Sent(model, address, about["arm"])

        _trial.playing = playing
        try:
            for cell in cells:
                run_sweep(
                    cell.folder,
                    cell.configuration,
                    cell.tasks,
                    Party(cell.entrant.who),
                    runner="plain",
                    workers=1,  # other processes would not know the endpoint
                )
        finally:
            _trial.playing = honest
    rows = []
    for planned, arm in zip(plan["cells"], ARMS, strict=True):
        counted = Meter.counts[arm]
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
