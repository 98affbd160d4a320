"""Findings that matter: an honest executor that errs like a careful reader gets notes at most.

    python benchmarks/careful_reader.py [--tasks 100] [--json FILE]

It reads one thing more before it judges, cites results as one text and judges after look-ups
that failed. Some SOPBench tasks of every domain under `pg` and `fused`; the desks are an everyday
test. Exits 1 if the audit finds anything above a note.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from campaign import main
from sopilot.program.model import Program

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "agent"))

from careful_reader_model import CarefulReader, readers  # noqa: E402

from sopbench_runs import Bench  # noqa: E402
from sopilot.agent.reference.executor import Reference  # noqa: E402
from sopilot.views.catalogue import VIEWS  # noqa: E402
from sopilot_lab.sopbench.process import shared_upstream  # noqa: E402
from sopilot_lab.sopbench.reference import DOMAINS  # noqa: E402

TRIED = ("pg", "fused")


async def over_sopbench(wanted: int) -> dict[str, Any]:
    bench = Bench(shared_upstream(0), "official")
    each = -(-wanted // len(DOMAINS))
    rows: dict[str, Any] = {}
    for arm in TRIED:
        runs, notes = 0, Counter[str]()
        serious: list[str] = []
        made = Counter[str]()
        for domain in DOMAINS:
            for task in bench.tasks(domain, each):
                readers_made: list[CarefulReader] = []

                def careful(
                    reference: Reference,
                    programs: Mapping[str, Program],
                    collected: list[CarefulReader] = readers_made,
                ) -> CarefulReader:
                    collected.append(CarefulReader(reference, readers(programs)))
                    return collected[-1]

                run = await bench.run(task, VIEWS[arm], executor=careful)
                runs += 1
                made.update(extra=readers_made[0].extra, texts=readers_made[0].texts)
                for severity, finding in run.graded:
                    if severity == "note":
                        notes[finding.split(" ")[0]] += 1
                    else:
                        serious.append(f"{task}: {finding}")
        rows[arm] = {"runs": runs, "serious": serious, "notes": dict(notes), **made}
        print(f"{arm}: {runs} runs, {len(serious)} findings above a note, {dict(notes)}, {made}")
        for line in serious[:10]:
            print(f"  {line}")
    return {
        "passed": not any(row["serious"] or not row["extra"] for row in rows.values()),
        "what": "findings on an honest executor that errs like a careful reader",
        "upstream_commit": bench.upstream.checkout.commit,
        "arms": rows,
    }


def measure(tasks: int) -> dict[str, Any]:
    return asyncio.run(over_sopbench(tasks))


if __name__ == "__main__":
    main(__doc__, measure, tasks=100)
