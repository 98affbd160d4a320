"""What is kept as evidence: a smaller run never replaces a larger one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence"
Figures = Mapping[str, Any]

SIZES: dict[str, Callable[[Figures], int]] = {
    "proposition-1": lambda found: found["random_cases"],
    "compile-speed": lambda found: found["sopbench"]["programs"],
    "safety": lambda found: found["sessions"],
    "labelled-traces": lambda found: found["traces"],
    "audit-agreement": lambda found: len(found["domains"]),
    "crash-storm": lambda found: found["sqlite"]["crashes"],
    "tamper": lambda found: found["tamperings"],
    "discipline-check": lambda found: sum(one["checks"] for one in found["subjects"]),
    "workers-storm": lambda found: found["sessions"] * found["seconds"],
    "hooked-conversations": lambda found: found["conversations"],
    "throughput": lambda found: found["audit"]["sessions"],
    "audit-scale": lambda found: found["sessions"],
    "duels": lambda found: found["races"],
    "langgraph-walk": lambda found: found["steps"] * found["rounds"],
    "careful-reader": lambda found: sum(arm["runs"] for arm in found["arms"].values()),
    "token-cost": lambda found: sum(one["tasks"] for one in found["domains"]),
    "local-model": lambda found: found["check"]["planned"],
    "prompt-growth": lambda found: max(map(int, found["largest_request_by_turns"]["pg"])),
    "step-cost": lambda found: found["rounds"],
    "sopbench-reference": lambda found: sum(one["n"] for one in found["sweeps"]),
    "official-wording": lambda found: found["tasks"],
    "study-claims": lambda found: found["claims"],
    "sopbench-kills": lambda found: found["tasks"] * len(found["sweeps"]),
    "killed-study": lambda found: found["kills"] * len(found["studies"]),
    "archive-order": lambda found: found["tasks"] * len(found["archives"]),
    "planned-cost": lambda found: sum(one["tasks"] for one in found["cells"]),
    "mailbox-sweep": lambda found: found["tasks"] * len(found["arms"]),
    "twelve-faults": lambda found: found["asked"],
    "mcp-storm": lambda found: found["requests"],
    "mcp-gateway": lambda found: found["calls"],
    "chaos": lambda found: int(found["minutes"]),
    "day-in-an-hour": lambda found: int(found["minutes"]),
    "fuzz": lambda found: found["inputs"],
    "mutants": lambda found: found["mutants"],
    "mcp-conformance": lambda found: found["scenarios"],
    "airline-agreement": lambda found: sum(found["cases"].values()),
    "airline-gold": lambda found: found["actions"],
    "airline-recorded": lambda found: found["runs"],
    "frames": lambda found: found["programs"],
    "records-cost": lambda found: found.get("rounds", 1),
    "records-crash": lambda found: found["points"],
    "records-scale": lambda found: min(
        one["sessions"] for one in found.values() if isinstance(one, dict)
    ),
    "store-tamper": lambda found: found["manipulations"],
}
"""How much was tried, by campaign."""


def keep(figures: Figures, file: Path) -> bool:
    """Write them to the evidence of that name; not if what is there comes from more."""
    if file.exists():
        kept = _size(file.stem, json.loads(file.read_text("utf-8")))
        here = _size(file.stem, figures)
        if kept > here:
            print(f"not kept: {file.name} comes from {kept:,}, this is {here:,}")
            return False
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return True


def _size(name: str, figures: Figures) -> int:
    """A file of another shape, from before, counts nothing."""
    try:
        return int(SIZES[name](figures))
    except (KeyError, TypeError):
        return 0
