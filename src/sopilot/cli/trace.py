"""`sopilot trace`: traces as files, and signed heads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from sopilot.cli.options import AS_JSON, FILE, NEW_FILE, SESSION, STORE, flag, option
from sopilot.cli.output import Exit, Output, hand_out, warn
from sopilot.files.text import write_whole
from sopilot.messages.errors import TraceError
from sopilot.records.loading import export_trace
from sopilot.runner.store_access import StoreAccess
from sopilot.stores.sealed_heads import public_key, sign_session, signed_heads, trace_text
from sopilot.trace.files import read_trace, verify_trace, write_trace
from sopilot.trace.signing import generate_key, load_key, write_key
from sopilot.values.text import counted


@click.group()
def command() -> None:
    """Export, sign and verify traces. Verification needs no store."""


@command.command()
@SESSION
@option("-o,--output", "File to write. Default: standard output.", type=NEW_FILE)
@flag("--payloads", "Include contents stored beside the trace.")
@STORE
def export(session_id: str, output: Path | None, payloads: bool, store: StoreAccess) -> None:
    """Write the trace of session ID as JSON Lines."""
    store.require_readable("export", [session_id], contents=payloads)
    trace = store.read(lambda opened: export_trace(opened, session_id, payloads=payloads))
    _hand_over(write_trace(trace), output)


def _hand_over(text: str, output: Path | None) -> None:
    if output is None:
        hand_out(text)
    else:
        write_whole(output, text, private=True)
        warn(f"{output}: {text.count(chr(10))} lines")


@command.command()
@click.argument("trace_file", metavar="FILE", type=FILE)
@option("--head", "Head signed earlier (repeatable).", "heads", multiple=True, type=FILE)
@option("--key HEX", "Public key that must have signed (repeatable).", "keys", multiple=True)
@AS_JSON
def verify(trace_file: Path, heads: Sequence[Path], keys: Sequence[str]) -> Output:
    """Check the hash chain of FILE, and signed heads against it. Exit 1 if something is wrong.

    Without `--head`, a cut-off end and a complete rewrite stay undetected. Without `--key`,
    signatures prove integrity but not the signer's identity. Each `--key` must have signed the last
    event, in FILE or in a `--head`.
    """
    trusted = {public_key(key) for key in keys}
    signed = [head for path in heads for head in signed_heads(path)]
    try:
        trace = read_trace(trace_text(trace_file, errors="surrogateescape"))
    except TraceError as problem:
        return _verified(trace_file, [f"unreadable: {problem}"])
    problems = list(map(str, verify_trace(trace, heads=signed, keys=trusted or None)))
    checked = len(signed) + len(trace.signatures)
    return _verified(trace_file, problems, len(trace.events), checked)


def _verified(path: Path, problems: Sequence[str], events: int = 0, signatures: int = 0) -> Output:
    report = {
        "file": str(path),
        "events": events,
        "signatures": signatures,
        "verified": not problems,
        "problems": list(problems),
    }
    whole = (
        f"{path}: {counted(events, 'event')}, {counted(signatures, 'signed head')}, nothing wrong"
    )
    lines = [f"{path}: {problem}" for problem in problems] or [whole]
    return Output(report, lines, Exit.if_any(problems), indent=None)


@command.command()
@SESSION
@option("--key", "Private key from `sopilot trace keygen`.", "key_file", type=FILE, required=True)
@option("-o,--output", "File to write. Default: standard output.", type=NEW_FILE)
@STORE
def sign(session_id: str, key_file: Path, output: Path | None, store: StoreAccess) -> None:
    """Sign the current head of session ID and print it as JSON. Keep the result away from the
    store."""
    key = load_key(key_file)
    signed = store.write(lambda opened: sign_session(opened, session_id, key))
    _hand_over(json.dumps(signed.as_json(), sort_keys=True) + "\n", output)


@command.command()
@click.argument("key_file", metavar="FILE", type=NEW_FILE)
@AS_JSON
def keygen(key_file: Path) -> Output:
    """Write a new signing key to FILE and its public half to FILE.pub; print the public half."""
    key = generate_key()
    write_key(key, key_file)
    write_whole(key_file.with_name(f"{key_file.name}.pub"), f"{key.public}\n")
    return Output({"public": key.public}, [key.public], indent=None)
