"""Readers of what others may have written about a store: see `fuzz_readers.py`."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from sopilot.files.settings import read_settings
from sopilot.files.sign_in import subject_of
from sopilot.messages.errors import StoreCorrupt
from sopilot.protocols import SystemClock
from sopilot.records.audits import load_deviations
from sopilot.records.journal import write
from sopilot.records.log import check_proof
from sopilot.records.people import load_people
from sopilot.records.privacy import load_policy
from sopilot.records.store import Store
from sopilot.records.versions import load_versions
from sopilot.stores.memory import MemoryStore

SETTINGS = Path(tempfile.gettempdir()) / "sopilot-fuzz-settings"


def read_records(data: bytes) -> None:
    """Documents about a store that others may have written: proofs, tokens, settings, entries."""
    kind, rest = data[:1], data[1:]
    if kind == b"t":
        subject_of(rest.decode("utf-8", "surrogateescape"), {})
    elif kind == b"y":
        SETTINGS.write_bytes(rest)
        read_settings(SETTINGS)
    else:
        try:
            value = json.loads(rest)
        except (ValueError, RecursionError):
            return
        if kind == b"p":
            check_proof(value, ["00"])
        elif isinstance(value, dict):
            asyncio.run(_journals(value))


async def _journals(details: dict[str, object]) -> None:
    for journal, load, names in _JOURNALS:
        for name in names:
            store = MemoryStore()
            await write(store, journal, name, details, clock=SystemClock())  # type: ignore[arg-type] - whatever JSON says
            try:
                await load(store)
            except StoreCorrupt:
                continue


_JOURNALS: tuple[tuple[str, Callable[[Store], Awaitable[object]], tuple[str, ...]], ...] = (
    ("people", load_people, ("person_added", "token_issued", "limit_set", "deputy_named",
                             "escalation_set", "demanded")),
    ("handbooks", load_versions, ("version_released", "version_signed_off")),
    ("privacy", load_policy, ("columns_named", "period_set", "hold_set")),
    ("deviations", load_deviations, ("deviation_opened", "deviation_judged")),
)  # fmt: skip


def records_seeds() -> Iterator[bytes]:
    head = {"sopilot_log": 1, "size": 2, "root": "00", "at": 1, "key": "00", "signature": "00"}
    entry = {"entry": 0, "at": 1, "session": "s", "seq": 0, "hash": "00", "actions": "00"}
    for each in (
        {"sopilot_proof": "inclusion", "entry": entry, "path": ["00"], "head": head},
        {"sopilot_proof": "consistency", "old": head, "path": [], "head": head},
    ):
        yield b"p" + json.dumps(each).encode()
    yield b"teyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lkIiwic3ViIjoiYSJ9.eA"
    yield b"yhttp: 127.0.0.1:80\ntoken: ${HOME:-x}\nlist: &a [1, 2]\nmore: *a\nat: 2001-01-01\n"
    for details in (
        {"person": "a", "roles": ["b"], "aliases": [], "subjects": [], "conditions": ["a<=1"]},
        {"token": "a", "person": "b", "sha256": "00", "expires_at": 1, "role": "r", "to": "s"},
        {"handbook": "h", "by": "a", "programs": {"g": "00"}, "text": "", "from": 1, "version": 1},
        {"session": "s", "code": "c", "event": 1, "explanation": "e", "deviation": 0, "what": "w"},
        {"for": "a", "begin": 1, "end": 2, "before_seconds": 3, "on": True, "seconds": 5},
    ):
        yield b"j" + json.dumps(details).encode()
