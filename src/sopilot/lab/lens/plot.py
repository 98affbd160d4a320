"""The parity of the active frame per layer and head, and of every region, as one SVG. Pure."""

from __future__ import annotations

import math

from sopilot.lab.lens._report import Summary
from sopilot.runtime.html_pages import Drawing

_CELL, _LEFT, _TOP, _BAR = 16, 60, 64, 22
_LABEL, _SCALE = 190, 220
_LEAST_RANGE = 2.0


def plot(summary: Summary) -> str:
    layers = summary.grid
    furthest = _furthest([value for row in layers for value in row])
    most = max([_LEAST_RANGE, *(line.parity for line in summary.lines)])
    heads = max((len(row) for row in layers), default=0)
    right = _LEFT + heads * _CELL + 60
    start = right + _LABEL
    bottom = _TOP + len(summary.lines) * _BAR
    foot = _TOP + len(layers) * _CELL + 22
    drawing = Drawing(f"Attention over length share, {summary.model}", start + _SCALE + 70)
    drawing.height = max(foot, bottom) + 28
    drawing.text(_LEFT, 22, drawing.title, size=15)
    drawing.text(_LEFT, 48, f"{summary.focus}: layer (down), head (across)")
    drawing.text(start, 48, "every region; the line is parity")
    for row, values in enumerate(layers):
        y = _TOP + row * _CELL
        if row % 5 == 0:
            drawing.text(_LEFT - 8, y + 12, str(row), anchor="end")
        for column, value in enumerate(values):
            hint = f"layer {row}, head {column}: {value:.2f}"
            colour = _colour(value, furthest)
            drawing.bar(_LEFT + column * _CELL, y, _CELL - 1, _CELL - 1, colour, hint)
    for index, line in enumerate(summary.lines):
        y = _TOP + index * _BAR
        long = line.parity / most * _SCALE
        fill = "#c2571a" if line.region is summary.focus else "#8a94a3"
        drawing.text(start - 8, y + 14, f"{line.region} ({line.presentation})", anchor="end")
        drawing.bar(start, y + 3, long, _BAR - 8, fill)
        drawing.text(start + max(long, _SCALE / most) + 6, y + 14, f"{line.parity:.2f}")
    drawing.upright(start + _SCALE / most, _TOP, bottom)
    drawing.text(
        _LEFT,
        foot,
        f"blue down to 1/{furthest:.0f} of parity, white at it, orange up to {furthest:.0f} times",
    )
    return drawing.as_file()


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
