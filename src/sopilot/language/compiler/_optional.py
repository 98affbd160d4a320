"""Parameters of a predicate that may be without a value.

In:  the leaves of a procedure, and what a call of its action may leave out.
Out: for each predicate the parameters that are `null` or left out wherever the procedure uses
     it, and for which its author says what that means: the verdict compares the parameter with
     `null`, or does not read it; a recipe hands it on to inputs that may be left out, and a
     call without it is then the call that is wanted.

Anything else stays undecided where there is no value, as P1 wants it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from sopilot.language.compiler._goal import goal_terms
from sopilot.language.handbook import (
    Action,
    ActionCall,
    Binding,
    Leaf,
    Name,
    Path,
    Predicate,
    Procedure,
    free_names,
)


def left_out(procedure: Procedure, action: Action, terms: Binding | None = None) -> dict[str, str]:
    """Names of a procedure that a call of its action may leave out, each with its input;
    ``terms`` are those of its goal, where they are known already."""
    bound = dict(goal_terms(action, procedure) if terms is None else terms)
    given = {item.name for item in procedure.inputs if item.required}
    given |= {one.name for one in procedure.computed}
    found = {
        term.name: item.name
        for item in action.inputs
        if not item.required and isinstance(term := bound[item.name], Name)
    }
    return {name: item for name, item in found.items() if name not in given}


def optional_parameters(
    required: Iterable[Leaf],
    open_names: Collection[str],
    predicates: Mapping[str, Predicate],
    actions: Mapping[str, Action],
) -> dict[str, tuple[str, ...]]:
    """By predicate."""
    given = [(leaf.predicate, *one) for leaf in required for one in leaf.arguments]
    empty = [
        (name, parameter)
        for name, parameter, term in given
        if (term.name in open_names if isinstance(term, Name) else term.value is None)
    ]
    found: dict[str, tuple[str, ...]] = {}
    for name, parameter in dict.fromkeys(empty):
        always = empty.count((name, parameter)) == sum(
            one[:2] == (name, parameter) for one in given
        )
        if always and _has_meaning_without(predicates[name], parameter, actions):
            found[name] = (*found.get(name, ()), parameter)
    return found


def optional_names(
    names: Iterable[str], required: Sequence[Leaf], optional: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """The names, of these, that every check may be without."""
    if not optional:
        return ()
    needed = {
        term
        for leaf in required
        for parameter, term in leaf.arguments
        if parameter not in optional.get(leaf.predicate, ())
    }
    may = {
        term
        for leaf in required
        for parameter, term in leaf.arguments
        if parameter in optional.get(leaf.predicate, ())
    }
    return tuple(name for name in names if Name(name) in may - needed)


def _has_meaning_without(
    predicate: Predicate, parameter: str, actions: Mapping[str, Action]
) -> bool:
    """Whether its author says what holds where the parameter has no value."""
    verdict = predicate.verdict
    return (
        verdict is not None
        and not predicate.is_gate
        and predicate.computes != parameter
        and (parameter not in free_names(verdict) or _compared(verdict, parameter))
        and not any(_needs(call, parameter, actions) for one in predicate.recipes for call in one)
    )


def _needs(call: ActionCall, parameter: str, actions: Mapping[str, Action]) -> bool:
    """Whether the call is not the one that is wanted without the parameter."""
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
