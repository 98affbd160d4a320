"""The cells of a study: one configuration each, one folder each, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sopilot.lab.bench._run_folder import RunFolder
from sopilot.lab.bench.record import BenchRecord, RunConfiguration
from sopilot.lab.bench.reference import TaskReference
from sopilot.lab.bench.screen import SCREENS
from sopilot.lab.bench.selection import select_tasks, should_succeed, stratified
from sopilot.lab.bench.sopbench_process import Upstream
from sopilot.lab.bench.study.plan import Entrant, Study
from sopilot.lab.bench.summary import summarise_folder
from sopilot.lab.bench.sweep import Sweep, make_configuration, run_sweep
from sopilot.language.diagnostics import Place, mistake

Seen = Callable[[BenchRecord], None]


@dataclass(frozen=True, slots=True)
class Cell:
    """A model under an arm, the ``run``-th time. The folder's name tells it."""

    entrant: Entrant
    arm: str
    configuration: RunConfiguration
    folder: Path

    @property
    def label(self) -> str:
        return self.configuration.label


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a running study stands, told when a cell ends."""

    cell: Cell
    number: int
    cells: int
    sweep: Sweep


def study_tasks(study: Study, upstream: Upstream) -> tuple[TaskReference, ...]:
    """The same for every cell."""
    chosen = [
        each
        for domain in study.domains
        for each in select_tasks(
            domain,
            upstream,
            kind=study.kind,
            listed=study.listed,
            screen=SCREENS[study.screen],
        )
    ]
    if study.limit is None:
        return tuple(chosen)
    return stratified(chosen, lambda each: should_succeed(each, upstream), study.limit)


def study_cells(study: Study, base: Path, upstream: Upstream) -> list[Cell]:
    """Every model under every arm before anything is repeated: a study that ends early has
    whole comparisons."""
    found = []
    for run in range(1, study.repetitions + 1):
        for entrant in study.entrants:
            for arm in study.arms:
                configuration = make_configuration(
                    upstream,
                    arm=arm,
                    model=entrant.who.label,
                    tools=study.tools,
                    user=study.user.label,
                    language=study.language,
                    run=run,
                    hypotheses=study.fixed.sha256,
                    budgets={**study.budgets, **entrant.budgets},
                )
                name = configuration.folder_name.rpartition("-")[0]  # the study's own folder
                found.append(Cell(entrant, arm, configuration, base / "runs" / name))
    return found


def run_study(
    study: Study, base: Path, upstream: Upstream, *, runner: Any = None, seen: Seen
) -> Iterator[Progress]:
    """Goes on where it stopped. Hypotheses that have changed since are refused."""
    tasks = study_tasks(study, upstream)
    cells = study_cells(study, base, upstream)
    _require_the_same_hypotheses(cells)
    for number, cell in enumerate(cells, 1):
        sweep = run_sweep(
            cell.folder,
            cell.configuration,
            tasks,
            contestant=cell.entrant.who,
            user=study.user,
            patience=study.patience,
            runner=runner,
            seen=seen,
        )
        sweep.folder.write_summary(summarise_folder(sweep.folder, {}))
        yield Progress(cell, number, len(cells), sweep)


def _require_the_same_hypotheses(cells: Sequence[Cell]) -> None:
    for cell in cells:
        if (cell.folder / "configuration.json").exists():
            made = RunFolder.open(cell.folder).configuration.hypotheses
            if made != cell.configuration.hypotheses:
                raise mistake(
                    "hypotheses-changed",
                    "these runs were made under other hypotheses "
                    f"({made[:12] or 'none'}, now "
                    f"{cell.configuration.hypotheses[:12] or 'none'})",
                    Place(str(cell.folder)),
                    "put the old ones back, or begin in another folder with -o: what "
                    "is changed after a look is another study",
                )


def cell_status(cell: Cell, tasks: Sequence[object]) -> dict[str, Any]:
    if not (cell.folder / "configuration.json").exists():
        state = {"judged": 0, "missing": len(tasks), "broken": 0, "cost": None}
        return {"cell": cell.label, "asked": len(tasks), **state, "reasons": {}}
    folder = RunFolder.open(cell.folder)
    summary = summarise_folder(folder, {})
    asked = {str(each) for each in tasks}
    judged = len(asked & folder.records().keys())
    return {
        "cell": cell.label,
        "asked": len(asked),
        "judged": judged,
        "missing": len(asked) - judged,
        "broken": summary["discarded"],
        "cost": summary["used"]["cost"],
        "reasons": summary["missing_by_reason"],
    }
