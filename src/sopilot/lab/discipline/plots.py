"""The plots of a check as SVG: rates with intervals, differences, calls after the goal, depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_LEFT, _WIDTH, _RIGHT, _ROW, _TOP = 190, 420, 270, 30, 8


@dataclass(frozen=True, slots=True)
class Mark:
    """One row: a value with its interval, on a scale the whole plot shares."""

    label: str
    value: float | None
    interval: Sequence[float] | None
    text: str
    strong: bool = False


def plot(marks: Sequence[Mark], *, least: float, most: float, zero: float | None = None) -> str:
    """Dots with whiskers; ``zero`` draws a line to compare with."""
    height = _TOP + _ROW * len(marks) + 24
    scale = _WIDTH / (most - least) if most > least else 1.0

    def x(value: float) -> float:
        return round(_LEFT + (min(max(value, least), most) - least) * scale, 1)

    parts = [
        f'<svg viewBox="0 0 {_LEFT + _WIDTH + _RIGHT} {height}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg" class="plot">'
    ]
    bottom = _TOP + _ROW * len(marks)
    for step in range(5):
        at = least + (most - least) * step / 4
        parts.append(f'<line class="grid" x1="{x(at)}" x2="{x(at)}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{x(at)}" y="{bottom + 16}">{at:g}</text>')
    if zero is not None:
        parts.append(
            f'<line class="zero" x1="{x(zero)}" x2="{x(zero)}" y1="{_TOP}" y2="{bottom}"/>'
        )
    for number, mark in enumerate(marks):
        y = _TOP + _ROW * number + _ROW / 2
        kind = "mark strong" if mark.strong else "mark"
        parts.append(
            f'<text class="label" x="{_LEFT - 12}" y="{y + 4}">{escape(mark.label)}</text>'
        )
        if mark.interval is not None:
            low, high = mark.interval
            parts.append(f'<line class="{kind}" x1="{x(low)}" x2="{x(high)}" y1="{y}" y2="{y}"/>')
        if mark.value is not None:
            parts.append(f'<circle class="{kind}" cx="{x(mark.value)}" cy="{y}" r="5"/>')
        parts.append(
            f'<text class="value" x="{_LEFT + _WIDTH + 12}" y="{y + 4}">{escape(mark.text)}</text>'
        )
    parts.append("</svg>")
    return "".join(parts)
