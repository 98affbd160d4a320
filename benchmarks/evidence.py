"""Run the long campaigns and keep their results, each with its commit and command.

    python benchmarks/evidence.py              # campaigns whose sources have changed since
    python benchmarks/evidence.py --documents  # only list those, and bring the documents up to date
    python benchmarks/evidence.py tamper crashes/duels

Results are small JSON files under evidence/; the parts of a campaign share a file. The figures that
documents quote are replaced, and citations of results with other sources are marked as stale. A
campaign that fails is recorded with `passed: false` and the sentence from ``EXPLAINED``, and this
command exits 1. A larger run is never replaced by a smaller run. Ctrl-C ends the running campaign;
figures that it wrote are kept.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import Figures, write
from depends import Sources
from document_figures import write_figures

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "evidence"
STALE = " (stale)"


@dataclass(frozen=True)
class Campaign:
    """``command`` is the script with its arguments; ``size`` says how much was tried: a field,
    fields to multiply, or a function of the figures."""

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


def _sample(figures: Figures) -> int:
    """The mutants of one draw; a record that was joined from several draws counts as one."""
    return 1 if "batches" in figures else int(figures["mutants"])


def _smallest_store(figures: Figures) -> int:
    return min(store["sessions"] for store in figures.values() if isinstance(store, dict))


CAMPAIGNS: dict[str, Campaign] = {
    name: Campaign(command, size)
    for name, command, size in (
        ("compile/speed", "compile_speed.py", lambda f: f["sopbench"]["programs"]),
        ("compile/proposition-1", "proposition_1.py", "random_cases"),
        ("frames", "frames.py", "programs"),
        ("safety", "safety.py", "sessions"),
        ("audit/labelled-traces", "labelled_traces.py", "traces"),
        ("audit/agreement", "audit_agreement.py", "domains"),
        ("scale/records", "scale.py records", _smallest_store),
        ("scale/audit", "scale.py audit", "sessions"),
        ("scale/throughput", "scale.py throughput", "group_commit"),
        ("crashes/sessions", "crashes.py sessions", lambda f: f["sqlite"]["crashes"]),
        ("crashes/chaos", "crashes.py chaos", "minutes"),
        ("crashes/records", "crashes.py records", "points"),
        ("crashes/duels", "crashes.py duels", "races"),
        ("tamper/traces", "tamper.py traces", "tamperings"),
        ("tamper/store", "tamper.py store", "manipulations"),
        ("steps/langgraph", "steps.py langgraph --rounds 15", "steps*rounds"),
        ("tokens/sopbench", "token_cost.py --domain all", _sum("domains", "tasks")),
        ("tokens/guard", "guard_cost.py --sopbench", "tasks"),
        ("tokens/growth", "prompt_growth.py", _largest_prompt),
        ("local-model", "local_model.py", lambda f: f["check"]["planned"]),
        ("qualification", "qualification.py", _sum("subjects", "checks")),
        ("sopbench/reference", "sweep.py reference", _sum("sweeps", "n")),
        ("sopbench/wording", "sweep.py wording", "tasks"),
        ("study/claims", "study/__main__.py --write", "claims"),
        ("study/planned-cost", "planned_cost.py", _sum("cells", "tasks")),
        ("sweeps/kills", "sweep_faults.py kills", "tasks*sweeps"),
        ("sweeps/study", "sweep_faults.py study", "kills*studies"),
        ("sweeps/mailbox", "sweep_faults.py mailbox", "tasks*arms"),
        ("mcp/conformance", "mcp_conformance.py", "scenarios"),
        ("mcp/servers", "real_servers.py", "servers"),
        ("mcp/storm", "mcp_storm.py", "requests"),
        ("mcp/gateway", "mcp_gateway.py", "calls"),
        ("hooks", "hooked_conversations.py", "conversations"),
        ("airline/gold", "airline_desk.py gold", "actions"),
        ("airline/agreement", "airline_desk.py agreement", lambda f: sum(f["cases"].values())),
        ("airline/recorded", "airline_desk.py recorded", "runs"),
        ("day-in-an-hour", "day_in_an_hour.py --picture docs/pictures/day-in-an-hour.png",
         "minutes"),
        ("fuzz", "fuzz.py", "inputs"),
        ("mutants", "mutants.py", _sample),
    )
}  # fmt: skip
"""The campaign, and after a slash its part: the parts of a campaign share a file."""


def _hooks_reason(figures: Figures) -> str:
    without = figures["unhooked_cpu_milliseconds_each"]
    views = figures["views"].items()
    times = ", ".join(f"{row['ratio']:.2f} ({view})" for view, row in views)
    more = ", ".join(
        f"{row['cpu_milliseconds_each'] - without:.2f} ({view})" for view, row in views
    )
    idle = figures["idle_middleware_cpu_milliseconds_each"] - without
    return (
        "The hooked agent may take 1.15 times as long as the unhooked agent, and took "
        f"{times}. It needs more CPU time per conversation, in ms: {more}; a middleware "
        f"that does nothing needs {idle:.2f}."
    )


def _langgraph_reason(figures: Figures) -> str:
    ratio = figures["ratios"]["durable to its SQLite, both as shipped"]["wall"]
    times = figures["microseconds"]
    commit_time, step = times["bare commit"]["wall"], times["FULL"]["wall"]
    return (
        "A durable step should be 5 times cheaper than LangGraph's, and was "
        f"{ratio:.1f} times cheaper. A bare commit of one row took {commit_time:.0f} of our "
        f"step's {step:.0f} µs on that disk."
    )


EXPLAINED: dict[str, Callable[[Figures], str]] = {
    "hooks": _hooks_reason,
    "steps/langgraph": _langgraph_reason,
    "local-model": lambda figures: (
        f"The check ended by {figures['check']['stopped_by']} with "
        f"{figures['check']['conditions']['enough']}. It therefore answers "
        f"`{figures['check']['answer']}`, and no paging is recommended."
    ),
}
"""Campaign → why its figures say `passed: false`, in their own numbers."""


def file_of(name: str) -> Path:
    return EVIDENCE / f"{name.partition('/')[0]}.json"


def figures_of(name: str) -> Any:
    """The figures on record of a campaign or of a part; empty where there are none."""
    file = file_of(name)
    if not file.exists():
        return {}
    figures = json.loads(file.read_text("utf-8"))
    part = name.partition("/")[2]
    return figures.get(part, {}) if part else figures


def keep(name: str, figures: Figures) -> bool:
    """Record the figures, unless those on record come from a larger run."""
    campaign = CAMPAIGNS[name]
    before = campaign.tried(figures_of(name))
    if before > campaign.tried(figures):
        print(f"not kept: {name} comes from {before:,}, this is less")
        return False
    if figures.get("passed") is False and name in EXPLAINED:
        figures = {**figures, "explanation": EXPLAINED[name](figures)}
    whole, _, part = name.partition("/")
    write({**figures_of(whole), part: figures} if part else figures, file_of(name))
    return True


def run(name: str) -> bool:
    campaign = CAMPAIGNS[name]
    print(f"== {name}: python benchmarks/{campaign.command}", flush=True)
    started, head = time.monotonic(), {"command": f"python benchmarks/evidence.py {name}"}
    head |= {"commit": commit(), "sources": Sources().digest(campaign.script)}
    script, *arguments = campaign.command.split()
    with tempfile.TemporaryDirectory(prefix="sopilot-evidence-") as folder:
        made = Path(folder, "figures.json")
        command = [sys.executable, str(ROOT / "benchmarks" / script), *arguments]
        process = subprocess.Popen([*command, "--json", str(made)])
        try:
            code = process.wait()
        except KeyboardInterrupt:
            code = process.wait()  # it got the interrupt too, and writes what it has
        if made.exists():
            figures = json.loads(made.read_text("utf-8"))
            rest = {key: value for key, value in figures.items() if key not in (*head, "passed")}
            head["campaign_seconds"] = round(time.monotonic() - started)
            keep(name, {**head, "passed": code == 0, **rest})
    print(f"== {name}: exit {code}, {time.monotonic() - started:.0f} s", flush=True)
    return code == 0


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def stale(name: str, sources: Sources) -> bool:
    """Whether a campaign, or a part of it, was never run, failed, or has other sources now."""
    parts = [each for each in CAMPAIGNS if each == name or each.startswith(f"{name}/")]
    return any(_part_is_stale(each, sources) for each in parts)


def _part_is_stale(name: str, sources: Sources) -> bool:
    figures = figures_of(name)
    if not figures or figures.get("passed") is False:
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


def update_documents() -> None:
    """Write the figures on record into the documents, and mark what is stale."""
    write_figures(figures_of)
    sources = Sources()
    names = {each.partition("/")[0] for each in CAMPAIGNS}
    old = {name for name in names if stale(name, sources)}
    for document in documents():
        text = document.read_text("utf-8")
        if (new := marked(text, old)) != text:
            document.write_text(new, "utf-8")
            print(f"marked: {document.relative_to(ROOT)}")


def list_stale() -> list[str]:
    sources = Sources()
    names = [name for name in CAMPAIGNS if stale(name, sources)]
    print(f"{len(names)} of {len(CAMPAIGNS)} campaigns are stale:")
    for name in names:
        figures = figures_of(name)
        seconds = figures.get("campaign_seconds") or figures.get("seconds")
        took = f"took {seconds:,.0f} s" if seconds else "duration not recorded"
        print(f"  python benchmarks/evidence.py {name:<24}{took}")
    return names


def main() -> None:
    arguments = sys.argv[1:]
    if arguments in ([], ["--documents"]):
        wanted = list_stale()
    else:
        wanted = [n for n in CAMPAIGNS if n in arguments or n.partition("/")[0] in arguments]
        known = {word for name in CAMPAIGNS for word in (name, name.partition("/")[0])}
        if unknown := [word for word in arguments if word not in known]:
            print(f"unknown campaign {unknown[0]}; known: {', '.join(CAMPAIGNS)}", file=sys.stderr)
            sys.exit(2)
    failed = [] if arguments == ["--documents"] else [name for name in wanted if not run(name)]
    update_documents()
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
