"""The performance campaigns one after the other, each with its own table.

    python benchmarks [--small]

`--small` takes a minute or two and shows that all of it works; without it every task and walk is
run in full, and a missed bound makes the command exit 1. Parts whose extra or checkout is missing
are left out, and the last lines say so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sopilot.messages.errors import UserMistake
from sopilot_lab.sopbench.checkout import find_checkout

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Part:
    """``small`` holds the arguments of the small run; without the module ``needs`` or SOPBench's
    ``checkout`` the part is left out."""

    title: str
    command: str
    small: str = ""
    needs: str = ""
    checkout: bool = False

    def missing(self) -> str:
        try:
            if self.needs and find_spec(self.needs) is None:
                return f"left out: `{self.needs}` is not installed"
            if self.checkout:
                find_checkout()
        except ModuleNotFoundError:
            return f"left out: `{self.needs}` is not installed"
        except UserMistake as mistake:
            return f"left out: {mistake.diagnostics[0].message}"
        return ""


PARTS = (
    Part("compile", "compile_speed.py", "--small", checkout=True),
    Part("machine", "steps.py here", "--rounds 10"),
    Part("store", "steps.py langgraph", "--rounds 1", "langgraph.checkpoint.sqlite"),
    Part("concurrency", "steps.py concurrent", "--sessions 50 --latency 0.1"),
    Part("tokens", "token_cost.py --no-ablation", "--limit 40", checkout=True),
    Part("growth", "prompt_growth.py", "--turns 10 20"),
    Part("gateway", "mcp_gateway.py", "--calls 10", "mcp"),
    Part("sopbench", "sweep.py reference --only reference-pg-official", "--limit 7 --runner plain",
         checkout=True),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--small", action="store_true")
    small = parser.parse_args().small
    table: dict[str, str] = {}
    for part in PARTS:
        if missing := part.missing():
            table[part.title] = missing
            continue
        script, *arguments = f"{part.command} {part.small if small else ''}".split()
        print(f"=== {part.title}: python benchmarks/{script} {' '.join(arguments)}", flush=True)
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "figures.json")
            command = [sys.executable, str(HERE / script), *arguments, "--json", str(file)]
            code = subprocess.run(command, check=False).returncode
            # One short round says that a part works, not whether it meets its bound.
            verdict = "failed" if not file.exists() else "missed" if code else "met"
        table[part.title] = f"{verdict} ({time.perf_counter() - begun:.0f} s)"
    for title, verdict in table.items():
        print(f"{title:<12} {verdict}")
    failing = ("failed",) if small else ("failed", "missed")
    sys.exit(1 if any(verdict.startswith(failing) for verdict in table.values()) else 0)


if __name__ == "__main__":
    main()
