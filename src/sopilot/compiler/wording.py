"""Wording: each check gets the SOP's own sentence.

In:  a skeleton, and the handbook whose constants the sentences name.
Out: its functions, every check with its official sentence under the call's names.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """Sentences are kept per leaf and the constants they really name."""

    def __init__(self, predicates: Mapping[str, Predicate]) -> None:
        self._predicates = predicates
        self._named: dict[Leaf, tuple[str, ...]] = {}
        self._sentences: dict[tuple[object, ...], str] = {}
        self._worded: dict[tuple[object, ...], Function] = {}

    def word(self, skeleton: Unworded, handbook: Handbook) -> dict[str, Function]:
        worded = dict(skeleton.functions)
        for name, checked in skeleton.checked.items():
            if checked:
                worded[name] = self._function(worded[name], checked, handbook)
        return worded

    def _function(
        self, function: Function, checked: list[tuple[int, Leaf]], handbook: Handbook
    ) -> Function:
        sentences = [self._sentence(leaf, handbook) for _, leaf in checked]
        key = (id(function), *sentences)
        known = self._worded.get(key)
        if known is None:
            steps: list[Step] = list(function.steps)
            for (position, _), says in zip(checked, sentences, strict=True):
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
                    says,
                )
            known = self._worded[key] = Function(
                function.name, function.kind, function.parameters, tuple(steps), function.says
            )
        return known

    def _sentence(self, leaf: Leaf, handbook: Handbook) -> str:
        named = self._named.get(leaf)
        if named is None:
            predicate = self._predicates[leaf.predicate]
            template = predicate.says if leaf.wanted else negative(predicate)
            own = {parameter for parameter, _ in leaf.arguments}
            named = tuple(name for name in placeholders(template) if name not in own)
            self._named[leaf] = named
        constants = handbook.parameters
        # As text: 500 and 500.0 are equal numbers and different words.
        key = (leaf, *[str(constants.get(name)) for name in named])
        says = self._sentences.get(key)
        if says is None:
            says = self._sentences[key] = sentence(handbook, leaf)
        return says
