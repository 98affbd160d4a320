"""Wording: each check gets the SOP's own sentence.

In:  a leaf; or a skeleton, and the handbook whose constants some sentences name.
Out: the leaf's official sentence under the call's names, unless it names a constant;
     the skeleton's functions with the sentences that do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from sopilot.language.handbook import Handbook, Leaf, Predicate, sentence
from sopilot.language.handbook.wording import leaf_sentence, placeholders, template
from sopilot.language.program.model import Check, Function, Step


class Unworded(Protocol):
    """What wording needs of a skeleton."""

    @property
    def functions(self) -> Mapping[str, Function]: ...

    @property
    def unworded(self) -> Mapping[str, list[tuple[int, Leaf]]]: ...


class Wording:
    """A skeleton is worded once for each set of values of the constants it names."""

    def __init__(self, predicates: Mapping[str, Predicate]) -> None:
        self._predicates = predicates
        self._constants_of: dict[Leaf, tuple[str, ...]] = {}
        self._fixed: dict[Leaf, str] = {}
        self._named_in: dict[Unworded, tuple[str, ...]] = {}
        self._worded: dict[tuple[object, ...], Mapping[str, Function]] = {}

    def fixed(self, leaf: Leaf) -> str | None:
        """The leaf's sentence, or nothing if it names a constant of the handbook."""
        says = self._fixed.get(leaf)
        if says is not None or leaf in self._constants_of:
            return says
        predicate = self._predicates[leaf.predicate]
        own = {parameter for parameter, _ in leaf.arguments}
        named = tuple(name for name in placeholders(template(predicate, leaf)) if name not in own)
        if named:
            self._constants_of[leaf] = named
            return None
        says = self._fixed[leaf] = leaf_sentence(predicate, leaf, {})
        return says

    def word(self, skeleton: Unworded, handbook: Handbook) -> Mapping[str, Function]:
        if not skeleton.unworded:
            return skeleton.functions
        named = self._named_in.get(skeleton)
        if named is None:
            found = (name for leaf in _leaves(skeleton) for name in self._constants_of[leaf])
            named = self._named_in[skeleton] = tuple(dict.fromkeys(found))
        constants = handbook.parameters
        # As text: 500 and 500.0 are equal numbers and different words.
        key = (skeleton, *[str(constants.get(name)) for name in named])
        worded = self._worded.get(key)
        if worded is None:
            functions = dict(skeleton.functions)
            for name, unworded in skeleton.unworded.items():
                functions[name] = _with_sentences(functions[name], unworded, handbook)
            worded = self._worded[key] = functions
        return worded


def _leaves(skeleton: Unworded) -> Iterator[Leaf]:
    return (leaf for unworded in skeleton.unworded.values() for _, leaf in unworded)


def _with_sentences(
    function: Function, unworded: list[tuple[int, Leaf]], handbook: Handbook
) -> Function:
    steps: list[Step] = list(function.steps)
    for position, leaf in unworded:
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
