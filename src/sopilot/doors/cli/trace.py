"""`sopilot trace`: traces as files, and heads that are signed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from sopilot.adapters.sign_in import who_asks
from sopilot.adapters.text_files import write_whole
from sopilot.doors.cli.output import hand_out, json_option, print_json, say
from sopilot.doors.cli.people import TOKEN_FILE
from sopilot.doors.cli.public_key import public_key
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.language.diagnostics import Place, UserMistake, mistake
from sopilot.runtime.session import (
    Store,
    SystemClock,
    TraceFile,
    export_trace,
    read_trace,
    verify_trace,
    write_trace,
)
from sopilot.runtime.session.privacy import note_reading
from sopilot.runtime.trace import (
    SignedHead,
    generate_key,
    load_key,
    sign_head,
    signed_head_from_json,
    write_key,
)
from sopilot.runtime.vm import TraceError

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group()
def command() -> None:
    """Export, sign and verify traces. Verification needs no store."""


@command.command()
@click.argument("session_id", metavar="ID")
@click.option("-o", "--output", type=NEW_FILE, help="Where to; default: standard output.")
@click.option("--payloads", is_flag=True, help="With the values kept beside the trace.")
@click.option("--without-programs", is_flag=True, help="Name the programs by hash alone.")
@TOKEN_FILE
@STORE
def export(
    session_id: str,
    output: Path | None,
    payloads: bool,
    without_programs: bool,
    token_file: Path | None,
    store_spec: str | None,
) -> None:
    """Write the trace of session ID as JSON Lines."""

    async def use(store: Store) -> TraceFile:
        who = await who_asks(store, token_file)
        allowed = await note_reading(store, "export", [session_id], who=who, clock=SystemClock())
        if payloads and not allowed:
            raise mistake("not-entitled", "contents are shown to other roles alone")
        return await export_trace(
            store, session_id, payloads=payloads, programs=not without_programs
        )

    text = write_trace(with_store(store_spec, use))
    if output is None:
        hand_out(text)
        return
    write_whole(output, text, private=True)
    say(f"{output}: {text.count(chr(10)) - 1} lines", err=True)


@command.command()
@click.argument("trace_file", metavar="FILE", type=FILE)
@click.option("--head", "heads", multiple=True, type=FILE, help="A head signed earlier.")
@click.option("--key", "keys", multiple=True, metavar="HEX", help="A public key that signed.")
@json_option
def verify(trace_file: Path, heads: Sequence[Path], keys: Sequence[str], as_json: bool) -> None:
    """Check the chain of FILE, and signed heads against it. Exit 1 when something is wrong.

    Without `--head` a cut-off end and a complete rewrite cannot be seen.
    Without `--key` signatures prove integrity, but not whose they are; each `--key` must have
    signed the last event, in FILE or in a `--head`.
    """
    trusted = {public_key(key) for key in keys}
    signed = [head for path in heads for head in _heads(path)]
    try:
        trace = read_trace(_text(trace_file, errors="surrogateescape"))
    except TraceError as problem:
        _report(as_json, trace_file, [f"unreadable: {problem}"], 0, 0)
        return
    problems = verify_trace(trace, heads=signed, keys=trusted or None)
    checked = len(signed) + len(trace.signatures)
    _report(as_json, trace_file, [str(one) for one in problems], len(trace.events), checked)


def _report(
    as_json: bool, path: Path, problems: Sequence[str], events: int, signatures: int
) -> None:
    if as_json:
        report = {"file": str(path), "events": events, "signatures": signatures}
        found = {"verified": not problems, "problems": list(problems)}
        print_json({**report, **found}, indent=None)
    elif problems:
        for problem in problems:
            say(f"{path}: {problem}")
    else:
        say(f"{path}: {events} events, {signatures} signed heads, nothing wrong")
    if problems:
        click.get_current_context().exit(1)


@command.command()
@click.argument("session_id", metavar="ID")
@click.option("--key", "key_file", type=FILE, required=True, help="From `sopilot trace keygen`.")
@click.option("-o", "--output", type=NEW_FILE, help="Where the head goes; default: stdout.")
@STORE
def sign(session_id: str, key_file: Path, output: Path | None, store_spec: str | None) -> None:
    """Sign the present head of session ID. Keep the result away from the store."""
    key = load_key(key_file)

    async def use(store: Store) -> SignedHead:
        record = await store.record(session_id)
        signed = sign_head(key, record.head, at=SystemClock().now())
        await store.add_signature(signed)
        return signed

    text = json.dumps(with_store(store_spec, use).as_json(), sort_keys=True)
    if output is None:
        say(text)
    else:
        write_whole(output, text + "\n")


@command.command()
@click.argument("key_file", metavar="FILE", type=NEW_FILE)
@json_option
def keygen(key_file: Path, as_json: bool) -> None:
    """Make a signing key in FILE, and print its public half, which FILE.pub has as well."""
    key = generate_key()
    write_key(key, key_file)
    write_whole(key_file.with_name(f"{key_file.name}.pub"), f"{key.public}\n")
    if as_json:
        print_json({"public": key.public}, indent=None)
    else:
        say(key.public)


def _heads(path: Path) -> list[SignedHead]:
    found = []
    for line in _text(path).split("\n"):
        if line.strip():
            try:
                found.append(signed_head_from_json(json.loads(line)))
            except (ValueError, RecursionError, TraceError) as problem:
                raise _unreadable(path, f"is not a signed head: {problem}") from None
    return found


def _text(path: Path, errors: str = "strict") -> str:
    try:
        # Line ends are part of what was written.
        return path.read_bytes().decode("utf-8", errors)
    except (OSError, UnicodeDecodeError) as problem:
        raise _unreadable(path, f"cannot be read: {problem}") from None


def _unreadable(path: Path, message: str) -> UserMistake:
    return mistake("unreadable", message, Place(str(path)))
