"""`sopilot seal`: the log of all sessions, sealed, and sent elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from sopilot.adapters.text_files import write_whole
from sopilot.doors.cli.output import json_option, print_json, say
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.language.diagnostics import Place, RunEnded, mistake
from sopilot.runtime.records.log import LogEntry, SealedHead, lines_of, read_seals, write_seals
from sopilot.runtime.session import Store, SystemClock
from sopilot.runtime.session.sealing import Sealing, seal_store
from sopilot.runtime.trace import load_key
from sopilot.runtime.vm import TraceError

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--key", "key_file", type=FILE, required=True, help="From `sopilot trace keygen`.")
@click.option(
    "--to",
    "targets",
    multiple=True,
    metavar="FILE|URL",
    help="Where the head goes with the entries it covers: keep it away from the store.",
)
@json_option
@STORE
def command(key_file: Path, targets: Sequence[str], as_json: bool, store_spec: str | None) -> None:
    """Seal the log of the store's sessions: an entry for each that has moved, a Merkle tree
    over all entries, its head signed.

    Run it on a schedule. What happens after a seal is not covered before the next one.
    Exit 1 when the store is not what was sealed before: then nothing is sealed.
    """
    key = load_key(key_file)

    kept = {
        target: _kept(Path(target))
        for target in targets
        if not target.startswith(("http://", "https://"))
    }

    async def use(store: Store) -> tuple[Sealing, int]:
        log = await store.records.log() if kept else []
        for target, (_, lines) in kept.items():
            if list(lines) != lines_of(log[: len(lines)]):
                raise RunEnded(
                    f"nothing was sealed: {target} has other entries than the log; "
                    "`sopilot verify` names them"
                )
        earlier = await store.records.seals()
        sealing = await seal_store(store, key, at=SystemClock().now())
        return sealing, earlier[-1].head.size if earlier else 0

    sealing, before = with_store(store_spec, use)
    for target in targets:
        if target in kept:
            text, lines = kept[target]
            new = write_seals(sealing.entries[len(lines) :], sealing.seal)
            write_whole(Path(target), text + new)
        else:
            _post(target, sealing.entries[before:], sealing.seal)
    head = sealing.seal.head
    if as_json:
        print_json({**sealing.seal.as_json(), "added": sealing.added, "sent": list(targets)})
    else:
        say(f"sealed: entries up to {head.size}, {sealing.added} of them new, root {head.root}")
        for target in targets:
            say(f"sent to {target}")


def _kept(path: Path) -> tuple[str, tuple[str, ...]]:
    """What an earlier sealing sent there."""
    if not path.exists():
        return "", ()
    try:
        text = path.read_text("utf-8")
        return text, read_seals(text).lines
    except (TraceError, OSError, UnicodeDecodeError) as problem:
        raise mistake("no-seals", f"holds no sealed heads: {problem}", Place(str(path))) from None


def _post(url: str, entries: Sequence[LogEntry], seal: SealedHead) -> None:
    import httpx2

    body = {"head": seal.as_json(), "entries": [entry.as_json() for entry in entries]}
    try:
        answer = httpx2.post(
            url,
            content=json.dumps(body, ensure_ascii=False).encode(),
            headers={"content-type": "application/json"},
            timeout=30.0,
        )
    except httpx2.HTTPError as problem:
        raise RunEnded(f"sealed, but {url} could not be reached: {problem}") from None
    if answer.status_code >= 300:
        raise RunEnded(f"sealed, but {url} refused it with status {answer.status_code}")
