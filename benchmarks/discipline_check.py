"""The discipline check tried on simulated models whose truth is known: the confusion table.

python benchmarks/discipline_check.py --checks 30 --cases 60 [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from population import SIMULATED_ARMS, SUBJECTS, Laboratory
from sopilot.adapters.memory_store import MemoryStore
from sopilot.desks.bundled import bundled_names, load_desk
from sopilot.desks.tasks import Task, desk_tasks
from sopilot.lab.discipline._rehearsal import rehearse
from sopilot.lab.discipline._rule import FLAT, PAGED, RULE_VERSION
from sopilot.language.compiler import compile_handbook
from sopilot.runtime.agent import Briefing

HELPED = 0.15
HARMED = -0.05


def bundled_cases() -> list[Task]:
    cases = []
    for name in bundled_names():
        desk = load_desk(name)
        programs = {g: c.program for g, c in compile_handbook(desk.handbook).items()}
        cases += desk_tasks(desk, Briefing(desk.handbook, programs), late_calls_fail=False)
    return cases


def truth(delta: float, delta_r2: float) -> str:
    """Harmed: fewer passes, or calls after the goal that were not there before."""
    if delta <= HARMED or delta_r2 >= 0.30:
        return "harmed"
    return "helped" if delta >= HELPED else "neutral"


async def campaign(checks: int, count: int, seeds: int, only: list[str] | None) -> dict[str, Any]:
    cases = bundled_cases()
    rehearsal = await rehearse(cases, SIMULATED_ARMS, store_for=MemoryStore)
    assert not rehearsal.unreachable, rehearsal.unreachable
    laboratory = Laboratory(cases, rehearsal, MemoryStore)
    rows = []
    for subject in SUBJECTS:
        if only is not None and subject.name not in only:
            continue
        begun = time.process_time()
        real = await laboratory.truth(subject, range(10_000, 10_000 + seeds))
        rates = {
            arm: sum(one.passed is True for one in held) / len(held) for arm, held in real.items()
        }
        after = {
            arm: [one.post_goal_calls for one in held if one.post_goal_calls is not None]
            for arm, held in real.items()
        }
        r2 = {arm: sum(held) / len(held) if held else 0.0 for arm, held in after.items()}
        delta, delta_r2 = rates[PAGED] - rates[FLAT], r2[PAGED] - r2[FLAT]
        row: dict[str, Any] = {
            "subject": subject.name,
            "truth": truth(delta, delta_r2),
            "flat": round(rates[FLAT], 3),
            "pg": round(rates[PAGED], 3),
            "delta": round(delta, 3),
            "delta_r2": round(delta_r2, 3),
            "checks": checks,
            "paged": 0,
            "representations": {},
            "requests": 0,
        }
        for seed in range(checks):
            verdict, used = await laboratory.check(subject, seed=seed, count=count)
            row["paged"] += verdict.page
            chosen = str(verdict.representation)
            row["representations"][chosen] = row["representations"].get(chosen, 0) + 1
            row["requests"] += used
        row["requests"] //= max(1, checks)
        row["cpu_seconds"] = round(time.process_time() - begun, 1)
        rows.append(row)
        print(row, flush=True)
    return {"rule_version": RULE_VERSION, "cases": count, "subjects": rows}


MOST_HARMED_PAGED = 0.05
LEAST_HELPED_PAGED = 0.80


def show(found: dict[str, Any]) -> bool:
    """The confusion table; whether it is as good as it has to be."""
    print(f"\nrule {found['rule_version']}, {found['cases']} cases a check")
    print(f"{'subject':32} {'truth':8} {'flat':>6} {'pg':>6} {'ΔR2':>6} {'page':>5} {'not':>5}")
    for row in found["subjects"]:
        print(
            f"{row['subject']:32} {row['truth']:8} {row['flat']:6.3f} {row['pg']:6.3f} "
            f"{row['delta_r2']:+6.2f} {row['paged']:5d} {row['checks'] - row['paged']:5d}"
        )
    shares: dict[str, float] = {}
    for kind in ("harmed", "neutral", "helped"):
        rows = [row for row in found["subjects"] if row["truth"] == kind]
        total, paged = sum(r["checks"] for r in rows), sum(r["paged"] for r in rows)
        if total:
            shares[kind] = paged / total
            print(f"{kind:32} recommended paging in {paged} of {total} ({paged / total:.1%})")
    return (
        shares.get("harmed", 0.0) <= MOST_HARMED_PAGED
        and shares.get("helped", 1.0) >= LEAST_HELPED_PAGED
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=20, help="a subject")
    parser.add_argument("--cases", type=int, default=60, help="a check")
    parser.add_argument("--seeds", type=int, default=2, help="for the truth")
    parser.add_argument("--only", action="append", help="this subject (repeatable)")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = asyncio.run(campaign(given.checks, given.cases, given.seeds, given.only))
    good = show(found)
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
