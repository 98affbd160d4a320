"""What a procedure has to check: its own tree, and what its goal action requires anyway."""

from __future__ import annotations

from sopilot.language.handbook._model import (
    Action,
    Handbook,
    Procedure,
    computed_name,
    confirmation,
    confirmed_name,
)
from sopilot.language.handbook._tree import NOTHING, All, InOrder, Leaf, Name, Tree, substitute


def obligations(handbook: Handbook, procedure: Procedure) -> Tree:
    """The procedure's tree, joined by the goal action's ``requires`` where that says more.

    An action's requirement binds every call of it, so a procedure that leaves it
    out does not lift it.
    """
    action = handbook.actions[procedure.action]
    tree = _required(action, procedure)
    return with_made(handbook, procedure, tree)


def with_made(handbook: Handbook, procedure: Procedure, tree: Tree) -> Tree:
    """The tree, and behind it what the procedure computes and confirms."""
    last: list[Tree] = [
        Leaf(name, tuple((one, Name(one)) for one in handbook.predicates[name].parameters))
        for name in _made(handbook.actions[procedure.action], procedure)
    ]
    return InOrder((tree, *last)) if last else tree


def _required(action: Action, procedure: Procedure) -> Tree:
    if action.requires in (NOTHING, procedure.requires):
        return procedure.requires
    demanded = substitute(action.requires, dict(procedure.arguments))
    if demanded == procedure.requires:
        return procedure.requires
    # What binds every call, such as who owns it, comes first: strangers learn no details.
    return All((demanded, procedure.requires))


def _made(action: Action, procedure: Procedure) -> list[str]:
    """What is computed and what is confirmed come last: nothing is confirmed that is refused."""
    names = [computed_name(procedure, one) for one in procedure.computed]
    if confirmation(procedure, action) is not None:
        names.append(confirmed_name(procedure))
    return names
