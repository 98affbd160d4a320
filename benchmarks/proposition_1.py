"""Proposition 1 and Lemma 1 as campaigns: random handbooks, every small tree, guard graphs.

    python benchmarks/proposition_1.py [--cases 100000] [--json FILE]

Compares compiled programs, run by an abstract conforming executor, with a
reference that shares no code with the compiler. Exits 1 at the first difference.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from campaign import main

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("compiler", "handbook")]

from test_guard_closure import check_guards  # noqa: E402  # found through the path above
from test_proposition_1 import exhaust, random_cases  # noqa: E402

SHARD = 5_000
GUARD_GRAPHS = 30_000


def random_shard(seed: int, cases: int) -> int:
    random_cases(cases, seed)
    return cases


def guard_shard(start: int, graphs: int) -> int:
    for seed in range(start, start + graphs):
        check_guards(seed)
    return graphs


def measure(cases: int) -> dict[str, object]:
    whole = cases >= SHARD
    shards = -(-cases // SHARD)
    size = SHARD if whole else cases
    starts = range(100_000, 100_000 + (GUARD_GRAPHS if whole else 1), SHARD)
    leaves = (4, 3, 2, 1) if whole else (2, 1)
    started = time.monotonic()
    with ProcessPoolExecutor(2) as pool:
        small = {count: pool.submit(exhaust, count) for count in leaves}
        seeds = range(1_000, 1_000 + shards)
        random = sum(pool.map(random_shard, seeds, [size] * shards))
        guards = sum(pool.map(guard_shard, starts, [size] * len(starts)))
        exhaustive = {count: future.result() for count, future in small.items()}
    return {
        "random_cases": random,
        "guard_graphs": guards,
        "verdict_assignments_on_every_tree": {
            f"{leaves} leaves": exhaustive[leaves] for leaves in sorted(exhaustive)
        },
        "differences": 0,
        "seconds": round(time.monotonic() - started, 1),
    }


if __name__ == "__main__":
    main(__doc__, measure, cases=100_000)
