"""``sopilot gate``: know your model before you page."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import click

from sopilot.cli.output import give, json_option, say, tell
from sopilot.files.text import read_text, write_whole
from sopilot.messages.errors import UserMistake
from sopilot.models.open import MODEL_HELP
from sopilot.runner.qualifications import Answer
from sopilot_lab.cli.check_cases import check_cases
from sopilot_lab.cli.options import check_options
from sopilot_lab.experiments.entrants import Contestant
from sopilot_lab.experiments.recorded_runs import recorded_runs
from sopilot_lab.qualification.checking import CheckProgress
from sopilot_lab.qualification.prepared import rehearsed_check
from sopilot_lab.qualification.recorded import recorded_check
from sopilot_lab.qualification.report import estimate_document
from sopilot_lab.qualification.rule import ARMS_CHECKED
from sopilot_lab.qualification.spending import Allowance, CheckSpending, Prices
from sopilot_lab.qualification.text_report import estimate_lines, recorded_lines, verdict_lines
from sopilot_lab.qualification.whole_check import run_check


@click.command(
    help="Check whether MODEL should be paged, and which representation suits it.\n\n"
    "Runs bundled handbooks, or --handbook with its scenarios, under every arm on the same "
    "cases; asks the model where it stands; counts calls after the goal. The verdict is page, may "
    "page, do not page, too few (cases) or broken (the endpoint; exit code 1), by a rule that is "
    "written down in design/discipline-check.md. Interrupted or out of budget, the same command "
    "goes on where it stopped. `sopilot run` takes the verdict as its default arm.\n\n"
    "With --from it runs nothing: the runs are those of the model's sweeps (`bench run`), and the "
    "probe asks about places in the ones that passed."
    f"\n\nMODEL is {MODEL_HELP}"
)
@check_options
@json_option
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
    as_json: bool,
    **how: Any,
) -> None:
    if money is not None and price is None:
        raise UserMistake("--money needs --price: what a million prompt and reply tokens cost")
    if recorded_in and (source or scenarios or only_arms or scope or only_estimate):
        raise UserMistake("--from takes the runs that are there: it has no other choices")
    if recorded_in and model == "reference" and probe:
        raise UserMistake("the reference executor cannot be asked where it stands: use --probe 0")
    allowance = Allowance(calls, money, minutes, Prices(*(price or (0.0, 0.0))))
    begun = time.monotonic()
    if recorded_in:
        prepared = recorded_check(model, Contestant(model).label, recorded_runs(recorded_in), probe)
        if not as_json:
            tell(recorded_lines(prepared))
    else:
        scope = scope or ("goal" if model == "local" else "handbook")
        given = check_cases(source, scenarios, whole=scope == "handbook")
        prepared = asyncio.run(
            rehearsed_check(model, given, only_arms or ARMS_CHECKED, cases, probe, scope)
        )
        if not as_json or only_estimate:
            rehearsed = (prepared.rehearsal, prepared.arms, allowance, prepared.planned)
            estimate = estimate_document(*rehearsed)
            give(as_json, estimate, estimate_lines(estimate, *rehearsed))
        if only_estimate:
            return
        if not prepared.cases:
            raise UserMistake(
                "the reference executor passes none of these cases; see `sopilot test`"
            )
    try:
        answer, document = run_check(
            model,
            prepared,
            CheckSpending(allowance),
            begun=begun,
            probes=bool(recorded_in and probe),
            watch=_quiet if as_json else _watch,
            **how,
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
