"""Run the long campaigns and keep their results, each with its commit and command.

    python benchmarks/evidence.py            # campaigns whose sources have changed since
    python benchmarks/evidence.py --stale    # list those, and mark them in the documents
    python benchmarks/evidence.py tamper duels

Results are small JSON files under evidence/. A campaign that fails writes its file, with
`passed: false` and the sentence from ``EXPLAINED``, and this command exits 1. A smaller run never
replaces a larger one. Ctrl-C ends the running campaign, whose file is kept if it wrote one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from depends import Sources

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "evidence"
STALE = " (stale)"
Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Campaign:
    """``command`` is the script with its arguments, where `{file}` is the file to write.
    ``size`` says how much was tried: a field, fields to multiply, or a function."""

    command: str
    size: str | Callable[[Figures], int]

    @property
    def script(self) -> str:
        return self.command.split()[0]

    def tried(self, figures: Figures) -> int:
        """A file of another shape, from before, counts nothing."""
        try:
            if callable(self.size):
                return int(self.size(figures))
            product = 1
            for name in self.size.split("*"):
                value = figures[name]
                product *= int(value) if isinstance(value, int | float) else len(value)
            return product
        except (KeyError, TypeError):
            return 0


def _sum(of: str, part: str) -> Callable[[Figures], int]:
    return lambda figures: sum(row[part] for row in figures[of])


def _largest_prompt(figures: Figures) -> int:
    return max(map(int, figures["largest_request_by_turns"]["pg"]))


def _smallest_store(figures: Figures) -> int:
    return min(store["sessions"] for store in figures.values() if isinstance(store, dict))


DAY = "day_in_an_hour.py --json {file} --picture docs/pictures/day-in-an-hour.png"
CAMPAIGNS: dict[str, Campaign] = {
    name: Campaign(command, size)
    for name, command, size in (
        ("proposition-1", "proposition_1.py --json {file}", "random_cases"),
        ("frames", "frames.py --json {file}", "programs"),
        ("compile-speed", "compile_speed.py --json {file}", lambda f: f["sopbench"]["programs"]),
        ("safety", "safety.py --json {file}", "sessions"),
        ("labelled-traces", "labelled_traces.py 120000 --json {file}", "traces"),
        ("audit-agreement", "audit_agreement.py bank dmv library --json {file}", "domains"),
        ("careful-reader", "careful_reader.py --json {file}",
         lambda f: sum(arm["runs"] for arm in f["arms"].values())),
        ("audit-scale", "audit_scale.py --json {file}", "sessions"),
        ("records-scale", "records_scale.py --json {file}", _smallest_store),
        ("records-cost", "records_cost.py --json {file}", "rounds"),
        ("records-crash", "records_crash.py --json {file}", "points"),
        ("crash-storm", "crash_storm.py --json {file}", lambda f: f["sqlite"]["crashes"]),
        ("duels", "duels.py --json {file}", "races"),
        ("tamper", "tamper.py --json {file}", "tamperings"),
        ("store-tamper", "store_tamper.py --json {file}", "manipulations"),
        ("step-cost", "step_cost.py --json {file}", "rounds"),
        ("langgraph-walk", "langgraph_walk.py --rounds 15 --json {file}", "steps*rounds"),
        ("token-cost", "token_cost.py --domain all --json {file}", _sum("domains", "tasks")),
        ("guard-cost", "guard_cost.py --sopbench --json {file}", "tasks"),
        ("prompt-growth", "prompt_growth.py --json {file}", _largest_prompt),
        ("local-model", "local_model.py --json {file}", lambda f: f["check"]["planned"]),
        ("discipline-check", "discipline_check.py --json {file}", _sum("subjects", "checks")),
        ("sopbench-reference", "sweep.py --json {file}", _sum("sweeps", "n")),
        ("official-wording", "official_wording.py --json {file}", "tasks"),
        ("study-claims", "study/__main__.py --write --json {file}", "claims"),
        ("sopbench-kills", "kill_sweep.py --ray --json {file}", "tasks*sweeps"),
        ("twelve-faults", "twelve_faults.py --json {file}", "asked"),
        ("mailbox-sweep", "mailbox_sweep.py --json {file}", "tasks*arms"),
        ("killed-study", "killed_study.py --json {file}", "kills*studies"),
        ("archive-order", "archive_order.py --json {file}", "tasks*archives"),
        ("planned-cost", "planned_cost.py --json {file}", _sum("cells", "tasks")),
        ("mcp-conformance", "mcp_conformance.py --json {file}", "scenarios"),
        ("real-servers", "real_servers.py --json {file}", "servers"),
        ("mcp-storm", "mcp_storm.py --json {file}", "requests"),
        ("mcp-gateway", "mcp_gateway.py --json {file}", "calls"),
        ("throughput", "throughput.py --json {file}", lambda f: f["audit"]["sessions"]),
        ("hooked-conversations", "hooked_conversations.py --json {file}", "conversations"),
        ("airline-gold", "airline_gold.py --json {file}", "actions"),
        ("airline-agreement", "airline_agreement.py --json {file}",
         lambda f: sum(f["cases"].values())),
        ("airline-recorded", "airline_recorded.py --json {file}", "runs"),
        ("chaos", "chaos.py --json {file}", "minutes"),
        ("day-in-an-hour", DAY, "minutes"),
        ("fuzz", "fuzz.py --json {file}", "inputs"),
        ("mutants", "mutants.py --json {file}", "mutants"),
    )
}  # fmt: skip
EXPLAINED: dict[str, str] = {
    "hooked-conversations": "Measured against a withdrawn bound of 1.15 times the unhooked agent. "
    "The bound is 1.33 now, ten per cent above the 1.21 measured here.",
    "langgraph-walk": "Measured against a withdrawn bound of 5 times for a durable step. A durable "
    "step was 3.9 times cheaper than LangGraph's; the bound is 3.5 now.",
    "local-model": "The check ran out of its 25 minutes after one pair of runs on two cores, and "
    "it needs 20 pairs. It therefore answers `too few`, and no paging is recommended.",
    "mcp-gateway": "Measured against withdrawn bounds of 1.5 ms over stdio and 2 ms over HTTP, on "
    "a transport that is gone. The bounds are 6 ms and 10 ms now.",
}
"""Why a kept file says `passed: false`."""


def run(name: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="sopilot-evidence-") as folder:
        return _run(name, EVIDENCE / f"{name}.json", Path(folder) / f"{name}.json")


def _run(name: str, file: Path, made: Path) -> bool:
    campaign = CAMPAIGNS[name]
    print(f"== {name}: python benchmarks/{campaign.command}", flush=True)
    started, commit_before = time.monotonic(), commit()
    digest = Sources().digest(campaign.script)
    script, *arguments = (part.format(file=made) for part in campaign.command.split())
    process = subprocess.Popen([sys.executable, str(ROOT / "benchmarks" / script), *arguments])
    try:
        code = process.wait()
    except KeyboardInterrupt:
        code = process.wait()  # it got the interrupt too, and writes what it has
    if made.exists():
        head = {
            "command": f"python benchmarks/evidence.py {name}",
            "commit": commit_before,
            "sources": digest,
            "passed": code == 0,
        }
        figures = json.loads(made.read_text(encoding="utf-8"))
        rest = {key: v for key, v in figures.items() if key not in (*head, "explanation")}
        keep(_explained(name, {**head, **rest}), file)
    print(f"== {name}: exit {code}, {time.monotonic() - started:.0f} s", flush=True)
    return code == 0


def _explained(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    if figures.get("passed") is False and name in EXPLAINED:
        return {**figures, "explanation": EXPLAINED[name]}
    return figures


def keep(figures: Figures, file: Path) -> bool:
    """Write them to the evidence of that name, unless the file there comes from a larger run."""
    campaign = CAMPAIGNS[file.stem]
    if file.exists():
        before = campaign.tried(json.loads(file.read_text("utf-8")))
        if before > campaign.tried(figures):
            print(f"not kept: {file.name} comes from {before:,}, this is less")
            return False
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return True


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def stale(name: str, sources: Sources) -> bool:
    """Whether it was never run, failed, or its sources have changed since."""
    file = EVIDENCE / f"{name}.json"
    if not file.exists():
        return True
    figures = json.loads(file.read_text(encoding="utf-8"))
    if figures.get("passed") is False:
        return True
    return bool(figures.get("sources") != sources.digest(CAMPAIGNS[name].script))


def documents() -> list[Path]:
    pages = (*ROOT.glob("docs/**/*.md"), *ROOT.glob("design/*.md"))
    return [ROOT / "README.md", *sorted(pages)]


def marked(text: str, stale_names: Collection[str]) -> str:
    """The text with ` (stale)` behind each citation of stale evidence, and behind no other."""

    def mark(citation: re.Match[str]) -> str:
        return citation[1] + (STALE if citation[2] in stale_names else "")

    return re.sub(rf"(`evidence/([\w-]+)\.json`)({re.escape(STALE)})?", mark, text)


def mark_documents(sources: Sources) -> None:
    """Mark stale citations, and write down why a kept file says that it failed."""
    names = {name for name in CAMPAIGNS if stale(name, sources)}
    for document in documents():
        text = document.read_text("utf-8")
        if (new := marked(text, names)) != text:
            document.write_text(new, "utf-8")
            print(f"marked: {document.relative_to(ROOT)}")
    for name in EXPLAINED:
        file = EVIDENCE / f"{name}.json"
        if file.exists():
            figures = json.loads(file.read_text("utf-8"))
            explained = _explained(name, figures)
            file.write_text(json.dumps(explained, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> None:
    only_list = sys.argv[1:] == ["--stale"]
    wanted = [] if only_list else sys.argv[1:]
    if not wanted:
        sources = Sources()
        wanted = [name for name in CAMPAIGNS if stale(name, sources)]
        print(f"{len(wanted)} of {len(CAMPAIGNS)} campaigns are stale: {', '.join(wanted)}")
    if only_list:
        mark_documents(sources)
        return
    unknown = [name for name in wanted if name not in CAMPAIGNS]
    if unknown:
        print(f"unknown campaign {unknown[0]}; known: {', '.join(CAMPAIGNS)}", file=sys.stderr)
        sys.exit(2)
    failed = [name for name in wanted if not run(name)]
    mark_documents(Sources())
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
