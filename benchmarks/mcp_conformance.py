"""MCP's official conformance suite against a full upstream: directly, and through the gateway;
and against `sopilot serve` itself.

    python benchmarks/mcp_conformance.py [--json evidence/mcp-conformance.json]

The suite is npm's `@modelcontextprotocol/conformance`, with its own Node, installed once into
the user's cache. Exits 1 if something passes directly and not through the gateway, or if
`sopilot serve` fails what applies to it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from campaign import main
from everything_upstream import EVERYTHING
from mcp_processes import SOPILOT, cached, free_port, npm_modules, serving

HERE = Path(__file__).resolve().parent
VERSION = "0.1.16"
PACKAGES = (f"@modelcontextprotocol/conformance@{VERSION}", "node@22")
OWN = (
    "server-initialize", "ping", "tools-list", "resources-list", "prompts-list",
    "server-sse-multiple-streams", "dns-rebinding-protection",
)  # fmt: skip
"""Scenarios for any server; the others ask for tools, prompts and resources by name."""
HANDBOOK = """\
handbook: everything
says: Tools of a server that has everything.
actions:
  test_simple_text:
    says: Say something simple.
procedures:
  say_it:
    says: Say it.
    action: test_simple_text
"""


def suite() -> list[str]:
    """The command that runs it."""
    modules = npm_modules(cached(f"sopilot/conformance@{VERSION}"), *PACKAGES)
    program = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    own = modules / ".bin" / "node"
    return [str(own) if own.exists() else str(shutil.which("node")), str(program)]


def scenarios(program: list[str]) -> list[str]:
    listed = subprocess.run([*program, "list"], capture_output=True, text=True, timeout=60).stdout
    servers = listed.partition("Server scenarios")[2].partition("Client scenarios")[0]
    return [line.split()[1] for line in servers.splitlines() if line.startswith("  - ")]


def run(program: list[str], url: str, names: Sequence[str], folder: Path) -> dict[str, Any]:
    """Scenario → its checks, and the messages of those that failed."""
    results: dict[str, Any] = {}
    for name in names:
        out = folder / name
        out.mkdir(parents=True)
        subprocess.run(
            [*program, "server", "--url", url, "--scenario", name, "-o", str(out)],
            capture_output=True, text=True, timeout=120, cwd=out,
        )  # fmt: skip
        checks = [
            check for file in out.rglob("checks.json") for check in json.loads(file.read_text())
        ]
        failed = [check for check in checks if check["status"] == "FAILURE"]
        results[name] = {
            "passed": bool(checks) and not failed,
            "checks": len(checks),
            "failed": [f"{check['id']}: {check.get('errorMessage', '')}" for check in failed],
        }
    return results


def measure(scenario: list[str]) -> dict[str, Any]:
    program = suite()
    names = scenario or scenarios(program)
    with tempfile.TemporaryDirectory(prefix="sopilot-conformance-") as made:
        folder = Path(made)
        book = folder / "everything.yaml"
        book.write_text(HANDBOOK)
        passed = [word for name in EVERYTHING[1:] for word in ("--pass-through", name)]
        ports = [free_port() for _ in range(3)]
        upstream_url, through_url, own_url = (f"http://127.0.0.1:{each}/mcp" for each in ports)
        upstream = [sys.executable, str(HERE / "everything_upstream.py"), "--http", str(ports[0])]
        with serving(upstream, ports[0], folder):
            direct = run(program, upstream_url, names, folder / "direct")
            http = ["--http", f"127.0.0.1:{ports[1]}"]
            gateway = [
                *SOPILOT, "gateway", "--view", "pg", "--handbook", str(book),
                "--upstream", f"everything={upstream_url}", *passed, *http,
            ]  # fmt: skip
            with serving(gateway, ports[1], folder):
                through = run(program, through_url, names, folder / "through")
        alone = [*SOPILOT, "serve", "bank", "--http", f"127.0.0.1:{ports[2]}"]
        with serving(alone, ports[2], folder):
            own = run(program, own_url, [n for n in names if n in OWN], folder / "own")
    lost = [name for name in names if direct[name]["passed"] and not through[name]["passed"]]
    missing = [name for name, row in own.items() if not row["passed"]]
    return {
        "passed": not (lost or missing),
        "suite": f"{PACKAGES[0]}",
        "scenarios": len(names),
        "direct": sum(row["passed"] for row in direct.values()),
        "through": sum(row["passed"] for row in through.values()),
        "sopilot_mcp": {"applies": len(own), "passed": len(own) - len(missing)},
        "lost": lost,
        "by_scenario": {
            name: {"direct": direct[name], "through": through[name], "sopilot serve": own.get(name)}
            for name in names
        },
    }


if __name__ == "__main__":
    main(__doc__, measure, scenario=[])
