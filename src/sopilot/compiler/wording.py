"""Wording: each check gets the SOP's own sentence.

In:  a skeleton, and the handbook whose constants the sentences name.
Out: its functions, every check with its official sentence under the call's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from sopilot.handbook import Handbook, Leaf, Predicate, sentence
from sopilot.handbook.wording import negative, placeholders
from sopilot.program.model import Check, Function, Step


class Unworded(Protocol):
    """What wording needs of a skeleton."""

    @property
    def functions(self) -> Mapping[str, Function]: ...

    @property
    def checked(self) -> Mapping[str, list[tuple[int, Leaf]]]: ...


class Wording:
    """A skeleton is worded once for each set of values of the constants it names."""

    def __init__(self, predicates: Mapping[str, Predicate]) -> None:
        self._predicates = predicates
        self._named: dict[Leaf, tuple[str, ...]] = {}
        self._named_in: dict[Unworded, tuple[str, ...]] = {}
        self._worded: dict[tuple[object, ...], Mapping[str, Function]] = {}

    def word(self, skeleton: Unworded, handbook: Handbook) -> Mapping[str, Function]:
        named = self._named_in.get(skeleton)
        if named is None:
            found = (name for leaf in _leaves(skeleton) for name in self._names(leaf))
            named = self._named_in[skeleton] = tuple(dict.fromkeys(found))
        constants = handbook.parameters
        # As text: 500 and 500.0 are equal numbers and different words.
        key = (skeleton, *[str(constants.get(name)) for name in named])
        worded = self._worded.get(key)
        if worded is None:
            functions = dict(skeleton.functions)
            for name, checked in skeleton.checked.items():
                if checked:
                    functions[name] = _with_sentences(functions[name], checked, handbook)
            worded = self._worded[key] = functions
        return worded

    def _names(self, leaf: Leaf) -> tuple[str, ...]:
        """The constants that the leaf's sentence names."""
        named = self._named.get(leaf)
        if named is None:
            predicate = self._predicates[leaf.predicate]
            template = predicate.says if leaf.wanted else negative(predicate)
            own = {parameter for parameter, _ in leaf.arguments}
            named = tuple(name for name in placeholders(template) if name not in own)
            self._named[leaf] = named
        return named


def _leaves(skeleton: Unworded) -> Iterator[Leaf]:
    return (leaf for checked in skeleton.checked.values() for _, leaf in checked)


def _with_sentences(
    function: Function, checked: list[tuple[int, Leaf]], handbook: Handbook
) -> Function:
    steps: list[Step] = list(function.steps)
    for position, leaf in checked:
        step = steps[position]
        assert isinstance(step, Check)
        steps[position] = Check(
            step.label,
            step.function,
            step.arguments,
            step.slot,
            step.wanted,
            step.met,
            step.unmet,
            sentence(handbook, leaf),
        )
    return Function(function.name, function.kind, function.parameters, tuple(steps), function.says)
