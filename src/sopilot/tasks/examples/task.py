"""Tasks: a customer with a request, the simulator at that moment, and what must come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from sopilot.agent.result import Ending
from sopilot.messages.errors import InternalBug
from sopilot.tasks.examples.simulator import State
from sopilot.values.json import JSON, Fields

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML without its C part
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]


TAGS = frozenset({"goal-change", "late-evidence", "pressure", "deep", "approval"})


@dataclass(frozen=True, slots=True)
class ExampleTask:
    """One request at an example.

    ``arguments`` are the goal's, as the customer means them in the end.
    For a scripted user: ``request`` opens the dialog, ``inputs`` holds the user's
    values, ``late`` those that the user gives only at the second question,
    ``follow_ups`` the lines the user adds, one per turn.
    ``opening_goal`` is the goal of the opening message where it changes midway.
    ``approvers`` are the roles that approve when the session asks them.
    ``cause`` is the predicate that fails, for a refusal.
    """

    id: str
    goal: str
    arguments: Mapping[str, JSON]
    request: str
    inputs: Mapping[str, JSON]
    expected: Ending
    cause: str | None = None
    follow_ups: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    opening_goal: str | None = None
    approvers: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    overrides: Mapping[str, JSON] = field(default_factory=dict)


def read_state(text: str) -> State:
    state = yaml.load(text, Loader=_Loader)
    if not isinstance(state, dict):
        raise InternalBug("a bundled state is not a mapping")
    return state


def merged(state: Mapping[str, JSON], overrides: Mapping[str, JSON]) -> State:
    """The state with the overrides laid over it: mappings are merged, all else is replaced."""
    result = dict(state)
    for name, value in overrides.items():
        below = result.get(name)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            result[name] = merged(below, value)
        else:
            result[name] = value
    return result


def read_tasks(example: str, text: str) -> tuple[ExampleTask, ...]:
    """The tasks of an example's file: ``people`` (what each can tell) and ``tasks``."""
    document = yaml.load(text, Loader=_Loader)
    people: Mapping[str, Mapping[str, JSON]] = document["people"]
    tasks = tuple(_task(example, entry, people) for entry in document["tasks"])
    if len({task.id for task in tasks}) != len(tasks):
        raise InternalBug(f"the tasks of `{example}` repeat an id")
    return tasks


_KEYS = frozenset({
    "id", "goal", "who", "arguments", "request", "inputs", "expected", "follow_ups", "late",
    "opening_goal", "approvers", "tags", "state",
})  # fmt: skip


def _task(example: str, entry: Fields, people: Mapping[str, Mapping[str, JSON]]) -> ExampleTask:
    tags = frozenset(entry.get("tags", ()))
    unknown = (set(entry) - _KEYS) | (tags - TAGS)
    if unknown:
        raise InternalBug(f"task `{entry.get('id')}` of `{example}`: unknown {sorted(unknown)}")
    inputs = {**people[entry["who"]], **entry["arguments"], **entry.get("inputs", {})}
    expected = entry["expected"]
    cause = None
    if expected != "executed":
        cause = expected["refused"]
        expected = "refused"
    return ExampleTask(
        id=entry["id"],
        goal=entry["goal"],
        arguments=entry["arguments"],
        request=entry["request"].strip(),
        # A value of null takes the field away: the customer cannot tell it.
        inputs={name: value for name, value in inputs.items() if value is not None},
        expected=Ending(expected),
        cause=cause,
        follow_ups=tuple(entry.get("follow_ups", ())),
        late=tuple(entry.get("late", ())),
        opening_goal=entry.get("opening_goal"),
        approvers=tuple(entry.get("approvers", ())),
        tags=tags,
        overrides=entry.get("state", {}),
    )
