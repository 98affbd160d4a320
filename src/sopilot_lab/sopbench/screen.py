"""Which execute tasks a comparison leaves out, and by which rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sopilot.values.text import table
from sopilot_lab.sopbench.checkout import Checkout
from sopilot_lab.sopbench.recorded import configurations
from sopilot_lab.sopbench.reference import TaskReference

Screen = Callable[[TaskReference, bool], bool]
"""``screen(task, should_succeed)``: whether the task stays."""
SCREENED_GOALS: Final = (
    ("bank", "cancel_credit_card"),
    ("bank", "pay_bill_with_credit_card"),
    ("bank", "open_account"),
    ("library", "add_book"),
    ("dmv", "update_test_status"),
)
"""The goals whose execute tasks the study left out before it compared arms."""


@dataclass(frozen=True, slots=True)
class GoalRecord:
    """How often the execute tasks of a goal passed in the recorded runs."""

    domain: str
    goal: str
    runs: int
    passes: int
    tasks: int

    @property
    def screened(self) -> bool:
        """The zero-pass rule. It shows that nobody passed, not that nobody can."""
        return self.runs > 0 and self.passes == 0


def everything_stays(reference: TaskReference, should_succeed: bool) -> bool:
    return True


def paper_screen(reference: TaskReference, should_succeed: bool) -> bool:
    """Refusals stay: they do not need the goal's transition."""
    return not should_succeed or (reference.domain, reference.goal) not in SCREENED_GOALS


def bank_screen(reference: TaskReference, should_succeed: bool) -> bool:
    """The study's replication on a second model: only Bank's three goals were left out."""
    return reference.domain != "bank" or paper_screen(reference, should_succeed)


SCREENS: Final[Mapping[str, Screen]] = {
    "none": everything_stays,
    "paper": paper_screen,
    "paper-bank": bank_screen,
}
"""830, 819 and 821 tasks."""


def zero_pass(checkout: Checkout, domains: Iterable[str]) -> list[GoalRecord]:
    """Every goal's record over all configurations with the default user, most failed first."""
    goal_records: list[GoalRecord] = []
    for domain in domains:
        runs: dict[str, list[bool]] = defaultdict(list)
        tasks: dict[str, set[int]] = defaultdict(set)
        for configuration in configurations(checkout, domain):
            if configuration.user != "default":
                continue
            for each in configuration.verdicts():
                if each.should_succeed:
                    runs[each.reference.goal].append(each.passed)
                    tasks[each.reference.goal].add(each.reference.index)
        goal_records += [
            GoalRecord(domain, goal, len(passed), sum(passed), len(tasks[goal]))
            for goal, passed in runs.items()
        ]
    return sorted(goal_records, key=lambda each: (each.passes / each.runs, each.domain, each.goal))


def stored_recordings(checkout: Checkout, domains: Iterable[str]) -> tuple[int, int]:
    """How many recordings the checkout lists, and how many of them hold no verdict here."""
    results = [each for domain in domains for each in configurations(checkout, domain)]
    return len(results), sum(not each.verdicts() for each in results)


def screen_lines(records: Sequence[GoalRecord], recordings: int, empty: int) -> Iterator[str]:
    rows = [
        (
            each.domain,
            each.goal,
            f"{each.passes}/{each.runs}",
            "screened" if each.screened else "",
            "left out by the study" if (each.domain, each.goal) in SCREENED_GOALS else "",
        )
        for each in records
    ]
    yield table(rows, ["domain", "goal", "passes", "zero-pass rule", "the study"])
    if empty:
        yield (
            f"\n{empty} of {recordings} recordings hold no verdict in this copy: the study, which "
            "had them, counts more runs"
        )
