"""SOPBench as a source of handbooks. No table of goals: everything comes from upstream's data.

SOPBench's own notation of trees and recipes, read into the handbook's objects.

Upstream writes ``["and", […]]``, ``["chain", […]]``, ``["or", […]]``,
``["gate", […]]`` and ``["single", "not predicate", {parameter: name}]``;
``null`` is the tree that asks for nothing.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from sopilot.handbook.model import Action, ActionCall, Handbook, Input, Predicate, Procedure, Recipe
from sopilot.handbook.requirements import (
    NOTHING,
    All,
    AnyOf,
    Binding,
    First,
    InOrder,
    Leaf,
    Name,
    Scalar,
    Tree,
)
from sopilot.handbook.writer import handbook_hash
from sopilot.messages.errors import UserMistake
from sopilot_lab.sopbench.process import ToolList, Upstream, shared_upstream
from sopilot_lab.sopbench.reference import TaskReference, task_references

_NEGATION = "not "
_SHAPES: Mapping[str, type[All | InOrder | AnyOf | First]] = {
    "and": All,
    "chain": InOrder,
    "or": AnyOf,
    "gate": First,
}


def singles(dependency: Any) -> Iterator[Sequence[Any]]:
    """The leaves as upstream writes them, in source order."""
    if not dependency:
        return
    if dependency[0] == "single":
        yield dependency
        return
    for part in dependency[1]:
        yield from singles(part)


def predicate_name(single: Sequence[Any]) -> str:
    return str(single[1]).removeprefix(_NEGATION)


def read_tree(dependency: Any, parameters: Mapping[str, Sequence[str]]) -> Tree:
    """``parameters`` gives each predicate's parameters in their declared order."""
    if not dependency:
        return NOTHING
    shape = dependency[0]
    if shape == "single":
        name = predicate_name(dependency)
        wanted = not str(dependency[1]).startswith(_NEGATION)
        return Leaf(name, read_binding(dependency[2], parameters.get(name, ())), wanted)
    if shape not in _SHAPES:
        raise UserMistake(f"SOPBench uses an unknown operator `{shape}`")
    return _SHAPES[shape](tuple(read_tree(part, parameters) for part in dependency[1]))


def read_binding(mapping: Mapping[str, str] | None, order: Sequence[str]) -> Binding:
    """Parameter → name, declared parameters first in their order."""
    value = mapping or {}
    for term in value.values():
        if term.startswith("value "):  # upstream evaluates these as code; none is in the data
            raise UserMistake(f"SOPBench writes a constant as code: `{term}`")
    keys = [key for key in order if key in value]
    keys += [key for key in value if key not in order]
    return tuple((key, Name(value[key])) for key in keys)


def read_recipes(process: Any, inputs: Mapping[str, Sequence[str]]) -> tuple[Recipe, ...]:
    """Disjunctive normal form: every alternative as the calls that it needs, in order."""
    if process[0] == "single":
        return ((ActionCall(process[1], read_binding(process[2], inputs.get(process[1], ()))),),)
    parts = [read_recipes(part, inputs) for part in process[1]]
    if process[0] in ("or", "gate"):
        return tuple(dict.fromkeys(recipe for part in parts for recipe in part))
    combined: list[Recipe] = [()]
    for part in parts:
        combined = [tuple(dict.fromkeys(done + more)) for done in combined for more in part]
    return tuple(dict.fromkeys(combined))


DATABASE_READER: Final = "internal_get_database"


@dataclass(frozen=True, slots=True)
class SopbenchTask:
    """One request and the handbook it is judged by. Whether the goal should succeed is for
    ``Upstream.scoring``. ``oracle`` are the tools of the right answer, for the tool list of that
    name alone."""

    reference: TaskReference
    user_prompt: str
    user_known: Mapping[str, Any]
    handbook: Handbook
    oracle: tuple[str, ...] = ()

    @property
    def domain(self) -> str:
        return self.reference.domain

    @property
    def goal(self) -> str:
        return self.reference.goal

    @property
    def index(self) -> int:
        return self.reference.index


