"""A day of production in one hour: three hosts over one PostgreSQL, people, faults, housekeeping.

    python benchmarks/day_in_an_hour.py [--minutes 60] [--json FILE] [--picture FILE]

Load follows the hours, with two peaks. Hosts are deployed anew one after the other, workers are
killed (some in the middle of a refund), PostgreSQL crashes twice, the shop behind the gateways is
restarted; people approve, reject, let approvals expire, and settle what nobody knows; every hour
ended sessions are archived and pruned; there is a back-up and a seal. The first host is never
touched: its memory and descriptors must stay flat. At the end everything is held against the
shop's own ledger; exit 1 if anything is wrong. With a Prometheus (on PATH, or $PROMETHEUS) the
hosts are scraped and the dashboard of deploy/ is drawn as a picture (needs matplotlib).
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from campaign import main
from day_clients import KINDS, Client, Heard
from day_judge import MOST_MORE_DESCRIPTORS, MOST_MORE_MIB, Judge, flat
from day_parts import HERE, Host, Prometheus, Shop, prometheus_program
from day_people import People
from mcp_processes import SOPILOT
from postgres_here import PostgresHere, postgres_here
from sopilot.stores.postgres import PostgresStore

HOSTS = 3
BUSIEST = 0.3
"""Conversations a second at the first peak."""
LAST_CLIENT = 23.0
"""The hour after which nobody comes any more: all have an hour to end."""
SAMPLE_SECONDS = 5.0
CONNECTIONS = 10
"""The most connections per process, as docs/how-to/deploy.md says. The people here count as one."""
COMMANDS = 3
"""Connections of the command line at one time, and the one that counts them."""


def load_at(hour: float) -> float:
    """Conversations a second: a quiet night, a peak before noon and one after."""
    peaks = math.exp(-(((hour - 10) / 2) ** 2)) + 0.8 * math.exp(-(((hour - 16) / 2) ** 2))
    return BUSIEST * (0.12 + 0.88 * min(1.0, peaks))


class Day:
    def __init__(self, database: PostgresHere, minutes: float, folder: Path) -> None:
        self.hour = minutes * 60 / 24
        self._database, self._folder = database, folder
        self.spec = f"postgres:{database.dsn}"
        self.store = PostgresStore(database.dsn)
        self.shop = Shop(folder)
        handbook = folder / "day_desk.yaml"
        text = (HERE / "day_desk.yaml").read_text("utf-8")
        handbook.write_text(text.replace("90s", f"{max(2, round(0.6 * self.hour))}s"), "utf-8")
        self.hosts = [
            Host(number, handbook, self.shop.url, self.spec, folder)
            for number in range(1, HOSTS + 1)
        ]
        self.heard = Heard()
        self.marks: list[tuple[float, str, str]] = []
        """When, what, and where."""
        self.samples: list[tuple[float, int, int]] = []
        self.people = People(self.store, self.shop, self.hour, self.mark)
        self.commands: Counter[str] = Counter()
        self.archives: list[Path] = []
        self.wrong: list[str] = []
        self._one_prune = asyncio.Lock()
        self.begun = 0.0
        self._database_is_down = False
        self._talking: set[asyncio.Task[None]] = set()

    @property
    def now(self) -> float:
        """The hour of the day."""
        return (time.time() - self.begun) / self.hour

    def mark(self, what: str, where: str = "") -> None:
        self.marks.append((time.time(), what, where))
        print(f"{self.now:5.2f} h  {what} {where}", flush=True)

    # --- load -----------------------------------------------------------------------

    async def arrivals(self, http: httpx2.AsyncClient) -> None:
        kinds, weights = zip(*KINDS.items(), strict=True)
        while self.now < LAST_CLIENT:
            await asyncio.sleep(random.expovariate(load_at(self.now)))
            kind = random.choices(kinds, weights)[0]
            client = Client(http, self.hosts, self.heard, kind, self.hour)
            task = asyncio.create_task(client.converse())
            self._talking.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._talking.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.wrong.append(f"a client broke: {task.exception()!r}")

    # --- what happens to machines ---------------------------------------------------

    async def deploy(self) -> None:
        for host in self.hosts[1:]:
            if not host.is_up:
                continue  # the deploy before is not over yet
            self.mark("deploy", host.name)
            await host.stop()
            await host.up()
            await asyncio.sleep(0.1 * self.hour)

    async def kill(self, host: Host, *, in_a_refund: bool) -> None:
        ends = time.monotonic() + 0.5 * self.hour
        while time.monotonic() < ends:
            now = time.monotonic()
            if not in_a_refund or any(0.25 < now - since < 0.5 for since in host.refunding):
                break
            await asyncio.sleep(0.02)
        if host.is_up:
            await asyncio.to_thread(host.kill)
            self.mark("kill", host.name)

    async def crash(self, hours: float) -> None:
        self.mark("PostgreSQL down")
        self._database_is_down = self.people.away = True
        await asyncio.to_thread(self._database.stop_immediately)
        await asyncio.sleep(hours * self.hour)
        await asyncio.to_thread(self._database.start)
        self._database_is_down = self.people.away = False
        self.mark("PostgreSQL up")

    async def restart_shop(self) -> None:
        self.mark("shop down")
        await self.shop.stop()
        await asyncio.sleep(0.05 * self.hour)
        await self.shop.up()
        self.mark("shop up")

    # --- housekeeping, by the command line -------------------------------------------

    async def command(self, *arguments: str, may_end_with: tuple[int, ...] = (0,)) -> str:
        done = await asyncio.to_thread(
            subprocess.run, [*SOPILOT, *arguments], capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        name = " ".join(arguments[:2] if arguments[0] == "store" else arguments[:1])
        self.commands[name] += 1
        if done.returncode not in may_end_with:
            if self._database_is_down:
                self.commands[f"{name}: refused, no store"] += 1
                return ""
            output = (done.stderr or done.stdout)[-500:]
            self.wrong.append(f"sopilot {name} ended with {done.returncode}: {output}")
        return done.stdout

    async def prune(self) -> None:
        async with self._one_prune:
            await self._prune(self._folder / f"archive-{self.commands['store prune']}.db")

    async def _prune(self, archive: Path) -> None:
        days = 2 * self.hour / 86400
        await self.command("store", "prune", "--days", f"{days:.8f}", "--archive", str(archive),
                           "--why", "two hours old", "--store", self.spec)  # fmt: skip
        if archive.exists():
            self.archives.append(archive)

    async def seal(self) -> None:
        key = self._folder / "key"
        if not key.exists():
            await self.command("trace", "keygen", str(key))
        await self.command("records", "seal", "--key", str(key), "--to",
            str(self._folder / "head.json"),
                           "--store", self.spec)  # fmt: skip

    async def verify(self) -> None:
        await self.command("records", "verify", "--head", str(self._folder / "head.json"), "--key",
                           str(self._folder / "key.pub"), "--store", self.spec)  # fmt: skip

    async def back_up(self) -> None:
        self.mark("back-up")
        copy = self._folder / "copy.db"
        await self.command("store", "backup", str(copy), "--store", self.spec)
        await self.command("sessions", "list", "--store", f"sqlite:{copy}", "--json")

    async def sweep(self) -> None:
        await self.command("sessions", "sweep", "--store", self.spec, may_end_with=(0, 1))

    # --- the plan -------------------------------------------------------------------

    def plan(self) -> list[tuple[float, Callable[[], Awaitable[None]]]]:
        def kill(number: int, in_a_refund: bool) -> Callable[[], Awaitable[None]]:
            return lambda: self.kill(self.hosts[number], in_a_refund=in_a_refund)

        plan: list[tuple[float, Callable[[], Awaitable[None]]]] = [
            (5.0, lambda: self.crash(0.05)), (18.0, lambda: self.crash(0.5)),
            (12.0, self.restart_shop), (6.0, self.deploy), (13.0, self.deploy), (20.0, self.deploy),
            (8.0, self.seal), (16.4, self.seal), (16.6, self.verify), (14.2, self.back_up),
            (21.5, self.sweep),
        ]  # fmt: skip
        hours = (3.5, 7.5, 8.5, 9.5, 10.5, 11.4, 14.5, 15.5, 16.5, 17.4, 19.2, 22.0)
        plan += [(at, kill(1 + n % 2, n % 3 != 0)) for n, at in enumerate(hours)]
        plan += [(hour + 0.3, self.prune) for hour in range(2, 24)]
        return sorted(plan, key=lambda event: event[0])

    async def _at(self, hour: float, act: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(max(0.0, (hour - self.now) * self.hour))
        await act()

    async def sampling(self) -> None:
        """The host that nobody touches, and the connections of the database."""
        while self.now < 24:
            sizes = self.hosts[0].size()
            connections = 0
            with suppress(psycopg.Error):
                connections = await asyncio.to_thread(self._connections)
            if sizes is not None:
                self.samples.append((*sizes, connections))
            await asyncio.sleep(min(SAMPLE_SECONDS, self.hour / 2))

    def _connections(self) -> int:
        with psycopg.connect(self._database.dsn, connect_timeout=2) as db:
            row = db.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            ).fetchone()
        return int(row[0]) if row else 0

    async def live(self, prometheus: Prometheus | None) -> None:
        await self.store.migrate()
        await self.shop.up()
        try:
            for host in self.hosts:
                await host.up()
            if prometheus is not None:
                await prometheus.up()
            self.begun = time.time()
            limits = httpx2.Limits(max_connections=500)
            async with httpx2.AsyncClient(timeout=30, limits=limits) as http:
                people = asyncio.create_task(self.people.decide_all())
                await asyncio.gather(
                    self.sampling(), self.arrivals(http),
                    *(self._at(hour, act) for hour, act in self.plan()),
                )  # fmt: skip
                if self._talking:
                    await asyncio.wait(self._talking, timeout=max(30, self.hour))
                for task in tuple(self._talking):
                    task.cancel()
                people.cancel()
                await asyncio.wait([people, *self._talking])
                if not people.cancelled() and people.exception() is not None:
                    self.wrong.append(f"people broke: {people.exception()!r}")
            await self.seal()
            await self.verify()
        finally:
            for host in self.hosts:
                await host.stop()
            await self.shop.stop()

    async def judged(self, minutes: float) -> dict[str, Any]:
        judge = Judge(self.store, self.archives)
        figures = await judge.judge(self.heard, self.shop.entries())
        await self.store.close()
        memory, descriptors, connections = zip(*self.samples, strict=True)
        flats = [
            flat("MiB of the host that nobody touched", memory, MOST_MORE_MIB),
            flat("its descriptors", descriptors, MOST_MORE_DESCRIPTORS),
            {
                "what": "connections of PostgreSQL",
                "most": max(connections),
                "flat": max(connections) <= CONNECTIONS * (HOSTS + 1) + COMMANDS,
            },
        ]
        wrong = [*self.wrong, *judge.faults, *self._errors()]
        wrong += [f"not flat: {row['what']}" for row in flats if not row["flat"]]
        wrong += [f"given up: {count} {ending}" for ending, count in self.heard.endings.items()
                  if "given up" in ending]  # fmt: skip
        wrong += [f"{self.heard.misrouted} answers of other sessions"] * bool(self.heard.misrouted)
        wrong += [f"nobody understands: {text}" for text in self.heard.odd]
        return {
            "minutes": minutes,
            "conversations": sum(self.heard.conversations.values()),
            "by_kind": dict(sorted(self.heard.conversations.items())),
            "endings": dict(sorted(self.heard.endings.items())),
            "happened": dict(Counter(what for _, what, _ in self.marks)),
            "decisions": dict(self.people.decided),
            "commands": dict(self.commands),
            "failed_requests_tried_again": self.heard.failed_requests,
            "longest_wait_seconds": round(self.heard.longest_wait, 1),
            "unknown_listed_after_seconds": [
                round(seconds, 1) for seconds in self.people.listed_after
            ],
            **figures,
            "flat": flats,
            "wrong": wrong,
        }

    def _errors(self) -> list[str]:
        """Count errors in the servers' logs as wrong, whatever came of them."""
        totals: Counter[str] = Counter()
        for host in self.hosts:
            for line in host.log.read_text(errors="replace").splitlines():
                if not line.startswith("{"):  # a worker that did not come up says why
                    totals["a traceback"] += line.startswith("Traceback")
                elif (entry := json.loads(line))["level"] == "error":
                    totals[f"{entry['message']}: {entry.get('problem', '')}"[:200]] += 1
        return [f"logged {count} times: {text}" for text, count in totals.items() if count]


