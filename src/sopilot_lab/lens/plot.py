"""The parity of the active frame per layer and head, and of every region, as one SVG. Pure."""

from __future__ import annotations

import math

from sopilot.web.pages import Drawing, draw_axis, even_ticks
from sopilot_lab.lens.report import Summary

_WIDTH, _LEFT, _TOP, _BAR, _LABEL = 360, 30, 50, 17, 150
_MOST_CELL = 16.0
_LEAST_RANGE = 2.0


def plot(summary: Summary) -> Drawing:
    """The grid above, the regions below it, as wide as a column in print."""
    layers = summary.grid
    furthest = _furthest([value for row in layers for value in row])
    heads = max((len(row) for row in layers), default=1)
    cell = min(_MOST_CELL, (_WIDTH - _LEFT) / heads)
    drawing = Drawing(f"Attention over length share, {summary.model}", _WIDTH)
    drawing.text(0, 14, drawing.title, size=12, bold=True)
    drawing.text(0, 34, f"(a) {summary.focus} by layer (down) and head (across)")
    for row, values in enumerate(layers):
        y = _TOP + row * cell
        if row % 5 == 0:
            drawing.text(_LEFT - 5, y + cell / 2 + 4, str(row), anchor="end", size=10)
        for column, value in enumerate(values):
            hint = f"layer {row}, head {column}: {value:.2f}"
            colour = _colour(value, furthest)
            drawing.bar(_LEFT + column * cell, y, cell * 0.94, cell * 0.94, colour, hint)
    foot = _TOP + len(layers) * cell
    for column in range(0, heads, 5):
        middle = _LEFT + (column + 0.5) * cell
        drawing.text(middle, foot + 11, str(column), anchor="middle", size=10)
    scale = (
        f"blue: down to 1/{furthest:.0f} of parity; white: parity; orange: up to {furthest:.0f}×"
    )
    drawing.text(0, foot + 27, scale, size=10)
    _regions(drawing, summary, foot + 48)
    return drawing


def _regions(drawing: Drawing, summary: Summary, top: float) -> None:
    ticks = even_ticks(0.0, max([_LEAST_RANGE, *(line.parity for line in summary.lines)]))
    scale = (_WIDTH - _LABEL - 40) / ticks[-1]
    drawing.text(0, top, "(b) every region; the line is parity")
    bottom = top + 10 + len(summary.lines) * _BAR
    for index, line in enumerate(summary.lines):
        y = top + 10 + index * _BAR
        long = line.parity * scale
        name = f"{line.region} ({line.presentation})"
        drawing.text(_LABEL - 5, y + 10, name, anchor="end", size=10)
        fill = "currentColor" if line.region is summary.focus else "#8c8c8c"
        drawing.bar(_LABEL, y + 1, long, _BAR - 6, fill)
        drawing.text(_WIDTH, y + 10, f"{line.parity:.2f}", anchor="end", size=10)
    drawing.upright(_LABEL + scale, top + 8, bottom, 0.7)
    draw_axis(drawing, bottom, ticks, lambda value: _LABEL + value * scale, "attention over length")


def _furthest(parities: list[float]) -> float:
    """The largest ratio to parity on either side that is drawn."""
    ratios = [max(value, 1 / value) for value in parities if value > 0]
    return min(64.0, max([_LEAST_RANGE, *ratios]))


def _colour(parity: float, furthest: float) -> str:
    """By the logarithm, so that half and double are as far from white."""
    far = max(-1.0, min(1.0, math.log(max(parity, 1e-3)) / math.log(furthest)))
    ends = (194, 87, 26) if far > 0 else (38, 96, 164)
    mixed = [round(255 + (end - 255) * abs(far)) for end in ends]
    return "#" + "".join(f"{part:02x}" for part in mixed)