def load_tasks(text: str, *, upstream: Upstream | None = None) -> tuple[SopbenchTask, ...]:
    """The tasks that a reference such as ``sopbench:bank/get_loan`` names."""
    source = upstream or shared_upstream()
    references = task_references(text, upstream=source)
    return tuple(load_task(each, source) for each in references)


def load_task(reference: TaskReference, upstream: Upstream) -> SopbenchTask:
    task = upstream.tasks(reference.domain)[reference.goal][reference.index]
    graph = upstream.graphs(reference.domain)[reference.goal][reference.index]
    return SopbenchTask(
        oracle=tuple(dict.fromkeys(node[0] for node in graph["nodes"])),
        reference=reference,
        user_prompt=task["user_prompt"],
        user_known=task["user_known"],
        handbook=task_handbook(reference, upstream),
    )


def recorded_reference(
    domain: str, task: Mapping[str, Any], upstream: Upstream
) -> TaskReference | None:
    """The task of the data set that a recording is of."""
    goal = str(task.get("user_goal"))
    keys = ("user_prompt", "constraints", "user_known", "constraint_parameters")
    for index, known in enumerate(upstream.tasks(domain).get(goal, ())):
        if all(known[key] == task.get(key) for key in keys):
            return TaskReference(domain, goal, index)
    return None


def task_handbook(reference: TaskReference, upstream: Upstream) -> Handbook:
    """One procedure, the task's goal: ``requires`` is the expanded tree, ``worded`` the one
    that the official text shows. The goal action itself requires the same tree."""
    task = upstream.tasks(reference.domain)[reference.goal][reference.index]
    trees = json.dumps(task["constraints"]), json.dumps(task["constraints_original"])
    demanded = _goal_handbook(upstream, reference.domain, reference.goal, *trees)
    return replace(
        demanded,
        name=f"{demanded.name}-{reference.goal}-{reference.index}".replace("_", "-"),
        parameters=_constants(task["constraint_parameters"]),
    )


@functools.cache
def _goal_handbook(
    upstream: Upstream, domain: str, goal: str, requires: str, worded: str
) -> Handbook:
    """All but name and constants: tasks of one goal mostly demand the same, which is read once.
    Trees are in upstream's notation, as JSON."""
    shared = sopbench_handbook(domain, upstream)
    parameters = {name: each.parameters for name, each in shared.predicates.items()}
    action = replace(shared.actions[goal], requires=read_tree(json.loads(requires), parameters))
    procedure = Procedure(
        name=goal,
        action=goal,
        requires=action.requires,
        says=action.says,
        arguments=tuple((name, Name(name)) for name in action.input_names()),
        worded=read_tree(json.loads(worded), parameters),
    )
    return replace(shared, actions={**shared.actions, goal: action}, procedures={goal: procedure})


@functools.cache
def sopbench_handbook(domain: str, upstream: Upstream) -> Handbook:
    """The shared part of a domain's tasks: actions and predicates, default constants, no goal."""
    metadata = upstream.metadata(domain)
    return Handbook(
        name=f"sopbench-{domain}".replace("_", "-"),
        says=metadata["instructions"],
        parameters=_constants(metadata["parameters"]),
        actions={name: _action(metadata, name) for name in metadata["descriptions"]},
        predicates={name: _predicate(metadata, name) for name in _predicate_names(metadata)},
    )


def task_hash(task: SopbenchTask, upstream: Upstream) -> str:
    """Names the content of a task's handbook: the domain's shared part, then its own."""
    own = replace(task.handbook, actions={}, predicates={})
    shared = _domain_hash(task.domain, upstream)
    text = f"{shared}:{handbook_hash(own)}"
    return hashlib.sha256(text.encode()).hexdigest()


def offered_actions(handbook: Handbook, tools: ToolList) -> frozenset[str]:
    """The names that a model may call under a tool list."""
    return frozenset(
        action.name
        for action in handbook.actions.values()
        if action.offered and (tools == "full-state" or not action.full_state)
    )


