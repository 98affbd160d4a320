"""Recipes as data: what a handbook writes, and what a conforming executor then calls."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from adversary.values import JSON


@dataclass(frozen=True)
class Path:
    """A path into an earlier answer of the recipe, or into the element of a list."""

    call: str
    steps: tuple[str | int, ...]


@dataclass(frozen=True)
class Constant:
    value: JSON


Term = str | Path | Constant
"""A name is a parameter of the predicate, of the handbook, or something the user says."""


@dataclass(frozen=True)
class Reading:
    """One call of a recipe; with ``each``, one for every element of that list."""

    action: str
    terms: tuple[Term, ...] = ()
    name: str = ""
    each: tuple[Path, str] | None = None

    @property
    def key(self) -> str:
        return self.name or self.action

    def answered(self, answers: dict[str, JSON], value: JSON) -> None:
        """Add the answer to a call: one of several where it is made for each of a list."""
        if self.each is None:
            answers[self.key] = value
        else:
            answers.setdefault(self.key, []).append(value)


Recipe = tuple[Reading, ...]
_CALL = re.compile(r"(?:(\w+)=)?(\w+)\(([^)]*)\)(?: for (\w+) in (\S+))?")


def recipe(*calls: str) -> Recipe:
    """Read `name=action(term, …) for each in list`; name and list may be left out."""
    return tuple(_reading(call) for call in calls)


def _reading(call: str) -> Reading:
    match = _CALL.fullmatch(call)
    assert match, call
    name, action, terms, variable, elements = match.groups()
    return Reading(
        action,
        tuple(_term(term, variable) for term in terms.split(", ") if term),
        name or "",
        (_path(elements), variable) if variable else None,
    )


def _term(text: str, variable: str | None) -> Term:
    if text.startswith('"'):
        return Constant(json.loads(text))
    return _path(text) if text == variable or not text.isidentifier() else text


def _path(text: str) -> Path:
    call, *steps = text.replace("[", ".").replace("]", "").split(".")
    return Path(call, tuple(int(step) if step.isdigit() else step for step in steps))


# --- as the handbook writes them ------------------------------------------------------


def written(recipes: tuple[Recipe, ...]) -> JSON:
    """What stands behind `verify`."""
    if not recipes:
        return "arguments"
    ways = [_written_recipe(recipe) for recipe in recipes]
    return ways[0] if len(ways) == 1 else {"any": ways}


def _written_recipe(recipe: Recipe) -> JSON:
    calls = [_written_reading(reading) for reading in recipe]
    return calls[0] if len(calls) == 1 else {"all": calls}


def _written_reading(reading: Reading) -> JSON:
    call = f"{reading.action}({', '.join(written_term(term) for term in reading.terms)})"
    if not reading.name and reading.each is None:
        return call
    whole: dict[str, JSON] = {"call": call}
    if reading.name:
        whole["name"] = reading.name
    if reading.each is not None:
        path, variable = reading.each
        whole["for_each"] = f"{written_term(path)} as {variable}"
    return whole


def written_term(term: Term) -> str:
    if isinstance(term, Constant):
        return json.dumps(term.value)
    if isinstance(term, Path):
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in term.steps)
        return term.call + "".join(steps)
    return term


# --- as an executor makes them --------------------------------------------------------


def next_call(
    recipe: Recipe, values: Mapping[str, JSON], answers: Mapping[str, JSON]
) -> tuple[Reading, list[JSON]] | None:
    """The first call of the recipe that has no answer yet, with its arguments in order.

    ``answers`` has, by the reading's key, its answer; for a list, the answers so far.
    """
    for reading in recipe:
        key = reading.key
        if reading.each is None:
            if key not in answers:
                return reading, _evaluated(reading.terms, values, answers)
            continue
        path, variable = reading.each
        elements = follow(path, answers)
        if not isinstance(elements, list):
            return None
        done = answers.get(key, [])
        if len(done) < len(elements):
            here = {**answers, variable: elements[len(done)]}
            return reading, _evaluated(reading.terms, values, here)
    return None


def is_linked(recipe: Recipe) -> bool:
    return any(isinstance(term, Path) for reading in recipe for term in reading.terms)


def in_some_order(recipe: Recipe, rng: random.Random) -> Recipe:
    """The calls of a recipe may come in any order, unless one needs another's answer."""
    if len(recipe) < 2 or is_linked(recipe) or rng.random() < 0.5:
        return recipe
    return tuple(reversed(recipe))


def _evaluated(
    terms: tuple[Term, ...], values: Mapping[str, JSON], answers: Mapping[str, JSON]
) -> list[JSON]:
    found: list[JSON] = []
    for term in terms:
        if isinstance(term, Constant):
            found.append(term.value)
        elif isinstance(term, Path):
            found.append(follow(term, answers))
        else:
            found.append(values.get(term))
    return found


def follow(path: Path, answers: Mapping[str, JSON]) -> JSON:
    value = answers.get(path.call)
    for step in path.steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value
