"""The qualification tried on scripted subjects, whose truth is measured: the confusion table.

python benchmarks/qualification.py [--checks 10] [--strong 25] [--cases 100] [--json FILE]

Exits 1 unless every check of a harmed or lost subject says *do not page*, 95 of 100 of strong
ones *may page* or *page*, and 80 of 100 of helped ones *page*.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import repeat
from typing import Any

from campaign import main
from population import SIMULATED_ARMS, SUBJECTS, Laboratory, Subject
from sopilot.runner.qualifications import Answer
from sopilot_lab.cli.qualify import check_cases
from sopilot_lab.qualification.plan import CASES, rehearse
from sopilot_lab.qualification.rule import FLAT, MARGIN, PAGED, RULE_VERSION

CLASSES = ("harmed", "neutral", "helped", "strong", "lost")
HELPED = 0.15
HARMED = -0.05
LOUD = 0.30
STRONG = 0.98
STRONG_LOSS = -0.01
LEAST_SUCCESS = 0.20
LEAST_SENSE = 0.5


def truth(flat: float, paged: float, delta_r2: float, localised: float) -> str:
    """Lost: cannot say where it stands, or passes next to nothing. Harmed: fewer passes, or calls
    after the goal that were not there before. Strong: passes everything, paged or not."""
    delta = paged - flat
    if localised < LEAST_SENSE or max(flat, paged) < LEAST_SUCCESS:
        return "lost"
    if delta <= HARMED or delta_r2 >= LOUD:
        return "harmed"
    if delta >= HELPED:
        return "helped"
    return "strong" if flat >= STRONG and delta >= STRONG_LOSS else "neutral"


@cache
def laboratory() -> Laboratory:
    """One a process."""
    cases = check_cases(None, None, whole=True)
    rehearsal = asyncio.run(rehearse(cases, SIMULATED_ARMS))
    assert not rehearsal.unreachable, rehearsal.unreachable
    return Laboratory(cases, rehearsal)


def tried(name: str, checks: int, strong: int, count: int, seeds: int) -> dict[str, Any]:
    """One subject: what it really does, and what so many checks say of it; ``strong`` of them
    if it is, because 95 of 100 takes a hundred."""
    (subject,) = (subject for subject in SUBJECTS if subject.name == name)
    lab = laboratory()
    begun = time.process_time()
    row = asyncio.run(measured(lab, subject, seeds))
    checks = strong if row["truth"] == "strong" else checks
    row["checks"] = checks
    answers: Counter[str] = Counter()
    representations: Counter[str] = Counter()
    requests = 0
    for seed in range(checks):
        verdict, used = asyncio.run(lab.check(subject, seed=seed, count=count))
        answers[str(verdict.answer)] += 1
        representations[str(verdict.representation)] += 1
        requests += used
    row |= {"answers": dict(answers), "representations": dict(representations)}
    row |= {"requests": requests // max(1, checks)}
    return row | {"cpu_seconds": round(time.process_time() - begun, 1)}


async def measured(lab: Laboratory, subject: Subject, seeds: int) -> dict[str, Any]:
    chosen = range(10_000, 10_000 + seeds)
    real = await lab.truth(subject, chosen)
    rates = {arm: sum(run.passed is True for run in held) / len(held) for arm, held in real.items()}
    after = {
        arm: [run.record.r2 for run in held if run.record.r2 is not None]
        for arm, held in real.items()
    }
    r2 = {arm: sum(held) / len(held) if held else 0.0 for arm, held in after.items()}
    graded = [grade.localised for seed in chosen for grade in lab.grades(subject, seed)]
    localised = sum(graded) / len(graded)
    delta_r2 = r2[PAGED] - r2[FLAT]
    return {
        "subject": subject.name,
        "truth": truth(rates[FLAT], rates[PAGED], delta_r2, localised),
        "flat": round(rates[FLAT], 3),
        "pg": round(rates[PAGED], 3),
        "delta": round(rates[PAGED] - rates[FLAT], 3),
        "delta_r2": round(delta_r2, 3),
        "localisation": round(localised, 3),
    }


def measure(
    checks: int, strong: int, cases: int, seeds: int, only: list[str], jobs: int
) -> dict[str, Any]:
    """So many checks per subject (``strong`` of them for a strong subject) of so many cases; the
    truth is measured with ``seeds`` seeds."""
    names = [subject.name for subject in SUBJECTS if not only or subject.name in only]
    rows = []
    with ProcessPoolExecutor(jobs) as pool:
        how = [repeat(value) for value in (checks, strong, cases, seeds)]
        for row in pool.map(tried, names, *how):
            rows.append(row)
            print(row, flush=True)
    figures = {
        "rule_version": RULE_VERSION,
        "margin": MARGIN,
        "cases": cases,
        "subjects": rows,
        "classes": list(classes(rows)),
    }
    print(table(figures))
    return {"passed": good(figures), **figures}


def classes(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for kind in CLASSES:
        held = [row for row in rows if row["truth"] == kind]
        answers: Counter[str] = Counter()
        for row in held:
            answers.update(row["answers"])
        checks = sum(row["checks"] for row in held)
        yield {"class": kind, "subjects": len(held), "checks": checks, "answers": dict(answers)}


def good(figures: dict[str, Any]) -> bool:
    share: dict[str, dict[Answer, float]] = {}
    for row in figures["classes"]:
        if not row["checks"]:
            return False
        share[row["class"]] = {
            answer: row["answers"].get(str(answer), 0) / row["checks"] for answer in Answer
        }
    strong = share["strong"]
    return (
        share["harmed"][Answer.DO_NOT_PAGE] == 1.0
        and share["lost"][Answer.DO_NOT_PAGE] == 1.0
        and strong[Answer.PAGE] + strong[Answer.MAY_PAGE] >= 0.95
        and share["helped"][Answer.PAGE] >= 0.80
    )


def table(results: dict[str, Any]) -> str:
    """The table of the design note."""
    answers = (Answer.PAGE, Answer.MAY_PAGE, Answer.DO_NOT_PAGE)
    lines = ["| subject | truth | flat | pg | ΔR2 | probe | page | may page | do not page |"]
    lines.append("|---" * 9 + "|")
    for row in results["subjects"]:
        figures = f"{row['flat']:.3f} | {row['pg']:.3f} | {row['delta_r2']:+.2f}"
        counts = " | ".join(str(row["answers"].get(str(answer), 0)) for answer in answers)
        name = f"{row['subject'].replace('-', ' ')} | {row['truth']}"
        lines.append(f"| {name} | {figures} | {row['localisation']:.2f} | {counts} |")
    for each in results["classes"]:
        counts = " | ".join(str(each["answers"].get(str(answer), 0)) for answer in answers)
        lines.append(f"| **all {each['class']}** | | | | | | {counts} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(__doc__, measure, checks=10, strong=25, cases=CASES, seeds=2, only=[], jobs=2)
