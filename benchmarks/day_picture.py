"""The dashboard of deploy/ as a picture: every panel, what happened when, which alerts fired.

python benchmarks/day_picture.py STORY.json PICTURE.png
"""

from __future__ import annotations

import json
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
COLOURS = {"deploy": "tab:blue", "kill": "tab:red", "PostgreSQL down": "black",
           "shop down": "tab:purple", "back-up": "tab:green"}  # fmt: skip


def told(
    prometheus: Prometheus, marks: Sequence[tuple[float, str, str]], begun: float, hour: float
) -> dict[str, Any]:
    """What Prometheus answers to every query of every panel, and which alerts fired."""
    ended = time.time()
    step = max(SCRAPE_SECONDS, (ended - begun) / MOST_POINTS)
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    panels = []
    for panel in dashboard["panels"]:
        series = []
        for target in panel["targets"]:
            asked = target["expr"].replace("$__rate_interval", f"{4 * SCRAPE_SECONDS}s")
            for one in prometheus.ask(asked, begun, ended, step):
                legend = re.sub(
                    r"{{\s*(\w+)\s*}}",
                    lambda found, labels=one["metric"]: labels.get(found[1], ""),
                    target["legendFormat"],
                )
                values = [(float(at), float(value)) for at, value in one["values"]]
                series.append({"legend": legend, "values": values})
        unit = panel["fieldConfig"]["defaults"].get("unit", "")
        panels.append({"title": panel["title"], "unit": unit, "series": series})
    firing: dict[str, list[float]] = {}
    for one in prometheus.ask('ALERTS{alertstate="firing"}', begun, ended, step):
        name = one["metric"]["alertname"]
        firing.setdefault(name, []).extend(float(at) for at, _ in one["values"])
    return {
        "begun": begun,
        "hour": hour,
        "step": step,
        "panels": panels,
        "alerts": [{"alert": name, "firing": times} for name, times in sorted(firing.items())],
        "marks": [list(one) for one in marks],
    }


def draw(story: Mapping[str, Any], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    begun, hour = story["begun"], story["hour"]

    def at(moment: float) -> float:
        return (moment - begun) / 60

    rows = -(-len(story["panels"]) // COLUMNS)
    figure = pyplot.figure(figsize=(17, 2.6 * rows + 2.2), layout="constrained")
    grid = figure.add_gridspec(rows + 1, COLUMNS)
    last = at(max((v[-1][0] for p in story["panels"] for s in p["series"] if (v := s["values"])),
                  default=begun + 60))  # fmt: skip
    for number, panel in enumerate(story["panels"]):
        axes = figure.add_subplot(grid[number // COLUMNS, number % COLUMNS])
        for one in panel["series"]:
            moments, values = zip(*one["values"], strict=True)
            axes.plot([*map(at, moments)], values, label=one["legend"], linewidth=1)
        _marked(axes, story, at)
        axes.set_title(f"{panel['title']} [{panel['unit']}]", fontsize=9, loc="left")
        axes.set_xlim(0, last)
        axes.set_ylim(bottom=0)
        axes.tick_params(labelsize=7)
        if panel["series"]:
            axes.legend(fontsize=6, loc="upper left", ncols=2, framealpha=0.6)
        else:
            axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center")
    _alerts(figure.add_subplot(grid[rows, :]), story, at, last)
    title = f"sopilot: a day of which an hour takes {hour:g} s; below, the minutes of its run"
    figure.suptitle(title, fontsize=11)
    figure.savefig(file, dpi=75, pil_kwargs={"optimize": True})
    pyplot.close(figure)


def _marked(axes: Any, story: Mapping[str, Any], at: Any) -> None:
    for moment, what, _ in story["marks"]:
        if what in COLOURS:
            axes.axvline(at(moment), color=COLOURS[what], linewidth=0.7, alpha=0.5)


def _alerts(axes: Any, story: Mapping[str, Any], at: Any, last: float) -> None:
    """A line an alert, over a line of what happened."""
    for row, one in enumerate(story["alerts"], 1):
        axes.broken_barh(
            [(at(moment) - story["step"] / 60, story["step"] / 60) for moment in one["firing"]],
            (row - 0.4, 0.8), color="tab:orange",
        )  # fmt: skip
    seen = set()
    for moment, what, _ in story["marks"]:
        if what in COLOURS:
            label = None if what in seen else what
            seen.add(what)
            axes.plot(at(moment), 0, "v", color=COLOURS[what], label=label)
    _marked(axes, story, at)
    names = ["what happened", *(one["alert"] for one in story["alerts"])]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xlim(0, last)
    axes.set_ylim(-0.6, len(story["alerts"]) + 0.6)
    axes.set_title("Alerts that fired", fontsize=9, loc="left")
    axes.legend(fontsize=7, loc="upper right", ncols=5)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2]))
