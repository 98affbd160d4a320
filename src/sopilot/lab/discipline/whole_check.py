"""A whole check of one model: run, decided, and kept with its page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from sopilot.adapters.memory_store import MemoryStore
from sopilot.adapters.model_by_name import make_model
from sopilot.adapters.store_by_name import data_folder
from sopilot.desks.tasks import Task
from sopilot.lab.discipline._checking import CheckProgress, DisciplineCheck
from sopilot.lab.discipline._paging_decision import decide
from sopilot.lab.discipline._prepared import PreparedCheck
from sopilot.lab.discipline._rule import Answer
from sopilot.lab.discipline.folder import CheckFolder, check_path
from sopilot.lab.discipline.html_page import render_page
from sopilot.lab.discipline.report import verdict_document
from sopilot.lab.discipline.spending import CheckSpending
from sopilot.runtime.agent import Reference
from sopilot.runtime.session.protocols import JSON, Model


def run_check(
    model: str,
    prepared: PreparedCheck,
    spending: CheckSpending,
    *,
    restart: bool,
    begun: float,
    probes: bool,
    parallel: int,
    timeout: float,
    watch: Callable[[CheckProgress], None],
) -> tuple[Answer, dict[str, JSON]]:
    """Goes on where the same check stopped. The document says where its page is. ``probes``
    means that the model itself is asked about runs that were recorded."""
    configuration = prepared.configuration
    path = check_path(data_folder(), model, configuration)
    folder = CheckFolder(path, configuration, restart=restart)
    check = DisciplineCheck(
        cases=prepared.cases,
        arms=prepared.arms,
        model_for=_ModelFor(model),
        rehearsal=prepared.rehearsal,
        spending=spending,
        journal=folder,
        store_for=MemoryStore,
        questions=prepared.questions,
        probed=make_model(model) if probes else None,
        parallel=parallel,
        timeout=timeout,
        watch=watch,
    )
    asyncio.run(check.run())
    runs = prepared.runs or folder.runs()
    verdict = decide(
        model,
        runs,
        folder.grades(),
        planned=prepared.planned,
        arms_planned=prepared.arms,
        scripted=model == "reference",
        problem=check.problem,
    )
    document = verdict_document(
        verdict, runs, folder.grades(), spending, prepared.rehearsal,
        stopped=check.stopped, seconds=time.monotonic() - begun,
    )  # fmt: skip
    if prepared.recorded:
        document["recorded"] = {"model": prepared.recorded, "sessions": prepared.sessions}
    folder.finish(document, render_page(document))
    document["report"] = str(folder.path / "report.html")
    return verdict.answer, document


class _ModelFor:
    """One model for all; the reference executor once a handbook."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._model: Model | None = None

    def __call__(self, case: Task, arm: str) -> Model:
        if self._name == "reference":
            return Reference(case.reader)
        if self._model is None:
            self._model = make_model(self._name)
        return self._model
