"""`sopilot records verify`: compare a store, bundle or proof with a sealed head."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from sopilot.cli.options import EITHER, FILE
from sopilot.cli.output import give, json_option
from sopilot.cli.stores import STORE, digests_beside
from sopilot.messages.errors import UserMistake
from sopilot.records.sealing import Verified, verified_json, verified_lines, verify_store
from sopilot.records.store import Store
from sopilot.runner.opened_stores import with_store
from sopilot.stores.seals import checked_proof, public_key, read_sealed

_LONG_LOG = 1_000_000
"""Bytes, about 4,000 entries: reading less than that takes no longer than another process."""


@click.command()
@click.option(
    "--head", metavar="FILE|STORE", help="What `sopilot records seal --to` wrote, or where to."
)
@click.option(
    "--key",
    "given_keys",
    multiple=True,
    required=True,
    metavar="HEX|FILE",
    help="A public key to trust, or the file with it (`sopilot trace keygen` makes FILE.pub).",
)
@click.option(
    "--proof", "proof_file", type=FILE, help="From `sopilot records prove`; needs no store."
)
@click.option("--bundle", type=EITHER, help="What `sopilot records export` wrote; needs no store.")
@click.option(
    "--without-events",
    is_flag=True,
    help="Read log, heads and register, and the events only of sessions that have gone on.",
)
@json_option
@STORE
def command(
    head: str | None,
    given_keys: Sequence[str],
    proof_file: Path | None,
    bundle: Path | None,
    without_events: bool,
    as_json: bool,
    store_spec: str | None,
) -> None:
    """Hold a store against a sealed head, and name what is missing or altered: sessions that
    were deleted, inserted, cut, exchanged or rewritten, a log that was cut or rewritten, an old
    copy, rows of the register that their traces do not make. Exit 1 when there is any.

    What came after the head is not covered. Without the entries beside the head (a file of
    `seal --to` has them) a rewritten log is found, but what stood there is not named.
    """
    if [head, proof_file, bundle].count(None) != 2:
        raise UserMistake("give --head and a store, or --proof, or --bundle")
    keys = [public_key(given_key) for given_key in given_keys]
    if bundle is not None:
        from sopilot.records.bundle import examined
        from sopilot.runner.versions import unpacked

        with unpacked(bundle) as folder:
            good, lines = examined(folder, keys)
        give(as_json, {"whole": good, "says": lines}, lines)
        sys.exit(0 if good else 1)
    if proof_file is not None:
        message, problem = checked_proof(proof_file, keys)
        answer = {"proven": not problem, "says": message or None, "problem": problem or None}
        give(as_json, answer, [message or f"not proven: {problem}"])
        sys.exit(1 if problem else 0)
    assert head is not None
    gc.disable()  # very many small values, and no cycles: looking for some takes a third of it
    with digests_beside(store_spec, worth=_is_long(Path(head))) as elsewhere:

        async def use(store: Store) -> Verified:
            seals, events = await read_sealed(head), not without_events
            return await verify_store(store, seals, keys, events=events, elsewhere=elsewhere)

        result = with_store(store_spec, use, reading=True)
    give(as_json, verified_json(result, without_events), verified_lines(result, without_events))
    sys.exit(0 if result.complete else 1)


def _is_long(file: Path) -> bool:
    return not file.is_file() or file.stat().st_size > _LONG_LOG
