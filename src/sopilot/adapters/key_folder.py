"""A key for each session, in a folder that is kept apart from the store and its back-ups."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from sopilot.adapters.text_files import whole_bytes
from sopilot.runtime.session import StoreCorrupt, StoreUnavailable

KEY_BYTES = 32


class KeyFolder:
    """A file a key: whoever may write makes them without a lock, and one is thrown away without
    touching another."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self, session_id: str) -> bytes:
        """Durable when it returns; the one that is there already, where somebody was before."""
        file, key = self._file(session_id), secrets.token_bytes(KEY_BYTES)
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return self.key(session_id) or self._lost(session_id)
        except OSError as problem:
            raise self._unusable(problem) from problem
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(key)
                opened.flush()
                os.fsync(opened.fileno())
            _sync_folder(file.parent)
        except OSError as problem:
            raise self._unusable(problem) from problem
        return key

    def key(self, session_id: str) -> bytes | None:
        """``None`` of a session whose key was thrown away, or never was."""
        try:
            key = whole_bytes(self._file(session_id))
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise self._unusable(problem) from problem
        return key if len(key) == KEY_BYTES else self._lost(session_id)

    def throw_away(self, session_id: str) -> None:
        """Written over first, as far as the file system writes in place."""
        file = self._file(session_id)
        try:
            with open(file, "r+b") as opened:
                opened.write(bytes(KEY_BYTES))
                opened.flush()
                os.fsync(opened.fileno())
            file.unlink()
            _sync_folder(file.parent)
        except FileNotFoundError:
            return
        except OSError as problem:
            raise self._unusable(problem) from problem

    def _file(self, session_id: str) -> Path:
        # Ids may come from a caller: a name of a file is made of every one.
        name = session_id.encode("utf-8", "surrogatepass").hex()
        return self.path / name[-2:] / name

    def _lost(self, session_id: str) -> bytes:
        raise StoreCorrupt(
            f"the key of session {session_id} in {self.path} is damaged: bring it back from a "
            "copy of that folder"
        )

    def _unusable(self, problem: OSError) -> StoreUnavailable:
        return StoreUnavailable(f"the keys in {self.path} cannot be used: {problem.strerror}")


def _sync_folder(path: Path) -> None:
    if os.name != "posix":
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
