"""The oracle's graph of calls, and the call orders that it allows.

The graph is part of the answer. It serves the reachability search and the
replay of defects; nothing that acts for an agent may import this module.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Way = tuple[int, ...]
"""Nodes of calls in the order in which they are made, the goal last."""


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

    def ways(self, limit: int) -> Iterator[Way]:
        """At most ``limit`` ways to the goal, one for every choice of alternatives."""
        seen: set[Way] = set()
        for way in itertools.islice(self._ways(0), limit * 4):
            if way not in seen:
                seen.add(way)
                yield way
                if len(seen) >= limit:
                    return

    def _ways(self, node: int) -> Iterator[Way]:
        below = self.needs.get(node, ())
        if self.nodes[node] == "or":
            for each in below:
                yield from self._ways(each)
            return
        own: Way = () if isinstance(self.nodes[node], str) else (node,)
        for parts in _product([tuple(itertools.islice(self._ways(each), 64)) for each in below]):
            yield tuple(dict.fromkeys([*itertools.chain.from_iterable(parts), *own]))


def _product(choices: Sequence[Sequence[Way]]) -> Iterator[tuple[Way, ...]]:
    """Like ``itertools.product``, but every single choice is met early."""
    if not choices:
        yield ()
        return
    most = max(len(each) for each in choices)
    for turn in range(most):
        yield tuple(each[turn % len(each)] for each in choices)
    yield from itertools.product(*choices)
