"""A study as one file: who runs what how often, and what is to be shown by it.

Owns the file's shape, the hypotheses that are fixed before the first run and their tests, what
the study will cost and can see, its cells (one folder a configuration) and its report. May
import the rest of ``bench`` and ``stats``.
"""

from sopilot.lab.bench.study.cells import Cell, Progress, cell_status, run_study, study_cells
from sopilot.lab.bench.study.estimate import Estimate, estimate, power_rows
from sopilot.lab.bench.study.hypotheses import Hypothesis, Preregistration
from sopilot.lab.bench.study.plan import Study, load_study, preset
from sopilot.lab.bench.study.results import study_document

__all__ = [
    "Cell",
    "Estimate",
    "Hypothesis",
    "Preregistration",
    "Progress",
    "Study",
    "cell_status",
    "estimate",
    "load_study",
    "power_rows",
    "preset",
    "run_study",
    "study_cells",
    "study_document",
]
