"""Recipes whose calls look into earlier answers, read from the results alone.

Written apart from the machine's own evaluation of recipes, so that a mistake there cannot
hide in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sopilot.language.handbook import Path
from sopilot.language.program.model import Act, Literal, Unknown
from sopilot.runtime.audit._state import FrameView, ProcessView, SeenResult
from sopilot.runtime.vm.values import JSON, MISSING, Missing

Wanted = dict[str, JSON]
"""Input → the value that a call must have; an input that is not there may have any."""


def is_linked(act: Act) -> bool:
    return act.each is not None or any(isinstance(term, Path) for _, term in act.arguments)


def recipe_of(frame: FrameView, act: Act) -> tuple[Act, ...]:
    for recipe in frame.code.recipes:
        if any(one is act for one in recipe):
            return recipe
    return (act,)


def wanted_by(
    process: ProcessView, frame: FrameView, act: Act, results: Sequence[SeenResult]
) -> list[Wanted] | None:
    """One for each call that ``act`` stands for; ``None`` while an answer before it is missing."""
    answers: dict[str, JSON] = {}
    for earlier in recipe_of(frame, act):
        if earlier is act:
            break
        found = _answer(process, frame, earlier, answers, results)
        if found is not MISSING:
            answers[earlier.answer] = found
    return _wanted(process, frame, act, answers)


def read_recipe(
    process: ProcessView, frame: FrameView, recipe: Sequence[Act], results: Sequence[SeenResult]
) -> dict[str, JSON] | None:
    """The answers of a recipe by name; ``None`` while one is missing."""
    answers: dict[str, JSON] = {}
    for act in recipe:
        found = _answer(process, frame, act, answers, results)
        if found is MISSING:
            return None
        answers[act.answer] = found
    return answers


def _answer(
    process: ProcessView,
    frame: FrameView,
    act: Act,
    answers: Mapping[str, JSON],
    results: Sequence[SeenResult],
) -> JSON | Missing:
    wanted = _wanted(process, frame, act, answers)
    if wanted is None:
        return MISSING
    values: list[JSON] = []
    for one in wanted:
        fitting = [r for r in results if r.action == act.action and meets(process, one, r)]
        newest = fitting[-1] if fitting else None
        if newest is None or not (newest.ok or isinstance(newest.value, bool)):
            return MISSING
        values.append(newest.value)
    return values if act.each is not None else values[0]


def meets(process: ProcessView, wanted: Wanted, result: SeenResult) -> bool:
    for name, value in wanted.items():
        if name not in result.arguments:
            if value is not None:
                return False
        elif not process.say_the_same(value, result.arguments[name]):
            return False
    return True


def _wanted(
    process: ProcessView, frame: FrameView, act: Act, answers: Mapping[str, JSON]
) -> list[Wanted] | None:
    scopes: list[Mapping[str, JSON]] = [answers]
    if act.each is not None:
        listed = at_place(act.each, answers)
        if not isinstance(listed, list):
            return None
        scopes = [{**answers, act.element: item} for item in listed]
    wanted: list[Wanted] = []
    for scope in scopes:
        one: Wanted = {}
        for name, term in act.arguments:
            if isinstance(term, Literal):
                one[name] = term.value
            elif isinstance(term, Path):
                found = at_place(term, scope)
                if found is MISSING or found is None:
                    return None
                one[name] = found
            else:
                value = process.value_of(term, frame)
                if value is not MISSING and not isinstance(term, Unknown):
                    one[name] = value
        wanted.append(one)
    return wanted


def at_place(path: Path, answers: Mapping[str, JSON]) -> JSON | Missing:
    """What the answers have there, or ``MISSING``."""
    value: JSON | Missing = answers.get(path.root, MISSING)
    for step in path.steps:
        if isinstance(step, str):
            value = value.get(step, MISSING) if isinstance(value, Mapping) else MISSING
        else:
            inside = value if isinstance(value, list) else []
            value = inside[step] if step < len(inside) else MISSING
    return value
