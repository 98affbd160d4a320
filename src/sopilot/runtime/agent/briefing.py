"""What an arm may draw its text from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sopilot.language.handbook import Handbook
from sopilot.language.program import Program
from sopilot.language.render import frame_bound, render
from sopilot.runtime.session.protocols import ToolSchema
from sopilot.runtime.session.user_questions import user_tools

Made = TypeVar("Made")
OwnText = Callable[[str], str | None]
"""Rendering → the text that the handbook's source has for it, if it has one itself."""


def no_own_text(name: str) -> None:
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Briefing:
    """A handbook and the programs of the goals that a run offers, by goal. ``own_text`` are
    the renderings that the source brings with it: they stand in place of ours, byte for byte."""

    handbook: Handbook
    programs: Mapping[str, Program]
    language: str = "en"
    own_text: OwnText = field(default=no_own_text, repr=False, compare=False)
    _rendered: dict[tuple[str, str], str] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _once: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    _bounds: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def rendering(self, name: str, goal: str | None = None) -> str:
        """That rendering of one goal, or of every goal, one after the other."""
        if goal is None:
            return "\n\n".join(self.rendering(name, one) for one in self.programs)
        text = self._rendered.get((name, goal))
        if text is None:
            text = self.own_text(name)
            if text is None:
                program = self.programs[goal]
                text = render(name, self.handbook, goal, program, self.language).rstrip()
            self._rendered[name, goal] = text
        return text

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Made once, however many runs there are."""
        made: Made | None = self._once.get(key)
        if made is None:
            made = self._once[key] = make()
        return made

    def largest_frame(self, goal: str) -> int:
        """The bound of the goal's frames, in characters."""
        if goal not in self._bounds:
            self._bounds[goal] = frame_bound(self.programs[goal], self.language)
        return self._bounds[goal]

    def goal_actions(self) -> frozenset[str]:
        return self.once("goal actions", self._goal_actions)

    def _goal_actions(self) -> frozenset[str]:
        procedures = self.handbook.procedures
        return frozenset(procedures[goal].action for goal in self.programs)

    def user_tools(self) -> tuple[ToolSchema, ...]:
        """The tools of the programs that ask the user."""
        return self.once("user tools", lambda: user_tools(self.programs.values()))

    def unguarded(self) -> Mapping[str, Program]:
        """The programs without hard guards, for worlds in which nothing can go wrong."""
        return {goal: replace(program, guarded=()) for goal, program in self.programs.items()}
