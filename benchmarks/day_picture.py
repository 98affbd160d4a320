"""The dashboard of deploy/ as a picture: every panel, what happened when, which alerts fired.

python benchmarks/day_picture.py STORY.json PICTURE.png
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from day_parts import HERE, SCRAPE_SECONDS, Prometheus

DASHBOARD = HERE.parent / "deploy" / "grafana" / "sopilot.json"
MOST_POINTS = 300
COLUMNS = 3
UNITS = {"short": ("", 1.0), "ops": ("a second", 1.0), "reqps": ("a second", 1.0),
         "bytes": ("MiB", 2.0**-20)}  # fmt: skip
"""Grafana's names for units: what people call them, and by how much values are multiplied."""
COLOURS = {"deploy": "tab:blue", "kill": "tab:red", "PostgreSQL down": "black",
           "shop down": "tab:purple", "back-up": "tab:green"}  # fmt: skip


def read_story(
    prometheus: Prometheus, marks: Sequence[tuple[float, str, str]], begun: float, hour: float
) -> dict[str, Any]:
    """Prometheus's answers to every query of every panel, and the alerts that fired."""
    ended = time.time()
    step = max(SCRAPE_SECONDS, (ended - begun) / MOST_POINTS)
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    panels = []
    for panel in dashboard["panels"]:
        series = []
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", f"{4 * SCRAPE_SECONDS}s")
            for row in prometheus.ask(expression, begun, ended, step):
                legend = re.sub(
                    r"{{\s*(\w+)\s*}}",
                    lambda match, labels=row["metric"]: labels.get(match[1], ""),
                    target["legendFormat"],
                )
                values = [(float(at), float(value)) for at, value in row["values"]]
                series.append({"legend": legend, "values": values})
        unit = panel["fieldConfig"]["defaults"].get("unit", "")
        panels.append({"title": panel["title"], "unit": unit, "series": series})
    firing: dict[str, list[float]] = {}
    for alert in prometheus.ask('ALERTS{alertstate="firing"}', begun, ended, step):
        name = alert["metric"]["alertname"]
        firing.setdefault(name, []).extend(float(at) for at, _ in alert["values"])
    return {
        "begun": begun,
        "hour": hour,
        "step": step,
        "panels": panels,
        "alerts": [{"alert": name, "firing": times} for name, times in sorted(firing.items())],
        "marks": [list(mark) for mark in marks],
    }


def draw(story: Mapping[str, Any], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from PIL import Image

    rows = -(-len(story["panels"]) // COLUMNS)
    figure = pyplot.figure(figsize=(17, 2.5 * rows + 2.6), layout="constrained")
    grid = figure.add_gridspec(rows + 1, COLUMNS)
    ends = [series["values"][-1][0] for panel in story["panels"] for series in panel["series"]]
    last = _hour(story, max(ends, default=story["begun"] + 24 * story["hour"]))
    for number, panel in enumerate(story["panels"]):
        axes = figure.add_subplot(grid[number // COLUMNS, number % COLUMNS])
        _panel(axes, story, panel)
        _common(axes, story, last)
    axes = figure.add_subplot(grid[rows, :])
    _alerts(axes, story)
    _common(axes, story, last)
    figure.suptitle(f"A day, by its hours; an hour of it took {story['hour']:g} s", fontsize=12)
    figure.savefig(file, dpi=80)
    pyplot.close(figure)
    with Image.open(file) as drawn:
        few = drawn.convert("RGB").quantize(128)  # it is kept with the documents
    few.save(file, optimize=True)


def _hour(story: Mapping[str, Any], moment: float) -> float:
    return float((moment - story["begun"]) / story["hour"])


def _common(axes: Any, story: Mapping[str, Any], last: float) -> None:
    """The hours, and a line for all that happened."""
    for moment, what, _ in story["marks"]:
        if what in COLOURS:
            at = _hour(story, moment)
            axes.axvline(at, color=COLOURS[what], linewidth=0.8, alpha=0.45, zorder=0)
    axes.set_xlim(0, last)
    axes.set_xticks(range(0, int(last) + 1, 3))
    axes.tick_params(labelsize=8)


def _panel(axes: Any, story: Mapping[str, Any], panel: Mapping[str, Any]) -> None:
    unit, times = UNITS.get(panel["unit"], (panel["unit"], 1.0))
    for series in panel["series"]:
        moments, values = _with_gaps(series["values"], story["step"])
        hours = [_hour(story, moment) for moment in moments]
        axes.plot(hours, [value * times for value in values], label=series["legend"], linewidth=1)
    axes.set_title(panel["title"] + f" [{unit}]" * bool(unit), fontsize=10, loc="left")
    axes.set_ylim(0, axes.get_ylim()[1] * 1.3)  # room for the legend
    if panel["series"]:
        axes.legend(fontsize=7, loc="upper left", ncols=2, framealpha=0.7)
    else:
        axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center")


def _with_gaps(values: Sequence[Sequence[float]], step: float) -> tuple[list[float], list[float]]:
    """Interrupt the line where there was no sample."""
    moments: list[float] = []
    known: list[float] = []
    for moment, value in values:
        if moments and moment - moments[-1] > 1.5 * step:
            moments.append(moments[-1] + step)
            known.append(math.nan)
        moments.append(moment)
        known.append(value)
    return moments, known


def _alerts(axes: Any, story: Mapping[str, Any]) -> None:
    """A line an alert, over a line of what happened."""
    wide = story["step"] / story["hour"]
    for row, alert in enumerate(story["alerts"], 1):
        bars = [(_hour(story, moment) - wide, wide) for moment in alert["firing"]]
        axes.broken_barh(bars, (row - 0.35, 0.7), color="tab:orange")
    seen: set[str] = set()
    for moment, what, _ in story["marks"]:
        if what in COLOURS:
            label = None if what in seen else what
            seen.add(what)
            axes.plot(_hour(story, moment), 0, "v", color=COLOURS[what], label=label)
    names = ["what happened", *(alert["alert"] for alert in story["alerts"])]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) + 0.4)
    axes.set_title("Alerts that fired", fontsize=10, loc="left")
    if seen:
        axes.legend(fontsize=8, loc="upper right", ncols=len(seen))


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2]))
