"""Where sealed heads are sent, with the entries that they cover: files and addresses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sopilot.adapters.seal_delivery import post_seal
from sopilot.adapters.signed_files import sealed_text
from sopilot.adapters.text_files import write_whole
from sopilot.language.diagnostics import RunEnded
from sopilot.runtime.records.log import lines_of, write_seals
from sopilot.runtime.session import Store, SystemClock
from sopilot.runtime.session.sealing import Sealing, seal_store
from sopilot.runtime.trace.signing import SigningKey


class SealTargets:
    """What an earlier sealing sent to each file is read at once."""

    def __init__(self, targets: Sequence[str]) -> None:
        self._targets = targets
        self._sent = {
            target: _sent_before(Path(target))
            for target in targets
            if not target.startswith(("http://", "https://"))
        }

    async def seal(self, store: Store, key: SigningKey) -> Sealing:
        """Seals the store and sends the head, unless a file has other entries than the log."""
        log = await store.records.log() if self._sent else []
        for target, (_, lines) in self._sent.items():
            if list(lines) != lines_of(log[: len(lines)]):
                raise RunEnded(
                    f"nothing was sealed: {target} has other entries than the log; "
                    "`sopilot verify` names them"
                )
        earlier = await store.records.seals()
        sealing = await seal_store(store, key, at=SystemClock().now())
        covered = earlier[-1].head.size if earlier else 0
        for target in self._targets:
            if target in self._sent:
                text, lines = self._sent[target]
                added = write_seals(sealing.entries[len(lines) :], sealing.seal)
                write_whole(Path(target), text + added)
            else:
                post_seal(target, sealing.entries[covered:], sealing.seal)
        return sealing


def _sent_before(path: Path) -> tuple[str, Sequence[str]]:
    if not path.exists():
        return "", ()
    text, sealed = sealed_text(path)
    return text, sealed.lines