def missing_for_a_picture() -> list[str]:
    missing = []
    if prometheus_program() is None:
        missing.append("prometheus (on PATH, or its path in $PROMETHEUS)")
    if find_spec("prometheus_client") is None:
        missing.append("metrics (pip install 'sopilot[metrics]')")
    if find_spec("matplotlib") is None:
        missing.append("matplotlib (pip install matplotlib)")
    return missing


async def run(minutes: float, folder: Path, database: PostgresHere, picture: Path | None) -> Any:
    day = Day(database, minutes, folder)
    program = prometheus_program()
    prometheus = Prometheus(program, day.hosts, day.hour, folder) if program else None
    try:
        await day.live(prometheus)
        story = None
        if prometheus is not None:
            from day_picture import read_story

            story = read_story(prometheus, day.marks, day.begun, day.hour)
    finally:
        if prometheus is not None:
            await prometheus.stop()
    figures = await day.judged(minutes)
    if story is not None:
        figures["alerts"] = {alert["alert"]: len(alert["firing"]) for alert in story["alerts"]}
        empty = [panel["title"] for panel in story["panels"] if not panel["series"]]
        figures["panels"], figures["panels_without_data"] = len(story["panels"]), empty
        if picture is not None:
            from day_picture import draw

            picture.parent.mkdir(parents=True, exist_ok=True)
            draw(story, picture)
    return figures, story


def measure(
    minutes: float, picture: Path | None, story: Path | None, keep: Path | None
) -> dict[str, Any]:
    """Keep the panels' series in ``story``, to be drawn again, and logs, ledger and archives in the
    folder ``keep``."""
    if picture and missing_for_a_picture():
        sys.exit(f"a picture needs {' and '.join(missing_for_a_picture())}")
    with postgres_here() as database, tempfile.TemporaryDirectory(prefix="sopilot-day-") as made:
        folder = keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        begun, load = time.monotonic(), os.getloadavg()[0]
        figures, series = asyncio.run(run(minutes, folder, database, picture))
    if story and series is not None:
        story.write_text(json.dumps(series))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    spent = sum(usage.ru_utime + usage.ru_stime for usage in used)
    return {
        "passed": not figures["wrong"],
        **figures,
        "cores_used_on_average": round(spent / (time.monotonic() - begun), 2),
        "cores": os.cpu_count(),
        "load_average_before": round(load, 1),
    }


if __name__ == "__main__":
    main(__doc__, measure, minutes=60.0, picture=Path, story=Path, keep=Path)
