"""Where the values of a recipe come from: every name has an origin, or the recipe is refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sopilot.language.handbook._model import Action, ActionCall, Predicate, Recipe
from sopilot.language.handbook._tree import Constant, Name, Origin, Path


@dataclass(frozen=True, slots=True)
class OriginProblem:
    code: str
    message: str
    help: str = ""
    about: str = ""


def resolved_recipe(
    recipe: Recipe,
    parameters: Collection[str],
    asks: Collection[str],
    what: str,
    constants: Collection[str] = (),
) -> tuple[Recipe, list[OriginProblem]]:
    """The recipe with every bare name that means an answer written as a path.

    ``constants`` are the handbook's parameters, which the reader has put in already.
    """
    taken = {*parameters, *asks, *constants}
    problems: list[OriginProblem] = []
    answers: dict[str, None] = {}
    calls: list[ActionCall] = []
    for call in recipe:
        known = {**answers, call.element: None} if call.each is not None else dict(answers)
        if call.each is not None and call.each.root not in {*answers, *parameters}:
            problems.append(_no_answer(call.each.root, answers))
        if call.element and (call.element in taken or call.element in answers):
            message = f"`{call.element}` names something else already in {what}"
            help = "call the element otherwise"
            problems.append(OriginProblem("two-meanings", message, help, call.element))
        if call.name in taken:
            message = f"`{call.name}` names something else already in {what}"
            problems.append(
                OriginProblem("two-meanings", message, "call the answer otherwise", call.name)
            )
        arguments: list[tuple[str, Origin]] = []
        for name, term in call.arguments:
            origin, problem = _origin(term, parameters, asks, known, what)
            arguments.append((name, origin))
            if problem is not None:
                problems.append(problem)
        if call.answer in answers:
            message = f"two answers of the recipe are called `{call.answer}`"
            help = f"give each a name: `{{call: {call.action}(…), name: first}}`"
            problems.append(OriginProblem("two-answers", message, help, call.answer))
        answers[call.answer] = None
        resolved = tuple(arguments)
        calls.append(call if resolved == call.arguments else replace(call, arguments=resolved))
    return tuple(calls), problems


def _origin(
    term: Origin,
    parameters: Collection[str],
    asks: Collection[str],
    known: Mapping[str, None],
    what: str,
) -> tuple[Origin, OriginProblem | None]:
    if isinstance(term, Constant):
        return term, None
    if isinstance(term, Path):
        rooted = term.root in known or term.root in parameters
        return term, None if rooted else _no_answer(term.root, known)
    if term.name in parameters or term.name in asks:
        return term, None
    if term.name in known:
        return Path(term.name), None
    return term, no_origin(term.name, what, known)


def no_origin(name: str, what: str, answers: Collection[str]) -> OriginProblem:
    message = f"`{name}` has no origin: nothing says where {what} takes it from"
    last = next(reversed(list(answers)), None)
    path = f"write `{last}.{name}` if `{last}` answers it, " if last else ""
    return OriginProblem(
        "no-origin",
        message,
        f"make it a parameter of the predicate, {path}or list it under `ask` if the user says it",
        name,
    )


def _no_answer(root: str, answers: Collection[str]) -> OriginProblem:
    known = ", ".join(f"`{one}`" for one in answers)
    return OriginProblem(
        "no-origin",
        f"`{root}` is neither an earlier answer of this recipe nor a parameter",
        f"known here: {known}" if known else "a path leads into an earlier call's answer",
        root,
    )


def missing_inputs(
    predicate: Predicate, actions: Mapping[str, Action]
) -> list[tuple[ActionCall, str]]:
    """Required inputs that no argument of a verifier's call gives."""
    return [
        (call, item.name)
        for recipe in predicate.recipes
        for call in recipe
        for item in (actions[call.action].inputs if call.action in actions else ())
        if item.required and item.name not in dict(call.arguments)
    ]


def asked(predicate: Predicate, call: ActionCall) -> tuple[str, ...]:
    """The names of a call that only the user can give a value for."""
    return tuple(
        term.name
        for _, term in call.arguments
        if isinstance(term, Name) and term.name not in predicate.parameters
    )
