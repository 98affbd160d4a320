"""A whole check of one model: run, decided, and kept with its page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from sopilot.agent.reference.executor import Reference
from sopilot.models.open import MAILBOX, make_model
from sopilot.protocols import Model
from sopilot.runner.qualifications import Answer
from sopilot.stores.memory import MemoryStore
from sopilot.stores.open import data_folder
from sopilot.tasks.task import Task
from sopilot.values.json import JSON
from sopilot_lab.qualification.checking import CheckProgress, CheckSpending, Qualification
from sopilot_lab.qualification.folder import CheckFolder, check_path
from sopilot_lab.qualification.paging_decision import decide
from sopilot_lab.qualification.prepared import PreparedCheck
from sopilot_lab.qualification.report import render_page, verdict_document


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
    """Run a check, or continue it where it stopped. The document names its page. ``probes``: the
    model itself answers questions about recorded runs."""
    configuration = prepared.configuration
    path = check_path(data_folder(), model, configuration)
    folder = CheckFolder(path, configuration, restart=restart)
    model_for = _ModelFor(model)
    if prepared.cases:
        model_for(prepared.cases[0], prepared.arms[0])  # a mistake in its name ends the check here
    check = Qualification(
        cases=prepared.cases,
        arms=prepared.arms,
        model_for=model_for,
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
    """One model for all cases; the reference executor needs each handbook's reader, and a mailbox
    may have a folder per arm and task."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._model: Model | None = None

    def __call__(self, case: Task, arm: str) -> Model:
        if self._name == "reference":
            return Reference(case.reader)
        if self._name.startswith(MAILBOX):
            return make_model(self._name, about={"arm": arm, "task": case.key})
        if self._model is None:
            self._model = make_model(self._name)
        return self._model
