"""What every program of a handbook has of its actions: guards, facts, secrets, failures.

In:  a handbook.
Out: the same for all its procedures, and for handbooks that differ from it in nothing but what
     their actions require and their constants, as the tasks of one desk do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from itertools import compress
from operator import attrgetter, is_not

from sopilot.language.compiler._goal import guard_of
from sopilot.language.compiler.facts import (
    action_facts,
    read_only_actions,
    read_only_goals,
    secret_names,
)
from sopilot.language.frozen import frozen
from sopilot.language.handbook import Action, Handbook
from sopilot.language.program.model import ActionFacts, Guarded

_all_but_requires = attrgetter(*(one.name for one in fields(Action) if one.name != "requires"))


@frozen
class HandbookFacts:
    guarded: tuple[Guarded, ...]
    actions: Mapping[str, ActionFacts]
    read_only: tuple[str, ...]
    secrets: tuple[str, ...]
    not_found: Mapping[str, str]


class SharedFacts:
    def __init__(self) -> None:
        self._last: tuple[Handbook, HandbookFacts] | None = None
        self._facts: dict[object, HandbookFacts] = {}
        self._without_goals: HandbookFacts | None = None

    def of(self, handbook: Handbook) -> HandbookFacts:
        if self._last is not None and self._last[0] is handbook:
            return self._last[1]
        if self._last is None or not _alike(handbook, self._last[0]):
            self._facts.clear()
            self._without_goals = None
        procedures = handbook.procedures.values()
        key = tuple([(one.action, bool(one.confirm)) for one in procedures])
        hides = any(item.secret for one in procedures for item in one.inputs)
        facts = None if hides else self._facts.get(key)
        if facts is None:
            facts = self._made(handbook, hides)
            # Where a secret goes is written in what is required.
            if not facts.secrets:
                self._facts[key] = facts
        self._last = (handbook, facts)
        return facts

    def _made(self, handbook: Handbook, hides: bool) -> HandbookFacts:
        """Where nothing is guarded and nothing secret, a goal only ceases to be read-only."""
        if self._without_goals is None:
            self._without_goals = _facts(replace(handbook, procedures={}))
        plain = self._without_goals
        asks = any(one.confirm for one in handbook.procedures.values())
        if hides or asks or plain.guarded or plain.secrets:
            return _facts(handbook)
        read_only = read_only_goals(plain.read_only, handbook)
        return HandbookFacts((), {}, read_only, (), plain.not_found)


def _alike(one: Handbook, other: Handbook) -> bool:
    """Whether nothing but names, constants, procedures and what actions require may differ."""
    if one.predicates is not other.predicates or list(one.actions) != list(other.actions):
        return False
    actions, before = one.actions.values(), other.actions.values()
    differing = compress(zip(actions, before, strict=True), map(is_not, actions, before))
    return all(_all_but_requires(new) == _all_but_requires(old) for new, old in differing)


def _facts(handbook: Handbook) -> HandbookFacts:
    asked = {one.action for one in handbook.procedures.values() if one.confirm}
    actions = sorted(handbook.actions.items())
    guarded = tuple(guard_of(one) for name, one in actions if one.is_guarded or name in asked)
    return HandbookFacts(
        guarded=guarded,
        actions=action_facts(handbook) if guarded else {},
        read_only=() if guarded else read_only_actions(handbook),
        secrets=secret_names(handbook),
        not_found={name: one.not_found for name, one in actions if one.not_found is not None},
    )
