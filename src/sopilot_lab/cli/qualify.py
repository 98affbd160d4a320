"""``sopilot qualify``: does a model qualify for paging?"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import AS_JSON, FOLDER, NEW_FILE, all_of, flag, option, wants_json
from sopilot.cli.output import Exit, Output, say, tell
from sopilot.files.text import read_text, write_whole
from sopilot.messages.errors import UserMistake
from sopilot.runner.qualifications import Answer
from sopilot.runner.sources import ExampleSource, open_source
from sopilot.tasks.example_tasks import example_tasks
from sopilot.tasks.examples.example import bundled_names
from sopilot.tasks.scenario_tasks import scenario_task
from sopilot.tasks.task import Task
from sopilot_lab.cli.options import PRICE, shown
from sopilot_lab.experiments.entrants import Contestant
from sopilot_lab.experiments.run_folder import recorded_runs
from sopilot_lab.qualification.checking import (
    CALLS,
    MINUTES,
    Allowance,
    CheckProgress,
    CheckSpending,
)
from sopilot_lab.qualification.plan import (
    CASES,
    TIMEOUT,
    checkable,
    recorded_check,
    rehearsed_check,
)
from sopilot_lab.qualification.probe import QUESTIONS
from sopilot_lab.qualification.report import (
    estimate_document,
    estimate_lines,
    recorded_lines,
    verdict_lines,
)
from sopilot_lab.qualification.rule import ARMS_CHECKED
from sopilot_lab.qualification.whole_check import run_check

check_options = all_of(
    option("--model MODEL", "Model to check.", required=True),
    option("--handbook", "Handbook. Default: all bundled examples.", "source"),
    option("--scenarios", "Scenario file. Default: beside the handbook."),
    option(
        "--arm", "Check only this view (repeatable).", "only_arms", multiple=True,
        type=click.Choice(ARMS_CHECKED),
    ),
    option(
        "--from", "Read these runs of `lab run --traces` instead (repeatable).", "recorded_in",
        multiple=True, type=FOLDER,
    ),
    shown("--cases", "Cases per view.", default=CASES, type=click.IntRange(1)),
    shown(
        "--probe", "Questions about the current step.", default=QUESTIONS, type=click.IntRange(0)
    ),
    option(
        "--scope", "Show the whole handbook, or only the goal (default for `local`).",
        type=click.Choice(["handbook", "goal"]),
    ),
    shown("--calls", "Maximum requests.", default=CALLS),
    shown("--minutes", "Time limit for this run.", default=MINUTES),
    shown(
        "--timeout",
        "Seconds per answer; the check ends after twice this time without an answer.",
        default=TIMEOUT, type=click.FloatRange(0, min_open=True),
    ),
    option("--money", "Maximum cost. Needs --price.", type=float),
    PRICE,
    shown("--parallel", "Cases to run in parallel.", default=1),
    flag("--estimate", "Print the estimate and stop.", "only_estimate"),
    flag("--restart", "Discard the results of earlier runs of this check."),
    option("--html", "Copy the HTML page to this file.", type=NEW_FILE),
)  # fmt: skip


@click.command(
    help="Check whether MODEL, named as for `sopilot run`, qualifies for paging, and which view "
    "suits it.\n\n"
    "The check runs the bundled handbooks, or --handbook with its scenarios, under every view on "
    "the same cases. It asks the model for its place in a procedure and counts calls after the "
    "goal. The verdict is page, may page, do not page, too few (cases) or broken (the endpoint; "
    "exit code 1), by the rule in design/qualification.md. The same command resumes an "
    "interrupted check. `sopilot run` takes its default view from the verdict."
)
@check_options
@AS_JSON
def command(
    model: str,
    source: str | None,
    scenarios: str | None,
    only_arms: tuple[str, ...],
    recorded_in: tuple[Path, ...],
    cases: int,
    probe: int,
    scope: str | None,
    calls: int,
    minutes: float,
    money: float | None,
    price: tuple[float, float] | None,
    only_estimate: bool,
    html: Path | None,
    **how: Any,
) -> Output:
    if money is not None and price is None:
        raise UserMistake("--money needs --price, the price per million prompt and reply tokens")
    if recorded_in and (source or scenarios or only_arms or scope or only_estimate):
        raise UserMistake(
            "--from reads recorded runs: it can't be combined with other choices of cases"
        )
    if recorded_in and model == "reference" and probe:
        raise UserMistake("the reference executor can't answer the probe: use --probe 0")
    as_json = wants_json()
    who = Contestant(model, price=price)
    spending = CheckSpending(Allowance(calls, money, minutes), who)
    begun = time.monotonic()
    if recorded_in:
        prepared = recorded_check(model, who.label, recorded_runs(recorded_in), probe)
        if not as_json:
            tell(recorded_lines(prepared))
    else:
        scope = scope or ("goal" if model == "local" else "handbook")
        value = check_cases(source, scenarios, whole=scope == "handbook")
        prepared = asyncio.run(
            rehearsed_check(model, value, only_arms or ARMS_CHECKED, cases, probe, scope)
        )
        if not as_json or only_estimate:
            document = estimate_document(prepared, spending)
            estimate = Output(document, estimate_lines(document, prepared, spending))
            if only_estimate:
                return estimate
            tell(estimate.lines)
        if not prepared.cases:
            raise UserMistake(
                "the reference executor passes none of these cases; see `sopilot test`"
            )
    try:
        answer, document = run_check(
            prepared,
            spending,
            begun=begun,
            watch=_quiet if as_json else _watch,
            **how,
        )
    except KeyboardInterrupt:
        say("\ninterrupted; the same command resumes from here", err=True)
        raise SystemExit(130) from None
    if html is not None:
        write_whole(html, read_text(Path(str(document["report"]))), private=True)
    return Output(document, verdict_lines(document), Exit.if_any(answer is Answer.BROKEN))


def _quiet(step: CheckProgress) -> None:
    return None


def _watch(step: CheckProgress) -> None:
    say(f"[{step.done}/{step.planned}] {step.what}", err=True)


def check_cases(source: str | None, scenarios: str | None, *, whole: bool) -> list[Task]:
    """The cases of every bundled example, or of one handbook with its scenarios."""
    cases: list[Task] = []
    for name in bundled_names() if source is None else (source,):
        opened = open_source(name)
        if isinstance(opened, ExampleSource) and scenarios is None:
            # The natural audit (R2) counts the calls after the goal; they must not count twice.
            cases += example_tasks(opened.example, opened.briefing(), late_calls_fail=False)
            continue
        cure = "a check needs cases: write scenarios (see `sopilot new`), or name --scenarios"
        path = opened.existing_scenarios(scenarios, cure)
        briefing = opened.briefing()
        cases += [scenario_task(scenario, briefing) for scenario in opened.scenarios(path)]
    return checkable(cases, whole_handbook=whole)
