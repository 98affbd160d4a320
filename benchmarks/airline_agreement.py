"""The compiled airline handbook against the policy as plain functions, for every reservation.

    python benchmarks/airline_agreement.py [--every 1] [--sample 60] [--json FILE]

Every reservation of τ-bench's data × cabin × insurance × tier: cancelling for every reason,
changing in nine ways with every payment method, compensating for every flight, adding bags. The
plain functions (tests/examples/airline_policy.py) were written from the policy's text before
there was a handbook. A sample of cancellations is put to the whole machine, with guard and audit,
as well. Exits 1 at a difference.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from campaign import main

ROOT = Path(__file__).resolve().parent.parent
SHARD = 50


def prepare() -> None:
    sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests" / "examples")]


def shard(reservations: list[str]) -> tuple[dict[str, int], dict[str, int], list[str]]:
    from airline.checkout import find_checkout, load_data, load_tools
    from airline.guarded import airline_source
    from airline.simulator import AirlineTools
    from airline_agreement import Agreement

    home = find_checkout()
    tools = AirlineTools(load_tools(home), load_data(home))
    agreement = Agreement(airline_source().handbook, tools)
    for reservation in reservations:
        agreement.reservation(reservation)
    tally = agreement.tally
    return dict(tally.cases), dict(tally.allowed), tally.differences


async def by_the_machine(count: int) -> tuple[int, int, list[str]]:
    """Cancellations through session, guard and audit: how many, how many licensed, and what
    came out otherwise than the policy has it."""
    import airline_policy as policy

    from airline.checkout import find_checkout, load_data, load_tools
    from airline.guarded import airline_source, attempt, copied
    from airline.simulator import AirlineTools
    from airline_agreement import LOCAL_NOW, Agreement

    home = find_checkout()
    source = airline_source()
    tools = AirlineTools(load_tools(home), load_data(home))
    agreement = Agreement(source.handbook, tools)
    rng = random.Random(17)
    licensed, wrong = 0, []
    for number in rng.sample(sorted(tools.data["reservations"]), count):
        record = tools.data["reservations"][number]
        case = policy.Case(
            record,
            tools.data["users"][record["user_id"]]["membership"],
            LOCAL_NOW,
            agreement.on_sale(policy.segments(record)),
            reason=rng.choice(policy.REASONS),
            says_unflown=rng.random() < 0.5,
        )
        knows = {"user_id": record["user_id"], "reservation_id": number, "reason": case.reason}
        statement = {"said_unflown": "yes" if case.says_unflown else "no"}
        done = await attempt(source, copied(tools), "cancel_reservation", knows, statement)
        licensed += done.licensed
        if done.licensed != policy.may_cancel(case) or done.findings:
            wrong.append(f"{number} {case.reason} {case.says_unflown}: {done}")
    return count, licensed, wrong


def measure(every: int, sample: int, workers: int) -> dict[str, Any]:
    """Every so many reservations; so many cases for the whole machine."""
    prepare()
    from airline.checkout import find_checkout, load_data

    started = time.monotonic()
    reservations = list(json.loads(load_data(find_checkout()))["reservations"])[::every]
    shards = [reservations[at : at + SHARD] for at in range(0, len(reservations), SHARD)]
    cases: Counter[str] = Counter()
    allowed: Counter[str] = Counter()
    differences: list[str] = []
    with ProcessPoolExecutor(workers, initializer=prepare) as pool:
        for made, permitted, problems in pool.map(shard, shards):
            cases.update(made)
            allowed.update(permitted)
            differences += problems
    count, licensed, wrong = asyncio.run(by_the_machine(sample))
    return {
        "passed": not (differences or wrong),
        "reservations": len(reservations),
        "cases": dict(cases),
        "allowed_by_policy": dict(allowed),
        "differences": len(differences),
        "first_differences": differences[:20],
        "by_the_whole_machine": {"cases": count, "licensed": licensed, "differences": wrong},
        "seconds": round(time.monotonic() - started),
    }


if __name__ == "__main__":
    main(__doc__, measure, every=1, sample=60, workers=2)
