"""``sopilot demo``: one request carried out and one refused, with everything there is to see."""

from __future__ import annotations

import click

from sopilot.doors.cli.output import heading, json_option, print_json, say
from sopilot.doors.cli.run_and_audit import perform, show
from sopilot.doors.cli.scene import Description
from sopilot.doors.cli.sources import compile_source
from sopilot.doors.cli.stores import STORE

DESK = "bank-desk"
TASKS = ("dispute-electronics", "transfer-above-the-limit")


@click.command(
    help="Compile a bundled handbook, carry one request out and refuse another: frames, "
    "evidence, audit and where the trace is. Needs nothing."
)
@click.option("--no-frames", is_flag=True, help="Leave out what the model is shown.")
@STORE
@json_option
def command(no_frames: bool, store_spec: str | None, as_json: bool) -> None:
    units = compile_source(DESK)
    if not as_json:
        heading(f"{DESK}: {len(units)} programs")
        for unit in units:
            functions = len(unit.program.functions)
            say(f"  {unit.procedure.name}: {functions} functions. {unit.procedure.says}")
    performances = []
    for task in TASKS:
        if not as_json:
            say()
            heading(f"=== {task}")
        performance = perform(
            Description(DESK, task=task), store_spec, quiet=as_json, frames=not no_frames
        )
        performances.append(performance)
        if not as_json:
            show(performance, as_json=False)
    if as_json:
        print_json(
            {"desk": DESK, "programs": len(units), "runs": [p.as_json() for p in performances]}
        )
    raise SystemExit(max(performance.exit_code for performance in performances))
