"""``sopilot demo``: one request carried out and one refused, with everything there is to see."""

from __future__ import annotations

import click

from sopilot.cli.output import heading, json_option, print_json, say
from sopilot.cli.run_and_audit import perform, show
from sopilot.cli.stores import STORE
from sopilot.runner.options import RunOptions
from sopilot.runner.sources import open_source

DESK = "bank"


TASKS = ("dispute-electronics", "transfer-above-the-limit")


@click.command(
    help="Compile a bundled handbook, carry one request out and refuse another: frames, "
    "evidence, audit and where the trace is. Needs nothing."
)
@click.option("--no-frames", is_flag=True, help="Leave out what the model is shown.")
@STORE
@json_option
def command(no_frames: bool, store_spec: str | None, as_json: bool) -> None:
    source = open_source(DESK)
    units = source.units()
    if not as_json:
        heading(f"{DESK}: {len(units)} programs")
        for unit in units:
            functions = len(unit.program.functions)
            say(f"  {unit.procedure.name}: {functions} functions. {unit.procedure.says}")
    runs = []
    for task in TASKS:
        if not as_json:
            say()
            heading(f"=== {task}")
        done = perform(
            RunOptions(DESK, task=task),
            store_spec,
            source=source,
            quiet=as_json,
            frames=not no_frames,
        )
        runs.append(done)
        if not as_json:
            show(done, as_json=False)
    if as_json:
        print_json({"desk": DESK, "programs": len(units), "runs": [one.as_json() for one in runs]})
    raise SystemExit(0 if all(one.good for one in runs) else 1)
