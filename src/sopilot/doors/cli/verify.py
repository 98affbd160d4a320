"""`sopilot verify`: what a store still holds of what was sealed, and proofs without a store."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from sopilot.doors.cli.output import counted, json_option, print_json, say
from sopilot.doors.cli.public_key import public_key
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.language.diagnostics import Place, UserMistake, mistake
from sopilot.runtime.records.log import SealFile, read_seals
from sopilot.runtime.records.proofs import check_proof
from sopilot.runtime.session.sealing import Verified, verify_store
from sopilot.runtime.vm import TraceError

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--head", "head_file", type=FILE, help="What `sopilot seal --to` wrote.")
@click.option(
    "--key",
    "given_keys",
    multiple=True,
    required=True,
    metavar="HEX|FILE",
    help="A public key to trust, or the file with it (`sopilot trace keygen` makes FILE.pub).",
)
@click.option("--proof", "proof_file", type=FILE, help="From `sopilot prove`; needs no store.")
@click.option(
    "--without-events",
    is_flag=True,
    help="Read log, heads and register, and the events only of sessions that have gone on.",
)
@json_option
@STORE
def command(
    head_file: Path | None,
    given_keys: Sequence[str],
    proof_file: Path | None,
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
    if (head_file is None) == (proof_file is None):
        raise UserMistake("give --head and a store, or --proof")
    keys = [public_key(given) for given in given_keys]
    if proof_file is not None:
        _proof(proof_file, keys, as_json)
        return
    assert head_file is not None
    gc.disable()  # very many small values, and no cycles: looking for some takes a third of it
    seals = read_seal_file(head_file)
    found = with_store(
        store_spec,
        lambda store: verify_store(store, seals, keys, events=not without_events),
        reading=True,
    )
    if as_json:
        print_json(_as_json(found, without_events))
    else:
        _show(found, without_events)
    sys.exit(0 if found.complete else 1)


def read_seal_file(path: Path) -> SealFile:
    try:
        return read_seals(path.read_text("utf-8"))
    except (TraceError, OSError, UnicodeDecodeError) as problem:
        raise mistake("no-seals", f"holds no sealed heads: {problem}", Place(str(path))) from None


def _as_json(found: Verified, without_events: bool) -> dict[str, object]:
    head = found.seal.head
    return {
        "complete": found.complete,
        "sealed": {"size": head.size, "root": head.root, "at": head.at, "key": found.seal.key},
        "sessions": found.sessions,
        "events_read": found.events_read,
        "gone_on": found.moved,
        "not_covered": {"entries": found.later, "sessions": len(found.unsealed)},
        "without_events": without_events,
        "gaps": [gap.as_json() for gap in found.gaps],
    }


def _show(found: Verified, without_events: bool) -> None:
    head = found.seal.head
    when = datetime.fromtimestamp(head.at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    for gap in found.gaps:
        say(f"{gap.code}: {gap.message}")
    if found.gaps:
        say(f"{counted(len(found.gaps), 'gap')} against the head of {when}")
        return
    say(
        f"complete: all {counted(found.sessions, 'session')} that were sealed at {when} are here, "
        "none was exchanged, cut or rewritten, and none stands in the store without an entry"
    )
    if without_events:
        unread = found.sessions - found.events_read
        say(
            f"not read: the events of {counted(unread, 'session')}, whose heads and rows of the "
            "register are as sealed"
        )
    else:
        say("unaltered: every event up to its sealed one; the register is what the traces make")
    if found.moved or found.unsealed:
        say(
            f"not covered: what came after the seal ({counted(found.moved, 'session')} went on, "
            f"{len(found.unsealed)} began since)"
        )
    say("not proven by this: that what was recorded is true, or that everything was recorded")


def _proof(path: Path, keys: Sequence[str], as_json: bool) -> None:
    try:
        told = check_proof(json.loads(path.read_text("utf-8")), keys)
        problem = ""
    except (TraceError, ValueError) as wrong:
        told, problem = "", str(wrong)
    if as_json:
        print_json({"proven": not problem, "says": told or None, "problem": problem or None})
    else:
        say(told or f"not proven: {problem}")
    sys.exit(1 if problem else 0)
