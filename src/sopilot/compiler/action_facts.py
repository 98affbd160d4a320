"""Facts of actions for proofs: types of their inputs, what they change and read.

In:  the handbook's actions, predicates and procedures.
Out: facts per action, the types of a procedure's own names, guards and secret names.

An action that verifies, or opens or shuts a gate, changes nothing but gates, unless it is guarded,
a procedure's goal, or declares otherwise. Every other action may change everything. See
``design/proof.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, product

from sopilot.compiler.prerequisites import CONJUNCTION
from sopilot.compiler.schedule import argument_of, guard_of
from sopilot.handbook.model import (
    ASK_USER,
    BUILT_IN,
    CONFIRM,
    Action,
    Handbook,
    Input,
    Predicate,
    asked_about,
)
from sopilot.handbook.requirements import CallBinding, Leaf, Name, Path, Tree, leaves
from sopilot.program.model import ActionFacts, Guarded, Prerequisite
from sopilot.values.schema import READ

Schema = Mapping[str, object]


_BUILT_IN = {
    # An answer stays true; a yes is about the state in which it was given.
    ASK_USER: ActionFacts({}, (), (), ()),
    CONFIRM: ActionFacts({}, (), (), None),
}


def secret_names(handbook: Handbook) -> tuple[str, ...]:
    """The secret inputs and fields of answers, every name whose value becomes one of them,
    through any number of predicates, and every name that such a value then has. A trace knows a
    secret by its name, so only names are followed."""
    declared = [item for action in handbook.actions.values() for item in action.inputs]
    declared += [item for procedure in handbook.procedures.values() for item in procedure.inputs]
    hidden = {item.name for item in declared if item.secret}
    hidden |= {name for action in handbook.actions.values() for name in action.secrets}
    if not hidden:
        return ()
    flows = set(_flows(handbook))
    _spread(hidden, {(target, source) for source, target in flows})
    _spread(hidden, flows)
    hidden |= {asked_about(question, name) for question in BUILT_IN for name in hidden}
    return tuple(sorted(hidden))


def _flows(handbook: Handbook) -> Iterator[tuple[str, str]]:
    """Pairs of names: a value with the first name is passed on under the second. The name of a path
    is its last key."""
    trees = [procedure.requires for procedure in handbook.procedures.values()]
    trees += [action.requires for action in handbook.actions.values()]
    bindings: list[CallBinding] = [leaf.arguments for tree in trees for leaf in leaves(tree)]
    bindings += [procedure.arguments for procedure in handbook.procedures.values()]
    for predicate in handbook.predicates.values():
        gates = (predicate.established_by, predicate.closed_by, predicate.done)
        calls = [call for recipe in predicate.recipes for call in recipe]
        bindings += [call.arguments for call in (*calls, *filter(None, gates))]
    for name, term in (argument for arguments in bindings for argument in arguments):
        if isinstance(term, Name):
            yield term.name, name
        elif isinstance(term, Path):
            keys = [step for step in term.steps if isinstance(step, str)]
            yield keys[-1] if keys else term.root, name


def _spread(names: set[str], flows: Iterable[tuple[str, str]]) -> None:
    """Along the flows, until nothing is new."""
    while more := {target for source, target in flows if source in names} - names:
        names |= more


def _changes(action: Action, only_looks: bool) -> tuple[str, ...] | None:
    """``only_looks``: it verifies, and isn't the goal of a procedure."""
    if action.changes is not None:
        return action.changes
    if action.read_only:
        return ()
    return () if only_looks and not action.is_guarded else None


def input_schema(item: Input) -> Schema:
    """The keywords of its JSON Schema that values are checked against."""
    if item.schema is None:
        return {"type": item.type}
    stored = _plain_schema(item.schema)
    return stored if "type" in stored or "enum" in stored else {"type": item.type, **stored}


def _plain_schema(schema: Schema) -> dict[str, object]:
    values: dict[str, object] = {}
    for key, value in schema.items():
        if key not in READ:
            continue
        if key == "items" and isinstance(value, Mapping):
            value = _plain_schema(value)
        elif key == "properties" and isinstance(value, Mapping):
            value = {
                name: _plain_schema(item) if isinstance(item, Mapping) else item
                for name, item in value.items()
            }
        values[key] = list(value) if isinstance(value, tuple) else value
    return values


