"""The gateway's cost per call: through it, against calling the upstream directly.

    python benchmarks/mcp_gateway.py [--calls N] [--json FILE]

Both over stdio and over HTTP, the upstream in a process of its own, the gateway in another,
with a durable store. Rounds alternate, so that a busy machine is busy for both. A gateway that
did nothing but ask on would have a ratio of 2, and one that looks at the tools before every
call, of 3.

Exit 1 where a call was not answered with its own arguments (`wrong_answers`), or where the median
of all calls is more than 6 ms longer over stdio, or 10 ms over HTTP: on a quiet machine.
"""

from __future__ import annotations

import asyncio
import shlex
import statistics
import tempfile
import time
from pathlib import Path

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from campaign import main
from mcp_processes import ECHO, echo_gateway, free_port, serving

ROUNDS = 10
MOST_ADDED_MS = {"stdio": 6.0, "http": 10.0}


class Timed:
    """A client's calls: how long each took, and how many were not answered rightly."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._made = 0
        self.seconds: list[float] = []
        self.wrong = 0

    async def call(self, calls: int) -> None:
        for _ in range(calls):
            self._made += 1
            arguments = {"n": self._made}
            begun = time.perf_counter()
            result = await self._client.call_tool("echo", arguments)
            self.seconds.append(time.perf_counter() - begun)
            self.wrong += result.is_error or result.structured_content != arguments


async def compared(direct: Client, through: Client, calls: int) -> dict[str, float]:
    for client in (direct, through):
        await Timed(client).call(5)
    plain, guarded = Timed(direct), Timed(through)
    for _ in range(ROUNDS):
        for each in (plain, guarded):
            await each.call(calls // ROUNDS)
    a, b = statistics.median(plain.seconds), statistics.median(guarded.seconds)
    return {
        "direct_ms": round(a * 1000, 3),
        "through_ms": round(b * 1000, 3),
        "ratio": round(b / a, 2),
        "added_ms": round((b - a) * 1000, 3),
        "wrong_answers": plain.wrong + guarded.wrong,
    }


async def over_stdio(home: Path, calls: int) -> dict[str, float]:
    program, *arguments = ECHO
    upstream = StdioServerParameters(command=program, args=arguments)
    program, *arguments = echo_gateway(shlex.join(ECHO))
    environment = {"SOPILOT_HOME": str(home)}
    gateway = StdioServerParameters(command=program, args=arguments, env=environment)
    async with Client(upstream) as direct, Client(gateway) as through:
        return await compared(direct, through, calls)


async def over_http(home: Path, calls: int) -> dict[str, float]:
    there, own = free_port(), free_port()
    address = f"http://127.0.0.1:{there}/mcp"
    command = echo_gateway(address, "--http", f"127.0.0.1:{own}")
    with serving([*ECHO, "--http", str(there)], there), serving(command, own, home):
        # The same protocol era on both sides: the one with connections.
        gateway = Client(f"http://127.0.0.1:{own}/mcp")
        async with Client(address, mode="legacy") as direct, gateway as through:
            return await compared(direct, through, calls)


async def both(calls: int) -> dict[str, object]:
    figures: dict[str, object] = {"calls": calls, "at_most_added_ms": MOST_ADDED_MS}
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        for name, transport in (("stdio", over_stdio), ("http", over_http)):
            figures[name] = measured = await transport(Path(folder) / name, calls)
            passed &= not measured["wrong_answers"]
            passed &= measured["added_ms"] <= MOST_ADDED_MS[name]
    return {"passed": passed, **figures}


def measure(calls: int) -> dict[str, object]:
    return asyncio.run(both(calls))


if __name__ == "__main__":
    main(__doc__, measure, calls=2000)
