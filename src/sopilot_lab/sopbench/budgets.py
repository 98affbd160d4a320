from __future__ import annotations

from sopilot.agent.budgets import DEEP_BUDGETS, Budgets

DEEP_DOMAINS = frozenset({"hotel", "university"})
"""The deep-program domains of the study: they get its longer budgets."""


def domain_budgets(domain: str) -> Budgets:
    return DEEP_BUDGETS if domain in DEEP_DOMAINS else Budgets()
