"""Proposition 2 as a campaign: labelled violations are all found, clean runs raise nothing.

    python benchmarks/labelled_traces.py [TRACES]

Random programs, random conforming and non-conforming executions through the real
machine, one labelled violation each; the audit must name the label's class at
the label's event, nothing beside what that class implies, and nothing at all on
a clean run. Writes evidence/labelled-traces.json.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "audit"))

from test_labelled_traces import disagreement  # noqa: E402
from trace_executions import CLASSES, labelled_trace, wanted_class  # noqa: E402
from trace_programs import random_world  # noqa: E402

OUTPUT = ROOT / "evidence" / "labelled-traces.json"
SHARD = 2_000
TRACES_PER_WORLD = 20


def shard(seed: int) -> tuple[Counter[str], int, list[str]]:
    rng = random.Random(seed)
    labels: Counter[str] = Counter()
    events = 0
    problems: list[str] = []
    for number in range(SHARD):
        if number % TRACES_PER_WORLD == 0:
            world = random_world(rng)
        trace = labelled_trace(world, rng.randrange(2**40), wanted_class(number))
        labels[trace.label or "clean"] += 1
        events += len(trace.events)
        problem = disagreement(world, trace)
        if problem is not None:
            problems.append(f"shard {seed}, trace {number}: {problem}")
    return labels, events, problems


def main() -> int:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    shards = -(-wanted // SHARD)
    began = time.monotonic()
    labels: Counter[str] = Counter()
    events = 0
    problems: list[str] = []
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for some, seen, found in pool.imap_unordered(shard, range(shards)):
            labels += some
            events += seen
            problems += found
    seconds = time.monotonic() - began
    traces = sum(labels.values())
    missed = sum("missed" in problem for problem in problems)
    print(f"{traces} traces, {events} events, {seconds:.0f} s")
    for label, count in labels.most_common():
        print(f"  {count:>7}  {label}")
    print(f"false negatives: {missed}; false positives: {len(problems) - missed}")
    for problem in problems[:20]:
        print(f"  {problem}")
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    report = {
        "command": f"python benchmarks/labelled_traces.py {wanted}",
        "commit": head.stdout.strip() or "unknown",
        "traces": traces,
        "events": events,
        "seconds": round(seconds, 1),
        "labels": dict(labels.most_common()),
        "false_negatives": missed,
        "false_positives": len(problems) - missed,
        "problems": problems[:100],
    }
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    return 1 if problems or set(labels) != {"clean", *CLASSES} else 0


if __name__ == "__main__":
    sys.exit(main())
