"""Exact paired tests, clustered permutation, intervals.

Owns the outcome of a benchmark task, how outcomes of two arms are paired, and
what may be concluded from them. Pure: seeds arrive as values, text arrives
already read, and a figure that does not exist is ``Undefined`` with its reason,
never 0. Needs the standard library alone. Imports diagnostics only.
"""

from sopilot_lab.statistics.accuracy import Accuracy, accuracy, balanced_accuracy
from sopilot_lab.statistics.bootstrap import BootstrapInterval, bootstrap_interval
from sopilot_lab.statistics.clustered import (
    SEED,
    LeaveOneOut,
    SignFlip,
    goal_clustered,
    leave_one_goal_out,
    sign_flip,
    task_joint,
)
from sopilot_lab.statistics.comparison import Comparison, compare
from sopilot_lab.statistics.intervals import (
    clopper_pearson,
    clustered_difference,
    paired_difference,
    wilson,
)
from sopilot_lab.statistics.non_inferiority import (
    least_pairs,
    most_losses,
    non_inferiority,
    non_inferiority_power,
)
from sopilot_lab.statistics.outcomes import RunOutcome, TaskKind
from sopilot_lab.statistics.paired import (
    Adjusted,
    Discordance,
    Dropped,
    Pair,
    Pairs,
    benjamini_hochberg,
    mcnemar,
    pair,
    pool,
    sign_test,
)
from sopilot_lab.statistics.post_goal import PostGoal, post_goal
from sopilot_lab.statistics.power import mcnemar_power, minimum_detectable_effect, tasks_needed
from sopilot_lab.statistics.reading import discordances_from, outcomes_from, read_rows
from sopilot_lab.statistics.repeats import PassK, RunSpread, pass_k, run_to_run
from sopilot_lab.statistics.undefined import Interval, Undefined

__all__ = [
    "SEED",
    "Accuracy",
    "Adjusted",
    "BootstrapInterval",
    "Comparison",
    "Discordance",
    "Dropped",
    "Interval",
    "LeaveOneOut",
    "Pair",
    "Pairs",
    "PassK",
    "PostGoal",
    "RunOutcome",
    "RunSpread",
    "SignFlip",
    "TaskKind",
    "Undefined",
    "accuracy",
    "balanced_accuracy",
    "benjamini_hochberg",
    "bootstrap_interval",
    "clopper_pearson",
    "clustered_difference",
    "compare",
    "discordances_from",
    "goal_clustered",
    "least_pairs",
    "leave_one_goal_out",
    "mcnemar",
    "mcnemar_power",
    "minimum_detectable_effect",
    "most_losses",
    "non_inferiority",
    "non_inferiority_power",
    "outcomes_from",
    "pair",
    "paired_difference",
    "pass_k",
    "pool",
    "post_goal",
    "read_rows",
    "run_to_run",
    "sign_flip",
    "sign_test",
    "task_joint",
    "tasks_needed",
    "wilson",
]
