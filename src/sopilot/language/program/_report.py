"""Where a verifier's findings are collected, each at its place in the program."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from sopilot.language.diagnostics import Diagnostic, Place, did_you_mean
from sopilot.language.program.model import Function, Step

WHOLE = -1
"""Stands for the function itself where a step's position is asked for."""

Places = Mapping[tuple[str, int], Place]
"""(function, position of the step or ``WHOLE``) → where a file says it."""

NAMES_COMPARED = 50_000
"""A hostile file must not buy hours of comparing names: past this, help goes without them."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")


@lru_cache(maxsize=8192)
def is_identifier(name: str) -> bool:
    """ASCII on purpose: a name is shown to models and people, and must not look like another."""
    return _IDENTIFIER.fullmatch(name) is not None


class ProblemCollector:
    """Collects diagnostics; ``places`` turns a path into a position in a file."""

    def __init__(self, places: Places) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._places = places
        self._to_compare = NAMES_COMPARED

    def nearest(self, word: str, known: Collection[str], otherwise: str) -> str:
        """Help that names the nearest known name, else ``otherwise``."""
        self._to_compare -= len(known)
        if self._to_compare < 0 or not known:
            return otherwise
        return did_you_mean(word, known)

    def program(self, code: str, message: str, help: str, path: str = "program") -> None:
        place = self._places.get(("", WHOLE), Place())
        self._add(code, message, help, place, path)

    def function(self, function: Function, code: str, message: str, help: str) -> None:
        place = self._places.get((function.name, WHOLE), Place())
        self._add(code, message, help, place, function.name)

    def step(self, function: Function, index: int, code: str, message: str, help: str) -> None:
        step: Step = function.steps[index]
        place = self._places.get((function.name, index), Place())
        self._add(code, message, help, place, f"{function.name}@{step.label}")

    def _add(self, code: str, message: str, help: str, place: Place, path: str) -> None:
        where = Place(place.source, place.line, place.column, path)
        self.diagnostics.append(Diagnostic(code, message, where, help))
