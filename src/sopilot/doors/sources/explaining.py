"""Why a program looks as it does, as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sopilot.doors.sources._source import Unit
from sopilot.language.compiler import judged_by_model, unprovable
from sopilot.language.diagnostics.plain_text import counted
from sopilot.language.handbook import (
    OPERATORS,
    ActionCall,
    InOrder,
    Leaf,
    Name,
    Recipe,
    Tree,
    refused,
)
from sopilot.language.program.model import Function, Kind
from sopilot.language.render.sentences import condition_of


def explain(unit: Unit) -> dict[str, Any]:
    why = unit.explanation
    return {
        "guards": [
            {
                "gate": show_leaf(guard.leaf),
                "hoisted": guard.hoisted,
                "because": f"`{guard.action}` requires it, and {show_leaf(guard.needed_by)} "
                f"{'is opened' if _is_gate(unit, guard.needed_by) else 'is verified'} "
                f"by `{guard.action}`",
            }
            for guard in why.guards
        ],
        "recipes": [
            {
                "predicate": name,
                "chosen": show_recipe(ranked.chosen),
                "because": ranked.because or "no verifier is offered",
                "fallbacks": [show_recipe(recipe) for recipe in ranked.fallbacks],
                "notes": list(ranked.notes),
            }
            for name, ranked in why.recipes.items()
        ],
        "frames": [
            {
                "function": function.name,
                "kind": str(function.kind),
                "steps": len(function.steps),
                "because": next((g.because for g in why.groups if g.name == function.name), ""),
                "true_if": condition_of(function, "en") if function.kind is Kind.GROUP else "",
            }
            for function in unit.program.functions.values()
        ],
        "notes": [
            f"{function.name}: {_note(note)}"
            for function in unit.program.functions.values()
            for note in function.notes
        ]
        + [line for function in unit.program.functions.values() for line in _policy(function)]
        + [
            f"verifier {action} requires {show_leaf(leaf)}, which this procedure does not check"
            for action, leaf in why.unchecked
        ]
        + [
            f"{show_leaf(one.check)} needs {show_leaf(one.gate)}, which "
            + ("is opened only later" if one.later else "an `any` or `first` can leave shut")
            for one in why.unopened
        ]
        + [
            f"{_show_tree(one.what)} is dropped: {show_leaf(one.known)} is required before it"
            + (", so it cannot hold" if one.impossible else "")
            for one in why.dropped
        ]
        + [
            f"{_show_tree(one)} is checked only while nothing else holds: no tool verifies it"
            for one in why.postponed
        ]
        + [
            f"refused for {what}: "
            + (f"then start `{told}`" if told in unit.handbook.procedures else f"the words: {told}")
            for what, told in _refusals(why.tree)
        ]
        + [f"{one} is never asked: what is checked before it excludes it" for one in why.excluded]
        + [
            f"{unit.program.entry} may rest on a model's word for {name} (judged_by: model)"
            for name in judged_by_model(unit.program)
        ]
        + [
            f"{unit.program.entry} waits for a person where it needs {one.predicate}, unprovable"
            for one in unprovable(unit.program)
        ],
    }


def _refusals(tree: Tree) -> Iterator[tuple[str, str]]:
    """The parts that have an ``otherwise`` of their own, with it."""
    if isinstance(tree, Leaf):
        return
    if isinstance(tree, InOrder) and tree.otherwise:
        yield _show_tree(tree), tree.otherwise
    for child in tree.children:
        yield from _refusals(child)


def _policy(function: Function) -> list[str]:
    """What the machine does about a function beside calling its verifiers."""
    lines = []
    if function.computes:
        lines.append(f"{function.computes} is computed by the machine: {function.value}")
    if function.question:
        lines.append(f"{function.name}: the machine asks the user: {function.question}")
    if function.tells:
        lines.append(f"refused for {function.name}: the customer is told only: {function.tells}")
    if function.principal:
        lines.append(f"{function.name} is open for one customer at a time")
    if function.is_fact:
        lines.append(f"{function.name} is what was done in this session; nothing is called for it")
    return lines


def _is_gate(unit: Unit, leaf: Leaf) -> bool:
    return unit.handbook.predicates[leaf.predicate].is_gate


def show_leaf(leaf: Leaf) -> str:
    arguments = ", ".join(
        term.name if isinstance(term, Name) else repr(term.value) for _, term in leaf.arguments
    )
    return f"{'' if leaf.wanted else 'not '}{leaf.predicate}({arguments})"


def _show_tree(tree: Tree) -> str:
    if isinstance(tree, Leaf):
        return show_leaf(tree)
    if isinstance(tree, InOrder) and tree.otherwise:
        return _show_tree(refused(tree))
    return f"{OPERATORS[type(tree)]}[{', '.join(map(_show_tree, tree.children))}]"


def show_recipe(recipe: Recipe) -> str:
    return " + ".join(map(_show_call, recipe)) or "nothing"


def _show_call(call: ActionCall) -> str:
    each = f" for each {call.element} of {call.each}" if call.each is not None else ""
    return f"{call.action}{each}"


def _note(note: str) -> str:
    return note.replace("template: ", "asked for and judged in the words of the template ", 1)


def explanation_lines(why: dict[str, Any]) -> Iterator[str]:
    yield "  guards"
    for guard in why["guards"]:
        place = "put in front" if guard["hoisted"] else "already in the tree"
        yield f"    {guard['gate']}  ({place})\n      {guard['because']}"
    if not why["guards"]:
        yield "    none: no verifier needs a gate"
    yield "  recipes"
    for recipe in why["recipes"]:
        yield f"    {recipe['predicate']}: {recipe['chosen']}\n      {recipe['because']}"
        for fallback in recipe["fallbacks"]:
            yield f"      or: {fallback}"
    if not why["recipes"]:
        yield "    none: every predicate is a gate or needs no tool"
    yield "  frames"
    for frame in why["frames"]:
        because = f"  ({frame['because']})" if frame["because"] else ""
        steps = counted(frame["steps"], "step")
        yield f"    {frame['kind']:8} {frame['function']}, {steps}{because}"
        if frame["true_if"]:
            yield f"             true if {frame['true_if']}"
    if why["notes"]:
        yield "  notes"
        for note in why["notes"]:
            yield f"    {note}"
