"""One moment under the lens: attention on both presentations, and what each region is worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sopilot_lab.lens.moments import Context, ReadMoment, Region
from sopilot_lab.lens.open_weights import OpenWeights, Reading

REMOVED = (Region.DIALOG, Region.FRAME, Region.PROGRAM)


@dataclass(frozen=True, slots=True)
class MomentStudy:
    """``removed`` has the change of the move's log-probability in nats when a region is taken
    away; a region that is not there is not in it. ``nothing`` is the same with nothing taken
    away, which must be zero."""

    moment: ReadMoment
    tokens: int
    left_out: int
    own: Reading
    clean: Reading
    removed: Mapping[Region, float]
    nothing: float


def study(weights: OpenWeights, moment: ReadMoment) -> MomentStudy | None:
    """``None`` where the request has no right move or is longer than the model reads."""
    move = moment.move
    if move is None:
        return None
    prompt = weights.prompt(moment.own, move)
    fresh = weights.prompt(moment.clean, move)
    if prompt is None or fresh is None:
        return None
    own = weights.read(prompt, move, look=True)
    whole = own.log_probability
    removed = {
        region: _change(weights, moment.own.without(region), move, whole)
        for region in REMOVED
        if moment.own.has(region)
    }
    return MomentStudy(
        moment=moment,
        tokens=len(prompt.ids),
        left_out=prompt.left_out,
        own=own,
        clean=weights.read(fresh, move, look=True),
        removed={region: change for region, change in removed.items() if change is not None},
        nothing=_change(weights, moment.own.without(), move, whole) or 0.0,
    )


def _change(weights: OpenWeights, context: Context, move: str, whole: float) -> float | None:
    prompt = weights.prompt(context, move)
    if prompt is None:
        return None
    return weights.read(prompt, move).log_probability - whole


def studies(
    weights: OpenWeights, chosen: Sequence[ReadMoment], tell: Callable[[str], None]
) -> list[MomentStudy]:
    """Study the moments that fit into the model's context."""
    results = []
    for number, moment in enumerate(chosen, 1):
        item = study(weights, moment)
        if item is not None:
            results.append(item)
        what = "too long" if item is None else f"{item.tokens} tokens"
        tell(f"{number}/{len(chosen)}  {moment.place or 'start'}: {what}")
    return results