def task_actions(task: SopbenchTask, tools: ToolList) -> frozenset[str]:
    """The names that a model may call in this task."""
    offered = offered_actions(task.handbook, tools)
    return offered.intersection(task.oracle) if tools == "oracle" else offered


def tool_list(name: str) -> ToolList:
    """A tool list as records name it."""
    known: tuple[ToolList, ...] = get_args(ToolList)
    return next((each for each in known if each == name), "official")


@functools.cache
def _domain_hash(domain: str, upstream: Upstream) -> str:
    return handbook_hash(sopbench_handbook(domain, upstream))


def _constants(values: Mapping[str, Any]) -> dict[str, Scalar]:
    """A list becomes the text that upstream's wording shows for it."""
    return {key: str(each) if isinstance(each, list) else each for key, each in values.items()}


def _predicate_names(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Everything with a recipe or a link, and actions that stand in a tree as they are."""
    names = dict.fromkeys([*metadata["links"], *metadata["recipes"]])
    for dependency in metadata["requires"].values():
        names |= dict.fromkeys(predicate_name(single) for single in singles(dependency))
    return tuple(names)


def _predicate(metadata: Mapping[str, Any], name: str) -> Predicate:
    predicate = Predicate(
        name=name,
        parameters=tuple(metadata["predicates"][name]),
        says=_as_written(metadata["positive"][name]),
        says_not=_as_written(metadata["negative"][name]),
    )
    if name in metadata["links"]:
        action, mapping = metadata["links"][name]
        arguments = tuple(
            (each, Name(mapping.get(each, each))) for each in _inputs(metadata)[action]
        )
        return replace(predicate, established_by=ActionCall(action, arguments))
    itself = ["single", name, {each: each for each in predicate.parameters}]
    process = metadata["recipes"].get(name, itself)
    if not process:
        return replace(predicate, tool_free=True)
    recipes = read_recipes(process, _inputs(metadata))
    # The verifier's value is the verdict only where nothing else can be the evidence.
    decides = all(call.action == name for recipe in recipes for call in recipe)
    # Upstream says nothing about where other names come from: the user, or earlier evidence.
    asks = dict.fromkeys(
        term.name
        for recipe in recipes
        for call in recipe
        for _, term in call.arguments
        if isinstance(term, Name) and term.name not in predicate.parameters
    )
    return replace(
        predicate, recipes=recipes, asks=tuple(asks), verdict="result" if decides else None
    )


def _as_written(template: str) -> str:
    """Upstream's sentences are what its own text says, to the byte: names stand bare."""
    return re.sub(r"\{(\w+)\}", r"{=\1}", template)


def _action(metadata: Mapping[str, Any], name: str) -> Action:
    offered = name in metadata["schemas"]
    parameters = metadata["predicates"]
    return Action(
        name=name,
        inputs=_schema_inputs(metadata["schemas"][name])
        if offered
        else tuple(Input(**each) for each in metadata["signatures"][name]),
        says=metadata["descriptions"][name],
        requires=read_tree(metadata["requires"].get(name), parameters),
        full_state=name == DATABASE_READER,
        offered=offered,
    )


def _inputs(metadata: Mapping[str, Any]) -> dict[str, list[str]]:
    names = {
        name: [each["name"] for each in metadata["signatures"][name]]
        for name in metadata["signatures"]
    }
    return names | {name: list(each["properties"]) for name, each in metadata["schemas"].items()}


def _schema_inputs(schema: Mapping[str, Any]) -> tuple[Input, ...]:
    required = schema.get("required", ())
    return tuple(
        Input(
            name=name,
            type=_type(each),
            says=each.get("description", ""),
            required=name in required,
            schema=None if set(each) <= {"type", "description"} else each,
        )
        for name, each in schema["properties"].items()
    )


def _type(schema: Mapping[str, Any]) -> str:
    """The type's name; of several alternatives the first, the schema has the others."""
    return str(schema["type"] if "type" in schema else schema["anyOf"][0]["type"])
