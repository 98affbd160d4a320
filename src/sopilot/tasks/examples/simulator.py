"""A simulated system: plain state behind tools.

The tools enforce what a real system would enforce (arguments, logins, unknown records), and
nothing of the handbook's policy: a careless caller can break the SOP, and the evaluator notices.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sopilot.agent.approvers import action_schema
from sopilot.agent.toolbox import argument_problem
from sopilot.handbook.model import Action
from sopilot.messages.diagnostic import did_you_mean
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.values.json import JSON

State = dict[str, Any]
"""An example's tables, as JSON values, with the present day. Only its own tools and truths know
their shape."""

Handler = Callable[..., ToolResult]
"""``handler(state, **arguments)``. It may change ``state``; changes are kept when it is ok."""


@dataclass(frozen=True, slots=True)
class SimulatedCall:
    """A tool call as it happened."""

    name: str
    arguments: Mapping[str, JSON]
    result: ToolResult


def answer(**value: JSON) -> ToolResult:
    return ToolResult(True, value)


def refuse(error: str) -> ToolResult:
    return ToolResult(False, {"error": error})


def only_for(session: str, person: str, error: str) -> Callable[[Handler], Handler]:
    """A tool that refuses everybody who isn't in this list of the state's sessions. ``person``
    names the argument with the caller."""

    def decorate(handler: Handler) -> Handler:
        @functools.wraps(handler)
        def checked(state: State, **arguments: Any) -> ToolResult:
            if arguments[person] not in state["sessions"][session]:
                return refuse(error)
            return handler(state, **arguments)

        return checked

    return decorate


def enters(session: str, table: str, person: str, secret: str, error: str) -> Handler:
    """A tool that puts the person into this list of the sessions, if the secret is the one in the
    table."""

    def handler(state: State, **arguments: str) -> ToolResult:
        name = arguments[person]
        if state[table].get(name, {}).get(secret) != arguments[secret]:
            return refuse(error)
        if name not in state["sessions"][session]:
            state["sessions"][session].append(name)
        facts: State = {person: name, session: True}
        return answer(**facts)

    return handler


def looks_up(table: str, key: str, *fields: str) -> Handler:
    """A tool that reads the table's row under ``key``, or these ``fields`` of it; ``found`` is
    false without one."""

    def handler(state: State, **arguments: str) -> ToolResult:
        row = state[table].get(arguments[key])
        if row is None:
            return answer(found=False, **arguments)
        return answer(found=True, **arguments, **{field: row[field] for field in fields or row})

    return handler


def reads(table: str, key: str, error: str, *fields: str) -> Handler:
    """As ``looks_up``, but without a row it refuses with ``error``."""

    def handler(state: State, **arguments: str) -> ToolResult:
        row = state[table].get(arguments[key])
        if row is None:
            return refuse(error)
        return answer(**arguments, **{field: row[field] for field in fields or row})

    return handler


def reads_all(*tables: str) -> Handler:
    """A tool that reads whole tables."""

    def handler(state: State) -> ToolResult:
        return answer(**{table: state[table] for table in tables})

    return handler


def finds(table: str, key: str) -> Handler:
    """A tool that finds the ``key`` of the first row with these fields, and whether the row
    was withdrawn."""

    def handler(state: State, **arguments: JSON) -> ToolResult:
        known = first_with(state[table], **arguments)
        if known is None:
            return answer(found=False, **arguments)
        return answer(found=True, **{key: known[0]}, withdrawn=known[1]["withdrawn"])

    return handler


def first_with(table: Mapping[str, State], **fields: JSON) -> tuple[str, State] | None:
    """Key and row of the first row with these fields."""
    for key, row in table.items():
        if all(row[name] == value for name, value in fields.items()):
            return key, row
    return None


class Simulator:
    """One simulator for one run. ``actions`` are the handbook's, ``handlers`` do the work."""

    def __init__(
        self, actions: Mapping[str, Action], handlers: Mapping[str, Handler], state: State
    ) -> None:
        self._actions = actions
        self._handlers = handlers
        self._state: State = _copied(state)
        self._answered: dict[str, SimulatedCall] = {}

    @property
    def calls(self) -> Sequence[SimulatedCall]:
        """Every call that was carried out, in order; repetitions of a key are left out."""
        return tuple(self._answered.values())

    @property
    def state(self) -> State:
        """A copy of the present state."""
        copied: State = _copied(self._state)
        return copied

    def copy(self) -> Simulator:
        """Another simulator that starts where this one stands."""
        twin = Simulator(self._actions, self._handlers, self._state)
        twin.restore(self.snapshot())
        return twin

    def snapshot(self) -> State:
        """State and answered keys as JSON; a restored simulator recognises repeated calls."""
        answered = {
            key: {"name": call.name, "arguments": call.arguments, **asdict(call.result)}
            for key, call in self._answered.items()
        }
        copied: State = _copied({"state": self._state, "answered": answered})
        return copied

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        held = _copied(snapshot)
        self._state = held["state"]
        self._answered = {
            key: SimulatedCall(
                call["name"], call["arguments"], ToolResult(call["ok"], call["value"])
            )
            for key, call in held["answered"].items()
        }

    def schemas(self) -> Sequence[ToolSchema]:
        return tuple(action_schema(action) for action in self._actions.values())

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        return self.perform(name, arguments, key=key)

    def perform(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        """``call`` without an event loop. A key that was answered is answered the same again."""
        earlier = self._answered.get(key)
        if earlier is not None:
            if (earlier.name, earlier.arguments) == (name, dict(arguments)):
                return _fresh(earlier.result)
            return refuse(f"the key `{key}` was used for another call")
        call = SimulatedCall(name, _copied(dict(arguments)), self._carry_out(name, arguments))
        self._answered[key] = call
        return _fresh(call.result)

    def _carry_out(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        action = self._actions.get(name)
        if action is None:
            return refuse(f"there is no tool `{name}`; {did_you_mean(name, self._actions)}")
        problem = argument_problem(action_schema(action), arguments)
        if problem:
            return refuse(problem)
        working = _copied(self._state)
        try:
            result = self._handlers[name](working, **_copied(dict(arguments)))
        except KeyError as missing:
            # Models call tools in states that no procedure leads to.
            return refuse(f"there is no record of {missing}")
        if result.ok:
            self._state = working
        return _fresh(result)


def _fresh(result: ToolResult) -> ToolResult:
    """A copy that shares nothing with the original."""
    return replace(result, value=_copied(result.value))


def _copied(value: Any) -> Any:
    """Like ``copy.deepcopy``, but faster: a state is copied for every call."""
    if type(value) is dict:
        return {
            key: _copied(item) if type(item) in _MUTABLE else item for key, item in value.items()
        }
    if type(value) is list:
        return [_copied(item) if type(item) in _MUTABLE else item for item in value]
    return copy.deepcopy(value)


_MUTABLE = (dict, list)
