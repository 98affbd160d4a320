"""The handbook and programs that views draw from, and the first message of every run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sopilot.compiler.action_facts import action_facts
from sopilot.handbook.grammar import in_language
from sopilot.handbook.model import Handbook
from sopilot.messages.scaffold import words
from sopilot.program.model import Act, ActionFacts, Guarded, Kind, Program
from sopilot.protocols import ToolSchema
from sopilot.views.frame import frame_bound
from sopilot.views.program_text import render
from sopilot.views.questions import user_tools
from sopilot.views.quoting import shape

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
    _once: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def rendering(self, name: str, goal: str | None = None) -> str:
        """That rendering of one goal, or of every goal, one after the other."""
        if goal is None:
            return "\n\n".join(self.rendering(name, item) for item in self.programs)
        return self.once((name, goal), lambda: self._render(name, goal))

    def _render(self, name: str, goal: str) -> str:
        text = self.own_text(name)
        if text is None:
            procedure, program = self.handbook.procedures[goal], self.programs[goal]
            text = render(name, self.handbook, procedure, program, self.language).rstrip()
        return text

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Made once, however many runs there are."""
        made: Made | None = self._once.get(key)
        if made is None:
            made = self._once[key] = make()
        return made

    def largest_frame(self, goal: str) -> int:
        """The bound of the goal's frames, in characters."""
        program = self.programs[goal]
        return self.once(("bound", goal), lambda: frame_bound(program, self.language))

    def goal_actions(self) -> frozenset[str]:
        return frozenset(self.handbook.procedures[goal].action for goal in self.programs)

    def user_tools(self) -> tuple[ToolSchema, ...]:
        """The tools of the programs that ask the user."""
        return self.once("user tools", lambda: user_tools(self.programs.values(), self.language))

    def guarding(self) -> Mapping[str, Program]:
        """The programs for the view `guard`: every procedure's action is guarded. Where the
        handbook doesn't guard it, a model's judgement is good enough."""
        facts = action_facts(self.handbook)
        return {
            goal: _with_guarded_goals(program, facts) for goal, program in self.programs.items()
        }

    def unguarded(self) -> Mapping[str, Program]:
        """The programs for a simulator that a model may be measured in: a procedure's action runs
        whatever was checked. An action that no procedure carries out stays guarded."""
        carried_out = {procedure.action for procedure in self.handbook.procedures.values()}
        return {
            goal: replace(
                program,
                guarded=tuple(item for item in program.guarded if item.action not in carried_out),
            )
            for goal, program in self.programs.items()
        }


def _with_guarded_goals(program: Program, facts: Mapping[str, ActionFacts]) -> Program:
    steps = (step for function in program.functions.values() for step in function.steps)
    goals = {step.action for step in steps if isinstance(step, Act) and step.goal}
    unguarded = sorted(goals - {guarded.action for guarded in program.guarded})
    if not unguarded:
        return program
    functions = {
        name: replace(function, judged_by_model=True)
        if function.kind is Kind.RULE and function.verdict is None
        else function
        for name, function in program.functions.items()
    }
    return replace(
        program,
        guarded=(*program.guarded, *map(Guarded, unguarded)),
        actions={**facts, **program.actions},
        functions=functions,
    )


def instructions(
    briefing: Briefing, *, guidance: str, resident: str, amend: bool = True, own: bool = False
) -> str:
    """The first message: the same bytes in every request of a run. ``own``: the resident text is
    the source's. Its bytes stay as they are, and it names the role and the goals itself; other
    texts get both from the handbook."""
    table = words(briefing.language)
    lines = [table["instructions_work"], ""]
    lines.append(
        table[f"instructions_{guidance}"].format(amend=table["instructions_amend"] if amend else "")
    )
    if own:
        return "\n".join([*lines, "", table["instructions_resident"], "", resident])
    role = [table["instructions_role"].format(handbook=briefing.handbook.name)]
    if briefing.handbook.says:
        role.append(in_language(briefing.handbook.says, briefing.language).strip())
    lines = [*role, "", *lines, "", table["instructions_goals"]]
    for goal, program in briefing.programs.items():
        entry = program.functions[program.entry]
        takes = ", ".join(_parameter(name, program) for name in entry.parameters)
        line = table["instructions_goal"].format(goal=goal, parameters=takes)
        procedure = briefing.handbook.procedures.get(goal)
        action = briefing.handbook.actions.get(procedure.action) if procedure else None
        if action is not None and not action.offered:
            by_steps = guidance not in ("no_machine", "guard")
            line += table[f"instructions_not_offered{'_machine' if by_steps else ''}"]
        says = in_language(entry.says, briefing.language)
        lines.append(line + (table["instructions_says"].format(says=says) if says else ""))
    if resident:
        lines += ["", table["instructions_resident"], "", resident.rstrip()]
    return "\n".join(lines)


def _parameter(name: str, program: Program) -> str:
    """With its type where it is anything but text."""
    kind = shape(program.types[name]) if name in program.types else "string"
    return name if kind == "string" else f"{name}: {kind}"
