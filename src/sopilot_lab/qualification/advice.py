"""What would change a verdict, and what a check can show at all, in figures."""

from __future__ import annotations

from sopilot.values.json import JSON
from sopilot_lab.qualification import rule
from sopilot_lab.qualification.contrast import Contrast, one_sided
from sopilot_lab.statistics.non_inferiority import least_pairs, most_losses, non_inferiority_power
from sopilot_lab.statistics.paired import mcnemar
from sopilot_lab.statistics.power import minimum_detectable_effect, tasks_needed
from sopilot_lab.statistics.undefined import Undefined

_UNSEEN = 0.2
"""The discordance assumed before any discordant pair was seen, as in the rule's calculation."""


def missing_wins(wins: int, losses: int, level: float) -> int:
    """How many more wins, without another loss, would show a benefit."""
    more = 0
    while one_sided(mcnemar(wins + more, losses), wins + more - losses) > level:
        more += 1
    return more


def needed_tasks(contrast: Contrast) -> str:
    """Cases that the effect seen so far would need."""
    total, net = contrast.discordance.total, contrast.discordance.net
    if net <= 0 or not contrast.pairs:
        return "so far nothing leans that way, so no number of cases can be named"
    share = total / contrast.pairs
    needed = tasks_needed(
        discordance=share, effect=net / contrast.pairs, alpha=2 * rule.LEVEL, power=rule.POWER
    )
    if isinstance(needed, Undefined):
        return f"cases needed for this effect: {needed.reason}"
    return f"the effect seen ({net / contrast.pairs:+.1%}) needs about {needed} cases"


def smallest_effect(contrast: Contrast) -> str:
    share = contrast.discordance.total / contrast.pairs if contrast.discordance.total else _UNSEEN
    return _gain(contrast.pairs, _least_gain(contrast.pairs, share))


def agreement_needed(pairs: int, level: float) -> str:
    """What would show that paging loses less than the margin, if it wins nothing."""
    most = most_losses(pairs, margin=rule.MARGIN, alpha=level)
    if not isinstance(most, Undefined):
        return f"at most {most} of {pairs} pairs lost, if none is won"
    least = least_pairs(margin=rule.MARGIN, alpha=level)
    return f"{least} pairs without a loss; {pairs} are too few to exclude one of {rule.MARGIN:.0%}"


_SLIPS = 0.01
"""Of a strong model: cases lost by luck, and as many won."""


def foresight(pairs: int) -> dict[str, JSON]:
    """What a completed check of so many pairs can show and what it cannot, known before the
    first run. ``says`` is the same in sentences."""
    gain = _least_gain(pairs, _UNSEEN)
    most = most_losses(pairs, margin=rule.MARGIN, alpha=rule.LEVEL)
    chance = non_inferiority_power(
        pairs, win=_SLIPS, loss=_SLIPS, margin=rule.MARGIN, alpha=rule.LEVEL
    )
    says = [f"page: {_gain(pairs, gain)} (power {rule.POWER:g}, a fifth of the pairs discordant)"]
    if pairs < rule.LEAST_PAIRS:
        says = [f"no verdict: {pairs} pairs are too few, {rule.LEAST_PAIRS} are the least"]
    elif isinstance(most, Undefined):
        says.append(f"may page: needs {agreement_needed(pairs, rule.LEVEL)}")
    else:
        says.append(
            f"may page: {agreement_needed(pairs, rule.LEVEL)}; a model that loses and wins "
            f"{_SLIPS:.0%} of cases by luck gets it {chance:.0%} of the time"
        )
    return {
        "pairs": pairs,
        "least_pairs": rule.LEAST_PAIRS,
        "smallest_gain": None if isinstance(gain, Undefined) else gain,
        "power": rule.POWER,
        "discordance": _UNSEEN,
        "margin": rule.MARGIN,
        "most_losses": None if isinstance(most, Undefined) else most,
        "pairs_for_margin": least_pairs(margin=rule.MARGIN, alpha=rule.LEVEL),
        "may_page_with_slips": chance,
        "slips": _SLIPS,
        "says": says,
    }


def _least_gain(pairs: int, discordance: float) -> float | Undefined:
    return minimum_detectable_effect(
        pairs, discordance=discordance, alpha=2 * rule.LEVEL, power=rule.POWER
    )


def _gain(pairs: int, least: float | Undefined) -> str:
    if isinstance(least, Undefined):
        return f"{pairs} pairs cannot show any effect with a power of {rule.POWER:g}"
    return f"{pairs} pairs show effects from {least:+.1%} on"
