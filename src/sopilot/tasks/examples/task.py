"""Tasks: a customer with a request, the simulator at that moment, and what must come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import yaml

from sopilot.agent.result import Ending
from sopilot.tasks.examples.simulator import State
from sopilot.values.json import JSON

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML without its C part
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]


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
    state: State = yaml.load(text, Loader=_Loader)
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


def read_tasks(text: str) -> tuple[ExampleTask, ...]:
    """The tasks of an example's file: ``people`` (what each can tell) and ``tasks``."""
    document = yaml.load(text, Loader=_Loader)
    return tuple(_task(document["people"], **entry) for entry in document["tasks"])


def _task(
    people: Mapping[str, Mapping[str, JSON]],
    *,
    who: str,
    arguments: Mapping[str, JSON],
    expected: str | Mapping[str, str],
    request: str,
    inputs: Mapping[str, JSON] = MappingProxyType({}),
    state: Mapping[str, JSON] = MappingProxyType({}),
    tags: Sequence[str] = (),
    **rest: Any,
) -> ExampleTask:
    told_values = {**people[who], **arguments, **inputs}
    cause = expected["refused"] if isinstance(expected, Mapping) else None
    lists = {key: tuple(item) for key, item in rest.items() if isinstance(item, list)}
    return ExampleTask(
        arguments=arguments,
        request=request.strip(),
        # A value of null takes the field away: the customer cannot tell it.
        inputs={name: value for name, value in told_values.items() if value is not None},
        expected=Ending.EXECUTED if cause is None else Ending.REFUSED,
        cause=cause,
        tags=frozenset(tags),
        overrides=state,
        **{**rest, **lists},
    )
