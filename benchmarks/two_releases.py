"""Two releases on one store, and a rolling upgrade under load: nothing is lost or done twice.

    python benchmarks/two_releases.py [--seconds 60] [--old e12f0f3] [--json FILE]

Workers of the old release run sessions on a store and are killed at random moments. Then the new
release opens the store, which renews its tables, while workers of the old one are at work; each
that is killed from then on is replaced by one of the new release, which goes on with what it
left; now and then somebody starts the old one once more. At the end every promise is held
against the store: chains, acknowledged events, irreversible calls, and, by the new release,
register and log. The old release needs the history of this repository.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from crash_work import SETTINGS, Acknowledged, Judge, Tally
from keeping import keep
from postgres_here import postgres_here
from release_worker import NOT_FOR_US
from sopilot.adapters.postgres_store import PostgresStore
from sopilot.adapters.sqlite_store import SQLiteStore
from sopilot.runtime.records.log import SealFile
from sopilot.runtime.session import Store
from sopilot.runtime.session.registers import Traces
from sopilot.runtime.session.sealing import seal_store, verify_store
from sopilot.runtime.trace.signing import generate_key
from sopilot.runtime.vm import Machine

ROOT = Path(__file__).resolve().parent.parent
WORKERS = 3


class StoredPrograms(Judge):
    """Replays each session by the programs that it was begun with."""

    async def machine(self, session_id: str) -> Machine:
        loaded = await Traces(self._store).loaded(session_id)
        return loaded.programs.machine(SETTINGS.limits)


class Worker:
    def __init__(self, release: Path, where: str, journal: Path, name: str, seed: int) -> None:
        path = f"{release / 'src'}{os.pathsep}{release / 'benchmarks'}"
        self.old = release != ROOT
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("release_worker.py")), where,
             str(journal), name, str(seed)],
            env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._text = b""

    def heard(self) -> list[Acknowledged]:
        assert self._process.stdout is not None
        while more := self._process.stdout.read():
            self._text += more
        *whole, self._text = self._text.split(b"\n")
        found = []
        for line in whole:
            session_id, seq, sealed = line.decode().split()
            found.append(Acknowledged(session_id, int(seq), sealed, ""))
        return found

    def refused(self) -> bool:
        """The release says that the store is not for it; any other end is a fault."""
        code = self._process.poll()
        if code not in (None, NOT_FOR_US):
            assert self._process.stderr is not None
            told = self._process.stderr.read().decode()[-800:]
            raise RuntimeError(f"a worker ended with {code}: {told}")
        return code is not None

    def kill(self) -> list[Acknowledged]:
        self._process.kill()
        self._process.wait()
        heard = self.heard()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        return heard


def checked_out(commit: str, folder: Path) -> Path:
    packed = subprocess.run(
        ["git", "archive", commit, "src", "benchmarks"], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


async def upgrade(
    open_store: Callable[[], Store], where: str, folder: Path, old: Path, seed: int, seconds: float
) -> tuple[Tally, Counter[str]]:
    source, did = random.Random(seed), Counter[str]()
    journal = folder / f"journal-{seed}"
    judge = StoredPrograms(open_store(), journal)
    names = [f"w{number}" for number in range(WORKERS)]

    def started(name: str, release: Path) -> Worker:
        return Worker(release, where, journal, name, source.getrandbits(32))

    workers = {name: started(name, old) for name in names}
    begun, renewed = time.monotonic(), False
    while time.monotonic() - begun < seconds:
        await asyncio.sleep(source.uniform(0.4, 1.2))
        if not renewed and time.monotonic() - begun > seconds / 3:
            # The tables are renewed under workers of the old release that are at work.
            await asyncio.to_thread(_renew, open_store)
            renewed = True
        name = source.choice(names)
        one = workers[name]
        again = renewed and source.random() < 0.2
        if one.refused():
            did["refused: not for this release"] += 1
            again = False
        else:
            did[f"kills of the {'old' if one.old else 'new'} release"] += 1
        for said in one.kill():
            judge.heard(said)
        workers[name] = started(name, old if not renewed or again else ROOT)
    for one in workers.values():
        for said in one.kill():
            judge.heard(said)
    await judge.check()
    await _whole(open_store(), judge.tally)
    await judge.close()
    return judge.finish(), did


def _renew(open_store: Callable[[], Store]) -> None:
    async def look() -> None:
        store = open_store()
        await store.migrate()
        await store.sessions(limit=1)
        await store.close()

    asyncio.run(look())


async def _whole(store: Store, tally: Tally) -> None:
    """What the new release keeps beside the traces knows of every session, whoever wrote it."""
    key = generate_key()
    sealing = await seal_store(store, key, at=time.time())
    found = await verify_store(store, SealFile((sealing.seal,)), [key.public])
    tally.faults += [f"{gap.code}: {gap.message}" for gap in found.gaps]
    await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="on each store")
    parser.add_argument("--old", default="e12f0f3")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    stores: dict[str, Mapping[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="sopilot-upgrade-") as made, postgres_here() as server:
        folder = Path(made)
        old = checked_out(asked.old, folder / "old")
        file = folder / "store.db"
        for name, where, open_store in (
            ("sqlite", str(file), lambda: SQLiteStore(file, busy_seconds=10)),
            ("postgres", server.dsn, lambda: PostgresStore(server.dsn)),
        ):
            work = upgrade(open_store, where, folder, old, asked.seed, asked.seconds)
            tally, did = asyncio.run(work)
            stores[name] = {**tally.as_json(), "did": dict(did)}
            asked.seed += 1
            print(f"{name}: {stores[name]}", flush=True)
    faults = sum(one["fault_count"] for one in stores.values())
    if asked.json:
        keep({"old": asked.old, "seconds": asked.seconds, "faults": faults, **stores}, asked.json)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
