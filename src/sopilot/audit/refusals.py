"""Grounds for not carrying out a goal, read from the calls.

A check that was made and can't be read here may have been false, so it is a ground. A check that
could have been made and wasn't is not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import takewhile

from sopilot.audit.state import UnmetCheck
from sopilot.audit.transcript_files import Transcript
from sopilot.audit.transcript_reading import (
    Reading,
    decided,
    leaves_behind,
    recipes_of,
    required_by,
)
from sopilot.handbook.model import BUILT_IN, ActionCall, Predicate
from sopilot.handbook.requirements import Leaf, Name, Tree, leaves
from sopilot.handbook.wording import fill
from sopilot.values.json import JSON, Fields

DEEPEST = 8


@dataclass(slots=True)
class Grounds:
    """For one goal's requirement, at the end of a transcript. ``offered`` are the tools that
    could be called, if known. ``guessing``: a leaf over values that aren't on record may have
    been false."""

    reading: Reading
    transcript: Transcript
    tree: Tree
    offered: Collection[str] | None = None
    guessing: bool = False

    def values(self) -> dict[str, JSON]:
        """Values by name as the calls used them and the user gave them; a name that calls used
        for two things is known from the user alone."""
        values: dict[str, JSON] = {}
        twice: set[str] = set()
        for call in self.transcript.calls:
            for name, value in call.arguments.items():
                if name in values and values[name] != value:
                    twice.add(name)
                values[name] = value
        used = {name: value for name, value in values.items() if name not in twice}
        messages = {name: item for name, item in self.transcript.values.items() if item is not None}
        return {**used, **messages}

    def causes(self) -> list[Fields]:
        """The leaves that are known to be otherwise than the SOP wants them."""
        values = self.values()
        known = self.reading.known(values)
        handbook = self.reading.handbook
        false = [
            leaf for leaf in leaves_behind(handbook, self.tree) if known(leaf) is (not leaf.wanted)
        ]
        return [self._cause(handbook.predicates[leaf.predicate], leaf, values) for leaf in false]

    def _cause(self, predicate: Predicate, leaf: Leaf, values: Mapping[str, JSON]) -> Fields:
        calls = self.reading.supporting(leaf, values) or []
        return UnmetCheck(
            leaf.predicate,
            self.reading.sentence(leaf, values),
            self.reading.sentence(leaf, values, actual=not leaf.wanted),
            predicate.remedy,
            fill(predicate.customer_message, self.reading.handbook.parameters),
            not leaf.wanted,
            tuple(call.seq for call in calls),
            None,
        ).as_cause()

    def exist(self) -> bool:
        """Whether the requirement may have come out false by what was done."""
        return self._at_worst(self.tree, self.values(), 0) is False

    def nothing_shown(self) -> bool:
        """No check was made although every one needs a call, and the user was asked nothing."""
        handbook, values = self.reading.handbook, self.values()
        own = list(leaves(self.tree))
        if not own or not all(recipes_of(handbook.predicates[leaf.predicate]) for leaf in own):
            return False
        every = leaves_behind(handbook, self.tree)
        unmade = all(self.reading.supporting(leaf, values) is None for leaf in every)
        return unmade and not self.transcript.replies

    def _at_worst(self, tree: Tree, values: Mapping[str, JSON], depth: int) -> bool | None:
        known = self.reading.known(values)

        def worst(leaf: Leaf) -> bool | None:
            truth = known(leaf)
            if truth is not None:
                return truth
            return not leaf.wanted if self._may_fail(tree, leaf, values, depth) else leaf.wanted

        return decided(tree, worst)

    def _may_fail(self, tree: Tree, leaf: Leaf, values: Mapping[str, JSON], depth: int) -> bool:
        handbook = self.reading.handbook
        predicate = handbook.predicates[leaf.predicate]
        recipes = recipes_of(predicate)
        if not recipes:
            guessed = predicate.verdict is not None
            return self.guessing if guessed else self._reached(tree, leaf, values)
        if self.reading.supporting(leaf, values) is not None:
            return True
        if predicate.established_by is not None and self._stayed_shut(
            predicate.established_by, values
        ):
            return True
        if depth >= DEEPEST:
            return True
        # A check whose every way is closed, by a guard of its own or by a tool that is not
        # offered, cannot be made.
        return all(
            any(
                self._at_worst(required_by(handbook, item.action), values, depth + 1) is False
                for item in way
            )
            for way in recipes
            if self.offered is None
            or all(item.action in {*self.offered, *BUILT_IN} for item in way)
        )

    def _stayed_shut(self, opening: ActionCall, values: Mapping[str, JSON]) -> bool:
        """The user was heard about something that the gate asks for, and did not give it."""
        if not self.transcript.replies or not self.transcript.dialog:
            return self.transcript.replies > 0
        spoken = self.transcript.dialog.lower()
        missing = [
            term.name
            for _, term in opening.arguments
            if isinstance(term, Name) and term.name not in values
        ]
        return any(word in spoken for name in missing for word in name.lower().split("_"))

    def _reached(self, tree: Tree, leaf: Leaf, values: Mapping[str, JSON]) -> bool:
        """A leaf that needs no call comes to be judged once those before it were."""
        predicates = self.reading.handbook.predicates
        before = takewhile(lambda other: other != leaf, leaves(tree))
        needing = (other for other in before if recipes_of(predicates[other.predicate]))
        return all(self.reading.supporting(other, values) is not None for other in needing)
