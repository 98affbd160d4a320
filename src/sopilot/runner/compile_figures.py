"""Figures of a compile."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from sopilot.files.text import write_whole
from sopilot.runner.sources import Unit
from sopilot.views.frame import render_function

PAPER = {
    "programs": "830",
    "goals": "70",
    "rules": "165",
    "functions (median / max)": "7 / 21",
    "characters (median)": "7,970",
    "characters (min–max)": "1,500–26,604",
    "mean Bank frame": "about 570",
    "missing recipes": "0",
}
"""The study's figures of the same compile."""


def summarise(units: list[Unit], artifacts: list[str], seconds: float) -> dict[str, Any]:
    """The compile's figures. Every unit that got here passed the verifier."""
    functions = [len(unit.program.functions) for unit in units]
    lengths = [len(text) for text in artifacts]
    missing = {f"{unit.group}/{name}" for unit in units for name in unit.compiled.missing_recipes}
    frames: dict[str, list[int]] = {}
    rules: set[tuple[str, str]] = set()
    for unit in units:
        for function in unit.program.functions.values():
            frames.setdefault(unit.group, []).append(len(render_function(function, unit.program)))
            if function.predicate is not None:
                rules.add((unit.group, function.predicate))
    return {
        "programs": len(units),
        "goals": len({(unit.group, unit.procedure.name) for unit in units}),
        "rules": len(rules),
        "functions": {"median": _median(functions), "max": max(functions, default=0)},
        "chars": {
            "median": _median(lengths),
            "min": min(lengths, default=0),
            "max": max(lengths, default=0),
        },
        "frame_chars": {
            group: {"mean": round(statistics.fmean(sizes)), "max": max(sizes)}
            for group, sizes in frames.items()
        },
        "missing_recipes": len(missing),
        "missing": sorted(missing),
        "accepted": len(units),
        "seconds": round(seconds, 3),
    }


def _median(values: list[int]) -> float:
    return float(statistics.median(values)) if values else 0.0


def figure_rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    functions, chars = summary["functions"], summary["chars"]
    rows = [
        ("programs", f"{summary['programs']:,}"),
        ("goals", f"{summary['goals']:,}"),
        ("rules", f"{summary['rules']:,}"),
        ("functions (median / max)", f"{functions['median']:g} / {functions['max']}"),
        ("characters (median)", f"{chars['median']:,.0f}"),
        ("characters (min–max)", f"{chars['min']:,}–{chars['max']:,}"),
        ("missing recipes", f"{summary['missing_recipes']}"),
        ("seconds", f"{summary['seconds']:.3f}"),
    ]
    rows += [
        (f"mean {group.replace('_', ' ').title()} frame", f"{sizes['mean']:,}")
        for group, sizes in summary["frame_chars"].items()
    ]
    return rows


def write_programs(folder: Path, units: list[Unit], artifacts: list[str]) -> list[str]:
    """Write a file per program: ``bank-get_loan-3.yaml`` for a SOPBench task, else the name of the
    procedure."""
    names = []
    for unit, text in zip(units, artifacts, strict=True):
        name = unit.procedure.name
        if unit.label.startswith("sopbench:"):
            name = unit.label.removeprefix("sopbench:").replace("/", "-").replace("#", "-")
        names.append(f"{name}.yaml")
        write_whole(folder / names[-1], text)
    return names
