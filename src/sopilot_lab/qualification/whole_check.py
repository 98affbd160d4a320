"""A whole check of one model: run, decided, and kept with its page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from sopilot.protocols import Model
from sopilot.runner.qualifications import Answer
from sopilot.stores.open import data_folder
from sopilot.values.json import JSON
from sopilot_lab.experiments.entrants import Contestant, named_model, playing
from sopilot_lab.experiments.trial import about_run
from sopilot_lab.qualification.checking import CheckProgress, CheckSpending, Qualification
from sopilot_lab.qualification.folder import CheckFolder, check_path
from sopilot_lab.qualification.paging_decision import decide
from sopilot_lab.qualification.plan import PreparedCheck, arm_configuration
from sopilot_lab.qualification.report import render_page, verdict_document


def run_check(
    prepared: PreparedCheck,
    spending: CheckSpending,
    *,
    restart: bool,
    begun: float,
    parallel: int,
    timeout: float,
    watch: Callable[[CheckProgress], None],
) -> tuple[Answer, dict[str, JSON]]:
    """Run a check, or continue it where it stopped. The document names its page."""
    model, configuration = spending.who.name, prepared.configuration
    probed = _probed(spending.who, prepared)  # a mistake in its name ends the check here
    folder = CheckFolder(
        check_path(data_folder(), model, configuration), configuration, restart=restart
    )
    check = Qualification(
        cases=prepared.cases,
        arms=prepared.arms,
        rehearsal=prepared.rehearsal,
        spending=spending,
        folder=folder,
        questions=prepared.questions,
        probed=probed,
        parallel=parallel,
        timeout=timeout,
        watch=watch,
    )
    asyncio.run(check.run())
    runs, grades = prepared.runs or folder.runs(), list(folder.graded().values())
    verdict = decide(
        model,
        runs,
        grades,
        planned=prepared.planned,
        arms_planned=prepared.arms,
        scripted=model == "reference",
        problem=check.problem,
    )
    document = verdict_document(
        verdict, runs, grades, spending, prepared.rehearsal,
        stopped=check.stopped, seconds=time.monotonic() - begun,
    )  # fmt: skip
    if prepared.recorded:
        document["recorded"] = {"model": prepared.recorded, "sessions": prepared.sessions}
    folder.finish(document, render_page(document))
    document["report"] = str(folder.path / "report.html")
    return verdict.answer, document


def _probed(who: Contestant, prepared: PreparedCheck) -> Model | None:
    """The model in the place of `probe`, beside the arms; ``None`` if there is nothing to ask."""
    configuration = replace(arm_configuration(who.label, prepared.arms[0]), arm="probe")
    if prepared.cases:
        first, case = next(iter(prepared.cases.items()))
        return playing(who, case.reader, about_run(configuration, str(first)))
    if prepared.questions:
        return named_model(who, about_run(configuration, prepared.questions[0][0].case))
    return None
