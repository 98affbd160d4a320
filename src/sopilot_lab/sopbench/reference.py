"""References to SOPBench's tasks, and the budgets of their domains."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sopilot.agent.budgets import DEEP_BUDGETS, Budgets
from sopilot.messages.diagnostic import Place, did_you_mean
from sopilot.messages.errors import UserMistake, mistake
from sopilot_lab.sopbench.process import Upstream, shared_upstream

SCHEME = "sopbench:"
DOMAINS = ("bank", "dmv", "healthcare", "hotel", "library", "online_market", "university")
_SHAPE = re.compile(r"(?P<domain>[^/#]+)(?:/(?P<goal>[^/#]+)(?:#(?P<index>[0-9]+))?)?")


@dataclass(frozen=True, slots=True, order=True)
class TaskReference:
    domain: str
    goal: str
    index: int

    def __str__(self) -> str:
        return f"{SCHEME}{self.domain}/{self.goal}#{self.index}"


def is_sopbench(text: str) -> bool:
    return text.startswith(SCHEME)


def task_references(text: str, *, upstream: Upstream | None = None) -> tuple[TaskReference, ...]:
    """Every task that ``sopbench:all``, ``sopbench:bank``, ``sopbench:bank/get_loan`` or
    ``sopbench:bank/get_loan#3`` names, in upstream's order of goals."""
    shape = _SHAPE.fullmatch(text.removeprefix(SCHEME)) if is_sopbench(text) else None
    if shape is None:
        raise _mistake(
            text,
            f"`{text}` is not a reference to SOPBench tasks",
            "write `sopbench:all`, `sopbench:bank`, `sopbench:bank/get_loan` "
            "or `sopbench:bank/get_loan#3`",
        )
    domain, goal, index = shape["domain"], shape["goal"], shape["index"]
    if domain == "all" and goal is None:
        source = upstream or shared_upstream()
        return tuple(task for name in DOMAINS for task in _of_domain(source, name))
    if domain not in DOMAINS:
        help_text = did_you_mean(domain, (*DOMAINS, "all"))
        raise _mistake(text, f"unknown SOPBench domain `{domain}`", help_text)
    source = upstream or shared_upstream()
    tasks = _of_domain(source, domain)
    if goal is None:
        return tasks
    chosen = tuple(task for task in tasks if task.goal == goal)
    if not chosen:
        help_text = did_you_mean(goal, source.tasks(domain))
        raise _mistake(text, f"unknown goal `{goal}` in `{domain}`", help_text)
    if index is None:
        return chosen
    if int(index) >= len(chosen):
        raise _mistake(
            text,
            f"`{domain}/{goal}` has no task {int(index)}",
            f"its tasks are #0 to #{len(chosen) - 1}",
        )
    return (chosen[int(index)],)


def _of_domain(upstream: Upstream, domain: str) -> tuple[TaskReference, ...]:
    return tuple(
        TaskReference(domain, goal, index)
        for goal, tasks in upstream.tasks(domain).items()
        for index in range(len(tasks))
    )


def _mistake(text: str, message: str, help_text: str) -> UserMistake:
    return mistake("sopbench-reference", message, Place(source=text), help_text)


DEEP_DOMAINS = frozenset({"hotel", "university"})
"""The deep-program domains of the study: they get its longer budgets."""


def domain_budgets(domain: str) -> Budgets:
    return DEEP_BUDGETS if domain in DEEP_DOMAINS else Budgets()
