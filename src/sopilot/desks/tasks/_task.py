"""A task: what is asked, in which world, what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sopilot.desks.tasks.world import Close, Score, World, nothing_to_close
from sopilot.language.diagnostics import Place, did_you_mean, mistake
from sopilot.runtime.agent import (
    Briefing,
    Budgets,
    Ending,
    Operator,
    PredicateJudge,
    RoleApprovers,
    ScriptedUser,
)
from sopilot.runtime.session.protocols import JSON, Tools


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Tools for one run, and the oracle that watches them."""

    tools: Tools
    score: Score | None = None
    close: Close = nothing_to_close


@dataclass(frozen=True, slots=True)
class Task:
    """``name`` is unique in its ``source``; ``goal`` is empty where the user has not said it.

    ``request`` opens the dialog, ``knows`` is what the user can tell when asked, ``late`` the
    fields of it that are told only when asked again, ``follow_ups`` the lines the user adds,
    one a turn. ``approvers`` are the roles that approve when they are asked, unless
    ``operator`` decides. ``expected`` is the ending that must come of it, ``reader`` judges
    evidence for the reference executor. ``surround`` makes the world; given a path, one that
    outlives the process there.
    """

    source: str
    name: str
    goal: str
    briefing: Briefing
    surround: Callable[[Path | None], Surroundings]
    request: str
    reader: PredicateJudge
    knows: Mapping[str, JSON] = field(default_factory=dict)
    expected: Ending | None = None
    late: tuple[str, ...] = ()
    follow_ups: tuple[str, ...] = ()
    approvers: tuple[str, ...] = ()
    operator: Operator | None = None
    budgets: Budgets = field(default_factory=Budgets)
    simulated: bool = True
    names_goal: bool = True
    """Whether the user's answers name the goal."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """What the user says when the machine asks, by what it asks about; otherwise yes."""
    opening_goal: str | None = None
    """The goal of the opening message, where it changes midway."""

    @property
    def key(self) -> str:
        return f"{self.source}/{self.name}"

    @property
    def goal_action(self) -> str:
        return self.briefing.handbook.procedures[self.goal].action

    def open(self, keep: Path | None = None) -> World:
        """A fresh world; or the one that was kept there."""
        made = self.surround(keep)
        operator = self.operator
        if operator is None and self.approvers:
            operator = RoleApprovers(self.approvers)
        return World(
            made.tools,
            ScriptedUser(
                self.request,
                self.knows,
                goal=self.goal if self.names_goal and self.goal else None,
                late=self.late,
                follow_ups=self.follow_ups,
                answers=self.answers,
            ),
            self.budgets,
            operator,
            self.simulated,
            made.score,
            self.key,
            self.goal,
            made.close,
        )

    def changed(
        self,
        *,
        request: str | None = None,
        knows: Mapping[str, JSON] | None = None,
        approvers: tuple[str, ...] = (),
    ) -> Task:
        """With other words: what must come of those nobody wrote down."""
        if approvers:
            self._known(approvers)
        if request is not None:
            # The task's own course is for its own request.
            own = replace(self, request=request, late=(), follow_ups=(), expected=None)
            made = replace(own, surround=lambda keep: replace(self.surround(keep), score=None))
        elif knows:
            made = replace(self, expected=None)
        else:
            made = self
        return replace(
            made,
            knows={**self.knows, **(knows or {})},
            approvers=approvers or self.approvers,
            operator=None if approvers else self.operator,
        )

    def _known(self, approvers: tuple[str, ...]) -> None:
        """A role that no action asks for would approve nothing, and the run would wait."""
        roles = {
            role
            for program in self.briefing.programs.values()
            for guarded in program.guarded
            for role in guarded.roles
        }
        for role in approvers:
            if role not in roles:
                cure = did_you_mean(role, roles) if roles else "no action asks for an approval"
                message = f"no approval is asked of `{role}`"
                raise mistake("unknown-role", message, Place("--approve"), cure)
