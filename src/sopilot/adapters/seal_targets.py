"""Where sealed heads are sent, with the entries that they cover: files, other stores, addresses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sopilot.adapters.seal_delivery import post_seal
from sopilot.adapters.signed_files import sealed_text
from sopilot.adapters.store_by_name import names_store, open_store
from sopilot.adapters.text_files import write_whole
from sopilot.language.diagnostics import Place, RunEnded, mistake
from sopilot.runtime.records.log import SealedHead, SealFile, lines_of, read_seals, write_seals
from sopilot.runtime.session import Store, SystemClock
from sopilot.runtime.session.journal import entries, write
from sopilot.runtime.session.sealing import Sealing, seal_store
from sopilot.runtime.trace.signing import SigningKey

_ADDRESSES = ("http://", "https://")
_JOURNAL = "heads"
_LINES_A_NOTE = 1_000


async def seal_and_send(
    store: Store, key: SigningKey, targets: Sequence[str], earlier_keys: Sequence[str] = ()
) -> Sealing:
    """Seals the store and sends the head, unless a target has other entries than the log, or the
    store is not what its head covers: what the store says of its seals is its own word. A file
    is JSON Lines; another store has a journal (`#NAME` behind it: of that name)."""
    sent = {
        target: await _sent_before(target)
        for target in targets
        if not target.startswith(_ADDRESSES)
    }
    log = await store.records.log() if sent else []
    for target, (_, lines, _) in sent.items():
        if list(lines) != lines_of(log[: len(lines)]):
            raise RunEnded(
                f"nothing was sealed: {target} has other entries than the log; "
                "`sopilot verify` names them"
            )
    earlier = await store.records.seals()
    known = [head for _, _, heads in sent.values() for head in heads[-1:]]
    sealing = await seal_store(
        store, key, at=SystemClock().now(), known=known, earlier_keys=earlier_keys
    )
    covered = earlier[-1].head.size if earlier else 0
    for target in targets:
        if target not in sent:
            post_seal(target, sealing.entries[covered:], sealing.seal)
            continue
        text, lines, _ = sent[target]
        added = write_seals(sealing.entries[len(lines) :], sealing.seal)
        if names_store(target):
            await _write_to_store(target, added)
        else:
            write_whole(Path(target), text + added)
    return sealing


async def read_sealed(given: str) -> SealFile:
    """What was sent to a file, or to another store."""
    if not names_store(given):
        return sealed_text(Path(given))[1]
    text = await _text_in_store(given)
    if not text:
        raise mistake("no-seals", "holds no sealed heads", Place(given))
    return read_seals(text)


async def _sent_before(target: str) -> tuple[str, Sequence[str], Sequence[SealedHead]]:
    if names_store(target):
        text = await _text_in_store(target)
        sealed = read_seals(text) if text else SealFile(())
    elif not Path(target).exists():
        text, sealed = "", SealFile(())
    else:
        text, sealed = sealed_text(Path(target))
    return text, sealed.lines, sealed.heads


async def _text_in_store(target: str) -> str:
    spec, _, name = target.partition("#")
    store = open_store(spec, reading=True)
    try:
        found = await entries(store, name or _JOURNAL)
    finally:
        await store.close()
    noted = [one.details.get("lines") for one in found]
    lines = [line for some in noted if isinstance(some, list | tuple) for line in some]
    return "".join(f"{line}\n" for line in lines)


async def _write_to_store(target: str, text: str) -> None:
    """In notes of a journal: chained, and in the log of that store as any other."""
    spec, _, name = target.partition("#")
    lines, store = text.splitlines(), open_store(spec)
    try:
        for begin in range(0, len(lines), _LINES_A_NOTE):
            part = {"lines": lines[begin : begin + _LINES_A_NOTE]}
            await write(store, name or _JOURNAL, "sealed", part, clock=SystemClock())
    finally:
        await store.close()
