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
    "own": lambda item: item.own.attention,
    "clean": lambda item: item.clean.attention,
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
            "moments": [_moment(study) for study in self.studies],
        }


def summarise(model: str, studies: Sequence[MomentStudy]) -> Summary | None:
    """``None`` without a moment."""
    if not studies:
        return None
    lines = [
        line
        for name, presented in PRESENTATIONS.items()
        for region in Region
        if (line := _line(name, region, [presented(study) for study in studies])) is not None
    ]
    framed = any(line.region is Region.FRAME for line in lines)
    focus = Region.FRAME if framed else Region.PROGRAM
    removed = {"nothing": (len(studies), _mean([study.nothing for study in studies]))}
    for region in Region:
        changes = [study.removed[region] for study in studies if region in study.removed]
        if changes:
            removed[region.value] = len(changes), _mean(changes)
    looked = [study.own.attention for study in studies if study.own.attention is not None]
    grids = [grid for item in looked if (grid := item.parity_grid(focus)) is not None]
    return Summary(
        model=model,
        focus=focus,
        lines=tuple(lines),
        outside=_mean([item.outside for item in looked]),
        removed=removed,
        grid=_mean_grid(grids),
        studies=tuple(studies),
    )


def _line(name: str, region: Region, looked: Sequence[Attention | None]) -> FigureLine | None:
    there = [item for item in looked if item is not None and item.tokens.get(region)]
    if not there:
        return None
    return FigureLine(
        name,
        region,
        len(there),
        _mean([item.length_share(region) or 0.0 for item in there]),
        _mean([item.share(region) or 0.0 for item in there]),
        _mean([item.parity(region) or 0.0 for item in there]),
    )


def _moment(moment_study: MomentStudy) -> JSON:
    def parities(attention: Attention | None) -> JSON:
        return {r.value: attention.parity(r) for r in Region} if attention is not None else {}

    return {
        "number": moment_study.moment.number,
        "place": moment_study.moment.place,
        "move": moment_study.moment.move,
        "tokens": moment_study.tokens,
        "left_out": moment_study.left_out,
        "log_probability": moment_study.own.log_probability,
        "log_probability_clean": moment_study.clean.log_probability,
        "parity": parities(moment_study.own.attention),
        "parity_clean": parities(moment_study.clean.attention),
        "removed": {region.value: change for region, change in moment_study.removed.items()},
        "removed_nothing": moment_study.nothing,
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
