"""Which request the user makes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sopilot.runtime.agent.reference.facts import Facts


def wanted_goal(facts: Facts, goals: Iterable[str]) -> str | None:
    """The goal that the user named; else the only one there is; else the only one all of
    whose words occur in the request. ``None``: the user must be asked."""
    known = list(goals)
    if facts.wants in known:
        return facts.wants
    if len(known) == 1:
        return known[0]
    words = set(re.findall(r"[a-z]+", facts.request.lower()))
    named = [goal for goal in known if set(goal.lower().split("_")) <= words]
    return named[0] if len(named) == 1 else None
