"""`sopilot prove`: that a session stands in the sealed log, or that the log only grew."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.doors.cli.output import print_json
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.doors.cli.verify import FILE, read_seal_file
from sopilot.language.diagnostics import RunEnded, UserMistake
from sopilot.runtime.records.proofs import prove_consistency, prove_inclusion
from sopilot.runtime.session import Store


@click.command()
@click.argument("session_id", metavar="[ID]", required=False)
@click.option("--head", "head_file", type=FILE, required=True, help="The head that is relied on.")
@click.option("--since", "old_file", type=FILE, help="An earlier head: the log only grew.")
@STORE
def command(
    session_id: str | None, head_file: Path, old_file: Path | None, store_spec: str | None
) -> None:
    """Print a proof as JSON: that session ID stands in the log under the head, or that the log
    of an earlier head is the beginning of this one. `sopilot verify --proof` checks it without
    a store.
    """
    if (session_id is None) == (old_file is None):
        raise UserMistake("give the ID of a session, or --since")
    seal = read_seal_file(head_file).heads[-1]

    async def use(store: Store) -> dict[str, object]:
        log = await store.records.log()
        if len(log) < seal.head.size:
            raise RunEnded("the log is shorter than the head says: see `sopilot verify`")
        if old_file is not None:
            return dict(prove_consistency(log, read_seal_file(old_file).heads[-1], seal))
        named = [one for one in log[: seal.head.size] if one.session_id == session_id]
        if not named:
            raise RunEnded(f"session {session_id} is in no entry that the head covers")
        return dict(prove_inclusion(log, named[-1], seal))

    print_json(with_store(store_spec, use, reading=True), indent=None)
