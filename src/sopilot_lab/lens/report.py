"""What several moments say together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sopilot.values.json import JSON
from sopilot_lab.lens.context import Region
from sopilot_lab.lens.parity import Attention, Grid
from sopilot_lab.lens.study import MomentStudy

Presentation = Callable[[MomentStudy], Attention | None]


PRESENTATIONS: dict[str, Presentation] = {
    "own": lambda one: one.own.attention,
    "clean": lambda one: one.clean.attention,
}


@dataclass(frozen=True, slots=True)
class FigureLine:
    """A region on one presentation, averaged over the moments that have it."""

    presentation: str
    region: Region
    moments: int
    length_share: float
    attention_share: float
    parity: float


@dataclass(frozen=True, slots=True)
class Summary:
    """``focus`` is the frame, or the program in an arm without frames."""

    model: str
    focus: Region
    lines: tuple[FigureLine, ...]
    outside: float
    removed: dict[str, tuple[int, float]]
    """Region or `nothing` → moments and mean change in nats."""
    grid: Grid
    """Parity of the focus per layer and head, on the own trajectory."""
    studies: tuple[MomentStudy, ...]

    def as_json(self) -> dict[str, JSON]:
        return {
            "model": self.model,
            "focus": self.focus.value,
            "regions": [
                {
                    "presentation": line.presentation,
                    "region": line.region.value,
                    "moments": line.moments,
                    "length_share": line.length_share,
                    "attention_share": line.attention_share,
                    "parity": line.parity,
                }
                for line in self.lines
            ],
            "attention_outside": self.outside,
            "removed": {
                name: {"moments": count, "nats": change}
                for name, (count, change) in self.removed.items()
            },
            "parity_by_layer_and_head": [list(row) for row in self.grid],
            "moments": [_moment(one) for one in self.studies],
        }


def summarise(model: str, studies: Sequence[MomentStudy]) -> Summary | None:
    """``None`` without a moment."""
    if not studies:
        return None
    lines = [
        line
        for name, presented in PRESENTATIONS.items()
        for region in Region
        if (line := _line(name, region, [presented(one) for one in studies])) is not None
    ]
    framed = any(line.region is Region.FRAME for line in lines)
    focus = Region.FRAME if framed else Region.PROGRAM
    removed = {"nothing": (len(studies), _mean([one.nothing for one in studies]))}
    for region in Region:
        changes = [one.removed[region] for one in studies if region in one.removed]
        if changes:
            removed[region.value] = len(changes), _mean(changes)
    looked = [one.own.attention for one in studies if one.own.attention is not None]
    grids = [grid for one in looked if (grid := one.parity_grid(focus)) is not None]
    return Summary(
        model=model,
        focus=focus,
        lines=tuple(lines),
        outside=_mean([one.outside for one in looked]),
        removed=removed,
        grid=_mean_grid(grids),
        studies=tuple(studies),
    )


def _line(name: str, region: Region, looked: Sequence[Attention | None]) -> FigureLine | None:
    there = [one for one in looked if one is not None and one.tokens.get(region)]
    if not there:
        return None
    return FigureLine(
        name,
        region,
        len(there),
        _mean([one.length_share(region) or 0.0 for one in there]),
        _mean([one.share(region) or 0.0 for one in there]),
        _mean([one.parity(region) or 0.0 for one in there]),
    )


def _moment(one: MomentStudy) -> JSON:
    def parities(attention: Attention | None) -> JSON:
        return {r.value: attention.parity(r) for r in Region} if attention is not None else {}

    return {
        "number": one.moment.number,
        "place": one.moment.place,
        "move": one.moment.move,
        "tokens": one.tokens,
        "left_out": one.left_out,
        "log_probability": one.own.log_probability,
        "log_probability_clean": one.clean.log_probability,
        "parity": parities(one.own.attention),
        "parity_clean": parities(one.clean.attention),
        "removed": {region.value: change for region, change in one.removed.items()},
        "removed_nothing": one.nothing,
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
