"""Not worse by more than a margin, on paired outcomes: an exact unconditional test.

The null: the first side passes at least ``margin`` fewer of the pairs. McNemar's test cannot
answer that, because without discordant pairs it has nothing to say, and pairs that agree are
what shows that nothing was lost. Outcomes are ordered by the score statistic at the margin.
The p-value is the chance of what was seen or better, at the share of losses that makes it
largest, so that it holds whatever that share is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from sopilot.lab.stats._binomial import at_most, probability
from sopilot.lab.stats._difference import score
from sopilot.lab.stats._undefined import Undefined, require, require_open_share

_POINTS = 32
_REFINED = 3
_STEPS = 24
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_NEGLIGIBLE = 1e-15
_MOST_PAIRS = 2_000


def non_inferiority(wins: int, losses: int, pairs: int, *, margin: float) -> float | Undefined:
    """The one-sided p-value of "loses ``margin`` or more"; small means not inferior."""
    require(
        wins >= 0 and losses >= 0 and wins + losses <= pairs,
        f"`{wins}` wins and `{losses}` losses do not fit into `{pairs}` pairs",
    )
    require_open_share("margin", margin)
    if pairs == 0:
        return Undefined("no pairs")
    require(pairs <= _MOST_PAIRS, f"the exact test takes up to {_MOST_PAIRS} pairs, not `{pairs}`")
    return _p(wins, losses, pairs, margin)


def most_losses(pairs: int, *, margin: float, alpha: float = 0.05) -> int | Undefined:
    """How many pairs may be lost, when none is won, with non-inferiority still shown."""
    require_open_share("alpha", alpha)
    found = -1
    while found < pairs and _shown(0, found + 1, pairs, margin, alpha):
        found += 1
    if found < 0:
        return Undefined(f"{pairs} pairs cannot show it, even if none is lost")
    return found


def least_pairs(*, margin: float, alpha: float = 0.05) -> int:
    """The fewest pairs that show non-inferiority if every one of them agrees."""
    require_open_share("alpha", alpha)
    require_open_share("margin", margin)
    # Fewer cannot: the outcome itself has that chance where nothing is ever won.
    pairs = max(1, math.ceil(math.log(alpha) / math.log1p(-margin)))
    while not _shown(0, 0, pairs, margin, alpha):
        pairs += 1
    return pairs


def non_inferiority_power(
    pairs: int, *, win: float, loss: float, margin: float, alpha: float = 0.05
) -> float:
    """The chance that it is shown when a pair is won and lost with these probabilities."""
    require(win >= 0.0 and loss >= 0.0 and win + loss <= 1.0, "win and loss are shares of pairs")
    total = 0.0
    least = 0
    for losses in range(pairs + 1):
        while least + losses <= pairs and not _shown(least, losses, pairs, margin, alpha):
            least += 1
        weight = probability(losses, pairs, loss)
        if least + losses > pairs or (weight < _NEGLIGIBLE and losses > pairs * loss):
            break
        left = pairs - losses
        chance = min(1.0, win / (1.0 - loss)) if loss < 1.0 else 0.0
        total += weight * at_most(left - least, left, 1.0 - chance)
    return min(1.0, total)


def _shown(wins: int, losses: int, pairs: int, margin: float, alpha: float) -> bool:
    found = non_inferiority(wins, losses, pairs, margin=margin)
    return not isinstance(found, Undefined) and found <= alpha


@lru_cache(maxsize=4_096)
def _p(wins: int, losses: int, pairs: int, margin: float) -> float:
    least = _region(wins, losses, pairs, margin)
    return min(1.0, _largest(lambda loss: _chance(least, pairs, loss, margin), margin))


def _region(wins: int, losses: int, pairs: int, margin: float) -> list[int]:
    """For every number of losses the fewest wins that are as good as what was seen. More wins
    are better and more losses worse, so the outcomes above that line are all of them."""
    seen = score(wins, losses, pairs, -margin)
    tolerance = 1e-9 * max(1.0, abs(seen))
    found = []
    least = 0
    for lost in range(pairs + 1):
        while least + lost <= pairs and score(least, lost, pairs, -margin) < seen - tolerance:
            least += 1
        found.append(least)
    return found


def _chance(least: list[int], pairs: int, loss: float, margin: float) -> float:
    win = max(0.0, loss - margin)
    chance = min(1.0, win / (1.0 - loss)) if loss < 1.0 else 0.0
    total = 0.0
    for losses, wins in enumerate(least):
        left = pairs - losses
        if wins > left:
            break  # and so it is with more losses
        weight = probability(losses, pairs, loss)
        if weight < _NEGLIGIBLE:
            if losses > pairs * loss:
                break
            continue
        total += weight * at_most(left - wins, left, 1.0 - chance)
    return total


def _largest(of: Callable[[float], float], margin: float) -> float:
    """Over every share of losses that the null allows at the margin: a grid, denser where losses
    are few, and a golden section around its highest points."""
    reach = (1.0 + margin) / 2.0 - margin
    grid = [margin + reach * (index / _POINTS) ** 2 for index in range(_POINTS + 1)]
    values = [of(loss) for loss in grid]
    best = max(values)
    highest = sorted(range(len(grid)), key=values.__getitem__, reverse=True)[:_REFINED]
    for index in highest:
        low, high = grid[max(0, index - 1)], grid[min(len(grid) - 1, index + 1)]
        for _ in range(_STEPS):
            first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            at_first, at_second = of(first), of(second)
            best = max(best, at_first, at_second)
            low, high = (low, second) if at_first >= at_second else (first, high)
    return best
