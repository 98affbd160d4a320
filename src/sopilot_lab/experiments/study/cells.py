"""The cells of a study: one configuration each, one folder each, one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot_lab.experiments.entrants import Contestant, Party
from sopilot_lab.experiments.run_folder import RunConfiguration, RunFolder
from sopilot_lab.experiments.selection import drawn, select_tasks, should_succeed, stratified
from sopilot_lab.experiments.study.plan import Block, Entrant, Study
from sopilot_lab.experiments.summary import summarise_folder
from sopilot_lab.experiments.sweep import Seen, Sweep, make_configuration, run_sweep
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.recorded import SCREENS
from sopilot_lab.sopbench.reference import TaskReference


@dataclass(frozen=True, slots=True)
class Cell:
    """A model under an arm, the ``run``-th time, on its tasks. The folder's name tells it."""

    entrant: Entrant
    arm: str
    configuration: RunConfiguration
    folder: Path
    user: Contestant
    tasks: tuple[TaskReference, ...] = ()
    condition: str = ""

    @property
    def label(self) -> str:
        condition = f" / {self.condition}" if self.condition else ""
        return f"{self.configuration.label}{condition}"


def study_cells(
    study: Study, base: Path, upstream: Upstream, arms: Sequence[str] = ()
) -> list[Cell]:
    """Every model under every arm before anything is repeated: a study that ends early has
    whole comparisons. Blocks of one configuration are one cell, on the tasks of all of them.
    ``arms`` leaves only these: several processes may run one study."""
    result: dict[Path, Cell] = {}
    most = max(block.repetitions for each in study.entrants for block in each.blocks)
    chosen: dict[object, tuple[TaskReference, ...]] = {}
    for run in range(1, most + 1):
        for entrant in study.entrants:
            for block in (each for each in entrant.blocks if run <= each.repetitions):
                key = (block.domains, block.screen)
                tasks = chosen.setdefault(key, _block_tasks(study, block, upstream))
                for arm in block.arms:
                    cell = _cell(study, entrant, block, arm, run, base, upstream)
                    held = result[cell.folder].tasks if cell.folder in result else ()
                    every = tuple(dict.fromkeys((*held, *tasks)))
                    result[cell.folder] = replace(cell, tasks=every)
    cells = [cell for cell in result.values() if not arms or cell.arm in arms]
    if not cells:
        known = ", ".join(dict.fromkeys(cell.arm for cell in result.values()))
        raise mistake("study", f"no such arm in this study; known: {known}")
    return cells


def _cell(
    study: Study, entrant: Entrant, block: Block, arm: str, run: int, base: Path, upstream: Upstream
) -> Cell:
    user = block.user or study.user
    configuration = make_configuration(
        upstream,
        arm=arm,
        model=entrant.who.label,
        tools=study.tools,
        user=user.label,
        language=block.language,
        run=run,
        hypotheses=study.fixed.sha256,
        budgets={**study.budgets, **entrant.budgets, **block.budgets},
    )
    name = configuration.folder_name.rpartition("-")[0]  # the study's own folder
    if block.condition:
        name = re.sub(r"[^\w.+-]+", "_", f"{name}-{block.condition}")
    folder = base / "runs" / name
    return Cell(entrant, arm, configuration, folder, user, condition=block.condition)


def _block_tasks(study: Study, block: Block, upstream: Upstream) -> tuple[TaskReference, ...]:
    def executes(each: TaskReference) -> bool:
        return should_succeed(each, upstream)

    def part(some: Sequence[TaskReference], limit: int) -> tuple[TaskReference, ...]:
        if study.seed is None:
            return stratified(some, executes, limit)
        return drawn(some, executes, limit, study.seed)

    screen = SCREENS[block.screen]
    chosen: list[TaskReference] = []
    for domain in block.domains:
        some = select_tasks(domain, upstream, kind=study.kind, listed=study.listed, screen=screen)
        chosen += some if study.per_domain is None else part(some, study.per_domain)
    return tuple(chosen) if study.limit is None else part(chosen, study.limit)


def study_tasks(cells: Sequence[Cell]) -> tuple[TaskReference, ...]:
    """The tasks of all cells, each once."""
    return tuple(dict.fromkeys(each for cell in cells for each in cell.tasks))


def run_study(
    study: Study,
    cells: Sequence[Cell],
    *,
    at_once: int | None = None,
    runner: Any = None,
    seen: Seen,
) -> Iterator[tuple[Cell, Sweep]]:
    """Resume where it stopped. Hypotheses that have changed since are refused."""
    _require_the_same_hypotheses(cells)
    for cell in cells:
        sweep = run_sweep(
            cell.folder,
            cell.configuration,
            cell.tasks,
            Party(cell.entrant.who, cell.user, study.patience),
            runner=runner,
            at_once=at_once,
            seen=seen,
        )
        sweep.folder.write_summary(summarise_folder(sweep.folder, {}))
        yield cell, sweep


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
                    "restore the old hypotheses, or begin in another folder with -o: a study "
                    "whose hypotheses change after a look at the results is another study",
                )


def cell_status(cell: Cell) -> dict[str, Any]:
    tasks = cell.tasks
    if not (cell.folder / "configuration.json").exists():
        state = {"judged": 0, "missing": len(tasks), "broken": 0, "cost": None}
        return {"cell": cell.label, "asked": len(tasks), **state, "reasons": {}}
    folder = RunFolder.open(cell.folder)
    summary = summarise_folder(folder, {})
    planned = {str(each) for each in tasks}
    judged = len(planned & folder.records().keys())
    return {
        "cell": cell.label,
        "asked": len(planned),
        "judged": judged,
        "missing": len(planned) - judged,
        "broken": summary["discarded"],
        "cost": summary["used"]["cost"],
        "reasons": summary["missing_by_reason"],
    }
