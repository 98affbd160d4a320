"""Run the long campaigns and keep what came out, each with the commit and the command.

    python benchmarks/evidence.py            # those whose sources have changed since
    python benchmarks/evidence.py --stale    # list them and mark them in the documents
    python benchmarks/evidence.py tamper duels

Results are small JSON files under evidence/. A campaign that fails keeps its file
and makes this command exit 1. A smaller run never replaces a larger one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from depends import Sources
from keeping import EVIDENCE, keep

ROOT = Path(__file__).resolve().parent.parent
STALE = " (stale)"

# evidence file → the script and its arguments; `{file}` is where it writes.
CAMPAIGNS: dict[str, list[str]] = {
    "proposition-1": ["proposition_1.py", "--json", "{file}"],
    "frames": ["frames.py", "--json", "{file}"],
    "compile-speed": ["compile_speed.py", "--json", "{file}"],
    "safety": ["safety.py", "--json", "{file}"],
    "labelled-traces": ["labelled_traces.py", "120000"],
    "audit-agreement": ["audit_agreement.py", "bank", "dmv", "library"],
    "crash-storm": ["crash_storm.py", "--json", "{file}"],
    "tamper": ["tamper.py", "--json", "{file}"],
    "store-tamper": ["store_tamper.py", "--json", "{file}"],
    "records-cost": ["records_cost.py", "--json", "{file}"],
    "records-crash": ["records_crash.py", "--json", "{file}"],
    "audit-scale": ["audit_scale.py", "--json", "{file}"],
    "records-scale": ["records_scale.py", "--json", "{file}"],
    "discipline-check": ["discipline_check.py", "--json", "{file}"],
    "duels": ["duels.py", "--json", "{file}"],
    "langgraph-walk": ["langgraph_walk.py", "--rounds", "15", "--json", "{file}"],
    "careful-reader": ["careful_reader.py", "--json", "{file}"],
    "token-cost": ["token_cost.py", "--domain", "all", "--json", "{file}"],
    "local-model": ["local_model.py", "--json", "{file}"],
    "prompt-growth": ["prompt_growth.py", "--json", "{file}"],
    "step-cost": ["step_cost.py"],
    "sopbench-reference": ["sweep.py", "--json", "{file}"],
    "official-wording": ["official_wording.py", "--json", "{file}"],
    "study-claims": ["study/__main__.py", "--write", "--json", "{file}"],
    "sopbench-kills": ["kill_sweep.py", "--ray"],
    "twelve-faults": ["twelve_faults.py", "--json", "{file}"],
    "mailbox-sweep": ["mailbox_sweep.py", "--json", "{file}"],
    "killed-study": ["killed_study.py", "--json", "{file}"],
    "archive-order": ["archive_order.py", "--json", "{file}"],
    "planned-cost": ["planned_cost.py", "--json", "{file}"],
    "mcp-storm": ["mcp_storm.py", "--json", "{file}"],
    "airline-gold": ["airline_gold.py", "--json", "{file}"],
    "airline-agreement": ["airline_agreement.py", "--json", "{file}"],
    "airline-recorded": ["airline_recorded.py", "--json", "{file}"],
    "workers-storm": ["workers_storm.py", "--json", "{file}"],
    "hooked-conversations": ["hooked_conversations.py", "--json", "{file}"],
    "throughput": ["throughput.py", "--json", "{file}"],
    "mcp-gateway": ["mcp_gateway.py", "--json", "{file}"],
    "chaos": ["chaos.py", "--json", "{file}"],
    "day-in-an-hour": [
        "day_in_an_hour.py",
        "--json",
        "{file}",
        "--picture",
        "docs/pictures/day-in-an-hour.png",
    ],
    "fuzz": ["fuzz.py", "--json", "{file}"],
    "mutants": ["mutants.py", "--json", "{file}"],
    "mcp-conformance": ["mcp_conformance.py", "--json", "{file}"],
}


def run(name: str) -> bool:
    file = EVIDENCE / f"{name}.json"
    with tempfile.TemporaryDirectory(prefix="sopilot-evidence-") as folder:
        return _run(name, file, Path(folder) / file.name)


def _run(name: str, file: Path, made: Path) -> bool:
    arguments = [part.format(file=made) for part in CAMPAIGNS[name]]
    shown = " ".join(["python", f"benchmarks/{CAMPAIGNS[name][0]}", *CAMPAIGNS[name][1:]])
    print(f"== {name}: {shown}", flush=True)
    started, begun_at = time.monotonic(), commit()
    digest = Sources().digest(CAMPAIGNS[name][0])
    written = file.stat().st_mtime_ns if file.exists() else None
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks" / arguments[0]), *arguments[1:]])
    # A campaign may leave the file of a larger run as it is: then its commit stays, too.
    source = made if made.exists() else file
    if source is made or (file.exists() and file.stat().st_mtime_ns != written):
        figures = json.loads(source.read_text(encoding="utf-8"))
        figures = {
            "command": f"python benchmarks/evidence.py {name}",
            "commit": begun_at,
            "sources": digest,
            "passed": done.returncode == 0,
        } | {
            key: value
            for key, value in figures.items()
            if key not in ("command", "commit", "sources")
        }
        keep(figures, file)
    print(f"== {name}: exit {done.returncode}, {time.monotonic() - started:.0f} s", flush=True)
    return done.returncode == 0


def commit() -> str:
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def stale(name: str, sources: Sources) -> bool:
    """Whether it was never run, failed, or its sources have changed since."""
    file = EVIDENCE / f"{name}.json"
    if not file.exists():
        return True
    kept = json.loads(file.read_text(encoding="utf-8"))
    if kept.get("passed") is False:
        return True
    return bool(kept.get("sources") != sources.digest(CAMPAIGNS[name][0]))


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("design/*.md"))]


def marked(text: str, stale_names: Collection[str]) -> str:
    """The text with ` (stale)` behind each citation of stale evidence, and behind no other."""

    def mark(citation: re.Match[str]) -> str:
        return citation[1] + (STALE if citation[2] in stale_names else "")

    return re.sub(rf"(`evidence/([\w-]+)\.json`)({re.escape(STALE)})?", mark, text)


def mark_documents(sources: Sources) -> None:
    names = {name for name in CAMPAIGNS if stale(name, sources)}
    for document in documents():
        text = document.read_text("utf-8")
        if (new := marked(text, names)) != text:
            document.write_text(new, "utf-8")
            print(f"marked: {document.relative_to(ROOT)}")


def main() -> None:
    only_say = sys.argv[1:] == ["--stale"]
    wanted = [] if only_say else sys.argv[1:]
    if not wanted:
        sources = Sources()
        wanted = [name for name in CAMPAIGNS if stale(name, sources)]
        print(f"{len(wanted)} of {len(CAMPAIGNS)} campaigns are stale: {', '.join(wanted)}")
    if only_say:
        mark_documents(sources)
        return
    unknown = [name for name in wanted if name not in CAMPAIGNS]
    if unknown:
        print(f"unknown campaign {unknown[0]}; known: {', '.join(CAMPAIGNS)}", file=sys.stderr)
        sys.exit(2)
    EVIDENCE.mkdir(exist_ok=True)
    failed = [name for name in wanted if not run(name)]
    mark_documents(Sources())
    print(
        f"{len(wanted) - len(failed)} passed, {len(failed)} failed"
        + "".join(f" {n}" for n in failed)
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
