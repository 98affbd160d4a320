"""Whether the programs that ran are those of a handbook.

A trace contains its programs and proves that they ran. It can't prove that they are your rules: a
program without a check verifies, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sopilot.audit.findings import Finding
from sopilot.compiler.pipeline import compile_procedure
from sopilot.program.codec import program_to_yaml
from sopilot.program.model import Act, Program
from sopilot.runner.sources import TOOL_LISTS, FolderSource, compile_source, open_source
from sopilot.views.briefing import Briefing


def others(handbook: str, ran: Mapping[int, Mapping[str, Program]]) -> list[Finding]:
    """Findings for each program of ``ran`` (event → goal → program) that isn't the handbook's."""
    return [
        Finding(
            "other-program",
            index,
            f"`{goal}` did not run by `{handbook}`: {why}",
            details={"handbook": handbook, "goal": goal},
        )
        for index, programs in sorted(ran.items())
        for goal, why in _strange(handbook, programs)
    ]


def _strange(handbook: str, programs: Mapping[str, Program]) -> Iterator[tuple[str, str]]:
    if not programs:
        yield "session", "there is no program at all"
    for goal, program in programs.items():
        made = [form for item in _compiled(handbook, goal, program) for form in _forms(item)]
        if not made:
            yield goal, "it has no such goal"
        elif program_to_yaml(program) not in map(program_to_yaml, made):
            elsewhere = program.compiler not in (item.compiler for item in made)
            by = f", compiled by `{program.compiler}`" if elsewhere else ""
            yield goal, f"a different program ran{by}"


def _forms(briefing: Briefing) -> tuple[Program, ...]:
    """The program as it compiles, and as the views `guard` and `guard-auto` run it."""
    return (*briefing.programs.values(), *briefing.guarding().values())


def _compiled(handbook: str, goal: str, ran: Program) -> Iterator[Briefing]:
    """The program as it compiles now, for the tools of the session."""
    tools = ran.source.tools
    if handbook.startswith("sopbench:"):
        yield from (
            Briefing(unit.handbook, {goal: unit.program})
            for unit in compile_source(handbook, tools=tools or None)
            if unit.procedure.name == goal
        )
        return
    source = open_source(handbook)
    if isinstance(source, FolderSource):
        if goal == source.folder.goal:
            yield Briefing(source.handbook, {goal: source.folder.program})
        return
    if goal not in source.handbook.procedures:
        return
    if tools in TOOL_LISTS:
        for unit in source.units(goal=goal, tools=tools):
            yield Briefing(unit.handbook, {goal: unit.program})
        return
    whole = compile_procedure(source.handbook, goal, tools=tools)
    yield Briefing(source.handbook, {goal: whole.program})
    part = compile_procedure(source.handbook, goal, offered=_called(ran), tools=tools)
    # For fewer tools, but with nothing that can no longer be verified.
    if set(part.missing_recipes) <= set(whole.missing_recipes):
        yield Briefing(source.handbook, {goal: part.program})


def _called(program: Program) -> frozenset[str]:
    functions = program.functions.values()
    steps = [step for function in functions for step in function.steps if isinstance(step, Act)]
    others = [act for function in functions for way in function.fallbacks for act in way]
    closing = [function.closed_by for function in functions if function.closed_by is not None]
    return frozenset(act.action for act in (*steps, *others, *closing))
