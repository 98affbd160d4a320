"""The processes of a day: hosts with a gateway each, the shop behind them, a Prometheus."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode
from urllib.request import urlopen

import httpx2

from mcp_processes import SOPILOT, free_port

HERE = Path(__file__).resolve().parent
ALERTS = HERE.parent / "deploy" / "prometheus" / "alerts.yaml"
SCRAPE_SECONDS = 5
_STARTING_SECONDS = 240.0
"""On a machine that is busy with other things."""


class Part:
    """A process that can be stopped and started again, with a log of its own."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self.command = [*command]
        self.log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._writes: IO[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self._writes = self.log.open("ab")
        self._process = subprocess.Popen(
            self.command, stdout=self._writes, stderr=self._writes, stdin=subprocess.DEVNULL
        )

    async def until(self, url: str) -> None:
        """Whatever it answers there, it is up; one that ends instead says why in its log."""
        ends = time.monotonic() + _STARTING_SECONDS
        async with httpx2.AsyncClient(timeout=5) as http:
            while time.monotonic() < ends:
                if self._process is None or self._process.poll() is not None:
                    break
                with suppress(httpx2.HTTPError):
                    if (await http.get(url)).status_code < 500:
                        return
                await asyncio.sleep(0.1)
        raise RuntimeError(f"{self.name} does not come up: {self.log.read_text()[-2000:]}")

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, 30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._writes is not None:
            self._writes.close()


class Host(Part):
    """A server process that is started again when it dies, as a service manager does it."""

    def __init__(self, number: int, handbook: Path, shop: str, store: str, folder: Path) -> None:
        port, admin = free_port(), free_port()
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.admin = f"127.0.0.1:{admin}"
        self.is_up = False
        self.refunding: list[float] = []
        """Since when a client waits here for a refund."""
        super().__init__(
            f"host-{number}",
            [*SOPILOT, "gateway", "--view", "pg",
        "--handbook", str(handbook), "--upstream", f"shop={shop}",
                "--share-upstream",
             "--http", f"127.0.0.1:{port}", "--stateless", "--admin", self.admin,
             "--store", store, "--log", "json",
             "--limit", "initializes=100000", "--limit", "idle-seconds=60"],
            folder,
        )  # fmt: skip

    async def up(self) -> None:
        self.start()
        await self.until(f"http://{self.admin}/readyz")
        self.is_up = True

    async def stop(self) -> None:
        self.is_up = False
        await super().stop()

    def kill(self) -> None:
        """Kill the process without warning, and start it again."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        if self._writes is not None:
            self._writes.close()
        self.start()

    def size(self) -> tuple[float, int] | None:
        """Resident MiB and open descriptors."""
        with suppress(OSError, StopIteration, ValueError):
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
            kib = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
            return kib / 1024, len(os.listdir(f"/proc/{self.pid}/fd"))
        return None


class Shop(Part):
    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.ledger = folder / "ledger.jsonl"
        self.ledger.touch()
        program = str(HERE / "day_upstream.py")
        super().__init__("shop", [sys.executable, program, str(port), str(self.ledger)], folder)

    async def up(self) -> None:
        self.start()
        await self.until(self.url)

    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.ledger.read_text("utf-8").splitlines()]


def prometheus_program() -> str | None:
    return os.environ.get("PROMETHEUS") or shutil.which("prometheus")


class Prometheus(Part):
    """Scrapes the hosts and holds them against the alert rules of the product. A day that is
    shorter has shorter hours: what people may take is measured in those."""

    def __init__(self, program: str, hosts: Sequence[Host], hour: float, folder: Path) -> None:
        port = free_port()
        self._url = f"http://127.0.0.1:{port}"
        rules = folder / "alerts.yaml"
        rules.write_text(ALERTS.read_text("utf-8").replace("> 3600", f"> {hour:g}"), "utf-8")
        targets = [{"targets": [host.admin], "labels": {"instance": host.name}} for host in hosts]
        config = folder / "prometheus.json"  # JSON is YAML
        config.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": f"{SCRAPE_SECONDS}s",
                               "evaluation_interval": f"{SCRAPE_SECONDS}s"},
                    "rule_files": [str(rules)],
                    "scrape_configs": [{"job_name": "sopilot", "static_configs": targets}],
                }
            )
        )  # fmt: skip
        super().__init__(
            "prometheus",
            [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            folder,
        )  # fmt: skip

    async def up(self) -> None:
        self.start()
        await self.until(f"{self._url}/-/ready")

    def ask(self, query: str, begun: float, ended: float, step: float) -> list[dict[str, Any]]:
        """The series of a range; what Prometheus refuses is an error of the query."""
        query_string = urlencode({"query": query, "start": begun, "end": ended, "step": step})
        with urlopen(f"{self._url}/api/v1/query_range?{query_string}", timeout=30) as answer:
            series: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return series
