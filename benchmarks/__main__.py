"""Every performance figure in one table, as ratios in one run.

    python benchmarks [--small]

`--small` takes a minute and shows that all of it works; without it every task and walk is
run in full. Parts whose extra or checkout is missing are left out, and the table says so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent


def parts(*, small: bool) -> list[tuple[str, list[str], str]]:
    """Title, command, and the module without which the part is left out."""
    walk = ["langgraph_walk.py", "--rounds", "1" if small else "7"]
    tokens = ["token_cost.py", "--domain", "bank"]
    tokens += ["--limit", "6", "--no-ablation"] if small else []
    growth = ["prompt_growth.py", "--turns", "10", "100", *([] if small else ["1000"])]
    return [
        ("compile", ["compile_speed.py", *(["--small"] if small else [])], ""),
        ("machine", ["vm_step.py"], ""),
        ("store", walk, "langgraph.checkpoint.sqlite"),
        ("concurrency", ["concurrency.py"], ""),
        ("tokens and calls", tokens, "tiktoken"),
        ("growth of prompts", growth, "tiktoken"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    table = []
    for title, command, module in parts(small=arguments.small):
        if module and not _installed(module):
            table.append((title, "left out: install the extra `bench-peers`", 0.0))
            continue
        print(f"=== {title}: python benchmarks/{' '.join(command)}", flush=True)
        begun = time.perf_counter()
        ended = subprocess.run([sys.executable, str(HERE / command[0]), *command[1:]], check=False)
        # One short round says that a part works, not whether it meets its bound.
        verdict = "bounds met" if ended.returncode == 0 else f"exit {ended.returncode}"
        table.append((title, verdict, time.perf_counter() - begun))
        print(flush=True)
    print(f"{'part':<20} {'seconds':>8}  verdict")
    for title, verdict, seconds in table:
        print(f"{title:<20} {seconds:>8.1f}  {verdict}")
    if any(verdict.startswith("exit") for _, verdict, _ in table):
        sys.exit(1)


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    main()
