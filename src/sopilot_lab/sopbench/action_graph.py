"""The oracle's graph of calls, and the call orders that it allows.

The graph is part of the answer. It serves the reachability search and the
replay of defects; nothing that acts for an agent may import this module.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Way = tuple[int, ...]
"""Nodes of calls in the order in which they are made, the goal last."""
MOST_CHOICES = 4096
"""Combinations that are looked at for a node; many of them come to the same way."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """``arguments`` maps the action's parameters to the names of their values."""

    action: str
    arguments: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ActionGraph:
    """``nodes`` are ``[action, {parameter: name}]``, ``and`` or ``or``; node 0 is the goal.
    A connection leads from what needs to what is needed."""

    nodes: Sequence[Any]
    needs: Mapping[int, tuple[int, ...]]

    @classmethod
    def of(cls, graph: Mapping[str, Any]) -> ActionGraph:
        needs: dict[int, tuple[int, ...]] = {}
        for source, target in graph["connections"]:
            needs[source] = (*needs.get(source, ()), target)
        return cls(graph["nodes"], needs)

    def call(self, node: int) -> PlannedCall:
        action, arguments = self.nodes[node]
        return PlannedCall(action, arguments)

    def ways(self, limit: int) -> Ways:
        """At most ``limit`` ways to the goal, one for every choice of alternatives."""
        return self._ways(0, limit, {})

    def _ways(self, node: int, limit: int, known: dict[int, Ways]) -> Ways:
        if node in known:
            return known[node]
        parts = [self._ways(each, limit, known) for each in self.needs.get(node, ())]
        own = self.nodes[node]
        if own == "or":
            unfolded: Iterable[Way] = itertools.chain.from_iterable(part.found for part in parts)
        else:
            last: Way = () if isinstance(own, str) else (node,)
            unfolded = (
                tuple(dict.fromkeys([*itertools.chain.from_iterable(choice), *last]))
                for choice in _product([part.found for part in parts])
            )
        result: dict[Way, None] = {}
        cut = any(part.cut for part in parts)
        for number, way in enumerate(unfolded):
            if number >= MOST_CHOICES or (len(result) >= limit and way not in result):
                cut = True
                break
            result[way] = None
        known[node] = Ways(tuple(result), cut)
        return known[node]


@dataclass(frozen=True, slots=True)
class Ways:
    """``cut``: there may be more of them."""

    found: tuple[Way, ...]
    cut: bool


def _product(choices: Sequence[Sequence[Way]]) -> Iterator[tuple[Way, ...]]:
    """Like ``itertools.product``, but every single choice is met early."""
    if not choices:
        yield ()
        return
    most = max(len(each) for each in choices)
    for turn in range(most):
        yield tuple(each[turn % len(each)] for each in choices)
    yield from itertools.product(*choices)
