"""Not worse by more than a margin, on paired outcomes: an exact unconditional test.

The null: the first side passes at least ``margin`` fewer of the pairs. McNemar's test cannot
answer that, because without discordant pairs it has nothing to say, and pairs that agree are
what shows that nothing was lost. Outcomes are ordered by the score statistic at the margin.
The p-value is the chance of what was seen or better, at the share of losses that makes it
largest, so that it holds whatever that share is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import count, islice
from typing import Any

import numpy as np

from sopilot_lab.statistics.intervals import (
    Undefined,
    binom,
    require,
    require_open_share,
    require_pairs,
    score,
)

_POINTS = 64
_REFINED = 3
_ZOOMS = 2
_NEGLIGIBLE = 1e-15
_ROUNDING = 1e-9
_MOST_PAIRS = 2_000


def non_inferiority(wins: int, losses: int, pairs: int, *, margin: float) -> float | Undefined:
    """The one-sided p-value of "loses ``margin`` or more"; small means not inferior."""
    require_pairs(wins, losses, pairs)
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

    most = int(binom.isf(_NEGLIGIBLE, pairs, loss)) + 1
    least = list(islice(_fewest_wins(pairs, shown), most))
    return min(1.0, float(_chance(least, pairs, win, loss)[0]))


def _shown(wins: int, losses: int, pairs: int, margin: float, alpha: float) -> bool:
    result = non_inferiority(wins, losses, pairs, margin=margin)
    return not isinstance(result, Undefined) and result <= alpha


@lru_cache(maxsize=4_096)
def _p(wins: int, losses: int, pairs: int, margin: float) -> float:
    seen = score(wins, losses, pairs, -margin) - _ROUNDING

    def as_good(wins: int, losses: int) -> bool:
        return score(wins, losses, pairs, -margin) > seen

    least = list(_fewest_wins(pairs, as_good))
    return min(1.0, _largest(lambda loss: _chance(least, pairs, loss - margin, loss), margin))


def _fewest_wins(pairs: int, good: Callable[[int, int], bool]) -> Iterator[int]:
    """The fewest wins that are good, for each number of losses. More wins are better and more
    losses worse, so all good outcomes lie above that line."""
    least = 0
    for losses in range(pairs + 1):
        while least + losses <= pairs and not good(least, losses):
            least += 1
        yield least


def _chance(least: Sequence[int], pairs: int, win: Any, loss: Any) -> Any:
    """The chance to lie above that line, where a pair is won and lost with these probabilities."""
    win, loss = np.atleast_1d(win)[:, None], np.atleast_1d(loss)[:, None]
    losses, wins = np.arange(len(least)), np.array(least)
    share = np.clip(win / (1.0 - loss), 0.0, 1.0)
    weights = binom.pmf(losses, pairs, loss)
    return np.sum(weights * binom.sf(wins - 1, pairs - losses, share), axis=1)


def _largest(of: Callable[[Any], Any], margin: float) -> float:
    """The maximum over every share of losses that the null allows at the margin: a grid, denser
    where losses are few, then finer grids around its highest points."""
    reach = (1.0 + margin) / 2.0 - margin
    grid = margin + reach * np.linspace(0.0, 1.0, _POINTS + 1) ** 2
    values = of(grid)
    best = float(np.max(values))
    for start in np.argsort(values)[-_REFINED:]:
        place, finer = int(start), grid
        for _ in range(_ZOOMS):
            bounds = finer[max(0, place - 1)], finer[min(_POINTS, place + 1)]
            finer = np.linspace(*bounds, _POINTS + 1)
            heights = of(finer)
            place = int(np.argmax(heights))
            best = max(best, float(heights[place]))
    return best
