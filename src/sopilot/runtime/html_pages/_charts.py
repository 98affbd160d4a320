"""Rows on a shared scale: values with their intervals, bars, bars to either side.

A row's label stands above it, so that a long one fits a narrow screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sopilot.runtime.html_pages._drawing import PALETTE, Drawing

_WIDTH, _LINE = 360, 15
_STRONG, _PLAIN = PALETTE[0], PALETTE[8]


@dataclass(frozen=True, slots=True)
class Mark:
    label: str
    value: float | None
    interval: Sequence[float] | None
    text: str
    strong: bool = False


def dot_plot(
    title: str, marks: Sequence[Mark], *, least: float, most: float, zero: float | None = None
) -> Drawing:
    """Dots with whiskers; the tick at ``zero`` is a line to compare with."""
    drawing = Drawing(title, _WIDTH)
    row = 2 * _LINE + 4
    scale = (_WIDTH - 24) / (most - least) if most > least else 1.0
    ticks = [least + (most - least) * step / 4 for step in range(5)]

    def x(value: float) -> float:
        return 12 + (min(max(value, least), most) - least) * scale

    for number, mark in enumerate(marks):
        top = row * number
        y = top + 1.5 * _LINE
        colour = _STRONG if mark.strong else _PLAIN
        drawing.text(0, top + 11, mark.label)
        drawing.text(_WIDTH, top + 11, mark.text, anchor="end", soft=True)
        for at in ticks:
            drawing.upright(x(at), top + _LINE, y + _LINE / 2, 0.6 if at == zero else 0.15)
        if mark.interval is not None:
            low, high = mark.interval
            drawing.bar(x(low), y - 1.5, x(high) - x(low), 3, colour)
        if mark.value is not None:
            drawing.add("circle", cx=x(mark.value), cy=y, r=4.5, fill=colour)
    for at in ticks:
        foot = row * len(marks) + 12
        drawing.text(x(at), foot, f"{at:g}", anchor="middle", size=10, soft=True)
    drawing.height = row * len(marks) + 16
    return drawing


def grouped_bars(
    title: str,
    groups: Mapping[str, Mapping[str, float]],
    *,
    highest: float = 100.0,
    unit: str = "%",
) -> Drawing:
    """Group → bar → value; one colour a bar name."""
    drawing = Drawing(title, _WIDTH)
    names = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    colours = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(names)}
    y = 0.0
    for group, bars in groups.items():
        drawing.text(0, y + 11, group)
        y += _LINE
        for name, value in bars.items():
            length = max(0.0, value) / highest * (_WIDTH - 36) if highest else 0.0
            drawing.bar(0, y, length, 11, colours[name], f"{group}, {name}: {value:.1f} {unit}")
            drawing.text(length + 5, y + 9.5, f"{value:.1f}", size=10)
            y += _LINE - 2
        y += 5
    drawing.legend(y + 4, colours)
    return drawing


def diverging_bars(
    title: str, rows: Sequence[tuple[str, int, int]], left: str, right: str
) -> Drawing:
    """Losses to the left, wins to the right of a line."""
    drawing = Drawing(title, _WIDTH)
    lost, won = PALETTE[3], PALETTE[2]
    most = max([1, *(max(wins, losses) for _, wins, losses in rows)])
    middle = _WIDTH / 2
    scale = (middle - 30) / most
    y = 0.0
    for label, wins, losses in rows:
        drawing.text(0, y + 11, label)
        y += _LINE
        drawing.bar(middle - losses * scale, y, losses * scale, 11, lost)
        drawing.bar(middle, y, wins * scale, 11, won)
        drawing.text(middle - losses * scale - 5, y + 9.5, str(losses), anchor="end", size=10)
        drawing.text(middle + wins * scale + 5, y + 9.5, str(wins), size=10)
        drawing.upright(middle, y - 2, y + 13)
        y += _LINE + 2
    drawing.legend(y + 4, {left: lost, right: won})
    return drawing


def side_by_side(title: str, panels: Sequence[Drawing]) -> Drawing:
    """Pictures as one, each under its own title."""
    drawing = Drawing(title, 0.0)
    for panel in panels:
        left = drawing.width + (_GAP if drawing.width else 0.0)
        drawing.text(left, 13, panel.title, size=12)
        drawing.shapes += [
            shape._replace(attributes=_moved(shape.attributes, left, _HEAD))
            for shape in panel.shapes
        ]
        drawing.width = left + panel.width
        drawing.height = max(drawing.height, panel.height + _HEAD)
    return drawing


_GAP, _HEAD = 40.0, 26.0
_ACROSS, _DOWN = frozenset({"x", "x1", "x2", "cx"}), frozenset({"y", "y1", "y2", "cy"})


def _moved(attributes: Mapping[str, str], right: float, down: float) -> dict[str, str]:
    by = dict.fromkeys(_ACROSS, right) | dict.fromkeys(_DOWN, down)
    return {
        name: f"{float(value) + by[name]:.6g}" if name in by else value
        for name, value in attributes.items()
    }
