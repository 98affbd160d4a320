"""The lens's figures: as data, at the terminal, as a plot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from sopilot.values.json import JSON, Fields
from sopilot.values.text import table
from sopilot.web.pages import Drawing, draw_axis, even_ticks
from sopilot_lab.lens.attention import Attention, Grid
from sopilot_lab.lens.moments import Region
from sopilot_lab.lens.study import MomentStudy


def summarise(model: str, studies: Sequence[MomentStudy]) -> dict[str, Any] | None:
    """The figures as data; ``None`` without a moment. ``focus`` is the frame, or the program in an
    arm without frames; ``removed`` maps a region or `nothing` to moments and mean change in nats;
    ``parity_by_layer_and_head`` is that of the focus, on the own trajectory."""
    if not studies:
        return None
    own = [study.own.attention for study in studies]
    clean = [study.clean.attention for study in studies]
    regions = [
        line
        for name, looked in (("own", own), ("clean", clean))
        for region in Region
        if (line := _line(name, region, looked)) is not None
    ]
    framed = any(line["region"] == Region.FRAME for line in regions)
    focus = Region.FRAME if framed else Region.PROGRAM
    changes = {"nothing": [study.nothing for study in studies]}
    for region in Region:
        changes[region.value] = [
            study.removed[region] for study in studies if region in study.removed
        ]
    known = [item for item in own if item is not None]
    grids = [grid for item in known if (grid := item.parity_grid(focus)) is not None]
    return {
        "model": model,
        "focus": focus.value,
        "regions": regions,
        "attention_outside": _mean([item.outside for item in known]),
        "removed": {
            name: {"moments": len(each), "nats": _mean(each)}
            for name, each in changes.items()
            if each
        },
        "parity_by_layer_and_head": [list(row) for row in _mean_grid(grids)],
        "moments": [_moment(study) for study in studies],
    }


def _line(name: str, region: Region, looked: Sequence[Attention | None]) -> dict[str, Any] | None:
    """A region on one presentation, averaged over the moments that have it."""
    there = [item for item in looked if item is not None and item.tokens.get(region)]
    if not there:
        return None
    return {
        "presentation": name,
        "region": region.value,
        "moments": len(there),
        "length_share": _mean([item.length_share(region) or 0.0 for item in there]),
        "attention_share": _mean([item.share(region) or 0.0 for item in there]),
        "parity": _mean([item.parity(region) or 0.0 for item in there]),
    }


def _moment(study: MomentStudy) -> JSON:
    def parities(attention: Attention | None) -> JSON:
        return {r.value: attention.parity(r) for r in Region} if attention is not None else {}

    return {
        "number": study.moment.number,
        "place": study.moment.place,
        "move": study.moment.move,
        "tokens": study.tokens,
        "left_out": study.left_out,
        "log_probability": study.own.log_probability,
        "log_probability_clean": study.clean.log_probability,
        "parity": parities(study.own.attention),
        "parity_clean": parities(study.clean.attention),
        "removed": {region.value: change for region, change in study.removed.items()},
        "removed_nothing": study.nothing,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _mean_grid(grids: Sequence[Grid]) -> Grid:
    if not grids:
        return ()
    return tuple(
        tuple(_mean(heads) for heads in zip(*rows, strict=True))
        for rows in zip(*grids, strict=True)
    )


def summary_lines(summary: Fields) -> Iterator[str]:
    rows = [
        (
            line["region"],
            line["presentation"],
            line["moments"],
            f"{100 * line['length_share']:.1f}%",
            f"{100 * line['attention_share']:.1f}%",
            f"{line['parity']:.2f}",
        )
        for line in summary["regions"]
    ]
    header = ("region", "presented", "moments", "length", "attention", "parity")
    yield table(rows, header)
    yield (
        f"\n{100 * summary['attention_outside']:.0f}% of the attention is on the template's own "
        "tokens and left out."
    )
    yield "\nChange of the right move's log-probability without …"
    changed = [
        (name, each["moments"], f"{each['nats']:+.2f}") for name, each in summary["removed"].items()
    ]
    yield table(changed, ("region", "moments", "nats"))


_WIDTH, _LEFT, _TOP, _BAR, _LABEL = 360, 30, 50, 17, 150
_GRID_HEIGHT, _MOST_CELL = 240.0, 16.0
_LEAST_RANGE = 2.0


def plot(summary: Fields) -> Drawing:
    """The grid above, the regions below it, as wide as a column in print."""
    layers = summary["parity_by_layer_and_head"]
    furthest = _furthest([value for row in layers for value in row])
    heads = max((len(row) for row in layers), default=1)
    wide = (_WIDTH - _LEFT) / heads
    high = min(_MOST_CELL, _GRID_HEIGHT / max(1, len(layers)))
    drawing = Drawing(f"Attention over length share, {summary['model']}", _WIDTH)
    drawing.text(0, 14, drawing.title, size=12, bold=True)
    drawing.text(0, 34, f"(a) {summary['focus']} by layer (down) and head (across)")
    for row, values in enumerate(layers):
        y = _TOP + row * high
        if row % 5 == 0:
            drawing.text(_LEFT - 5, y + high / 2 + 4, str(row), anchor="end", size=10)
        for column, value in enumerate(values):
            hint = f"layer {row}, head {column}: {value:.2f}"
            colour = _colour(value, furthest)
            drawing.bar(_LEFT + column * wide, y, wide * 0.97, high * 0.94, colour, hint)
    foot = _TOP + len(layers) * high
    for column in range(0, heads, 5):
        middle = _LEFT + (column + 0.5) * wide
        drawing.text(middle, foot + 11, str(column), anchor="middle", size=10)
    scale = (
        f"blue: down to 1/{furthest:.0f} of parity; white: parity; orange: up to {furthest:.0f}×"
    )
    drawing.text(0, foot + 27, scale, size=10)
    _regions(drawing, summary, foot + 48)
    return drawing


def _regions(drawing: Drawing, summary: Fields, top: float) -> None:
    lines = summary["regions"]
    ticks = even_ticks(0.0, max([_LEAST_RANGE, *(line["parity"] for line in lines)]))
    scale = (_WIDTH - _LABEL - 40) / ticks[-1]
    drawing.text(0, top, "(b) every region; the line is parity")
    bottom = top + 10 + len(lines) * _BAR
    for index, line in enumerate(lines):
        y = top + 10 + index * _BAR
        long = line["parity"] * scale
        name = f"{line['region']} ({line['presentation']})"
        drawing.text(_LABEL - 5, y + 10, name, anchor="end", size=10)
        fill = "currentColor" if line["region"] == summary["focus"] else "#8c8c8c"
        drawing.bar(_LABEL, y + 1, long, _BAR - 6, fill)
        drawing.text(_WIDTH, y + 10, f"{line['parity']:.2f}", anchor="end", size=10)
    drawing.upright(_LABEL + scale, top + 8, bottom, 0.7)
    draw_axis(drawing, bottom, ticks, lambda value: _LABEL + value * scale, "attention over length")


def _furthest(parities: list[float]) -> float:
    """The largest ratio to parity on either side that is drawn."""
    ratios = [max(value, 1 / value) for value in parities if value > 0]
    return min(64.0, max([_LEAST_RANGE, *ratios]))


def _colour(parity: float, furthest: float) -> str:
    """Colour by the logarithm: half and double are equally far from white."""
    far = max(-1.0, min(1.0, math.log(max(parity, 1e-3)) / math.log(furthest)))
    ends = (194, 87, 26) if far > 0 else (38, 96, 164)
    mixed = [round(255 + (end - 255) * abs(far)) for end in ends]
    return "#" + "".join(f"{part:02x}" for part in mixed)
