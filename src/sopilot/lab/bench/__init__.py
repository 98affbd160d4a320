"""SOPBench as a source of handbooks, as a simulator and as an oracle; sweeps and reports.

Upstream's code runs in a worker process alone (``upstream_worker``, a script);
``upstream`` is its client. May import every room but ``cli``.
"""

from sopilot.lab.bench._checkout import Checkout, checkout_home, find_checkout
from sopilot.lab.bench.reference import DOMAINS, TaskReference, is_sopbench, task_references
from sopilot.lab.bench.sopbench_process import (
    CallOutcome,
    OfficialText,
    PredicateReading,
    Simulator,
    ToolList,
    Upstream,
    UpstreamError,
    UpstreamFault,
    UpstreamLost,
    UpstreamRefused,
    UpstreamTimeout,
    shared_upstream,
)
from sopilot.lab.bench.source import (
    SopbenchTask,
    load_task,
    load_tasks,
    offered_actions,
    sopbench_handbook,
    task_handbook,
)

__all__ = [
    "DOMAINS",
    "CallOutcome",
    "Checkout",
    "OfficialText",
    "PredicateReading",
    "Simulator",
    "SopbenchTask",
    "TaskReference",
    "ToolList",
    "Upstream",
    "UpstreamError",
    "UpstreamFault",
    "UpstreamLost",
    "UpstreamRefused",
    "UpstreamTimeout",
    "checkout_home",
    "find_checkout",
    "is_sopbench",
    "load_task",
    "load_tasks",
    "offered_actions",
    "shared_upstream",
    "sopbench_handbook",
    "task_handbook",
    "task_references",
]
