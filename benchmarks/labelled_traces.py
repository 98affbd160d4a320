"""Proposition 2 as a campaign: labelled violations are all found, clean runs raise nothing.

    python benchmarks/labelled_traces.py [--traces 120000] [--json FILE]

Random programs, random conforming and non-conforming executions through the real
machine, one labelled violation each; the audit must name the label's class at
the label's event, nothing beside what that class implies, and nothing at all on
a clean run. Every second trace is about values: one guarded payment, proven or not.
At each guarded call the guard's own proof is asked too, and the two must agree.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign import main

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("audit", "handbook")]

from test_labelled_traces import disagreement  # noqa: E402
from trace_executions import wanted_of  # noqa: E402
from trace_violations import CLASSES, labelled_trace  # noqa: E402
from trace_worlds import random_world  # noqa: E402
from value_runs import VALUE_CLASSES, value_trace  # noqa: E402

from sopilot.handbook.expressions import judge as cel_judge  # noqa: E402

SHARD = 2_000
TRACES_PER_WORLD = 20


@dataclass
class Tally:
    """The figures of some traces. ``guarded`` counts the guarded calls at their step by what the
    guard says of them."""

    labels: Counter[str] = field(default_factory=Counter)
    guarded: Counter[str] = field(default_factory=Counter)
    events: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.labels += other.labels
        self.guarded += other.guarded
        self.events += other.events
        self.problems += other.problems


def shard(seed: int) -> Tally:
    rng = random.Random(seed)
    tally = Tally()
    for number in range(SHARD):
        place = number // 2
        if place % TRACES_PER_WORLD == 0:
            world = random_world(rng)
        if number % 2:
            of_values, trace = value_trace(rng, wanted_of(VALUE_CLASSES, place))
            problem = disagreement(of_values, trace, cel_judge)
        else:
            trace = labelled_trace(world, rng.randrange(2**40), wanted_of(CLASSES, place))
            problem = disagreement(world, trace)
        tally.labels[trace.label or "clean"] += 1
        tally.events += len(trace.events)
        tally.guarded.update("unproven" if one else "proven" for one in trace.guarded.values())
        if problem is not None:
            tally.problems.append(f"shard {seed}, trace {number}: {problem}")
    return tally


def measure(traces: int) -> dict[str, Any]:
    shards = -(-traces // SHARD)
    began = time.monotonic()
    tally = Tally()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for some in pool.imap_unordered(shard, range(shards)):
            tally.add(some)
    seconds = time.monotonic() - began
    labels, problems = tally.labels, tally.problems
    made = sum(labels.values())
    missed = sum("missed" in problem for problem in problems)
    apart = sum("guard and audit disagree" in problem for problem in problems)
    return {
        "passed": not problems and set(labels) == {"clean", *CLASSES, *VALUE_CLASSES},
        "traces": made,
        "events": tally.events,
        "seconds": round(seconds, 1),
        "labels": dict(labels.most_common()),
        "false_negatives": missed,
        "false_positives": len(problems) - missed - apart,
        "guarded_calls": dict(tally.guarded.most_common()),
        "guard_and_audit_disagree": apart,
        "problems": problems[:100],
    }


if __name__ == "__main__":
    main(__doc__, measure, traces=120_000)
