"""A whole check of one model: run, decided, and kept with its page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sopilot.adapters.memory_store import MemoryStore
from sopilot.adapters.model_by_name import make_model
from sopilot.adapters.store_by_name import data_folder
from sopilot.desks.tasks import Task
from sopilot.lab.discipline._checking import CheckProgress, DisciplineCheck
from sopilot.lab.discipline._paging_decision import decide
from sopilot.lab.discipline._questions import chosen_questions, program_hashes
from sopilot.lab.discipline._rehearsal import Rehearsal
from sopilot.lab.discipline._rule import RULE_VERSION, Answer
from sopilot.lab.discipline.folder import CheckFolder, check_path
from sopilot.lab.discipline.html_page import render_page
from sopilot.lab.discipline.report import verdict_document
from sopilot.lab.discipline.spending import CheckSpending
from sopilot.runtime.agent import Reference
from sopilot.runtime.session.protocols import JSON, Model

REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Check:
    model: str
    plan: Sequence[Task]
    arms: Sequence[str]
    rehearsal: Rehearsal
    spending: CheckSpending

    def run(
        self,
        *,
        scope: str,
        probe: int,
        restart: bool,
        begun: float,
        parallel: int,
        timeout: float,
        watch: Callable[[CheckProgress], None],
    ) -> tuple[Answer, dict[str, JSON]]:
        """Goes on where the same check stopped. The document says where its page is."""
        configuration: dict[str, JSON] = {
            "model": self.model,
            "arms": list(self.arms),
            "cases": [case.key for case in self.plan],
            "programs": program_hashes(self.plan),
            "scope": scope,
            "probe": probe,
            "rule_version": RULE_VERSION,
        }
        path = check_path(data_folder(), self.model, configuration)
        folder = CheckFolder(path, configuration, restart=restart)
        asked = 0 if self.model == REFERENCE else probe
        check = DisciplineCheck(
            cases=self.plan,
            arms=self.arms,
            model_for=_ModelFor(self.model),
            rehearsal=self.rehearsal,
            spending=self.spending,
            journal=folder,
            store_for=MemoryStore,
            questions=chosen_questions(self.plan, self.rehearsal, asked),
            parallel=parallel,
            timeout=timeout,
            watch=watch,
        )
        asyncio.run(check.run())
        verdict = decide(
            self.model,
            folder.runs(),
            folder.grades(),
            planned=len(self.plan),
            arms_planned=self.arms,
            scripted=self.model == REFERENCE,
            problem=check.problem,
        )
        document = verdict_document(
            verdict, folder.runs(), folder.grades(), self.spending, self.rehearsal,
            stopped=check.stopped, seconds=time.monotonic() - begun,
        )  # fmt: skip
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
