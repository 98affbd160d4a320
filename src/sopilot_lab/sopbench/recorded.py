"""SOPBench's recordings: verdicts, tallies, baselines, and the tasks that the paper leaves out."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from sopilot.values.text import table
from sopilot_lab.sopbench.checkout import Checkout
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.reference import DOMAINS, TaskReference

_NAME = re.compile(
    r"(?P<user>usr_(?P<kind>[^-]+)-)?ast_(?P<model>.+)-mode_(?P<mode>[a-z-]+)"
    r"-dep_(?P<dep>\w+)-fmt_(?P<format>\w+)-tool_(?P<tools>\w+)-shuffle_(?P<shuffle>\w+)"
)
_LEAST_BYTES = 2_048
"""A smaller file stands for a recording that this copy of the checkout lacks."""


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    reference: TaskReference
    verdict: Mapping[str, Any]

    @property
    def should_succeed(self) -> bool:
        return bool(self.verdict["action_should_succeed"])

    @property
    def passed(self) -> bool:
        return bool(self.verdict["success"])


@dataclass(frozen=True, slots=True)
class RecordedConfiguration:
    """``user`` is ``default`` or the kind of user that the file names."""

    domain: str
    model: str
    mode: str
    tools: str
    user: str
    path: Path

    def verdicts(self) -> Sequence[RecordedVerdict]:
        """The first recorded run of every task; nothing where the copy is incomplete."""
        return _stored_verdicts(self.domain, self.path)


def _entries(domain: str, path: Path) -> Iterator[tuple[TaskReference, Mapping[str, Any]]]:
    """Every recorded task; nothing where the copy is incomplete."""
    if path.stat().st_size < _LEAST_BYTES:
        return
    try:
        entries = json.loads(path.read_text("utf-8"))
    except ValueError:
        return
    seen: Counter[str] = Counter()
    for entry in entries:
        goal = entry["task"]["user_goal"]
        yield TaskReference(domain, goal, seen[goal]), entry
        seen[goal] += 1


@functools.cache
def _stored_verdicts(domain: str, path: Path) -> tuple[RecordedVerdict, ...]:
    """Recordings are large and do not change: each is read once."""
    return tuple(
        RecordedVerdict(reference, entry["evaluations"][0])
        for reference, entry in _entries(domain, path)
        if entry.get("evaluations")
    )


def recorded_prompts(configuration: RecordedConfiguration) -> dict[TaskReference, str]:
    """The system text of every recorded run, by task."""
    return {
        reference: run["prompt"]
        for reference, entry in _entries(configuration.domain, configuration.path)
        for run in (entry.get("interactions") or ())[:1]
        if run.get("prompt")
    }


def configurations(
    checkout: Checkout, domain: str | None = None
) -> Iterator[RecordedConfiguration]:
    """Every recorded configuration of a domain, or of all of them, by name."""
    for each in DOMAINS if domain is None else (domain,):
        for path in sorted((checkout.path / "output" / each).glob("*.json")):
            match = _NAME.match(path.name)
            if match is not None:
                user = match["kind"] or "default"
                yield RecordedConfiguration(
                    each, match["model"], match["mode"], match["tools"], user, path
                )


@dataclass(frozen=True, slots=True)
class Tally:
    """``not_reached`` are execute tasks whose goal was never reached, for whatever reason: a
    refusal, a budget, a broken call; ``wrongly_reached`` refusal tasks whose goal was.
    ``sequence_only`` are failures with the right final state
    and no violation, whose order of calls alone is wrong."""

    n: int = 0
    passed: int = 0
    execute: int = 0
    execute_passed: int = 0
    refuse: int = 0
    refuse_passed: int = 0
    not_reached: int = 0
    wrongly_reached: int = 0
    sequence_only: int = 0

    @property
    def balanced(self) -> float | None:
        """The mean of execute and refusal accuracy; undefined without both classes."""
        if not self.execute or not self.refuse:
            return None
        return (self.execute_passed / self.execute + self.refuse_passed / self.refuse) / 2


def tally(verdicts: Iterable[Mapping[str, Any]]) -> Tally:
    rows = list(verdicts)
    execute = [row for row in rows if row["action_should_succeed"]]
    refuse = [row for row in rows if not row["action_should_succeed"]]
    return Tally(
        n=len(rows),
        passed=_passed(rows),
        execute=len(execute),
        execute_passed=_passed(execute),
        refuse=len(refuse),
        refuse_passed=_passed(refuse),
        not_reached=sum(not row["action_successfully_called"] for row in execute),
        wrongly_reached=sum(bool(row["action_successfully_called"]) for row in refuse),
        sequence_only=sum(sequence_only(row) for row in rows),
    )


def sequence_only(verdict: Mapping[str, Any]) -> bool:
    right = ("no_tool_call_error", "constraint_not_violated", "database_match")
    return (
        not verdict["success"]
        and not verdict["dirgraph_satisfied"]
        and bool(verdict["action_called_correctly"])
        and all(verdict[key] for key in right)
    )


def _passed(rows: Iterable[Mapping[str, Any]]) -> int:
    return sum(bool(row["success"]) for row in rows)


def objections(verdict: Mapping[str, Any]) -> list[str]:
    """The evaluator's objections to a run. `action_should_succeed` is a label of the task,
    not one of them."""
    return [key for key, value in verdict.items() if value is False and key not in _NO_OBJECTION]


_NO_OBJECTION = frozenset({"success", "action_should_succeed"})


@dataclass(frozen=True, slots=True)
class Baseline:
    """``missing`` tasks of the subset have no stored verdict; ``why`` says what is absent."""

    domain: str
    model: str
    mode: str
    tools: str
    user: str
    tally: Tally
    missing: int
    why: str = ""

    @property
    def complete(self) -> bool:
        return self.missing == 0

    @property
    def pass_rate(self) -> float | None:
        return self.tally.passed / self.tally.n if self.tally.n else None

    @property
    def refusal_rate(self) -> float | None:
        return self.tally.refuse_passed / self.tally.refuse if self.tally.refuse else None

    def as_json(self) -> dict[str, Any]:
        row = asdict(self)
        return row | {"pass_rate": self.pass_rate, "refusal_rate": self.refusal_rate}


def recompute(upstream: Upstream, domain: str, screen: Screen) -> list[Baseline]:
    """The recorded configurations on the tasks that the screen leaves in: best first, incomplete
    recordings last."""
    size = subset_size(upstream.scoring(domain), domain, screen)
    results = []
    for each in configurations(upstream.checkout, domain):
        verdicts = [
            verdict.verdict
            for verdict in each.verdicts()
            if screen(verdict.reference, verdict.should_succeed)
        ]
        missing = size - len(verdicts)
        why = ""
        if not verdicts:
            why = "no verdict is stored in this copy"
        elif missing:
            why = f"{missing} tasks have no stored verdict"
        results.append(
            Baseline(
                domain, each.model, each.mode, each.tools, each.user, tally(verdicts), missing, why
            )
        )
    return sorted(
        results, key=lambda row: (not row.complete, -(row.pass_rate or 0.0), row.model, row.tools)
    )


def subset_size(scoring: Mapping[str, Sequence[bool]], domain: str, screen: Screen) -> int:
    return sum(
        screen(TaskReference(domain, goal, index), should)
        for goal, answers in scoring.items()
        for index, should in enumerate(answers)
    )


def leaderboard(checkout: Checkout) -> dict[str, dict[str, float]]:
    """Model → domain → pass rate in percent, as SOPBench publishes them in its README.

    The leaderboard scores all tasks and has no classes; it stores no verdicts to recompute.
    """
    page = checkout.path / "README.md"
    rows = [
        [cell.strip(" *_") for cell in line.strip().strip("|").split("|")]
        for line in (page.read_text("utf-8").splitlines() if page.exists() else ())
        if line.startswith("|")
    ]
    heads = [row for row in rows if {"Bank", "DMV"} <= set(row)]
    if not heads:
        return {}
    domains = {
        place: domain
        for place, name in enumerate(heads[0])
        for domain in DOMAINS
        if domain.endswith(name.lower().replace(" ", "_")) and name
    }
    scored = [row for row in rows if len(row) == len(heads[0]) and _is_number(row[-1])]
    return {row[0]: {domain: float(row[at]) for at, domain in domains.items()} for row in scored}


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def leaderboard_lines(rows: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    shown = [(model, *(f"{row[domain]:.1f}" for domain in row)) for model, row in rows.items()]
    yield table(shown, ["model", *next(iter(rows.values()))])


def baseline_lines(rows: Sequence[Baseline]) -> Iterator[str]:
    def percent(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.1f}"

    shown = [
        (
            row.domain,
            row.model,
            row.mode,
            row.tools,
            row.user,
            row.tally.n,
            percent(row.pass_rate),
            percent(row.refusal_rate),
            row.why,
        )
        for row in rows
    ]
    header = ["domain", "model", "mode", "tools", "user", "n", "pass %", "refusal %", ""]
    yield table(shown, header)


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
        """The zero-pass rule. It shows that no recorded run passed, not that none can."""
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
