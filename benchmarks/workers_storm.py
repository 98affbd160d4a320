"""Several servers over one PostgreSQL, killed and restarted all the time, no sticky routing.

    python benchmarks/workers_storm.py [--sessions 1000] [--seconds 300] [--every 1] [--json FILE]

Every client sends each request to any server and tries again where one fails. Every second the
worker of one server is killed (SIGKILL), and its supervisor replaces it; PostgreSQL crashes twice.
Where network namespaces can be made, each server has one of its own, with an address and a cable:
a host; otherwise an address on loopback. At the end every answer that a client was given must
stand in the trace of its own session, once, and the chain of every trace must hold. Hand-over is
the longest time from a request that failed to the next answer, while PostgreSQL was there.
Conversations begin one after the other, with the pauses that they go on with: a thousand that
begin in one moment wait for each other, and that wait is no hand-over.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from postgres_here import PostgresHere, postgres_here
from sopilot.stores.postgres import PostgresStore
from sopilot.trace.chain import verify_chain

SERVERS = 3
LONGEST_HAND_OVER = 5.0
PORT = 8321
NETWORK = f"10.{64 + os.getpid() % 128}"
"""Another one for every run: two may meet."""
TOKEN = secrets.token_hex(16)
ENTRY = "from sopilot.cli.main import main; main()"
HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "authorization": f"Bearer {TOKEN}",
}
ANSWER = re.compile(r"#(\d+) \(ok\): ")


class Server:
    """A host: a supervisor with one worker, in a network of its own where there can be one."""

    def __init__(self, number: int, store: str, folder: Path) -> None:
        self._space = f"sopilot-{os.getpid()}-{number}"
        self.apart = _cabled(self._space, number)
        self._host = f"{NETWORK}.{number}.2" if self.apart else f"127.0.0.{number + 1}"
        tokens = folder / "tokens"
        tokens.write_text(f"storm {TOKEN}\n")
        tokens.chmod(0o600)
        limits = ["connections=5000", "requests=5000", "sessions=5000", "sessions-of-one=5000",
                  "clients=100000", "initializes=100000"]  # fmt: skip
        options = [part for one in limits for part in ("--limit", one)]
        inside = ["ip", "netns", "exec", self._space] if self.apart else []
        self._log = (folder / f"host-{number}.log").open("wb")
        self._process = subprocess.Popen(
            [*inside, sys.executable, "-c", ENTRY, "mcp", "bank", "--store", store,
             "--http", f"{self._host}:{PORT}", "--token-file", str(tokens), "--workers", "1",
             "--stateless", *options],
            stderr=self._log,
        )  # fmt: skip

    @property
    def url(self) -> str:
        return f"http://{self._host}:{PORT}/mcp"

    async def until_ready(self, http: httpx2.AsyncClient) -> None:
        while self._process.poll() is None:
            with contextlib.suppress(httpx2.HTTPError):
                if (await http.get(self.url.replace("/mcp", "/readyz"))).status_code == 200:
                    return
            await asyncio.sleep(0.1)
        raise RuntimeError(f"{self.url} has ended with {self._process.returncode}")

    def kill(self) -> bool:
        """The worker; the supervisor starts another."""
        pid = self._process.pid
        workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(one), signal.SIGKILL)
        return bool(workers)

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.kill()
            self._process.wait()
        self._log.close()
        if self.apart:
            subprocess.run(["ip", "netns", "del", self._space], check=False, timeout=20)


def _cabled(space: str, number: int) -> bool:
    """A network namespace with an address that this one reaches."""
    here, there = f"sop{os.getpid() % 10000}h{number}", f"sop{os.getpid() % 10000}t{number}"
    steps = [
        ["netns", "add", space],
        ["link", "add", here, "type", "veth", "peer", "name", there],
        ["link", "set", there, "netns", space],
        ["addr", "add", f"{NETWORK}.{number}.1/24", "dev", here],
        ["link", "set", here, "up"],
        ["-n", space, "addr", "add", f"{NETWORK}.{number}.2/24", "dev", there],
        ["-n", space, "link", "set", there, "up"],
        ["-n", space, "link", "set", "lo", "up"],
    ]
    for step in steps:
        try:
            done = subprocess.run(["ip", *step], capture_output=True, check=False, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return False
        if done.returncode:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)
            return False
    return True


@dataclass
class Client:
    http: httpx2.AsyncClient
    servers: list[Server]
    session_id: str = ""
    answered: list[int] = field(default_factory=list)
    misrouted: int = 0
    failures: int = 0
    longest_wait: float = 0.0
    """For an answer, where nothing failed."""
    hand_overs: list[tuple[float, int]] = field(default_factory=list)
    """Seconds, and failed attempts."""

    async def post(self, body: dict[str, Any], down: list[bool]) -> httpx2.Response:
        """Until some server answers."""
        asked_at, failed_at, failed, attempts = time.monotonic(), 0.0, False, 0
        while True:
            headers = {
                **HEADERS,
                **({"mcp-session-id": self.session_id} if self.session_id else {}),
            }
            try:
                server = random.choice(self.servers)
                answer = await self.http.post(server.url, json=body, headers=headers)
                good = answer.status_code == 200 and "Not done: " not in answer.text
            except httpx2.HTTPError:
                good = False
            if good:
                if not failed:
                    self.longest_wait = max(self.longest_wait, time.monotonic() - asked_at)
                elif failed_at:
                    self.hand_overs.append((time.monotonic() - failed_at, attempts))
                return answer
            failed = True
            self.failures += 1
            failed_at = 0.0 if down[0] else failed_at or time.monotonic()
            attempts = attempts + 1 if failed_at else 0
            await asyncio.sleep(0.05)

    async def converse(self, until: float, pause: float, down: list[bool]) -> None:
        await asyncio.sleep(random.uniform(0, 2 * pause))
        about = {"protocolVersion": "2025-06-18", "capabilities": {}}
        about["clientInfo"] = {"name": "storm", "version": "1"}
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
        self.session_id = (await self.post(body, down)).headers["mcp-session-id"]
        call = {"name": "find_account", "arguments": {"username": "carla"}}
        number = 0
        while time.monotonic() < until:
            number += 1
            await asyncio.sleep(random.uniform(0, 2 * pause))
            body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
            text = (await self.post(body, down)).text
            self.misrouted += f'"sopilot/session":"{self.session_id}"' not in text
            found = ANSWER.search(text)
            if found is not None:
                self.answered.append(int(found[1]))


async def killing(servers: list[Server], until: float, every: float) -> int:
    kills = 0
    while time.monotonic() < until:
        await asyncio.sleep(every)
        kills += random.choice(servers).kill()
    return kills


async def restarting(database: PostgresHere, seconds: float, down: list[bool]) -> None:
    for _ in range(2):
        await asyncio.sleep(seconds / 3)
        down[0] = True
        await asyncio.to_thread(database.stop_immediately)
        await asyncio.to_thread(database.start)
        await asyncio.sleep(2)
        down[0] = False


async def judged(store: PostgresStore, clients: list[Client]) -> dict[str, int]:
    lost = doubled = broken = 0
    for client in clients:
        if not client.session_id:
            continue
        events = await store.events(client.session_id)
        record = await store.record(client.session_id)
        broken += verify_chain(events, session_id=client.session_id, head=record.head) is not None
        results = {one.event.seq for one in events if one.event.kind == "domain_result"}
        calls = [one.event.payload["call_id"] for one in events if one.event.kind == "domain_call"]
        lost += sum(seq not in results for seq in client.answered)
        doubled += len(client.answered) - len(set(client.answered)) + len(calls) - len(set(calls))
    return {"lost": lost, "doubled": doubled, "broken": broken}


async def storm(
    database: PostgresHere, sessions: int, seconds: float, every: float, folder: Path
) -> dict[str, Any]:
    dsn = f"postgres:{database.dsn}"
    store = PostgresStore(database.dsn)
    await store.migrate()
    servers = [Server(number, dsn, folder) for number in range(1, SERVERS + 1)]
    load = os.getloadavg()[0]
    down = [False]
    limits = httpx2.Limits(max_connections=200)
    async with httpx2.AsyncClient(timeout=30, limits=limits) as http:
        for one in servers:
            await one.until_ready(http)
        clients = [Client(http, servers) for _ in range(sessions)]
        begun = time.monotonic()
        until = begun + seconds
        pause = max(0.1, sessions / 50)
        try:
            kills, *_ = await asyncio.gather(
                killing(servers, until - 5, every),
                restarting(database, seconds, down),
                *(client.converse(until, pause, down) for client in clients),
            )
        finally:
            for one in servers:
                one.end()
    figures = await judged(store, clients)
    await store.close()
    seconds_and_attempts = sorted(pair for one in clients for pair in one.hand_overs)
    hand_overs = [seconds for seconds, _ in seconds_and_attempts] or [0.0]
    return {
        "sessions": sessions,
        "seconds": round(time.monotonic() - begun),
        "servers": SERVERS,
        "networks_of_their_own": sum(one.apart for one in servers),
        "kills": kills,
        "seconds_between_kills": every,
        "restarts_of_postgresql": 2,
        "answers": sum(len(one.answered) for one in clients),
        "sessions_without_an_answer": sum(not one.answered for one in clients),
        "failed_attempts": sum(one.failures for one in clients),
        **figures,
        "misrouted": sum(one.misrouted for one in clients),
        "hand_overs": len(seconds_and_attempts),
        "median_hand_over_seconds": round(statistics.median(hand_overs), 2),
        "longest_hand_over_seconds": round(hand_overs[-1], 2),
        "its_failed_attempts": seconds_and_attempts[-1][1] if seconds_and_attempts else 0,
        "longest_wait_without_failure_seconds": round(max(one.longest_wait for one in clients), 2),
        "cores": os.cpu_count(),
        "load_average_before": round(load, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--every", type=float, default=1, help="seconds between kills")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with postgres_here() as database, tempfile.TemporaryDirectory() as folder:
        made = storm(database, given.sessions, given.seconds, given.every, Path(folder))
        figures = asyncio.run(made)
    print(json.dumps(figures, indent=2))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")
    faults = ("lost", "doubled", "broken", "misrouted", "sessions_without_an_answer")
    whole = not any(figures[name] for name in faults)
    sys.exit(0 if whole and figures["longest_hand_over_seconds"] <= LONGEST_HAND_OVER else 1)


if __name__ == "__main__":
    main()
