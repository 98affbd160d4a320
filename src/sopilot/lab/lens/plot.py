"""The parity of the active frame per layer and head, and of every region, as one SVG. Pure."""

from __future__ import annotations

import math
from html import escape

from sopilot.lab.lens.report import Summary

_CELL, _LEFT, _TOP, _BAR = 16, 60, 64, 22
_LABEL, _SCALE = 190, 220
_LEAST_RANGE = 2.0


def plot(summary: Summary) -> str:
    layers = summary.grid
    furthest = _furthest([value for row in layers for value in row])
    most = max([_LEAST_RANGE, *(line.parity for line in summary.lines)])
    heads = max((len(row) for row in layers), default=0)
    right = _LEFT + heads * _CELL + 60
    height = max(_TOP + len(layers) * _CELL, _TOP + len(summary.lines) * _BAR) + 50
    width = right + _LABEL + _SCALE + 70
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        _text(_LEFT, 22, f"Attention over length share, {summary.model}", size=15),
        _text(_LEFT, 48, f"{summary.focus}: layer (down), head (across)"),
        _text(right, 48, "every region; the line is parity"),
    ]
    for row, values in enumerate(layers):
        y = _TOP + row * _CELL
        if row % 5 == 0:
            parts.append(_text(_LEFT - 8, y + 12, str(row), anchor="end"))
        for column, value in enumerate(values):
            x = _LEFT + column * _CELL
            parts.append(
                f'<rect x="{x}" y="{y}" width="{_CELL - 1}" height="{_CELL - 1}" '
                f'fill="{_colour(value, furthest)}"><title>layer {row}, head {column}: '
                f"{value:.2f}</title></rect>"
            )
    start = right + _LABEL
    for index, line in enumerate(summary.lines):
        y = _TOP + index * _BAR
        long = line.parity / most * _SCALE
        fill = "#c2571a" if line.region is summary.focus else "#8a94a3"
        parts.append(_text(start - 8, y + 14, f"{line.region} ({line.presentation})", anchor="end"))
        parts.append(
            f'<rect x="{start}" y="{y + 3}" width="{long:.1f}" height="{_BAR - 8}" fill="{fill}"/>'
        )
        parts.append(_text(start + max(long, _SCALE / most) + 6, y + 14, f"{line.parity:.2f}"))
    at = start + _SCALE / most
    bottom = _TOP + len(summary.lines) * _BAR
    parts.append(f'<line x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}" stroke="#222"/>')
    foot = _TOP + len(layers) * _CELL + 22
    ends = (
        f"blue down to 1/{furthest:.0f} of parity, white at it, orange up to {furthest:.0f} times"
    )
    parts.append(_text(_LEFT, foot, ends))
    return "".join([*parts, "</svg>\n"])


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
    )


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
