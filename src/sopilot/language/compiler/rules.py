"""Rule subroutines: one function a predicate, polarity-neutral, evidence-bearing.

In:  a predicate and its ranked recipes.
Out: a function that makes the verifier calls and returns ``{holds, evidence}``,
     the observed truth of the predicate whatever truth the SOP wants.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.compiler._recipes import RankedRecipes
from sopilot.language.handbook import (
    BUILT_IN,
    Action,
    ActionCall,
    Constant,
    Input,
    Path,
    Predicate,
)
from sopilot.language.program.model import (
    Act,
    CallArgument,
    CallArguments,
    Function,
    Kind,
    Literal,
    Local,
    ReturnStep,
    Step,
    Unknown,
)

MISSING_RECIPE = "missing recipe"
"""In the notes of a rule that nothing on offer can verify."""


def rule_function(
    name: str,
    predicate: Predicate,
    recipes: RankedRecipes,
    actions: Mapping[str, Action],
    optional: tuple[str, ...] = (),
) -> Function:
    """``optional`` are parameters that may be without a value beside the predicate's own."""
    calls = recipes.chosen
    steps: list[Step] = []
    for number, call in enumerate(calls, 1):
        label = "verify" if len(calls) == 1 else f"verify_{number}"
        steps.append(recipe_act(label, call, predicate, actions))
    notes = recipes.notes
    if not calls and not predicate.tool_free:
        notes = (*notes, MISSING_RECIPE)
    steps.append(ReturnStep("judge"))
    return Function(
        name=name,
        kind=Kind.RULE,
        parameters=predicate.parameters,
        steps=tuple(steps),
        says=predicate.says,
        says_not=predicate.says_not,
        predicate=predicate.name,
        fallbacks=tuple(_fallback(recipe, predicate, actions) for recipe in recipes.fallbacks),
        verdict=predicate.verdict,
        remedy=predicate.remedy,
        tells=predicate.tells,
        notes=notes,
        judged_by_model=predicate.judged_by_model,
        computes=predicate.computes,
        value=predicate.value,
        optional=tuple(dict.fromkeys((*predicate.optional, *optional))),
        question=predicate.question,
    )


def recipe_act(
    label: str, call: ActionCall, predicate: Predicate, actions: Mapping[str, Action]
) -> Act:
    action, arguments = verifier_call(call, actions[call.action], predicate)
    return Act(
        label,
        action,
        arguments,
        name=call.name,
        each=call.each,
        element=call.element,
    )


def verifier_call(
    call: ActionCall, action: Action, predicate: Predicate
) -> tuple[str, CallArguments]:
    """The call under the predicate's own parameter names."""
    mapped = dict(call.arguments)
    arguments: list[tuple[str, CallArgument]] = []
    # What the machine itself carries out takes whatever the recipe gives it.
    own = tuple(Input(name) for name in mapped) if call.action in BUILT_IN else ()
    for item in own or action.inputs:
        term = mapped.get(item.name)
        if term is None:
            if item.required:
                arguments.append((item.name, Unknown(item.name)))
        elif term == Constant(None) and not item.required and not _takes_null(item):
            continue  # no value at all
        elif isinstance(term, Constant):
            arguments.append((item.name, Literal(term.value)))
        elif isinstance(term, Path):
            arguments.append((item.name, term))
        elif term.name in predicate.parameters:
            arguments.append((item.name, Local(term.name)))
        else:
            arguments.append((item.name, Unknown(term.name)))
    return call.action, tuple(arguments)


def _takes_null(item: Input) -> bool:
    kinds = (item.schema or {}).get("type", item.type)
    return kinds == "null" or (isinstance(kinds, list) and "null" in kinds)


def _fallback(
    recipe: tuple[ActionCall, ...], predicate: Predicate, actions: Mapping[str, Action]
) -> tuple[Act, ...]:
    return tuple(
        recipe_act(f"or_{number}", call, predicate, actions)
        for number, call in enumerate(recipe, 1)
    )
