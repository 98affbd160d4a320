"""Why a program looks as it does, and a source in the form that a model would see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sopilot.compiler.recipes import judged_by_model, shared_state, unprovable
from sopilot.files.text import is_program_file, load_program
from sopilot.handbook.model import Handbook, Procedure, Recipe
from sopilot.handbook.requirements import OPERATORS, Leaf, Tree, otherwise_of, without_otherwise
from sopilot.messages.diagnostic import Place, did_you_mean
from sopilot.messages.errors import UserMistake, mistake
from sopilot.program.model import Act, Function, Kind, Program
from sopilot.program.printer import print_program
from sopilot.runner.sources import Unit, compile_source
from sopilot.values.text import counted
from sopilot.views.check_sentences import condition_of
from sopilot.views.frame import render_function
from sopilot.views.program_text import COMPILED, RENDERINGS, Correspondence, correspondence, render


def explain(unit: Unit) -> dict[str, Any]:
    why, predicates = unit.explanation, unit.handbook.predicates
    return {
        "prerequisites": [
            {
                "gate": str(guard.leaf),
                "hoisted": guard.hoisted,
                "because": f"`{guard.action}` requires it, and {guard.needed_by} "
                f"is {'opened' if predicates[guard.needed_by.predicate].is_gate else 'verified'} "
                f"by `{guard.action}`",
            }
            for guard in why.guards
        ],
        "recipes": [
            {
                "predicate": name,
                "chosen": _show_recipe(ranked.chosen),
                "because": ranked.because or "no verifier is offered",
                "fallbacks": [_show_recipe(recipe) for recipe in ranked.fallbacks],
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
        for note in function.notes:
            words = "asked and judged in the words of the template "
            yield f"{function.name}: {note.replace('template: ', words, 1)}"
    for function in functions:
        yield from _policy(function)
    for action, leaf in why.unchecked:
        yield f"verifier {action} requires {leaf}, which this procedure does not check"
    for shut in why.unopened:
        how = "is opened only later" if shut.later else "an `any` or `first` can leave shut"
        yield f"{shut.check} needs {shut.gate}, which {how}"
    for item in why.dropped:
        never = ", so it can never be true" if item.impossible else ""
        known = str(item.known)
        yield f"{_show_tree(item.what)} is dropped: {known} is required before it{never}"
    for tree in why.postponed:
        yield f"{_show_tree(tree)} is checked only if nothing else is true: no tool verifies it"
    for what, message in _refusals(why.tree):
        starts = message in unit.handbook.procedures
        yield f"refused for {what}: " + (
            f"then start `{message}`" if starts else f"the words: {message}"
        )
    for name in why.excluded:
        yield f"{name} is never asked: what is checked before it excludes it"
    for name in judged_by_model(unit.program):
        yield f"{entry} may rely on a model's judgement of {name} (judged_by: model)"
    for name in shared_state(unit.program):
        yield f"{entry} may use {name} from an earlier connection (state: shared)"
    for lacking in unprovable(unit.program):
        name = lacking.predicate
        yield f"{entry} waits for a person where it needs {name}, which sopilot can't prove"
    for guard in unit.program.guarded:
        if guard.needed and guard.action in _acts(unit.program):
            people = f"{guard.needed} of: " if guard.needed > 1 or len(guard.roles) > 1 else ""
            condition = f", if {guard.when}" if guard.when else ""
            yield f"{guard.action} is approved by {people}{', '.join(guard.roles)}{condition}"


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
    """How the runtime treats a function, apart from calling its verifiers."""
    lines = []
    if function.computes:
        lines.append(f"{function.computes} is computed by the runtime: {function.value}")
    if function.question:
        lines.append(f"{function.name}: the runtime asks the user: {function.question}")
    if function.reusable:
        lines.append(f"{function.name}: one answer of the user serves several calls")
    if function.customer_message:
        lines.append(
            f"refused for {function.name}: the customer is told only: {function.customer_message}"
        )
    if function.principal:
        lines.append(f"{function.name} is open for one customer at a time")
    if function.is_fact:
        lines.append(
            f"{function.name} is true once its call succeeded in this session; sopilot never makes "
            "the call"
        )
    return lines


def _show_tree(tree: Tree) -> str:
    if isinstance(tree, Leaf):
        return str(tree)
    if otherwise_of(tree):
        return _show_tree(without_otherwise(tree))
    return f"{OPERATORS[type(tree)]}[{', '.join(map(_show_tree, tree.children))}]"


def _show_recipe(recipe: Recipe) -> str:
    calls = (
        f"{call.action} for each {call.element} of {call.each}" if call.each else call.action
        for call in recipe
    )
    return " + ".join(calls) or "nothing"


def explanation_lines(why: dict[str, Any]) -> Iterator[str]:
    yield "  prerequisites"
    for each in why["prerequisites"]:
        place = "put in front" if each["hoisted"] else "already in the tree"
        yield f"    {each['gate']}  ({place})"
        yield f"      {each['because']}"
    if not why["prerequisites"]:
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


FORMS = ("frame", "listing", *RENDERINGS)
Shown = str | dict[str, str]
OF_PROGRAMS = ("frame", "listing", *COMPILED)
"""Forms that need no more than the program; the others word the handbook's own trees."""


