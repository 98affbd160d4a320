"""What a proof must know of the actions: types of their inputs, what they change and read.

In:  the handbook's actions, predicates and procedures.
Out: facts an action, and the types of a procedure's own names.

An action that verifies, or opens or shuts a gate, changes nothing but gates; unless a
procedure is there for it, it is guarded, or it says otherwise. Every other action may
change everything. See ``design/proof.md``.

What every program of a handbook has of its actions: guards, facts, secrets, failures.

In:  a handbook.
Out: the same for all its procedures, and for handbooks that differ from it in nothing but what
     their actions require and their constants, as the tasks of one desk do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import compress
from operator import attrgetter, is_not

from sopilot.compiler.schedule import guard_of
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
from sopilot.handbook.requirements import CallBinding, Leaf, Name, Path, leaves
from sopilot.program.model import ActionFacts, Guarded
from sopilot.values.frozen import frozen

Schema = Mapping[str, object]


_KEPT = (
    "type",
    "enum",
    "const",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
)


def action_facts(handbook: Handbook) -> dict[str, ActionFacts]:
    """By name, so that the order of keys in a handbook leaves no mark."""
    goals = {procedure.action for procedure in handbook.procedures.values()}
    quiet = _quiet(handbook.predicates.values())
    looking = quiet - goals
    built_in = {name: facts for name, facts in _BUILT_IN.items() if name in quiet}
    declared = {
        name: ActionFacts(
            {item.name: input_schema(item) for item in action.inputs},
            tuple(item.name for item in action.inputs if item.required),
            _changes(action, name in looking),
            action.reads,
            action.shared,
        )
        for name, action in sorted(handbook.actions.items())
    }
    return {**declared, **built_in}


_BUILT_IN = {
    # What was said stays said; a yes is to the state of things that it was given in.
    ASK_USER: ActionFacts({}, (), (), ()),
    CONFIRM: ActionFacts({}, (), (), None),
}


def secret_names(handbook: Handbook) -> tuple[str, ...]:
    """The secret inputs and fields of answers, every name whose value becomes one of them,
    through however many predicates, and every name that such a value then goes by. In a trace a
    secret is known by its name, whoever's it is, so names are all that is followed."""
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
    """Under which names a value goes on. What an answer has is known by its last key."""
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


def read_only_actions(handbook: Handbook) -> tuple[str, ...]:
    """The actions that change nothing, whatever a program calls; openers of gates are none."""
    gates = {
        call.action
        for predicate in handbook.predicates.values()
        for call in (predicate.established_by, predicate.closed_by)
        if call is not None
    }
    goals = {procedure.action for procedure in handbook.procedures.values()}
    quiet = _quiet(handbook.predicates.values())
    looking = quiet - goals
    declared = [
        name
        for name, action in sorted(handbook.actions.items())
        if _changes(action, name in looking) == ()
    ]
    built_in = [name for name in _BUILT_IN if name in quiet]
    return tuple(name for name in (*declared, *built_in) if name not in gates)


def read_only_goals(read_only: tuple[str, ...], handbook: Handbook) -> tuple[str, ...]:
    """Of the actions that change nothing, were none a goal: those that still do not."""
    goals = {procedure.action for procedure in handbook.procedures.values()}
    actions = handbook.actions
    return tuple(
        [name for name in read_only if name not in goals or _changes(actions[name], False) == ()]
    )


def _quiet(predicates: Iterable[Predicate]) -> set[str]:
    """Who looks changes nothing. What opens or closes a gate may: it says so, or does not."""
    return {
        call.action for predicate in predicates for recipe in predicate.recipes for call in recipe
    }


def _changes(action: Action, only_looks: bool) -> tuple[str, ...] | None:
    """``only_looks``: it verifies, and nobody has it for a goal."""
    if action.changes is not None:
        return action.changes
    if action.read_only:
        return ()
    return () if only_looks and not action.is_guarded else None


def input_schema(item: Input) -> Schema:
    """The part of its JSON Schema that says what a value is."""
    if item.schema is None:
        return {"type": item.type}
    stored = _kept(item.schema)
    return stored if "type" in stored or "enum" in stored else {"type": item.type, **stored}


def _kept(schema: Schema) -> dict[str, object]:
    values: dict[str, object] = {}
    for key in _KEPT:
        if key not in schema:
            continue
        value = schema[key]
        if key == "items" and isinstance(value, Mapping):
            value = _kept(value)
        elif key == "properties" and isinstance(value, Mapping):
            value = {
                name: _kept(item) if isinstance(item, Mapping) else item
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


_all_but_requires = attrgetter(
    *(field.name for field in fields(Action) if field.name != "requires")
)


@frozen
class HandbookFacts:
    guarded: tuple[Guarded, ...]
    actions: Mapping[str, ActionFacts]
    read_only: tuple[str, ...]
    secrets: tuple[str, ...]
    not_found: Mapping[str, str]


class SharedFacts:
    def __init__(self) -> None:
        self._last: tuple[Handbook, HandbookFacts] | None = None
        self._facts: dict[object, HandbookFacts] = {}
        self._without_goals: HandbookFacts | None = None

    def of(self, handbook: Handbook) -> HandbookFacts:
        if self._last is not None and self._last[0] is handbook:
            return self._last[1]
        if self._last is None or not _alike(handbook, self._last[0]):
            self._facts.clear()
            self._without_goals = None
        procedures = handbook.procedures.values()
        key = tuple([(procedure.action, bool(procedure.confirm)) for procedure in procedures])
        hides = any(item.secret for procedure in procedures for item in procedure.inputs)
        facts = None if hides else self._facts.get(key)
        if facts is None:
            facts = self._made(handbook, hides)
            # Where a secret goes is written in what is required.
            if not facts.secrets:
                self._facts[key] = facts
        self._last = (handbook, facts)
        return facts

    def _made(self, handbook: Handbook, hides: bool) -> HandbookFacts:
        """Where nothing is guarded and nothing secret, a goal only ceases to be read-only."""
        if self._without_goals is None:
            self._without_goals = _facts(replace(handbook, procedures={}))
        plain = self._without_goals
        asks = any(procedure.confirm for procedure in handbook.procedures.values())
        if hides or asks or plain.guarded or plain.secrets:
            return _facts(handbook)
        read_only = read_only_goals(plain.read_only, handbook)
        return HandbookFacts((), {}, read_only, (), plain.not_found)


def _alike(handbook: Handbook, other: Handbook) -> bool:
    """Whether nothing but names, constants, procedures and what actions require may differ."""
    if handbook.predicates is not other.predicates or list(handbook.actions) != list(other.actions):
        return False
    actions, before = handbook.actions.values(), other.actions.values()
    differing = compress(zip(actions, before, strict=True), map(is_not, actions, before))
    return all(_all_but_requires(new) == _all_but_requires(old) for new, old in differing)


def _facts(handbook: Handbook) -> HandbookFacts:
    requests = {procedure.action for procedure in handbook.procedures.values() if procedure.confirm}
    actions = sorted(handbook.actions.items())
    guarded = tuple(guard_of(item) for name, item in actions if item.is_guarded or name in requests)
    return HandbookFacts(
        guarded=guarded,
        actions=action_facts(handbook) if guarded else {},
        read_only=() if guarded else read_only_actions(handbook),
        secrets=secret_names(handbook),
        not_found={name: item.not_found for name, item in actions if item.not_found is not None},
    )
