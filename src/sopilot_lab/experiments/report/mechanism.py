"""The study's figure of three panels: the probe, ΔR2, attention by parity.

The first and the last come from elsewhere: `sopilot qualify --json` asks a model where it stands,
`sopilot lab lens --json` reads the attention of one with open weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sopilot.files.text import whole_text
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot.web.pages import Drawing, Mark, dot_plot, stacked
from sopilot_lab.experiments.report.formats import Table
from sopilot_lab.statistics.intervals import Interval

DeltaR2 = Sequence[tuple[str, float, Interval | None]]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """``probes``: model → score and its interval. ``parities``: model, region and presentation →
    attention over length share, on the run's own dialog or presented cleanly."""

    probes: Mapping[str, tuple[float, Interval | None]] = field(default_factory=dict)
    parities: Sequence[tuple[str, float]] = ()


def read_mechanism(paths: Sequence[Path]) -> Mechanism:
    """Read the output of `sopilot qualify --json` and `sopilot lab lens --json`, in any order."""
    probes: dict[str, tuple[float, Interval | None]] = {}
    parities: list[tuple[str, float]] = []
    for path in paths:
        row = _read(path)
        model = str(row.get("model", path.stem))
        probe = row.get("probe")
        if isinstance(probe, Mapping) and probe.get("score") is not None:
            within = probe.get("score_interval")
            probes[model] = (
                float(probe["score"]),
                Interval(*map(float, within)) if within else None,
            )
        regions = [
            (f"{model}, {each['region']}, {each['presentation']}", float(each["parity"]))
            for each in row.get("regions") or ()
            if each.get("region") in ("frame", "program")
        ]
        parities += regions
        if model not in probes and not regions:
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
    for panel in _panels(mechanism, deltas):
        for who, value, within in panel.marks:
            known = f"{within.low:.2f} to {within.high:.2f}" if within else panel.no_interval
            table.add(panel.name, who, format(value, panel.form), known)
        if not panel.marks:
            table.add_lacking(panel.why_empty, panel.name)
    return table


def mechanism_figure(mechanism: Mechanism, deltas: DeltaR2) -> Drawing:
    """The panels that were measured; the table says why others weren't."""
    drawings = []
    for panel in _panels(mechanism, deltas):
        marks = [
            Mark(
                who,
                value,
                (within.low, within.high) if within else None,
                format(value, panel.form).replace("-", "−"),
            )
            for who, value, within in panel.marks
        ]
        least, most, zero = panel.range
        if marks:
            drawings.append(
                dot_plot(panel.title, marks, least=least, most=most, zero=zero, axis=panel.axis)
            )
    return stacked("Mechanism", drawings)


@dataclass(frozen=True, slots=True)
class _Panel:
    """``range`` is least, most and zero of the axis; ``form`` the format of a value."""

    name: str
    marks: DeltaR2
    why_empty: str
    title: str
    range: tuple[float, float, float]
    axis: str
    form: str = ".2f"
    no_interval: str = "–"


def _panels(mechanism: Mechanism, deltas: DeltaR2) -> Iterator[_Panel]:
    yield _Panel(
        "probe",
        [(model, *score) for model, score in mechanism.probes.items()],
        "no probe: give `sopilot qualify --json` of a model with --mechanism",
        "(a) Probe",
        (0.0, 1.0, 1.0),
        "score when asked, 95 % by cases",
    )
    yield _Panel(
        "ΔR2",
        deltas,
        "no series has runs of pg-paper and flat in which the goal succeeded",
        "(b) Calls after the goal",
        (-0.5, 0.5, 0.0),
        "ΔR2, runtime − flat, 95 % by goals",
        form="+.2f",
    )
    yield _Panel(
        "parity",
        [(*parity, None) for parity in mechanism.parities],
        "no attention: give `sopilot lab lens --json` of an open-weight model with --mechanism",
        "(c) Attention",
        (0.0, 1.5, 1.0),
        "attention over length share; 1 is parity",
        no_interval="",
    )  # fmt: skip


def _read(path: Path) -> dict[str, Any]:
    try:
        row = json.loads(whole_text(path))
    except (OSError, ValueError) as error:
        raise _mistake(path, f"it cannot be read as JSON: {error}") from None
    if not isinstance(row, dict):
        raise _mistake(path, "it contains no JSON object")
    return row


def _mistake(path: Path, message: str) -> UserMistake:
    cure = "give what `sopilot qualify --json` or `sopilot lab lens --json` prints"
    return mistake("mechanism", message, Place(str(path)), cure)
