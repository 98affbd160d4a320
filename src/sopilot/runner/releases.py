"""Releases of handbooks, bundles for auditors, and disclosures to people."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sopilot.files.text import read_text, write_whole
from sopilot.handbook.reader import load_handbook
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.secrets import SecretPlaces, shown_events
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import mistake
from sopilot.protocols import SystemClock
from sopilot.records.loading import Traces
from sopilot.records.people import Principal
from sopilot.records.selection import read_moment
from sopilot.records.store import SessionRecord, Store
from sopilot.records.versions import Version, difference, load_versions, release
from sopilot.runner.sources import open_source
from sopilot.tasks.examples.example import handbook_text
from sopilot.tasks.scenarios import read_scenarios
from sopilot.tasks.testing import run_scenarios

_MOST_TIMES, _LEAST_SUSPECT = 200, 64 << 20
"""A bundle compresses about tenfold; an archive that unpacks a thousandfold is an attack."""


def write_bundle(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder or ZIP file that only its owner can read; overwrite nothing."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        cure = "name a folder that is empty or doesn't exist, or NAME.zip"
        raise mistake("exists", "the output path exists and isn't empty", Place(str(path)), cure)
    for name in files:
        # Ids of sessions are whatever a program gave them.
        if "\\" in name or "\0" in name or {"", ".", ".."} & set(name.split("/")):
            raise mistake(
                "unsafe-name",
                f"`{name}` can't be a file name in a bundle",
                help="export a period without this session",
            )
    if path.suffix == ".zip":
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with (
            os.fdopen(handle, "wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for name, contents in files.items():
                archive.writestr(f"{path.stem}/{name}", contents)
        return
    for name, contents in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(target, contents, private=True)


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The bundle as a folder; an archive is unpacked for as long as it is used."""
    if path.is_dir():
        yield path
        return
    place = Place(str(path))
    ours = "name the folder or the .zip that `sopilot records export` wrote"
    if not path.is_file():
        problem = "it is neither a file nor a folder" if path.exists() else "there is no such file"
        raise mistake("no-archive", problem, place, ours)
    with tempfile.TemporaryDirectory() as room:
        try:
            with zipfile.ZipFile(path) as archive:
                unpacked_bytes = sum(item.file_size for item in archive.infolist())
                if unpacked_bytes > _LEAST_SUSPECT + _MOST_TIMES * path.stat().st_size:
                    message = f"unpacked it would have {unpacked_bytes >> 20} MB"
                    raise mistake("no-archive", message, place, ours)
                if unpacked_bytes > shutil.disk_usage(room).free:
                    cure = "set TMPDIR to a place with more room"
                    raise mistake(
                        "no-room", f"there isn't enough room in {room} to unpack it", place, cure
                    )
                archive.extractall(room)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            raise mistake("no-archive", f"it can't be unpacked: {error}", place, ours) from error
        inside = list(Path(room).iterdir())
        yield inside[0] if len(inside) == 1 and inside[0].is_dir() else Path(room)


async def disclosed(store: Store, subjects: Sequence[str], records: Sequence[SessionRecord]) -> str:
    """JSON of the sessions that mention the person: handbook, times and events without secrets."""
    sessions, traces = [], Traces(store)
    for record in records:
        loaded = await traces.loaded(record.id)
        payloads = await store.payloads(record.id)
        events = shown_events(loaded.events, payloads, SecretPlaces(loaded.programs))
        sessions.append(
            {
                "session": record.id,
                "handbook": record.metadata.get("handbook"),
                "created_at": record.created_at,
                "updated_at": record.updated_at,
                "events": [
                    {name: getattr(event, name) for name in ("at", "actor", "kind", "payload")}
                    for event in events
                ],
            }
        )
    results = {"subject": list(subjects), "sessions": sessions}
    return json.dumps(results, ensure_ascii=False, indent=1, default=str) + "\n"


@dataclass(frozen=True, slots=True)
class Releasable:
    handbook: str
    text: str
    programs: dict[str, str]
    coverage: dict[str, Any] | None
    """``None`` without scenarios."""


def releasable(name: str) -> Releasable:
    source = open_source(name)
    units = source.units()
    programs = ProgramSet({unit.procedure.name: unit.program for unit in units}).hashes
    coverage = None
    path = source.scenario_file
    if path.exists():
        suite, _ = read_scenarios(read_text(path), source.handbook, str(path))
        if suite is not None:
            tested = asyncio.run(run_scenarios(source.briefing(), suite.scenarios)).as_json()
            coverage = {name: tested[name] for name in ("n", "passed", "failed", "coverage")}
    text = handbook_text(name) if source.bundled else source.text or ""
    return Releasable(source.handbook.name, text, dict(programs), coverage)


def differences_between(before: Version, after: Version) -> dict[str, list[str]]:
    name = after.handbook
    return difference(
        load_handbook(before.text, f"{name} {before.number}"),
        load_handbook(after.text, f"{name} {after.number}"),
    )


async def release_next(
    store: Store,
    ready: Releasable,
    begin: str | None,
    end: str | None,
    *,
    who: Principal | None,
    by: str,
) -> tuple[Version, Version | None]:
    """The new version, in force from now or ``begin`` on, and the one before it."""
    clock = SystemClock()
    version = await release(
        store,
        ready.handbook,
        text=ready.text,
        programs=ready.programs,
        begin=clock.now() if begin is None else read_moment(begin),
        end=None if end is None else read_moment(end, whole_day=True),
        coverage=ready.coverage,
        clock=clock,
        who=who,
        by=by,
    )
    return version, (await load_versions(store)).find(ready.handbook, version.number - 1)


def difference_lines(changed: dict[str, list[str]]) -> Iterator[str]:
    for kind, lines in changed.items():
        yield f"{kind}: {len(lines) or 'no'} {'difference' if len(lines) == 1 else 'differences'}"
        for line in lines:
            yield f"  {line}"
