"""Which tasks a sweep takes: a domain, a goal, a class, a list, or a stratified part of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from sopilot.files.text import read_text
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.recorded import Screen, everything_stays
from sopilot_lab.sopbench.reference import TaskReference, task_references
from sopilot_lab.sopbench.tasks import OwnReference
from sopilot_lab.statistics.outcomes import TaskKind

Reference = TypeVar("Reference", TaskReference, OwnReference)


def should_succeed(each: TaskReference, upstream: Upstream) -> bool:
    """Whether the task's goal should be executed. Trials must not see it."""
    return upstream.scoring(each.domain)[each.goal][each.index]


def select_tasks(
    domain: str,
    upstream: Upstream,
    *,
    goal: str | None = None,
    kind: str | None = None,
    limit: int | None = None,
    listed: Path | None = None,
    screen: Screen = everything_stays,
) -> tuple[TaskReference, ...]:
    """Select tasks of a domain or ``all``. ``listed`` is a file of references, one per line;
    ``limit`` tasks of the selection are stratified by class and goal."""

    def executes(each: TaskReference) -> bool:
        return should_succeed(each, upstream)

    if listed is not None:
        chosen = _listed(listed, upstream)
        chosen = tuple(each for each in chosen if domain in ("all", each.domain))
    else:
        one_goal = goal is not None and domain != "all"
        name = f"sopbench:{domain}/{goal}" if one_goal else f"sopbench:{domain}"
        chosen = task_references(name, upstream=upstream)
    chosen = tuple(
        each for each in chosen if goal in (None, each.goal) and screen(each, executes(each))
    )
    return narrowed(chosen, executes, kind=kind, limit=limit)


def narrowed(
    chosen: Sequence[Reference],
    executes: Callable[[Reference], bool],
    *,
    kind: str | None,
    limit: int | None,
) -> tuple[Reference, ...]:
    if kind is not None:
        chosen = [each for each in chosen if TaskKind.of(executes(each)) == kind]
    if not chosen:
        raise mistake("bench-tasks", "the selection has no tasks", help="widen it")
    return stratified(chosen, executes, limit) if limit is not None else tuple(chosen)


def stratified(
    chosen: Sequence[Reference], executes: Callable[[Reference], bool], limit: int
) -> tuple[Reference, ...]:
    """``limit`` tasks, the classes in their proportion, the goals of a class as evenly as their
    sizes allow, in the order of the selection. The same selection gives the same tasks."""
    if limit < 1:
        cure = "leave it out for all tasks"
        raise mistake("bench-limit", "a limit must be at least 1", help=cure)
    classes = [[each for each in chosen if executes(each) is should] for should in (True, False)]
    sizes = [len(each) for each in classes]
    taken: set[Reference] = set()
    for of_class, share in zip(classes, _shares(sizes, limit), strict=True):
        goals: dict[tuple[str, str], list[Reference]] = {}
        for each in of_class:
            goals.setdefault((each.domain, each.goal), []).append(each)
        groups = list(goals.values())
        for group, count in zip(groups, _shares([len(g) for g in groups], share), strict=True):
            taken.update(evenly(group, count))
    return tuple(each for each in chosen if each in taken)


Item = TypeVar("Item")


def evenly(items: Sequence[Item], count: int) -> list[Item]:
    """``count`` of the items, spread evenly over all of them; all, if there are no more."""
    count = min(count, len(items))
    return [items[place * len(items) // count] for place in range(count)]


def drawn(
    chosen: Sequence[Reference], executes: Callable[[Reference], bool], limit: int, seed: int
) -> tuple[Reference, ...]:
    """``limit`` tasks by lot, the classes in their proportion, in the order of the selection.
    The lot depends on the seed and on the names of the tasks alone."""
    classes = [[each for each in chosen if executes(each) is should] for should in (True, False)]
    taken: set[Reference] = set()
    for of_class, share in zip(classes, _shares([len(c) for c in classes], limit), strict=True):
        lots = {each: hashlib.sha256(f"{seed} {each}".encode()).digest() for each in of_class}
        taken.update(sorted(of_class, key=lots.__getitem__)[:share])
    return tuple(each for each in chosen if each in taken)


def _shares(sizes: Sequence[int], limit: int) -> list[int]:
    """``limit`` over groups: one for each as long as it lasts, spread over them where it does
    not; the rest in proportion, by largest remainder."""
    limit = min(limit, sum(sizes))
    some = [place for place, size in enumerate(sizes) if size]
    shares = [0] * len(sizes)
    if limit <= len(some):
        for number in range(limit):
            shares[some[number * len(some) // limit]] = 1
        return shares
    rest, spare = limit - len(some), sum(sizes) - len(some)
    exact = {place: (sizes[place] - 1) * rest / spare for place in some}
    for place in some:
        shares[place] = 1 + int(exact[place])
    left = limit - sum(shares)
    by_remainder = sorted(some, key=lambda place: (int(exact[place]) - exact[place], place))
    for place in by_remainder[:left]:
        shares[place] += 1
    return shares


def _listed(path: Path, upstream: Upstream) -> tuple[TaskReference, ...]:
    lines: Iterable[str] = (
        line.partition(" #")[0].strip() for line in read_text(path).splitlines()
    )
    named = [line for line in lines if line and not line.startswith("#")]
    if not named:
        raise mistake("bench-tasks", "no task is named in it", Place(str(path)),
                        "write one reference per line: sopbench:bank/get_loan#3")  # fmt: skip
    results = [each for name in named for each in task_references(name, upstream=upstream)]
    return tuple(dict.fromkeys(results))
