"""Plots as inline SVG: nothing is loaded from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

PALETTE = (
    "#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#64b5cd",
    "#da8bc3", "#8c8c8c", "#ccb974", "#1b3a6b", "#0b7a75", "#8f2d56",
)  # fmt: skip
"""As many as there are arms."""
_WIDTH, _TOP, _ROW = 760, 34, 18
_LETTER = 6.8
"""About the width of one, for what must not run out of the picture."""
_INK = "#333"


def grouped_bars(
    title: str,
    groups: Mapping[str, Mapping[str, float]],
    *,
    highest: float = 100.0,
    unit: str = "%",
) -> str:
    """Group → bar → value; one colour a bar name."""
    names = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    colours = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(names)}
    parts: list[str] = []
    y = _TOP
    left = _room_for(groups)
    room = _WIDTH - left - 70
    for group, bars in groups.items():
        parts.append(_text(left - 8, y + _ROW * max(1, len(bars)) / 2 + 4, group, anchor="end"))
        for name, value in bars.items():
            length = max(0.0, value) / highest * room if highest else 0.0
            parts.append(
                f'<rect x="{left:.1f}" y="{y:.0f}" width="{length:.1f}" height="{_ROW - 4}" '
                f'fill="{colours[name]}"><title>{escape(group)}, {escape(name)}: '
                f"{value:.1f} {escape(unit)}</title></rect>"
            )
            parts.append(_text(left + length + 5, y + _ROW - 7, f"{value:.1f}", size=11))
            y += _ROW
        y += 10
    return _svg(title, parts, y + 8, legend=colours)


def diverging_bars(title: str, rows: Sequence[tuple[str, int, int]], left: str, right: str) -> str:
    """Losses to the left, wins to the right of a line."""
    most = max([1, *(max(wins, losses) for _, wins, losses in rows)])
    left_edge = _room_for([label for label, _, _ in rows])
    middle = left_edge + (_WIDTH - left_edge - 40) / 2
    scale = (_WIDTH - left_edge - 120) / 2 / most
    parts: list[str] = []
    y = _TOP
    for label, wins, losses in rows:
        parts.append(_text(left_edge - 8, y + _ROW - 6, label, anchor="end"))
        parts.append(_bar(middle - losses * scale, y, losses * scale, PALETTE[3]))
        parts.append(_bar(middle, y, wins * scale, PALETTE[2]))
        parts.append(_text(middle - losses * scale - 5, y + _ROW - 6, str(losses), anchor="end"))
        parts.append(_text(middle + wins * scale + 5, y + _ROW - 6, str(wins)))
        y += _ROW + 4
    parts.append(f'<line x1="{middle}" y1="{_TOP - 4}" x2="{middle}" y2="{y}" stroke="{_INK}" />')
    legend = {left: PALETTE[3], right: PALETTE[2]}
    return _svg(title, parts, y + 8, legend=legend)


def _room_for(labels: Iterable[str]) -> float:
    """For labels at the left; a longer one than fits is cut by the edge, not by the bars."""
    return min(_WIDTH / 2, 20 + _LETTER * max(map(len, labels), default=0))


def _bar(x: float, y: float, width: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.0f}" width="{width:.1f}" height="{_ROW - 4}" fill="{colour}" />'
    )


def _svg(title: str, parts: Sequence[str], height: float, *, legend: Mapping[str, str]) -> str:
    entries = []
    x = 0.0
    for name, colour in legend.items():
        room = 30 + _LETTER * len(name)
        if x and x + room > _WIDTH:
            x, height = 0.0, height + _ROW
        entries.append(
            f'<rect x="{x:.0f}" y="{height:.0f}" width="11" height="11" fill="{colour}" />'
        )
        entries.append(_text(x + 16, height + 10, name, size=11))
        x += room
    whole = height + 24
    body = "\n".join([_text(0, 16, title, size=14, weight="600"), *parts, *entries])
    return (
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {_WIDTH} {whole:.0f}" '
        f'width="{_WIDTH}" xmlns="http://www.w3.org/2000/svg" '
        f'font-family="system-ui, sans-serif">\n{body}\n</svg>'
    )


def _text(
    x: float, y: float, text: str, *, size: int = 12, anchor: str = "start", weight: str = "400"
) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}" fill="{_INK}">{escape(text)}</text>'
    )
