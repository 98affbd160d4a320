"""The discipline check: which representation suits a model, and whether to page it.

Owns the cases of a check, the directed probe, the natural audit, the frozen
verdict rule, the check's folder and page. Simulated models to try the rule on stand
in benchmarks/population.py. May import every room below it; models and stores come in
from outside.
"""

from sopilot.lab.discipline._checking import CheckProgress, DisciplineCheck, MemoryJournal
from sopilot.lab.discipline._conditions import PagingCondition
from sopilot.lab.discipline._cursor import Cursor, cursors_of
from sopilot.lab.discipline._paging_decision import Verdict, decide
from sopilot.lab.discipline._plan import CASES, checkable, planned
from sopilot.lab.discipline._prepared import PreparedCheck, rehearsed_check
from sopilot.lab.discipline._probe import QUESTIONS, probe_request, spread
from sopilot.lab.discipline._probe_grading import (
    ProbeGrade,
    ProbeScore,
    grade,
    probe_score,
    scores_by_depth,
)
from sopilot.lab.discipline._record import RunRecord
from sopilot.lab.discipline._recorded import recorded_check
from sopilot.lab.discipline._rehearsal import Estimate, Rehearsal, rehearse
from sopilot.lab.discipline._rule import ARMS_CHECKED, LEAST_PAIRS, RULE_VERSION, Answer
from sopilot.lab.discipline._running import TIMEOUT
from sopilot.lab.discipline.folder import CheckFolder, answer_of, check_path, last_verdict
from sopilot.lab.discipline.report import verdict_document
from sopilot.lab.discipline.spending import Allowance, CheckSpending, Prices

__all__ = [
    "ARMS_CHECKED",
    "CASES",
    "LEAST_PAIRS",
    "QUESTIONS",
    "RULE_VERSION",
    "TIMEOUT",
    "Allowance",
    "Answer",
    "CheckFolder",
    "CheckProgress",
    "CheckSpending",
    "Cursor",
    "DisciplineCheck",
    "Estimate",
    "MemoryJournal",
    "PagingCondition",
    "PreparedCheck",
    "Prices",
    "ProbeGrade",
    "ProbeScore",
    "Rehearsal",
    "RunRecord",
    "Verdict",
    "answer_of",
    "check_path",
    "checkable",
    "cursors_of",
    "decide",
    "grade",
    "last_verdict",
    "planned",
    "probe_request",
    "probe_score",
    "recorded_check",
    "rehearse",
    "rehearsed_check",
    "scores_by_depth",
    "spread",
    "verdict_document",
]
