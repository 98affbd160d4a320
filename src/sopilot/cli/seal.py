"""`sopilot records seal`: the log of all sessions, sealed, and sent elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from sopilot.cli.options import FILE
from sopilot.cli.output import give, json_option
from sopilot.cli.stores import STORE
from sopilot.records.sealing import sealed_lines
from sopilot.runner.opened_stores import with_store
from sopilot.stores.seals import public_key, seal_and_send
from sopilot.trace.signing import load_key


@click.command()
@click.option("--key", "key_file", type=FILE, required=True, help="From `sopilot trace keygen`.")
@click.option(
    "--to", "targets", multiple=True, metavar="FILE|URL|STORE",
    help="Where the head goes with the entries it covers: keep it away from the store.",
)  # fmt: skip
@click.option(
    "--earlier-key", "earlier", multiple=True, metavar="HEX|FILE",
    help="The public key of the last seal, where that was another.",
)  # fmt: skip
@json_option
@STORE
def command(key_file: Path, as_json: bool, store_spec: str | None, **texts: Sequence[str]) -> None:
    """Seal the log of the store's sessions: an entry for each that has moved, a Merkle tree
    over all entries, its head signed.

    Run it on a schedule. What happens after a seal is not covered before the next one.
    Exit 1 when the store is not what was sealed before: then nothing is sealed.
    """
    key, targets = load_key(key_file), texts["targets"]
    earlier = [public_key(item) for item in texts["earlier"]]
    sealing = with_store(store_spec, lambda store: seal_and_send(store, key, targets, earlier))
    sent = [f"sent to {target}" for target in targets]
    give(as_json, {**sealing.as_json(), "sent": list(targets)}, [*sealed_lines(sealing), *sent])
