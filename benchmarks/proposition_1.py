"""Proposition 1 and Lemma 1 as campaigns: random handbooks, every small tree, guard graphs.

    python benchmarks/proposition_1.py [--cases 100000] [--json FILE]

Compares compiled programs, run by an abstract conforming executor, with a
reference that shares no code with the compiler. Exits 1 at the first difference.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARD = 5_000


def random_shard(seed: int) -> int:
    from test_proposition_1 import random_cases

    random_cases(SHARD, seed)
    return SHARD


def guard_shard(start: int) -> int:
    from test_guard_closure import check_guards

    for seed in range(start, start + SHARD):
        check_guards(seed)
    return SHARD


def every_tree(leaves: int) -> int:
    from test_proposition_1 import exhaust

    return exhaust(leaves)


def prepare() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "compiler"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    shards = -(-options.cases // SHARD)
    started = time.monotonic()
    with ProcessPoolExecutor(2, initializer=prepare) as pool:
        small = [pool.submit(every_tree, leaves) for leaves in (4, 3, 2, 1)]
        random_cases = sum(pool.map(random_shard, range(1_000, 1_000 + shards)))
        guards = sum(pool.map(guard_shard, range(100_000, 100_000 + 6 * SHARD, SHARD)))
        exhaustive = {leaves: one.result() for leaves, one in zip((4, 3, 2, 1), small, strict=True)}
    report = {
        "random_cases": random_cases,
        "guard_graphs": guards,
        "verdict_assignments_on_every_tree": {
            f"{leaves} leaves": exhaustive[leaves] for leaves in sorted(exhaustive)
        },
        "differences": 0,
        "seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(report, indent=2))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
