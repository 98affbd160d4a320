"""`sopilot records prove`: that a session stands in the sealed log, or that the log only grew."""

from __future__ import annotations

import gc
from collections.abc import Mapping

import click

from sopilot.cli.output import print_json
from sopilot.cli.stores import STORE
from sopilot.messages.errors import UserMistake
from sopilot.records.log import prove
from sopilot.records.store import Store
from sopilot.runner.opened_stores import with_store
from sopilot.stores.seals import read_sealed


@click.command()
@click.argument("session_id", metavar="[ID]", required=False)
@click.option("--head", metavar="FILE|STORE", required=True, help="The head that is relied on.")
@click.option("--since", metavar="FILE|STORE", help="An earlier head: the log only grew.")
@STORE
def command(session_id: str | None, head: str, since: str | None, store_spec: str | None) -> None:
    """Print a proof as JSON: session ID is in the log under the head, or the log of an earlier
    head is the beginning of this one. `sopilot records verify --proof` checks it without a store.
    """
    if (session_id is None) == (since is None):
        raise UserMistake("give the ID of a session, or --since")
    gc.disable()  # very many small values, and no cycles

    async def use(store: Store) -> Mapping[str, object]:
        seal = (await read_sealed(head)).heads[-1]
        old = (await read_sealed(since)).heads[-1] if since is not None else None
        return prove(await store.records.log(), seal, session_id=session_id, since=old)

    print_json(with_store(store_spec, use, reading=True), indent=None)
