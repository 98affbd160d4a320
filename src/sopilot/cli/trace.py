"""`sopilot trace`: traces as files, and heads that are signed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from sopilot.cli.options import FILE, NEW_FILE
from sopilot.cli.output import give, hand_out, json_option, say
from sopilot.cli.stores import STORE, TOKEN_FILE, require_readable, session_named
from sopilot.files.text import write_whole
from sopilot.messages.errors import TraceError
from sopilot.records.loading import export_trace
from sopilot.runner.opened_stores import with_store
from sopilot.stores.seals import public_key, sign_session, signed_heads, trace_text
from sopilot.trace.files import read_trace, verify_trace, write_trace
from sopilot.trace.signing import generate_key, load_key, write_key


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

    session_id = session_named(store_spec, session_id)
    require_readable(store_spec, token_file, "export", [session_id], contents=payloads)
    trace = with_store(
        store_spec,
        lambda store: export_trace(
            store, session_id, payloads=payloads, programs=not without_programs
        ),
        reading=True,
    )
    text = write_trace(trace)
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
    signed = [head for path in heads for head in signed_heads(path)]
    try:
        trace = read_trace(trace_text(trace_file, errors="surrogateescape"))
    except TraceError as problem:
        _report(as_json, trace_file, [f"unreadable: {problem}"], 0, 0)
        return
    problems = verify_trace(trace, heads=signed, keys=trusted or None)
    checked = len(signed) + len(trace.signatures)
    _report(as_json, trace_file, [str(item) for item in problems], len(trace.events), checked)


def _report(
    as_json: bool, path: Path, problems: Sequence[str], events: int, signatures: int
) -> None:
    report = {"file": str(path), "events": events, "signatures": signatures}
    lines = [f"{path}: {problem}" for problem in problems] or [
        f"{path}: {events} events, {signatures} signed heads, nothing wrong"
    ]
    verdict = {"verified": not problems, "problems": list(problems)}
    give(as_json, {**report, **verdict}, lines, indent=None)
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

    signed = with_store(store_spec, lambda store: sign_session(store, session_id, key))
    text = json.dumps(signed.as_json(), sort_keys=True)
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
    give(as_json, {"public": key.public}, [key.public], indent=None)