def shown(
    source: str,
    form: str,
    *,
    goal: str | None = None,
    language: str = "en",
    tools: str | None = None,
) -> dict[str, Shown]:
    """Every procedure in this form, by its label; of frames one text a function."""
    if form not in FORMS:
        raise UserMistake(f"--as: `{form}` isn't a form; {did_you_mean(form, FORMS)}")
    if is_program_file(source):
        if form not in OF_PROGRAMS:
            raise needs_handbook(source, form)
        program = load_program(Path(source))
        # These forms take nothing but the names from them.
        handbook = Handbook(program.source.handbook)
        procedure = Procedure(program.entry, program.entry)
        text = _text(form, handbook, procedure, program, language)
        return {f"{source}/{program.entry}": text}
    return {
        unit.label: unit.own_text(language)(form)
        or _text(form, unit.handbook, unit.procedure, unit.program, language)
        for unit in compile_source(source, tools=tools, goal=goal)
    }


def _text(
    form: str,
    handbook: Handbook,
    procedure: Procedure,
    program: Program,
    language: str,
) -> Shown:
    if form == "listing":
        return print_program(program)
    if form != "frame":
        return render(form, handbook, procedure, program, language)
    return {
        name: render_function(function, program, language)
        for name, function in program.functions.items()
    }


def needs_handbook(source: str, what: str) -> UserMistake:
    return mistake(
        "program-not-handbook",
        f"`{what}` needs the handbook's own words, but this is a compiled program",
        Place(source),
        f"name the handbook's file, or show the program as {', '.join(OF_PROGRAMS)}",
    )


def correspondences(
    source: str, *, goal: str | None, tools: str | None
) -> dict[str, Correspondence]:
    """Whether every rendering quotes the same sentences, by label."""
    if is_program_file(source):
        raise needs_handbook(source, "--check")
    return {
        unit.label: correspondence(unit.handbook, unit.procedure, unit.program)
        for unit in compile_source(source, tools=tools, goal=goal)
    }


def correspondence_json(result: Mapping[str, Correspondence]) -> dict[str, object]:
    return {
        "sources": len(result),
        "leaves": sum(item.leaves for item in result.values()),
        "mismatches": {
            label: list(map(str, item.mismatches))
            for label, item in result.items()
            if item.mismatches
        },
    }


def correspondence_lines(result: Mapping[str, Correspondence]) -> Iterator[str]:
    broken = {label: item.mismatches for label, item in result.items() if item.mismatches}
    for label, mismatches in broken.items():
        yield f"{label}: {len(mismatches)} sentences differ: {mismatches[0]}"
    yield (
        f"{len(result)} procedures, {sum(item.leaves for item in result.values())} leaf "
        f"correspondences checked, {sum(map(len, broken.values()))} mismatches"
    )
