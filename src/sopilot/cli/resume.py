"""``sopilot resume``: go on with an interrupted session."""

from __future__ import annotations

import click

from sopilot.cli.output import json_option
from sopilot.cli.performing import perform, show
from sopilot.cli.scene import Description, description_from_json
from sopilot.cli.stores import STORE, with_store
from sopilot.session import Store


@click.command(
    help="Go on with session ID where its trace ends. Calls that cannot be taken back are "
    "never repeated."
)
@click.argument("session_id", metavar="ID")
@click.option(
    "--take-over", is_flag=True, help="Do not wait for the lease of a process that is gone."
)
@click.option("--frames", is_flag=True, help="Show what the model is shown.")
@STORE
@json_option
def command(
    session_id: str, take_over: bool, frames: bool, store_spec: str | None, as_json: bool
) -> None:
    async def described(store: Store) -> Description:
        record = await store.record(session_id)
        return description_from_json(record.metadata.get("extra", {}))

    description = with_store(store_spec, described)
    performance = perform(
        description,
        store_spec,
        resume_id=session_id,
        take_over=take_over,
        quiet=as_json,
        frames=frames,
    )
    show(performance, as_json=as_json)
    raise SystemExit(performance.exit_code)
