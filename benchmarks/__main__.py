"""Every performance figure in one table, from one run: ratios, and tasks a second.

    python benchmarks [--small]

`--small` takes a minute or two and shows that all of it works; without it every task and walk is
run in full, and a missed bound makes the command exit 1. Parts whose extra or checkout is
missing are left out, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

Row = tuple[str, float, str]
"""What is measured, the figure (a ratio unless it says otherwise), and what was wanted."""


@dataclass(frozen=True, slots=True)
class Part:
    """``rows`` reads the figures that the script leaves; ``needs`` is a module, without which
    the part is left out, and ``extra`` what brings it; ``checkout``: it needs SOPBench."""

    title: str
    command: list[str]
    rows: Callable[[dict[str, Any]], Iterator[Row]] | None = None
    needs: str = ""
    extra: str = "bench-peers"
    checkout: bool = False


def parts(*, small: bool) -> list[Part]:
    few = ["--sessions", "50", "--latency", "0.1"] if small else []
    # What each switch brings is a table of its own: `evidence.py token-cost`.
    # The bounds are on medians of a domain: those of five or ten tasks fall to either side.
    tokens = ["--no-ablation", *(["--limit", "40"] if small else [])]
    calls = ["--calls", "10", "--as-set"] if small else []
    sweep = [
        "--only",
        "reference-pg-official",
        *(["--limit", "7", "--runner", "plain"] if small else []),
    ]
    turns = ["10", "20"] if small else ["10", "100", "1000"]
    return [
        Part("compile", ["compile_speed.py", *(["--small"] if small else [])], compile_rows),
        Part("machine", ["vm_step.py", *(["--rounds", "10"] if small else [])]),
        Part(
            "store",
            ["langgraph_walk.py", "--rounds", "1" if small else "7"],
            store_rows,
            "langgraph.checkpoint.sqlite",
        ),
        Part("concurrency", ["concurrency.py", *few], concurrency_rows),
        Part("tokens", ["token_cost.py", *tokens], token_rows, "tiktoken", checkout=True),
        Part("growth", ["prompt_growth.py", "--turns", *turns], growth_rows, "tiktoken"),
        Part("gateway", ["mcp_gateway.py", *calls], gateway_rows, "mcp", extra="mcp"),
        Part("sopbench", ["sweep.py", *sweep], sopbench_rows, checkout=True),
    ]


def compile_rows(figures: dict[str, Any]) -> Iterator[Row]:
    yield "exponent of compile time over leaves", figures["growth"]["exponent"], "about 1"
    if "sopbench" in figures:
        spent = figures["sopbench"]["official"]["total_seconds"]
        ratio = spent / figures["sopbench"]["paper_seconds"]
        yield "all SOPBench programs, times the paper's 0.1 s", ratio, ""


def store_rows(figures: dict[str, Any]) -> Iterator[Row]:
    for name, ratio in figures["ratios"].items():
        wanted = figures["wanted"].get(name)
        bound = f"at least {wanted:g}" if wanted else ""
        yield f"LangGraph's step to ours, {name}", ratio["wall"], bound
    stored = figures["stored_bytes"]
    yield (
        "LangGraph's stored bytes to ours, longest walk",
        stored["peer"][-1] / stored["here"][-1],
        "",
    )


def concurrency_rows(figures: dict[str, Any]) -> Iterator[Row]:
    name = f"{figures['sessions']:g} sessions at once to one alone"
    yield name, figures["times_ideal"], "at most 1.2"


def token_rows(figures: dict[str, Any]) -> Iterator[Row]:
    paper = figures["paper"]
    for row in figures["domains"]:
        for what in ("tokens", "calls"):
            bound = f"at most {figures['bounds'][what]:g}"
            name = f"{row['domain']}: {what} of fused to flat"
            yield name, row["fused_to_flat"][what], bound
            known = (
                f"paper {paper['pg_to_flat'][what]:g}" if row["domain"] == paper["domain"] else ""
            )
            yield f"{row['domain']}: {what} of pg to flat", row["pg_to_flat"][what], known
        for arm in ("fused", "pg"):
            yield f"{row['domain']}: price of {arm} to flat", row[f"{arm}_to_flat"]["price"], ""


def growth_rows(figures: dict[str, Any]) -> Iterator[Row]:
    for name, sizes in figures["largest_request_by_turns"].items():
        *_, shorter, longest = sizes
        title = f"prompt of {name}, {longest} turns to {shorter}"
        yield title, sizes[longest] / sizes[shorter], "bounded" if name == "fused" else ""


def gateway_rows(figures: dict[str, Any]) -> Iterator[Row]:
    for transport in ("stdio", "http"):
        for suffix, how in (("", ""), ("_looking_once", ", looking once")):
            if f"{transport}{suffix}" in figures:
                title = f"a call by the gateway to a direct one, {transport}{how}"
                yield title, figures[f"{transport}{suffix}"]["ratio"], ""


def sopbench_rows(figures: dict[str, Any]) -> Iterator[Row]:
    for row in figures["sweeps"]:
        label = f"{row['model']}, {row['arm']}, {row['tools']}"
        yield f"{label}: tasks a second, {row['workers']} workers", row["tasks_per_second"], ""
        yield f"{label}: passed to reachable", row["share_of_reachable"], "1"


def run(part: Part) -> tuple[str, list[Row]]:
    """How the part ended: `met`, `missed` (a bound) or `failed`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        keep = ["--json", str(file)] if part.rows is not None else []
        command = [sys.executable, str(HERE / part.command[0]), *part.command[1:], *keep]
        code = subprocess.run(command, check=False).returncode
        if part.rows is None:
            return ("met" if code == 0 else "failed"), []
        if not file.exists():
            return "failed", []
        rows = list(part.rows(json.loads(file.read_text(encoding="utf-8"))))
    return ("met" if code == 0 else "missed"), rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--small", action="store_true")
    small = parser.parse_args().small
    table: list[tuple[str, str, float, list[Row]]] = []
    for part in parts(small=small):
        missing = _missing(part)
        if missing:
            table.append((part.title, missing, 0.0, []))
            continue
        print(f"=== {part.title}: python benchmarks/{' '.join(part.command)}", flush=True)
        begun = time.perf_counter()
        verdict, rows = run(part)
        table.append((part.title, verdict, time.perf_counter() - begun, rows))
        print(flush=True)
    for title, verdict, seconds, rows in table:
        print(f"{title:<12} {verdict} ({seconds:.0f} s)")
        for name, ratio, wanted in rows:
            print(f"  {name:<58} {ratio:>8.2f}  {wanted}")
    verdicts = [verdict for _, verdict, _, _ in table]
    # One short round says that a part works, not whether it meets its bound.
    if "failed" in verdicts or ("missed" in verdicts and not small):
        sys.exit(1)


def _missing(part: Part) -> str:
    if part.needs and not _installed(part.needs):
        return f"left out: install the extra `{part.extra}`"
    if part.checkout:
        from sopilot.messages.errors import UserMistake
        from sopilot_lab.sopbench.checkout import find_checkout

        try:
            find_checkout()
        except UserMistake as missing:
            return f"left out: {missing.diagnostics[0].message}"
    return ""


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    main()
