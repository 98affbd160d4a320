"""What a procedure has to check: its own tree, and what its goal action requires anyway."""

from __future__ import annotations

from sopilot.language.handbook._model import Handbook, Procedure
from sopilot.language.handbook._tree import NOTHING, All, Tree, substitute


def obligations(handbook: Handbook, procedure: Procedure) -> Tree:
    """The procedure's tree, joined by the goal action's ``requires`` where that says more.

    An action's requirement binds every call of it, so a procedure that leaves it
    out does not lift it.
    """
    action = handbook.actions[procedure.action]
    if action.requires in (NOTHING, procedure.requires):
        return procedure.requires
    demanded = substitute(action.requires, dict(procedure.arguments))
    if demanded == procedure.requires:
        return procedure.requires
    return All((procedure.requires, demanded))
