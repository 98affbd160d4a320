"""What owners of sessions are called: host, process, name of the process, which of its sessions."""

from __future__ import annotations

import os
import platform
import secrets

_named: tuple[int, str] = (0, "")
"""This process, as whoever started it calls it. A fork of it is another process."""


def process_called(name: str, pid: int) -> str:
    """How all owners of that process begin. Two hosts may have one name and one process number,
    in containers above all: only who has made up ``name`` can know that a process of it is dead."""
    return f"{platform.node() or 'here'}:{pid}:{name}"


def call_this_process(name: str) -> None:
    global _named
    _named = (os.getpid(), name)


def default_owner() -> str:
    pid, name = _named
    own = secrets.token_hex(4)
    if pid == os.getpid():
        return f"{process_called(name, pid)}:{own}"
    return f"{platform.node() or 'here'}:{os.getpid()}:{own}"
