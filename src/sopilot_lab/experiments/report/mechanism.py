"""The study's figure of three panels: the probe, ΔR2, attention by parity.

The first and the last come from elsewhere: `sopilot qualify --json` asks a model where it stands,
`sopilot lab lens --json` reads the attention of one with open weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sopilot.files.text import whole_text
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot.web.pages import Drawing, Mark, dot_plot, stacked
from sopilot_lab.experiments.report.formats import Table, figure

Bounds = tuple[float, float] | None
DeltaR2 = Sequence[tuple[str, float, Bounds]]


@dataclass(frozen=True, slots=True)
class Parity:
    """Attention over length share of a region, on the run's own dialog or presented cleanly."""

    model: str
    region: str
    presentation: str
    value: float


@dataclass(frozen=True, slots=True)
class Mechanism:
    """``probes``: model → score and its interval."""

    probes: Mapping[str, tuple[float, Bounds]] = field(default_factory=dict)
    parities: Sequence[Parity] = ()


def read_mechanism(paths: Sequence[Path]) -> Mechanism:
    """Read the output of `sopilot qualify --json` and `sopilot lab lens --json`, in any order."""
    probes: dict[str, tuple[float, Bounds]] = {}
    parities: list[Parity] = []
    for path in paths:
        row = _read(path)
        model = str(row.get("model", path.stem))
        probe = row.get("probe")
        if isinstance(probe, Mapping) and probe.get("score") is not None:
            probes[model] = (float(probe["score"]), _bounds(probe.get("score_interval")))
        parities += [
            Parity(model, str(each["region"]), str(each["presentation"]), float(each["parity"]))
            for each in row.get("regions") or ()
            if each.get("region") in ("frame", "program")
        ]
        if model not in probes and not any(each.model == model for each in parities):
            raise _mistake(path, "neither a probe nor attention by region is in it")
    return Mechanism(probes, parities)


def mechanism_table(mechanism: Mechanism, deltas: DeltaR2) -> Table:
    table = Table(
        "mechanism",
        "Mechanism: probe, calls after the goal, attention",
        ["panel", "who", "value", "95 %"],
        method="probe: share of the position, results and callers that the model tells right when "
        "asked, cases resampled; ΔR2: calls after the goal, runtime minus flat, goals "
        "resampled; parity: attention by length share of the region, 1 is parity",
    )
    table.rows += [
        ["probe", model, figure(score, 2), _interval(bounds)]
        for model, (score, bounds) in mechanism.probes.items()
    ]
    if not mechanism.probes:
        why = "no probe: give `sopilot qualify --json` of a model with --mechanism"
        table.rows.append(["probe", *[table.lacks(why)] * 3])
    table.rows += [
        ["ΔR2", who, f"{delta:+.2f}", _interval(bounds)] for who, delta, bounds in deltas
    ]
    if not deltas:
        why = "no series has runs of pg-paper and flat in which the goal succeeded"
        table.rows.append(["ΔR2", *[table.lacks(why)] * 3])
    table.rows += [
        ["parity", f"{each.model}, {each.region}, {each.presentation}", figure(each.value, 2), ""]
        for each in mechanism.parities
    ]
    if not mechanism.parities:
        why = (
            "no attention: give `sopilot lab lens --json` of an open-weight model with --mechanism"
        )
        table.rows.append(["parity", *[table.lacks(why)] * 3])
    return table


def mechanism_figure(mechanism: Mechanism, deltas: DeltaR2) -> Drawing:
    """The panels that were measured; the table says why others weren't."""
    probes = [
        Mark(model, score, bounds, figure(score, 2))
        for model, (score, bounds) in mechanism.probes.items()
    ]
    after = [
        Mark(who, delta, bounds, f"{delta:+.2f}".replace("-", "−")) for who, delta, bounds in deltas
    ]
    looked = [
        Mark(f"{each.model}, {each.region}, {each.presentation}", each.value, None,
             figure(each.value, 2))
        for each in mechanism.parities
    ]  # fmt: skip
    panels = [
        ("(a) Probe", probes, (0.0, 1.0, 1.0), "score when asked, 95 % by cases"),
        ("(b) Calls after the goal", after, (-0.5, 0.5, 0.0), "ΔR2, runtime − flat, 95 % by goals"),
        ("(c) Attention", looked, (0.0, 1.5, 1.0), "attention over length share; 1 is parity"),
    ]
    return stacked(
        "Mechanism",
        [
            dot_plot(title, marks, least=least, most=most, zero=zero, axis=axis)
            for title, marks, (least, most, zero), axis in panels
            if marks
        ],
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        row = json.loads(whole_text(path))
    except (OSError, ValueError) as error:
        raise _mistake(path, f"it cannot be read as JSON: {error}") from None
    if not isinstance(row, dict):
        raise _mistake(path, "it holds no JSON object")
    return row


def _bounds(value: Any) -> Bounds:
    return (float(value[0]), float(value[1])) if value else None


def _interval(bounds: Bounds) -> str:
    return f"{bounds[0]:.2f} to {bounds[1]:.2f}" if bounds else "–"


def _mistake(path: Path, message: str) -> UserMistake:
    cure = "give what `sopilot qualify --json` or `sopilot lab lens --json` prints"
    return mistake("mechanism", message, Place(str(path)), cure)
