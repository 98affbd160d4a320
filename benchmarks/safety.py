"""Safety, executed: no guarded call is carried out whose requirement the world denies.

    python benchmarks/safety.py [--moves 10200000] [--seed 13] [--json FILE]

Random handbooks with truthful worlds, an adversary that sends whatever it likes: at the pure
core, through sessions, through sessions whose world others change too (`recheck`), through
sessions without a protocol (`guard`, `guard-auto`), and every sequence of six moves on small
handbooks. The world alone judges. Every session is audited when
it ends, and guard and audit must say the same of every guarded call. Then the guard is broken on
purpose, one clause at a time, and each must be found within 100,000 moves. Ctrl-C keeps what
there is.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from adversary.campaign import MOVES_PER_SESSION, campaign  # noqa: E402
from adversary.core_play import Tally  # noqa: E402
from adversary.exhaustive import Sweep, sweep  # noqa: E402
from adversary.sabotage import SABOTAGES, sabotaged  # noqa: E402
from adversary.small_handbooks import small_cases  # noqa: E402
from campaign import Figures, main  # noqa: E402

SHARD = 50_000
BOUND = 100_000
"""Within so many moves a broken guard must be found."""
DEPTH = 6


@dataclass(frozen=True)
class Task:
    kind: str
    seed: int = 0
    moves: int = 0
    name: str = ""
    depth: int = 0


@dataclass
class Done:
    task: Task
    tally: Tally
    handbooks: int = 0
    sweep: Sweep = field(default_factory=Sweep)


def perform(task: Task) -> Done:
    if task.kind == "exhaustive":
        tally = Tally()
        case = next(case for case in small_cases() if case.name == task.name)
        return Done(task, tally, 1, sweep(case, task.depth, tally))
    if task.kind == "sabotage":
        with sabotaged(task.name):
            tally, books = campaign(
                task.seed,
                moves=BOUND,
                stop=lambda so_far: bool(so_far.denied),
                through=SABOTAGES[task.name].through,
                newer=SABOTAGES[task.name].newer,
            )
        return Done(task, tally, books)
    newer = task.kind == "newer"
    through = "core" if newer else task.kind
    tally, books = campaign(task.seed, moves=task.moves, through=through, audited=True, newer=newer)
    return Done(task, tally, books)


def tasks(moves: int, seed: int, depth: int) -> list[Task]:
    """The long ones first, so that two processes end together."""
    found = [Task("exhaustive", name=case.name, depth=depth) for case in small_cases()]
    found += [Task("sabotage", seed=seed, name=name) for name in SABOTAGES]
    shares = (
        *((view, moves // 20) for view in ("guard", "guard-auto")),
        ("session", moves // 50),
        ("outside", moves // 200),
        ("core", moves),
    )
    found += [Task("newer", seed * 1_000_000 - one, SHARD) for one in range(moves // SHARD // 5)]
    number = 0
    for kind, wanted in shares:
        size = SHARD if kind == "core" else SHARD // 10
        for _ in range(-(-wanted // size)):
            number += 1
            found.append(Task(kind, seed * 1_000_000 + number, min(size, wanted)))
    return found


class Report:
    def __init__(self, seed: int, depth: int) -> None:
        self.seed, self.depth = seed, depth
        self.began = time.monotonic()
        self.tallies: dict[str, Tally] = {}
        self.handbooks: Counter[str] = Counter()
        self.sweep = Sweep()
        self.sabotages: dict[str, int | None] = {}
        self.complete = False

    def take(self, done: Done) -> None:
        kind = done.task.kind
        if kind == "sabotage":
            found = done.tally.moves if done.tally.denied else None
            self.sabotages[done.task.name] = found
            return
        self.tallies.setdefault(kind, Tally()).add(done.tally)
        self.handbooks[kind] += done.handbooks
        self.sweep.add(done.sweep)

    @property
    def random(self) -> Tally:
        whole = Tally()
        for kind, tally in self.tallies.items():
            if kind != "exhaustive":
                whole.add(tally)
        return whole

    @property
    def denied(self) -> list[Any]:
        return [one for tally in self.tallies.values() for one in tally.denied]

    @property
    def passed(self) -> bool:
        found = list(self.sabotages.values())
        caught = len(found) >= 10 and all(moves is not None for moves in found)
        sound = not self.denied and not self.random.apart
        return self.complete and sound and caught and self.random.carried_out > 0

    def as_json(self) -> dict[str, Any]:
        whole = self.random
        return {
            "seed": self.seed,
            "complete": self.complete,
            "passed": self.passed,
            "seconds": round(time.monotonic() - self.began),
            "moves": whole.moves,
            "sessions": whole.sessions,
            "handbooks": sum(self.handbooks.values()) - self.handbooks["exhaustive"],
            "guarded_calls": {
                "attempted": whole.attempted,
                "held": whole.held,
                "carried_out": whole.carried_out,
            },
            "violations": len(self.denied),
            "sessions_audited": whole.audited,
            "guard_and_audit_apart": len(whole.apart),
            "by_door": {kind: _figures(tally) for kind, tally in sorted(self.tallies.items())},
            "exhaustive": {
                "depth": self.depth,
                "handbooks": self.handbooks["exhaustive"],
                "sequences": self.sweep.sequences,
                "moves_executed": self.sweep.executed,
            },
            "carried_out_by_predicate": dict(whole.predicates.most_common()),
            "sabotages_found_within_moves": self.sabotages,
            "examples": [
                {"goal": one.goal, "action": one.action, "arguments": repr(one.arguments)}
                for one in self.denied[:5]
            ],
            "apart": whole.apart[:5],
        }


def _figures(tally: Tally) -> dict[str, int]:
    return {
        "moves": tally.moves,
        "sessions": tally.sessions,
        "attempted": tally.attempted,
        "held": tally.held,
        "carried_out": tally.carried_out,
        "violations": len(tally.denied),
    }


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _progress(report: Report, number: int, whole: int) -> None:
    tally = report.random
    line = (
        f"{number}/{whole} {tally.moves + report.sweep.executed:,} moves, "
        f"{tally.carried_out:,} carried out, {len(report.denied)} violations, "
        f"{len(tally.apart)} apart, "
        f"{time.monotonic() - report.began:.0f} s"
    )
    if sys.stdout.isatty():
        print(f"\r{line}", end="", flush=True)
    elif number % 20 == 0 or number == whole:
        print(line, flush=True)


def _alarms(done: Done) -> None:
    """Print at once what a run that is stopped would lose."""
    where = f"{done.task.kind} {done.task.name or done.task.seed}"
    if done.task.kind != "sabotage":
        for one in done.tally.denied:
            print(f"\nviolation ({where}): {one}", flush=True)
    for apart in done.tally.apart:
        print(f"\napart ({where}): {apart}", flush=True)


def measure(moves: int, seed: int, depth: int, processes: int, only: list[str]) -> Figures:
    assert MOVES_PER_SESSION <= 100  # or the sessions become too few
    report = Report(seed, depth)
    todo = tasks(moves, seed, depth)
    if only:
        todo = [task for task in todo if task.kind in only]
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(processes, initializer=_leave_interrupts_to_the_parent) as pool:
        try:
            for number, done in enumerate(pool.imap_unordered(perform, todo), 1):
                report.take(done)
                _alarms(done)
                _progress(report, number, len(todo))
        except KeyboardInterrupt:
            pool.terminate()
            print("\ninterrupted: keeping what there is")
        else:
            report.complete = not only
    return report.as_json()


if __name__ == "__main__":
    main(__doc__, measure, moves=10_200_000, seed=13, depth=DEPTH, processes=2, only=[])
