"""The handbook's objects, as a reader or a program builds them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from sopilot.language.handbook._tree import NOTHING, Binding, CallBinding, Path, Scalar, Tree


@dataclass(frozen=True, slots=True)
class Input:
    """One input of an action. ``schema`` is its full JSON Schema where the type alone is not."""

    name: str
    type: str = "string"
    says: str = ""
    required: bool = True
    schema: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """Who must approve a call before it runs: ``needed`` approvals out of ``roles``."""

    roles: tuple[str, ...]
    needed: int = 1
    expires_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """A tool. ``full_state`` marks one that reads everything at once.

    ``changes`` and ``reads`` are topics, ``None`` where the author says nothing;
    ``recheck`` makes the machine read its licence again just before the call.
    """

    name: str
    inputs: tuple[Input, ...] = ()
    says: str = ""
    requires: Tree = NOTHING
    irreversible: bool = False
    approval: Approval | None = None
    full_state: bool = False
    offered: bool = True
    read_only: bool = False
    changes: tuple[str, ...] | None = None
    reads: tuple[str, ...] | None = None
    recheck: bool = False

    @property
    def is_guarded(self) -> bool:
        return self.irreversible or self.approval is not None

    def input_names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.inputs)


@dataclass(frozen=True, slots=True)
class ActionCall:
    """A call inside a recipe. Names are the predicate's parameters or what it asks the
    user for; paths lead into earlier answers of the recipe.

    ``name`` is what its answer is called, the action's name without one. With
    ``each`` the call is made for every element of a list, under the name ``element``.
    """

    action: str
    arguments: CallBinding = ()
    name: str = ""
    each: Path | None = None
    element: str = ""

    @property
    def answer(self) -> str:
        return self.name or self.action


Recipe = tuple[ActionCall, ...]
"""One way to verify: every call of it is made."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """Something that holds or does not.

    Exactly one of: ``recipes`` (equivalent ways to verify it), ``established_by``
    (a gate: the action makes it true, over several turns), or ``tool_free``
    (judged from its arguments and the dialog alone).
    ``says`` and ``says_not`` are templates over the parameters and the
    handbook's constants. ``verdict`` is an expression a machine can judge.
    ``remedy`` tells a refused user what could be done next. ``asks`` are values of
    its recipes that only the user has. ``judged_by_model`` lets a guarded action
    rest on a model's word; ``closed_by`` shuts a gate again.
    """

    name: str
    parameters: tuple[str, ...] = ()
    says: str = ""
    says_not: str = ""
    recipes: tuple[Recipe, ...] = ()
    established_by: ActionCall | None = None
    tool_free: bool = False
    verdict: str | None = None
    remedy: str = ""
    asks: tuple[str, ...] = ()
    judged_by_model: bool = False
    closed_by: ActionCall | None = None

    @property
    def is_gate(self) -> bool:
        return self.established_by is not None


@dataclass(frozen=True, slots=True)
class Procedure:
    """A goal: ``action`` may run with ``arguments`` once ``requires`` holds.

    ``worded`` is the tree whose wording is shown as the official text when it
    differs from the tree that is compiled.
    """

    name: str
    action: str
    requires: Tree = NOTHING
    says: str = ""
    arguments: Binding = ()
    worded: Tree | None = None


@dataclass(frozen=True, slots=True)
class Handbook:
    name: str
    says: str = ""
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    actions: Mapping[str, Action] = field(default_factory=dict)
    predicates: Mapping[str, Predicate] = field(default_factory=dict)
    procedures: Mapping[str, Procedure] = field(default_factory=dict)

    def offering(self, names: Collection[str]) -> Handbook:
        """The same for whoever is offered these actions alone: no text names another."""
        actions = {
            name: replace(action, offered=action.offered and name in names)
            for name, action in self.actions.items()
        }
        return replace(self, actions=actions)
