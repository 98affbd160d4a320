"""``sopilot gate``: know your model before you page."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import click

from sopilot.adapters.memory_store import MemoryStore
from sopilot.adapters.model_by_name import MODEL_HELP
from sopilot.adapters.text_files import read_text, write_whole
from sopilot.doors.cli.output import give, json_option, say
from sopilot.doors.sources.check_cases import check_cases
from sopilot.lab.discipline import (
    ARMS_CHECKED,
    CASES,
    QUESTIONS,
    TIMEOUT,
    Allowance,
    Answer,
    CheckProgress,
    CheckSpending,
    Prices,
    planned,
    rehearse,
)
from sopilot.lab.discipline.report import estimate_document
from sopilot.lab.discipline.spending import CALLS, MINUTES
from sopilot.lab.discipline.text_report import estimate_lines, verdict_lines
from sopilot.lab.discipline.whole_check import Check
from sopilot.language.diagnostics import UserMistake
from sopilot.runtime.agent import ARMS

READ_BY_REFERENCE = frozenset({"flat", "pg", "fused", "full-cursor"})


@click.command(
    help="Check whether MODEL should be paged, and which representation suits it.\n\n"
    "Runs bundled handbooks, or --handbook with its scenarios, under every arm on the same "
    "cases; asks the model where it stands; counts calls after the goal. The verdict is page, may "
    "page, do not page, too few (cases) or broken (the endpoint; exit code 1), by a rule that is "
    "written down in design/discipline-check.md. Interrupted or out of budget, the same command "
    "goes on where it stopped. `sopilot run` takes the verdict as its default arm."
    f"\n\nMODEL is {MODEL_HELP}"
)
@click.option("--model", required=True, metavar="MODEL")
@click.option("--handbook", "source", help="A handbook file or bundled name. Default: all desks.")
@click.option("--scenarios", help="Default: the handbook's name with `.scenarios.yaml`.")
@click.option(
    "--arm",
    "only_arms",
    multiple=True,
    type=click.Choice(ARMS_CHECKED),
    help="Run these alone (repeatable). Default: all of them.",
)
@click.option("--cases", default=CASES, show_default=True, type=click.IntRange(1))
@click.option("--probe", default=QUESTIONS, show_default=True, type=click.IntRange(0))
@click.option(
    "--scope",
    type=click.Choice(["handbook", "goal"]),
    help="What a case shows: the whole handbook, or its own goal alone, as in the study. Default: "
    "handbook; goal for `local`, whose context does not hold a whole one.",
)
@click.option("--calls", default=CALLS, show_default=True, help="Most requests to the model.")
@click.option("--minutes", default=MINUTES, show_default=True, help="Longest, for this call.")
@click.option(
    "--timeout",
    default=TIMEOUT,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Seconds for one answer. An endpoint that is silent for twice as long ends the check.",
)
@click.option("--money", type=float, help="Most money; needs --price.")
@click.option(
    "--price", type=(float, float), metavar="IN OUT", help="Per million prompt and reply tokens."
)
@click.option("--parallel", default=1, show_default=True, help="Cases at a time.")
@click.option("--estimate", "only_estimate", is_flag=True, help="Print the estimate and stop.")
@click.option("--restart", is_flag=True, help="Forget what an earlier call has finished.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Copy the page here.")
@json_option
def command(
    model: str,
    source: str | None,
    scenarios: str | None,
    only_arms: tuple[str, ...],
    cases: int,
    probe: int,
    scope: str | None,
    calls: int,
    minutes: float,
    timeout: float,
    money: float | None,
    price: tuple[float, float] | None,
    parallel: int,
    only_estimate: bool,
    restart: bool,
    html: Path | None,
    as_json: bool,
) -> None:
    if money is not None and price is None:
        raise UserMistake("--money needs --price: what a million prompt and reply tokens cost")
    scope = scope or ("goal" if model == "local" else "handbook")
    allowance = Allowance(calls, money, minutes, Prices(*(price or (0.0, 0.0))))
    arms = [
        arm
        for arm in ARMS_CHECKED
        if arm in ARMS
        and arm in (only_arms or ARMS_CHECKED)
        and (model != "reference" or arm in READ_BY_REFERENCE)
    ]
    plan = planned(check_cases(source, scenarios, whole=scope == "handbook"), cases)
    if not plan:
        raise UserMistake("there is no case that ends in an execution or a refusal")
    begun = time.monotonic()
    rehearsal = asyncio.run(rehearse(plan, arms, store_for=MemoryStore))
    plan = [case for case in plan if case.key not in rehearsal.unreachable]
    if not as_json or only_estimate:
        estimate = estimate_document(rehearsal, arms, allowance, len(plan))
        give(as_json, estimate, estimate_lines(estimate, rehearsal, arms, allowance, len(plan)))
    if only_estimate:
        return
    if not plan:
        raise UserMistake("the reference executor passes none of these cases; see `sopilot test`")
    check = Check(model, plan, arms, rehearsal, CheckSpending(allowance))
    try:
        answer, document = check.run(
            scope=scope,
            probe=probe,
            restart=restart,
            begun=begun,
            parallel=parallel,
            timeout=timeout,
            watch=_quiet if as_json else _watch,
        )
    except KeyboardInterrupt:
        say("\ninterrupted; the same command goes on from here", err=True)
        raise SystemExit(130) from None
    if html is not None:
        write_whole(html, read_text(Path(str(document["report"]))), private=True)
    give(as_json, document, verdict_lines(document))
    if answer is Answer.BROKEN:
        raise SystemExit(1)


def _quiet(step: CheckProgress) -> None:
    return None


def _watch(step: CheckProgress) -> None:
    say(f"[{step.done}/{step.planned}] {step.what}", err=True)
