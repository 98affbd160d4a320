"""A scenario: somebody with a request, a world that answers as told, what must come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sopilot.runtime.agent import Ending
from sopilot.runtime.session.protocols import JSON, ToolResult
from sopilot.runtime.vm import agree


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """What a tool answers. ``when`` are the arguments it is for; empty: any."""

    result: ToolResult
    when: Mapping[str, JSON] = field(default_factory=dict)

    def fits(self, arguments: Mapping[str, JSON]) -> bool:
        return fits(self.when, arguments)


@dataclass(frozen=True, slots=True)
class ScriptedRuling:
    """How a reader judges a predicate that has no verdict of its own."""

    holds: bool
    when: Mapping[str, JSON] = field(default_factory=dict)

    def fits(self, arguments: Mapping[str, JSON]) -> bool:
        return fits(self.when, arguments)


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    action: str
    arguments: Mapping[str, JSON] = field(default_factory=dict)

    def fits(self, action: str, arguments: Mapping[str, JSON]) -> bool:
        return action == self.action and fits(self.arguments, arguments)


@dataclass(frozen=True, slots=True)
class Expectation:
    """``cause`` is the predicate that a refusal must rest on, where one is named."""

    ending: Ending
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """``calls`` must be made in this order, with others in between; those in ``no_calls``
    never. ``approvals`` are the roles that approve when the procedure asks for it."""

    name: str
    goal: str
    expect: Expectation
    request: str = ""
    knows: Mapping[str, JSON] = field(default_factory=dict)
    tools: Mapping[str, tuple[ScriptedAnswer, ...]] = field(default_factory=dict)
    verdicts: Mapping[str, tuple[ScriptedRuling, ...]] = field(default_factory=dict)
    approvals: tuple[str, ...] = ()
    calls: tuple[ExpectedCall, ...] = ()
    no_calls: tuple[str, ...] = ()
    line: int = 0

    @property
    def opening(self) -> str:
        """What the user says first, under every command that plays it."""
        return self.request or request_for(self.goal)


@dataclass(frozen=True, slots=True)
class Suite:
    handbook: str
    scenarios: tuple[Scenario, ...]


def fits(wanted: Mapping[str, JSON], arguments: Mapping[str, JSON]) -> bool:
    return all(name in arguments and agree(arguments[name], wanted[name]) for name in wanted)


def request_for(goal: str) -> str:
    """What somebody says who wants this and no more."""
    return f"I have a request: {goal.replace('_', ' ')}."
