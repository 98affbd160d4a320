"""The discipline check: which representation suits a model, and whether to page it.

Owns the cases of a check, the directed probe, the natural audit, the frozen
verdict rule, the check's folder and page, and a population of simulated models
to try the rule on. May import every room above it; models and stores come in
from outside.
"""

from sopilot.gate.case import Case, World
from sopilot.gate.checking import Check, MemoryJournal, Step
from sopilot.gate.cursor import Cursor, cursors_of
from sopilot.gate.desk_cases import desk_cases
from sopilot.gate.folder import CheckFolder, check_path, last_verdict
from sopilot.gate.plan import CASES, planned
from sopilot.gate.probe import QUESTIONS, probe_request, spread
from sopilot.gate.probe_grading import Grade, ProbeScore, grade, probe_score, scores_by_depth
from sopilot.gate.record import RunRecord
from sopilot.gate.rehearsal import Estimate, Rehearsal, rehearse
from sopilot.gate.report import verdict_document
from sopilot.gate.rule import ARMS_CHECKED, RULE_VERSION
from sopilot.gate.scenario_cases import scenario_cases
from sopilot.gate.spending import Allowance, Prices, Spending
from sopilot.gate.verdict import Condition, Verdict, decide

__all__ = [
    "ARMS_CHECKED",
    "CASES",
    "QUESTIONS",
    "RULE_VERSION",
    "Allowance",
    "Case",
    "Check",
    "CheckFolder",
    "Condition",
    "Cursor",
    "Estimate",
    "Grade",
    "MemoryJournal",
    "Prices",
    "ProbeScore",
    "Rehearsal",
    "RunRecord",
    "Spending",
    "Step",
    "Verdict",
    "World",
    "check_path",
    "cursors_of",
    "decide",
    "desk_cases",
    "grade",
    "last_verdict",
    "planned",
    "probe_request",
    "probe_score",
    "rehearse",
    "scenario_cases",
    "scores_by_depth",
    "spread",
    "verdict_document",
]
