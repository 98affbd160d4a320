"""What a study is to show, written down before it is run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

TESTS: Final = ("clustered", "mcnemar")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The first arm of ``contrast`` is compared with the second, on the tasks that both judged,
    for each of ``models``. ``test``: whole goals flip their signs (``clustered``), or tasks are
    taken for independent (``mcnemar``). Hypotheses of one ``family`` share their ``level``
    (Holm)."""

    name: str
    contrast: tuple[str, str]
    models: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    kind: str = "both"
    test: str = "clustered"
    family: str = "primary"
    level: float = 0.05


@dataclass(frozen=True, slots=True)
class Preregistration:
    """``stopping`` and ``exclusions`` say when no more is run and what is left out."""

    hypotheses: Sequence[Hypothesis] = ()
    stopping: str = ""
    exclusions: str = ""

    @property
    def sha256(self) -> str:
        """Empty where nothing was fixed: then everything is exploratory."""
        if not self.hypotheses:
            return ""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted so that each may be compared with the family's level as it stands."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted
