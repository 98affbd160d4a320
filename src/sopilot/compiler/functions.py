"""Rules and gates: one function per predicate.

In:  a predicate and its ranked recipes.
Out: a function that makes the verifier calls or opens the gate, and returns ``{holds, evidence}``,
     the observed truth. A gate's frame stays on the stack while the user answers. Two templates
     cover every gate: ``login`` opens the first gate, ``second_factor`` one behind another gate.

A parameter is optional if the procedure may leave it without a value and the predicate defines what
that means: the verdict compares it with `null` or doesn't read it, and recipes pass it only to
optional inputs. Otherwise a missing value leaves the predicate undecided (P1).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sopilot.compiler.prerequisites import required_gates
from sopilot.compiler.recipes import RankedRecipes
from sopilot.compiler.schedule import goal_terms
from sopilot.handbook.expressions import free_names
from sopilot.handbook.model import BUILT_IN, Action, ActionCall, Input, Predicate, Procedure
from sopilot.handbook.requirements import Binding, Constant, Leaf, Name, Path, Term
from sopilot.program.model import (
    MISSING_RECIPE,
    Act,
    Ask,
    CallArgument,
    CallArguments,
    Function,
    Kind,
    Local,
    ReturnStep,
    Step,
    Unknown,
)


def left_out(procedure: Procedure, action: Action, terms: Binding | None = None) -> dict[str, str]:
    """Names of a procedure that a call of its action may leave out, each with its input;
    ``terms`` are those of its goal, where they are known already."""
    bound = dict(goal_terms(action, procedure) if terms is None else terms)
    names = {item.name for item in procedure.inputs if item.required}
    names |= {item.name for item in procedure.computed}
    results = {
        term.name: item.name
        for item in action.inputs
        if not item.required and isinstance(term := bound[item.name], Name)
    }
    return {name: item for name, item in results.items() if name not in names}


def optional_parameters(
    required: Iterable[Leaf],
    open_names: Collection[str],
    predicates: Mapping[str, Predicate],
    actions: Mapping[str, Action],
) -> dict[str, tuple[str, ...]]:
    """Predicate → its parameters that may have no value in this procedure."""
    values = [(leaf.predicate, *argument) for leaf in required for argument in leaf.arguments]
    empty = [
        (name, parameter)
        for name, parameter, term in values
        if (term.name in open_names if isinstance(term, Name) else term.value is None)
    ]
    result: dict[str, tuple[str, ...]] = {}
    for name, parameter in dict.fromkeys(empty):
        always = empty.count((name, parameter)) == sum(
            item[:2] == (name, parameter) for item in values
        )
        if always and _has_meaning_without(predicates[name], parameter, actions):
            result[name] = (*result.get(name, ()), parameter)
    return result


def optional_names(
    names: Iterable[str], required: Sequence[Leaf], optional: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Those names that no check needs."""
    if not optional:
        return ()
    needed, may = set[Term](), set[Term]()
    for leaf in required:
        for parameter, term in leaf.arguments:
            (may if parameter in optional.get(leaf.predicate, ()) else needed).add(term)
    return tuple(name for name in names if Name(name) in may - needed)


def _has_meaning_without(
    predicate: Predicate, parameter: str, actions: Mapping[str, Action]
) -> bool:
    """Whether the verdict is defined when the parameter has no value."""
    verdict = predicate.verdict
    return (
        verdict is not None
        and not predicate.is_gate
        and predicate.computes != parameter
        and (parameter not in free_names(verdict) or _compared(verdict, parameter))
        and not any(
            _needs(call, parameter, actions) for recipe in predicate.recipes for call in recipe
        )
    )


def _needs(call: ActionCall, parameter: str, actions: Mapping[str, Action]) -> bool:
    """Whether the call can't be made without the parameter."""
    declared = actions.get(call.action)  # the machine's own questions are no actions
    loose = {item.name for item in declared.inputs if not item.required} if declared else ()
    read = [term for _, term in call.arguments if isinstance(term, Path)]
    read += [call.each] if call.each is not None else []
    handed_on = [name for name, term in call.arguments if term == Name(parameter)]
    return any(path.root == parameter for path in read) or not set(handed_on).issubset(loose)


def _compared(verdict: str, name: str) -> bool:
    other = rf"(?<![\w.]){re.escape(name)}"
    return (
        re.search(rf"{other}\s*[!=]=\s*null\b|\bnull\s*[!=]=\s*{other}(?!\w)", verdict) is not None
    )


def _judging(
    name: str, kind: Kind, predicate: Predicate, steps: Sequence[Step], **more: Any
) -> Function:
    """A function that takes these steps and then judges the predicate."""
    return Function(
        name=name,
        kind=kind,
        parameters=predicate.parameters,
        steps=(*steps, ReturnStep("judge")),
        says=predicate.says,
        says_not=predicate.says_not,
        predicate=predicate.name,
        remedy=predicate.remedy,
        customer_message=predicate.customer_message,
        **more,
    )


def rule_function(
    name: str,
    predicate: Predicate,
    recipes: RankedRecipes,
    actions: Mapping[str, Action],
    optional: tuple[str, ...] = (),
) -> Function:
    """``optional`` are parameters that may have no value, beside the predicate's own."""
    calls = recipes.chosen
    steps: list[Step] = []
    for number, call in enumerate(calls, 1):
        label = "verify" if len(calls) == 1 else f"verify_{number}"
        steps.append(recipe_act(label, call, predicate, actions))
    notes = recipes.notes
    if not calls and not predicate.tool_free:
        notes = (*notes, MISSING_RECIPE)
    return _judging(
        name,
        Kind.RULE,
        predicate,
        steps,
        fallbacks=tuple(
            tuple(
                recipe_act(f"or_{number}", call, predicate, actions)
                for number, call in enumerate(recipe, 1)
            )
            for recipe in recipes.fallbacks
        ),
        verdict=predicate.verdict,
        notes=notes,
        judged_by_model=predicate.judged_by_model,
        computes=predicate.computes,
        value=predicate.value,
        optional=tuple(dict.fromkeys((*predicate.optional, *optional))),
        question=predicate.question,
        reusable=predicate.reusable,
    )


def recipe_act(
    label: str, call: ActionCall, predicate: Predicate, actions: Mapping[str, Action]
) -> Act:
    return Act(
        label,
        call.action,
        verifier_arguments(call, actions[call.action], predicate),
        name=call.name,
        each=call.each,
        element=call.element,
    )


def verifier_arguments(call: ActionCall, action: Action, predicate: Predicate) -> CallArguments:
    """The arguments of the call under the predicate's own parameter names."""
    mapped = dict(call.arguments)
    arguments: list[tuple[str, CallArgument]] = []
    # Built-in questions take whatever the recipe gives them.
    own = tuple(Input(name) for name in mapped) if call.action in BUILT_IN else ()
    for item in own or action.inputs:
        term = mapped.get(item.name)
        if term is None:
            if item.required:
                arguments.append((item.name, Unknown(item.name)))
        elif term == Constant(None) and not item.required and not _takes_null(item):
            continue  # no value at all
        elif isinstance(term, Constant | Path):
            arguments.append((item.name, term))
        elif term.name in predicate.parameters:
            arguments.append((item.name, Local(term.name)))
        else:
            arguments.append((item.name, Unknown(term.name)))
    return tuple(arguments)


def _takes_null(item: Input) -> bool:
    kinds = (item.schema or {}).get("type", item.type)
    return kinds == "null" or (isinstance(kinds, list) and "null" in kinds)


def gate_function(
    name: str,
    predicate: Predicate,
    actions: Mapping[str, Action],
    predicates: Mapping[str, Predicate],
    offered: frozenset[str],
) -> Function:
    call = predicate.established_by
    assert call is not None
    behind_a_gate = required_gates(actions[call.action].requires, predicates)
    template = "second_factor" if behind_a_gate else "login"
    arguments = verifier_arguments(call, actions[call.action], predicate)
    wants = tuple(dict.fromkeys(term.name for _, term in arguments if isinstance(term, Unknown)))
    steps: list[Step] = []
    if wants:
        steps.append(Ask("ask", wants))
    steps.append(Act("establish", call.action, arguments))
    notes: tuple[str, ...] = (f"template: {template}",)
    if call.action not in offered:
        notes = (*notes, f"{call.action} is not offered, so the gate cannot be opened")
    return _judging(
        name,
        Kind.GATE,
        predicate,
        steps,
        verdict=predicate.verdict,
        notes=notes,
        closed_by=recipe_act("close", predicate.closed_by, predicate, actions)
        if predicate.closed_by is not None
        else None,
        principal=predicate.principal,
    )


def done_function(name: str, predicate: Predicate, actions: Mapping[str, Action]) -> Function:
    """A fact of this session: true from the success of a call that no check makes."""
    assert predicate.done is not None
    fallbacks = ((recipe_act("done", predicate.done, predicate, actions),),)
    return _judging(name, Kind.GATE, predicate, (), fallbacks=fallbacks)
