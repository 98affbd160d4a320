"""What the checks of a procedure call.

In:  the leaves and groups of its plan.
Out: for each the name of the function that checks it, and what that is given: names of the
     process, or constants. A parameter that may be without a value is left out where it has none.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.compiler._factoring import Group
from sopilot.language.compiler._goal import argument_of
from sopilot.language.compiler._naming import Names
from sopilot.language.handbook import Leaf, Name
from sopilot.language.program.model import Arguments, Local

Passed = dict[str, tuple[frozenset[str], Arguments]]


class Callees:
    """``scope`` are the names of the process, ``optional`` the parameters of each predicate that
    may be without a value. ``passed`` is kept from program to program: what a leaf is given where
    the process has all of its names."""

    def __init__(
        self,
        names: Names,
        scope: frozenset[str],
        optional: Mapping[str, tuple[str, ...]],
        passed: Passed,
    ) -> None:
        self._passed = passed
        self._names = names
        self._scope = scope
        self._optional = optional
        self._found: dict[str, tuple[str, Arguments]] = {}
        self.predicates: dict[str, None] = {}
        """Of all leaves that were asked about."""

    def of(self, leaf: Leaf | Group) -> tuple[str, Arguments]:
        if isinstance(leaf, Group):
            return self._group(leaf)
        found = self._found.get(leaf.question)
        if found is None:
            found = self._found[leaf.question] = self._rule(leaf)
            self.predicates[leaf.predicate] = None
        return found

    def _group(self, group: Group) -> tuple[str, Arguments]:
        passed = (name for name in group.parameters if name in self._scope)
        return group.name, tuple((name, Local(name)) for name in passed)

    def _rule(self, leaf: Leaf) -> tuple[str, Arguments]:
        optional = self._optional.get(leaf.predicate, ())
        if not optional:
            passed = self._passed.get(leaf.question)
            if passed is None:
                names = frozenset(
                    [term.name for _, term in leaf.arguments if isinstance(term, Name)]
                )
                given = [(name, argument_of(term, names)) for name, term in leaf.arguments]
                passed = self._passed[leaf.question] = (names, tuple(given))
            if passed[0] <= self._scope:
                return self._names.rule(leaf.predicate), passed[1]
        arguments = tuple(
            [
                (parameter, argument_of(term, self._scope))
                for parameter, term in leaf.arguments
                if parameter not in optional or isinstance(term, Name)
            ]
        )
        return self._names.rule(leaf.predicate), arguments
