"""Not worse by more than a margin, on paired outcomes: an exact unconditional test.

The null: the first side passes at least ``margin`` fewer of the pairs. McNemar's test cannot
answer that, because without discordant pairs it has nothing to say, and pairs that agree are
what shows that nothing was lost. Outcomes are ordered by the score statistic at the margin.
The p-value is the chance of what was seen or better, at the share of losses that makes it
largest, so that it holds whatever that share is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import count

from sopilot_lab.statistics.binomial import at_most, probability
from sopilot_lab.statistics.intervals import score
from sopilot_lab.statistics.undefined import Undefined, require, require_open_share

_POINTS = 32


_REFINED = 3


_STEPS = 24


_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


_NEGLIGIBLE = 1e-15


_ROUNDING = 1e-9


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
    too_many = next(lost for lost in count() if not _shown(0, lost, pairs, margin, alpha))
    if too_many == 0:
        return Undefined(f"{pairs} pairs cannot show it, even if none is lost")
    return too_many - 1


def least_pairs(*, margin: float, alpha: float = 0.05) -> int:
    """The fewest pairs that show non-inferiority if every one of them agrees."""
    require_open_share("alpha", alpha)
    require_open_share("margin", margin)
    # Fewer cannot: the outcome itself has that chance where nothing is ever won.
    pairs = math.ceil(math.log(alpha) / math.log1p(-margin))
    while not _shown(0, 0, pairs, margin, alpha):
        pairs += 1
    return pairs


def non_inferiority_power(
    pairs: int, *, win: float, loss: float, margin: float, alpha: float = 0.05
) -> float:
    """The chance that it is shown when a pair is won and lost with these probabilities."""
    require(win >= 0.0 and loss >= 0.0 and win + loss <= 1.0, "win and loss are shares of pairs")
    require_open_share("alpha", alpha)

    def shown(wins: int, losses: int) -> bool:
        return _shown(wins, losses, pairs, margin, alpha)

    return min(1.0, _chance(_fewest_wins(pairs, shown), pairs, win, loss))


def _shown(wins: int, losses: int, pairs: int, margin: float, alpha: float) -> bool:
    found = non_inferiority(wins, losses, pairs, margin=margin)
    return not isinstance(found, Undefined) and found <= alpha


@lru_cache(maxsize=4_096)
def _p(wins: int, losses: int, pairs: int, margin: float) -> float:
    seen = score(wins, losses, pairs, -margin) - _ROUNDING

    def as_good(wins: int, losses: int) -> bool:
        return score(wins, losses, pairs, -margin) > seen

    least = list(_fewest_wins(pairs, as_good))
    return min(1.0, _largest(lambda loss: _chance(least, pairs, loss - margin, loss), margin))


def _fewest_wins(pairs: int, good: Callable[[int, int], bool]) -> Iterator[int]:
    """For every number of losses the fewest wins with which it is good. More wins are better and
    more losses worse, so the outcomes above that line are all of them."""
    least = 0
    for losses in range(pairs + 1):
        while least + losses <= pairs and not good(least, losses):
            least += 1
        yield least


def _chance(least: Iterable[int], pairs: int, win: float, loss: float) -> float:
    """To lie above that line, where a pair is won and lost with these probabilities."""
    total = 0.0
    for losses, wins in enumerate(least):
        left = pairs - losses
        if wins > left:
            break  # and so it is with more losses
        weight = probability(losses, pairs, loss)
        if weight >= _NEGLIGIBLE:
            total += weight * at_most(left - wins, left, 1.0 - min(1.0, win / (1.0 - loss)))
        elif losses > pairs * loss:
            break
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
