"""The numbers of the verdict rule. See ``design/qualification.md``, where they are frozen."""

from __future__ import annotations

from typing import Final

RULE_VERSION: Final = 2
LEVEL: Final = 0.05
"""One-sided, when the plan was completed."""
INTERIM_LEVEL: Final = 0.005
"""One-sided, when a budget ended the check early."""
MARGIN: Final = 0.05
"""The share of cases that paging must be shown to lose less than, for *may page*."""
HARM_LEVEL: Final = 0.05
"""One-sided, for a class of tasks that paging harms."""
LEAST_PAIRS: Final = 20
CLUSTERED_FROM_GOALS: Final = 6
LEAST_SUCCESSES: Final = 5
"""Runs in which the goal action succeeded, in each arm; fewer leave the harm detector blind."""
LARGEST_DELTA_R2: Final = 0.30
R2_CONFIDENCE: Final = 0.90
LEAST_LOCALISATION: Final = 0.5
POWER: Final = 0.8
OFFICIAL: Final = "official"
PROSE: Final = "prose"
FLAT: Final = "flat"
PAGED: Final = "pg"
FUSED: Final = "fused"
FULL_CURSOR: Final = "full-cursor"
ARMS_CHECKED: Final = (FLAT, PAGED, PROSE, OFFICIAL, FUSED, FULL_CURSOR)
"""In the order in which a check runs them, the paging contrast first."""
REPRESENTATIONS: Final = (PROSE, OFFICIAL, FLAT)
"""In the order of the rule."""
