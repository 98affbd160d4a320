"""Exact paired tests, clustered permutation, intervals.

Owns the outcome of a benchmark task, how outcomes of two arms are paired, and
what may be concluded from them. Pure: seeds arrive as values, text arrives
already read, and a figure that does not exist is ``Undefined`` with its reason,
never 0. Needs the standard library alone. Imports diagnostics only.
"""

from sopilot.lab.stats._clustered import LeaveOneOut, goal_clustered, leave_one_goal_out, task_joint
from sopilot.lab.stats._comparison import Comparison, compare
from sopilot.lab.stats._difference import clustered_difference, paired_difference
from sopilot.lab.stats._multiplicity import Adjusted, benjamini_hochberg
from sopilot.lab.stats._non_inferiority import (
    least_pairs,
    most_losses,
    non_inferiority,
    non_inferiority_power,
)
from sopilot.lab.stats._outcome import RunOutcome, TaskKind
from sopilot.lab.stats._pairing import Dropped, Pair, Pairs, pair
from sopilot.lab.stats._power import mcnemar_power, minimum_detectable_effect, tasks_needed
from sopilot.lab.stats._proportion import clopper_pearson, wilson
from sopilot.lab.stats._repeats import PassK, RunSpread, pass_k, run_to_run
from sopilot.lab.stats._undefined import Interval, Undefined
from sopilot.lab.stats.accuracy import Accuracy, accuracy, balanced_accuracy
from sopilot.lab.stats.bootstrap import BootstrapInterval, bootstrap_interval
from sopilot.lab.stats.mcnemar import Discordance, mcnemar, pool, sign_test
from sopilot.lab.stats.post_goal import PostGoal, post_goal
from sopilot.lab.stats.reading import (
    discordances_from,
    outcomes_from,
    read_rows,
)
from sopilot.lab.stats.sign_flip import SEED, SignFlip, sign_flip

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