def scope_types(
    names: Iterable[str],
    goal: Mapping[str, Input],
    leaves: Iterable[Leaf],
    actions: Mapping[str, Action],
    predicates: Mapping[str, Predicate],
) -> dict[str, Schema]:
    """``goal`` maps a name to the input of the goal action that it becomes. Any other name has
    the type of the first input that a check passes it to."""
    types: dict[str, Schema] = {name: input_schema(item) for name, item in goal.items()}
    for leaf in leaves:
        for parameter, term in leaf.arguments:
            if isinstance(term, Name) and term.name not in types:
                parameter_type = _parameter_type(predicates[leaf.predicate], parameter, actions)
                if parameter_type is not None:
                    types[term.name] = parameter_type
    return {name: types[name] for name in names if name in types}


def _parameter_type(
    predicate: Predicate, parameter: str, actions: Mapping[str, Action]
) -> Schema | None:
    calls = [call for recipe in predicate.recipes for call in recipe]
    if predicate.established_by is not None:
        calls.append(predicate.established_by)
    for call in calls:
        for name, term in call.arguments:
            if isinstance(term, Name) and term.name == parameter:
                for item in actions[call.action].inputs:
                    if item.name == name:
                        return input_schema(item)
    return None


@dataclass(frozen=True, slots=True)
class HandbookFacts:
    guarded: tuple[Guarded, ...]
    actions: Mapping[str, ActionFacts]
    read_only: tuple[str, ...]
    secrets: tuple[str, ...]
    not_found: Mapping[str, str]


def _verifying(handbook: Handbook) -> set[str]:
    predicates = handbook.predicates.values()
    return {call.action for item in predicates for recipe in item.recipes for call in recipe}


def _opening(handbook: Handbook) -> set[str]:
    gates = (item.established_by for item in handbook.predicates.values())
    return {call.action for call in gates if call is not None}


def _prerequisites(requires: Tree, inputs: frozenset[str]) -> tuple[tuple[Prerequisite, ...], ...]:
    """The tree as groups. One leaf of each group must come out as wanted."""
    if isinstance(requires, Leaf):
        terms = ((name, argument_of(term, inputs)) for name, term in requires.arguments)
        return ((Prerequisite(requires.predicate, tuple(terms), requires.wanted),),)
    parts = [_prerequisites(child, inputs) for child in requires.children]
    if isinstance(requires, CONJUNCTION):
        return tuple(chain(*parts))
    return tuple(tuple(chain(*groups)) for groups in product(*parts))


def _changing(handbook: Handbook) -> dict[str, tuple[str, ...] | None]:
    """The topics that each action may change, sorted by action."""
    goals = {procedure.action for procedure in handbook.procedures.values()}
    looking = _verifying(handbook) - goals
    return {
        name: _changes(item, name in looking) for name, item in sorted(handbook.actions.items())
    }


def action_facts(handbook: Handbook) -> dict[str, ActionFacts]:
    actions, verifying = handbook.actions, _verifying(handbook)
    checking = verifying | _opening(handbook)
    declared = {
        name: ActionFacts(
            {item.name: input_schema(item) for item in actions[name].inputs},
            tuple(item.name for item in actions[name].inputs if item.required),
            changes,
            actions[name].reads,
            actions[name].shared,
            _prerequisites(actions[name].requires, frozenset(actions[name].input_names()))
            if name in checking
            else (),
        )
        for name, changes in _changing(handbook).items()
    }
    return {**declared, **{name: _BUILT_IN[name] for name in _BUILT_IN if name in verifying}}


def _read_only(handbook: Handbook) -> tuple[str, ...]:
    """The actions that change nothing in any program. Openers of gates change something."""
    closing = {item.closed_by.action for item in handbook.predicates.values() if item.closed_by}
    quiet = [name for name, changes in _changing(handbook).items() if changes == ()]
    built_in = [name for name in _BUILT_IN if name in _verifying(handbook)]
    moving = _opening(handbook) | closing
    return tuple(name for name in (*quiet, *built_in) if name not in moving)


def handbook_facts(handbook: Handbook) -> HandbookFacts:
    """The same for every program of the handbook."""
    confirmed = {item.action for item in handbook.procedures.values() if item.confirm}
    actions = sorted(handbook.actions.items())
    guarded = tuple(
        guard_of(item) for name, item in actions if item.is_guarded or name in confirmed
    )
    return HandbookFacts(
        guarded=guarded,
        actions=action_facts(handbook) if guarded else {},
        read_only=() if guarded else _read_only(handbook),
        secrets=secret_names(handbook),
        not_found={name: item.not_found for name, item in actions if item.not_found is not None},
    )
