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
    Leaf,
    Name,
    Recipe,
    Tree,
    otherwise_of,
    without_otherwise,
)
from sopilot.language.program.model import Act, Function, Kind, Program
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
        "notes": list(_notes(unit)),
    }


def _notes(unit: Unit) -> Iterator[str]:
    why, entry = unit.explanation, unit.program.entry
    functions = unit.program.functions.values()
    for function in functions:
        yield from (f"{function.name}: {_note(note)}" for note in function.notes)
    for function in functions:
        yield from _policy(function)
    for action, leaf in why.unchecked:
        yield f"verifier {action} requires {show_leaf(leaf)}, which this procedure does not check"
    for shut in why.unopened:
        how = "is opened only later" if shut.later else "an `any` or `first` can leave shut"
        yield f"{show_leaf(shut.check)} needs {show_leaf(shut.gate)}, which {how}"
    for one in why.dropped:
        never = ", so it cannot hold" if one.impossible else ""
        known = show_leaf(one.known)
        yield f"{_show_tree(one.what)} is dropped: {known} is required before it{never}"
    for tree in why.postponed:
        yield f"{_show_tree(tree)} is checked only while nothing else holds: no tool verifies it"
    for what, told in _refusals(why.tree):
        starts = told in unit.handbook.procedures
        yield f"refused for {what}: " + (f"then start `{told}`" if starts else f"the words: {told}")
    for name in why.excluded:
        yield f"{name} is never asked: what is checked before it excludes it"
    for name in judged_by_model(unit.program):
        yield f"{entry} may rest on a model's word for {name} (judged_by: model)"
    for lacking in unprovable(unit.program):
        yield f"{entry} waits for a person where it needs {lacking.predicate}, unprovable"
    for guard in unit.program.guarded:
        if guard.needed and guard.action in _acts(unit.program):
            people = f"{guard.needed} of: " if guard.needed > 1 or len(guard.roles) > 1 else ""
            where = f", where {guard.when}" if guard.when else ""
            yield f"{guard.action} is approved by {people}{', '.join(guard.roles)}{where}"


def _acts(program: Program) -> set[str]:
    steps = program.functions[program.entry].steps
    return {step.action for step in steps if isinstance(step, Act)}


def _refusals(tree: Tree) -> Iterator[tuple[str, str]]:
    """The parts that have an ``otherwise`` of their own, with it."""
    if isinstance(tree, Leaf):
        return
    if otherwise := otherwise_of(tree):
        yield _show_tree(tree), otherwise
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
    if otherwise_of(tree):
        return _show_tree(without_otherwise(tree))
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
        yield f"    {guard['gate']}  ({place})"
        yield f"      {guard['because']}"
    if not why["guards"]:
        yield "    none: no verifier needs a gate"
    yield "  recipes"
    for recipe in why["recipes"]:
        yield f"    {recipe['predicate']}: {recipe['chosen']}"
        yield f"      {recipe['because']}"
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
