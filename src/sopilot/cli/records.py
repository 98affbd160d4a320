"""`sopilot records`: the actions of all sessions, the sealed log and its proofs, deviations."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from sopilot.cli.journal_commands import EntryCommands
from sopilot.cli.options import (
    BY,
    EITHER,
    FILE,
    IN_STORE,
    NEW,
    STORE,
    WHY,
    flag,
    full_id,
    option,
    period,
)
from sopilot.cli.output import Exit, Output, hand_out, warn
from sopilot.messages.errors import UserMistake
from sopilot.protocols import SystemClock
from sopilot.records.actions import ActionOutcome
from sopilot.records.audits import deviation_step, load_deviations
from sopilot.records.bundle_export import bundle_files
from sopilot.records.completeness import Verified
from sopilot.records.deviations import DISPOSITIONS, deviation_lines
from sopilot.records.loading import rebuild_completely, register
from sopilot.records.log import prove as prove_in
from sopilot.records.sealing import (
    sealed_lines,
    verified_json,
    verified_lines,
    verify_store,
)
from sopilot.records.selection import (
    Selected,
    Wanted,
    read_condition,
    read_moment,
    register_csv,
    register_json,
    register_lines,
    with_day_ends,
)
from sopilot.records.store import Store
from sopilot.runner.releases import unpacked, write_bundle
from sopilot.runner.store_access import StoreAccess
from sopilot.stores.sealed_heads import checked_proof, public_key, read_sealed, seal_and_send
from sopilot.trace.signing import load_key

_SHOWN = 50


@click.group()
def command() -> None:
    """Query, seal, verify and export the records of all sessions."""


@command.command()
@period("First day or time", "Last day, inclusive")
@option("--action NAME", "List only this action.")
@option(
    "--outcome",
    "List only actions with this outcome.",
    type=click.Choice([str(each) for each in ActionOutcome]),
)
@option(
    "--grade",
    "List only actions with this proof level.",
    type=click.Choice(["proven", "stated", "attested", "claimed", "none"]),
)
@option(
    "--where CONDITION",
    'Condition on an argument, such as "amount>1000" (repeatable).',
    multiple=True,
)
@option("--columns NAMES", "Arguments to show as columns, such as amount,to.")
@option("--limit", f"Rows to print. Default: {_SHOWN}; all with --csv.", type=click.IntRange(min=1))
@flag("--rebuild", "Rebuild the rows from the traces first.")
@flag("--csv", "Print CSV.", "as_csv")
@IN_STORE
def actions(
    begin: str | None,
    end: str | None,
    action: str | None,
    outcome: str | None,
    grade: str | None,
    where: Sequence[str],
    columns: str | None,
    limit: int | None,
    rebuild: bool,
    as_csv: bool,
    store: StoreAccess,
) -> Output | None:
    """List every action, newest first: carried out, attempted, blocked, rejected, expired, failed
    or of unknown outcome.

    Read-only calls aren't listed. `sopilot records verify` shows that no row was altered or
    left out.
    """
    now = SystemClock().now()
    wanted = Wanted(
        None if begin is None else read_moment(begin),
        None if end is None else read_moment(end, whole_day=True),
        action,
        outcome,
        "" if grade == "none" else grade,
        now,
    )
    conditions = [read_condition(text) for text in where]
    names = [name.strip() for name in columns.split(",")] if columns else []

    async def use(opened: Store) -> Selected:
        if rebuild:
            await rebuild_completely(opened, tell=warn)
        return await register(opened, wanted, conditions, columns=names)

    result = store.read(use)
    what = [condition.without_names for condition in conditions]
    requests = [action, outcome, grade, *what, f"{begin or 'ever'} to {end or 'now'}"]
    store.may_see("records actions", [item for item in requests if item], to_all=True)
    if as_csv:
        hand_out(register_csv(result.entries(limit), names))
        return None
    lines = register_lines(result, limit or _SHOWN, names)
    return Output(register_json(result, limit), lines)


@command.command()
@option("--key", "Private key from `sopilot trace keygen`.", "key_file", type=FILE, required=True)
@option(
    "--to FILE|URL|STORE",
    "Destination of the head and its entries. Choose a place away from the store.",
    "targets",
    multiple=True,
)
@option(
    "--earlier-key HEX|FILE",
    "Public key of the last seal, if it was a different one.",
    "earlier",
    multiple=True,
)
@IN_STORE
def seal(key_file: Path, store: StoreAccess, **texts: Sequence[str]) -> Output:
    """Seal the log of all sessions: one entry per session that has changed, a Merkle tree over all
    entries, and a signed head.

    Run it on a schedule: a seal doesn't cover later events. If the store differs from the last
    seal, the command seals nothing and exits with 1.
    """
    key, targets = load_key(key_file), texts["targets"]
    earlier = [public_key(item) for item in texts["earlier"]]
    sealing = store.write(lambda opened: seal_and_send(opened, key, targets, earlier))
    sent = [f"sent to {target}" for target in targets]
    return Output({**sealing.as_json(), "sent": list(targets)}, [*sealed_lines(sealing), *sent])


@command.command()
@option("--head FILE|STORE", "Head that `sopilot records seal --to` wrote.")
@option(
    "--key HEX|FILE",
    "Public key to trust (`sopilot trace keygen` writes FILE.pub).",
    "trusted",
    multiple=True,
    required=True,
)
@option("--proof", "Check a proof instead; needs no store.", "proof_file", type=FILE)
@option("--bundle", "Check an exported bundle instead; needs no store.", type=EITHER)
@flag("--without-events", "Read events only of sessions that changed since the head.")
@IN_STORE
def verify(
    head: str | None,
    trusted: Sequence[str],
    proof_file: Path | None,
    bundle: Path | None,
    without_events: bool,
    store: StoreAccess,
) -> Output:
    """Compare a store with a sealed head. Name each session that was deleted, inserted, cut,
    exchanged or rewritten, and each action record that differs from its trace. Detect a cut or
    rewritten log and an old copy of the store. Exit 1 if anything is missing or altered.

    Later events aren't covered. If the head comes without its entries (a file of `seal --to` has
    both), the command detects a rewritten log, but can't name the original entries.
    """
    if [head, proof_file, bundle].count(None) != 2:
        raise UserMistake("use --head with a store, or --proof, or --bundle")
    keys = [public_key(item) for item in trusted]
    if bundle is not None:
        from sopilot.records.bundle_verifier import check_bundle

        with unpacked(bundle) as folder:
            good, lines = check_bundle(folder, keys)
        return Output({"whole": good, "says": lines}, lines, Exit.if_any(not good))
    if proof_file is not None:
        message, problem = checked_proof(proof_file, keys)
        answer = {"proven": not problem, "says": message or None, "problem": problem or None}
        return Output(answer, [message or f"not proven: {problem}"], Exit.if_any(problem))
    assert head is not None
    gc.disable()  # very many small values and no cycles: the collector would take a third

    async def use(opened: Store) -> Verified:
        return await verify_store(opened, await read_sealed(head), keys, events=not without_events)

    result = store.read(use)
    return Output(
        verified_json(result, without_events),
        verified_lines(result, without_events),
        Exit.if_any(not result.complete),
    )


@command.command()
@click.argument("session_id", metavar="[ID]", required=False, callback=full_id)
@option("--head FILE|STORE", "Sealed head that the proof refers to.", required=True)
@option("--since FILE|STORE", "Earlier head; proves that the log only grew since then.")
@STORE
def prove(session_id: str | None, head: str, since: str | None, store: StoreAccess) -> None:
    """Print a proof as JSON: that the sealed log contains session ID, or that it only grew since an
    earlier head. `sopilot records verify --proof` checks it.
    """
    if (session_id is None) == (since is None):
        raise UserMistake("name a session ID, or use --since")
    gc.disable()  # very many small values and no cycles

    async def use(opened: Store) -> Mapping[str, object]:
        sealed = (await read_sealed(head)).heads[-1]
        old = (await read_sealed(since)).heads[-1] if since is not None else None
        return prove_in(await opened.records.log(), sealed, session_id=session_id, since=old)

    hand_out(json.dumps(store.read(use)) + "\n")  # signed, so times stay numbers


@command.command()
@period("First day or time", "Last day, inclusive", required=True)
@option("-o,--output", "A new or empty folder, or NAME.zip.", type=NEW, required=True)
@flag("--payloads", "Include contents stored beside the traces.")
@IN_STORE
def export(begin: str, end: str, output: Path, payloads: bool, store: StoreAccess) -> Output:
    """Export a period for an auditor: records, traces, log, sealed heads, journals, handbooks and a
    summary. To verify the export offline, run python3 verify.pyz PUBLIC_KEY."""
    since, until = read_moment(begin), read_moment(end, whole_day=True)
    store.require_readable("bundle", [f"{begin} to {end}"], contents=payloads)
    files = store.write(lambda opened: bundle_files(opened, since, until, payloads=payloads))
    write_bundle(output, files)
    lines = [f"{output}: {len(files)} files; check them with its verify.pyz"]
    return Output({"output": str(output), "files": sorted(files)}, lines)


@command.group()
def deviations() -> None:
    """Follow up on deviations. Assign an owner and a date, record disposition, cause and remedy,
    and let a second person close the deviation. `sopilot audit --keep` opens deviations; the store
    records every step."""


@deviations.command("list")
@option(
    "--state", "List deviations in this state.", type=click.Choice(["open", "judged", "closed"])
)
@option("--session ID", "List only deviations of this session.", "session_id", callback=full_id)
@flag("--overdue", "List only overdue deviations.")
@IN_STORE
def list_deviations(
    state: str | None, session_id: str | None, overdue: bool, store: StoreAccess
) -> Output:
    """List deviations with owner, due date, cause and remedy."""
    known = list(store.read(load_deviations).values())
    now = SystemClock().now()
    results = [item for item in known if item.fits(state, session_id, overdue, now)]
    report = {"deviations": [item.as_json() for item in results], "of": len(known)}
    return Output(report, deviation_lines(results, len(known), now))


steps = EntryCommands(deviations, deviation_step, click.argument("number", type=int), BY)
steps.add(
    "assign", "assigned", "Assign deviation NUMBER to an owner, with a date.",
    option("--owner NAME", "Person responsible for the deviation."),
    option("--due DATE", "Due on this date, inclusive (UTC)."),
    read=lambda value: with_day_ends(value, "due"),
)  # fmt: skip
steps.add("comment", "commented", "Add a comment to deviation NUMBER.", click.argument("text"))
steps.add(
    "judge", "judged", "Record the judgement on deviation NUMBER, its cause and its remedy.",
    click.argument("disposition", type=click.Choice(DISPOSITIONS)),
    option("--cause", "Cause of the deviation.", required=True),
    option("--remedy", "Action taken to correct it.", default=""),
)  # fmt: skip
steps.add(
    "close",
    "closed",
    "Close deviation NUMBER. Neither its owner nor the person who judged it can close it.",
)
steps.add("reopen", "reopened", "Reopen deviation NUMBER.", WHY)
