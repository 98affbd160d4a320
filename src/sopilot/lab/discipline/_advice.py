"""What would change a verdict, in figures."""

from __future__ import annotations

from sopilot.lab.discipline import _rule as rule
from sopilot.lab.discipline._contrast import Contrast, one_sided
from sopilot.lab.stats import Undefined, mcnemar, minimum_detectable_effect, tasks_needed

_UNSEEN = 0.2
"""The discordance assumed before any discordant pair was seen, as in the rule's calculation."""


def missing_wins(wins: int, losses: int, level: float) -> int:
    """How many more wins, without another loss, would show a benefit."""
    more = 0
    while one_sided(mcnemar(wins + more, losses), wins + more - losses) > level:
        more += 1
    return more


def needed_tasks(found: Contrast) -> str:
    """Cases that the effect seen so far would need."""
    total, net = found.discordance.total, found.discordance.net
    if net <= 0:
        return "so far nothing leans that way, so no number of cases can be named"
    share = total / found.pairs
    needed = tasks_needed(
        discordance=share, effect=net / found.pairs, alpha=2 * rule.LEVEL, power=rule.POWER
    )
    if isinstance(needed, Undefined):
        return f"cases needed for this effect: {needed.reason}"
    return f"the effect seen ({net / found.pairs:+.1%}) needs about {needed} cases"


def smallest_effect(found: Contrast) -> str:
    share = found.discordance.total / found.pairs if found.discordance.total else _UNSEEN
    least = minimum_detectable_effect(
        found.pairs, discordance=share, alpha=2 * rule.LEVEL, power=rule.POWER
    )
    if isinstance(least, Undefined):
        return f"{found.pairs} pairs cannot show any effect with a power of {rule.POWER:g}"
    return f"{found.pairs} pairs show effects from {least:+.1%} on"
