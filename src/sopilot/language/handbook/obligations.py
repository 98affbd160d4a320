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
from sopilot.language.handbook._tree import (
    NOTHING,
    All,
    InOrder,
    Leaf,
    Name,
    Tree,
    leaves,
    otherwise_of,
    substitute,
)


def obligations(handbook: Handbook, procedure: Procedure) -> Tree:
    """The procedure's tree, joined by the goal action's ``requires`` where that says more.

    An action's requirement binds every call of it, so a procedure that leaves it
    out does not lift it.
    """
    action = handbook.actions[procedure.action]
    tree = _required(action, procedure)
    return with_made(handbook, procedure, tree)


def with_made(handbook: Handbook, procedure: Procedure, tree: Tree) -> Tree:
    """The tree with what the procedure computes, before what reads it, and behind it all what it
    confirms: nothing is confirmed that is refused."""
    leaves_made = {
        name: Leaf(name, tuple((one, Name(one)) for one in handbook.predicates[name].parameters))
        for name in _made(handbook.actions[procedure.action], procedure)
    }
    for one in procedure.computed:
        if _reads(tree, one.name):
            tree = _before_use(tree, one.name, leaves_made.pop(computed_name(procedure, one)))
    return InOrder((tree, *leaves_made.values())) if leaves_made else tree


def _before_use(tree: Tree, name: str, made: Leaf) -> Tree:
    """As late as can be: what comes before it may have kept a stranger out."""
    if not isinstance(tree, All | InOrder) or otherwise_of(tree):
        return InOrder((made, tree))
    using = [child for child in tree.children if _reads(child, name)]
    before: tuple[Tree, ...]
    behind: tuple[Tree, ...] = ()
    if isinstance(tree, InOrder):
        at = tree.children.index(using[0])
        before, behind = tree.children[:at], tree.children[at + 1 :]
    else:
        # Their order stays free: a gate among them comes first.
        rest = tuple(child for child in tree.children if child not in using)
        before = (All(rest),) if rest else ()
        if len(using) > 1:
            return InOrder((*before, made, All(tuple(using))))
    own = _before_use(using[0], name, made)
    spliced = own.children if isinstance(own, InOrder) else (own,)
    return InOrder((*before, *spliced, *behind))


def _reads(tree: Tree, name: str) -> bool:
    return any(Name(name) == term for leaf in leaves(tree) for _, term in leaf.arguments)


def _required(action: Action, procedure: Procedure) -> Tree:
    if action.requires in (NOTHING, procedure.requires):
        return procedure.requires
    demanded = substitute(action.requires, dict(procedure.arguments))
    if demanded == procedure.requires:
        return procedure.requires
    # What binds every call, such as who owns it, comes first: strangers learn no details.
    return All((demanded, procedure.requires))


def _made(action: Action, procedure: Procedure) -> list[str]:
    names = [computed_name(procedure, one) for one in procedure.computed]
    if confirmation(procedure, action) is not None:
        names.append(confirmed_name(procedure))
    return names
