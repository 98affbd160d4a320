"""Where the machine stands, without the SOP's text; and the active frame, with it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from sopilot.machine.affordances import completed
from sopilot.machine.evidence import frame_results, next_wanted
from sopilot.machine.layout import Position
from sopilot.machine.machine import Machine
from sopilot.machine.moves import is_true
from sopilot.machine.proof.guard import license_here
from sopilot.machine.terms import plain_arguments
from sopilot.messages.catalogue import worded
from sopilot.messages.scaffold import LONG_TOOL, StepTool, spelled, words
from sopilot.program.model import (
    Act,
    Arguments,
    Ask,
    Branch,
    Check,
    Choose,
    CompleteStep,
    Do,
    Emit,
    FailStep,
    Literal,
    ReturnStep,
)
from sopilot.values.json import JSON
from sopilot.values.text import quote_value
from sopilot.views.briefing import Briefing
from sopilot.views.frame import ByMachine, render_frame, told_on_failing
from sopilot.views.moment import Moment, known_values

MOST_EVIDENCE: Final = 12


_LONGEST_VALUE = 400


def frame_slot(moment: Moment) -> str:
    """The active frame and nothing else."""
    here = moment.here
    if here is None:
        return no_process(moment)
    return render_frame(
        here.source,
        here.frame.function,
        here.frame.cursor,
        here.frame.slots,
        known_values(here),
        moment.briefing.language,
        failed=_failed_here(here),
        by_machine=ByMachine(
            enters=moment.automation.enter_calls,
            judges=moment.automation.machine_verdicts and moment.judge is not None,
        ),
        tool=moment.step,
        origins=_origins(here),
        blocked=_blocked(moment, here),
    ).rstrip()


def _origins(here: Position) -> dict[str, str]:
    """Parameter → the name that the request has for the value, where that is another one."""
    origins: dict[str, str] = {}
    for frame in here.process.frames[:-1]:
        step = here.program.functions[frame.function].steps[frame.cursor]
        if isinstance(step, Check):
            terms = [(name, item) for name, item in step.arguments if not isinstance(item, Literal)]
            origins = {name: origins.get(item.name, item.name) for name, item in terms}
    return {name: other for name, other in origins.items() if name != other}


def _blocked(moment: Moment, here: Position) -> str:
    """Why the guard would not let the goal tool at the cursor be called with what is known."""
    step = here.step
    if not isinstance(step, Act) or not step.goal or moment.judge is None:
        return ""
    if all(item.action != step.action for item in here.source.guarded):
        return ""
    arguments = completed(here, step.action, {})
    facts = here.source.actions.get(step.action)
    if facts is not None and any(name not in arguments for name in facts.required):
        return ""
    return worded(
        license_here(moment.machine, here, arguments, moment.judge).missing,
        moment.briefing.language,
    )


def _failed_here(here: Position) -> list[int]:
    """The calls that the step at the cursor asks for and that were answered `failed`."""
    step = here.step
    if isinstance(step, Ask):
        step = here.layout.steps[here.layout.past_asking(step.label)]
    if not isinstance(step, Act):
        return []
    action = step.action
    return [
        frame_result.seq
        for frame_result in frame_results(here)
        if frame_result.action == action and not frame_result.ok
    ]


def state_slot(moment: Moment) -> str:
    """Position, bound results, known values, evidence of the frame and the next move."""
    here = moment.here
    if here is None:
        return no_process(moment)
    table = words(moment.briefing.language)
    lines = [table["position"].format(items=here.frame.place)]
    between = table["separator"]
    if here.frame.slots:
        bound = [f"{name} = {_truth(item.holds)}" for name, item in here.frame.slots.items()]
        lines.append(table["results"].format(items=between.join(bound)))
    known = known_values(here)
    if known:
        values = [f"{name} = {shown_value(value)}" for name, value in known.items()]
        lines.append(table["known"].format(items=between.join(values)))
    lines += evidence_line(here, table)
    if isinstance(here.step, FailStep):
        function = here.source.functions[here.frame.function]
        message = told_on_failing(function, here.source, here.frame.slots, moment.briefing.language)
        lines += [table["told"].format(says=message)] if message else []
    lines.append(table["next"].format(items=next_move(here, known, table)))
    return "\n".join(lines)


def gathered(here: Position) -> list[int]:
    """The results that the frame took over or gathered itself."""
    return [*here.frame.borrowed, *(result.seq for result in frame_results(here))]


def evidence_line(here: Position, table: Mapping[str, str]) -> list[str]:
    """The latest of them: a slot must not grow with the calls that were made."""
    shown = " ".join(f"#{seq}" for seq in gathered(here)[-MOST_EVIDENCE:])
    return [table["gathered"].format(items=shown)] if shown else []


def no_process(moment: Moment) -> str:
    return _before_all(moment.briefing, moment.machine, moment.automation.enter_calls)


@lru_cache(maxsize=32)
def _before_all(briefing: Briefing, machine: Machine, enters: bool) -> str:
    """The same before every conversation's first process."""
    table = words(briefing.language)
    lines = [table["no_process"]]
    for goal, program in briefing.programs.items():
        names = program.functions[program.entry].parameters
        first = _needed_first(machine, goal) if enters else frozenset()
        items = f"start {goal}({', '.join(names)})"
        # The rest may come later, where the program needs it.
        if needed := [name for name in names if name in first and len(first) < len(names)]:
            items += table["at_least"].format(names=", ".join(needed))
        lines.append(table["next"].format(items=items))
    return "\n".join(lines)


def _needed_first(machine: Machine, goal: str) -> frozenset[str]:
    """The values without which the machine cannot enter the goal's first check by itself."""
    here = machine.beginning(goal)
    if here is None or not isinstance(here.step, Check):
        return frozenset()
    terms = (term for _, term in here.step.arguments if not isinstance(term, Literal))
    return frozenset(term.name for term in terms)


def next_move(
    here: Position,
    known: Mapping[str, JSON],
    table: Mapping[str, str],
    named: Mapping[str, str] | None = None,
    *,
    enters: bool = False,
    tool: StepTool = LONG_TOOL,
) -> str:
    """What fits at the cursor. ``named`` gives other names to values that are still open; a
    machine that ``enters`` functions by itself lacks a value where it does not."""
    step = here.step
    if isinstance(step, Ask):
        behind = here.layout.steps[here.layout.past_asking(step.label)]
        step = behind if isinstance(behind, Act) else step
    if isinstance(step, Check):
        call = _call(step.function, step.arguments, known, named)
        names = ", ".join(f"`{name}`" for name in _open(step.arguments, known))
        key = "move_values" if enters and names else "move_call"
        return spelled(table, key, tool).format(call=call, names=names)
    if isinstance(step, Act):
        if here.layout.linked:
            call = _wanted(here, step)
        else:
            call = _call(step.action, plain_arguments(step.arguments), known, named)
        return table["move_goal" if step.goal else "move_tool"].format(call=call)
    if isinstance(step, Ask):
        return table["move_ask"].format(names=", ".join(step.wants))
    if isinstance(step, Branch):
        return f"select_branch {'then' if is_true(step.when, here.frame.slots) else 'otherwise'}"
    branch = "option" if tool.short else "select_branch"
    if isinstance(step, Choose):
        return f"{branch} {' | '.join(option.name for option in step.options)}"
    if isinstance(step, Do):
        return f"{branch} next"
    if isinstance(step, Emit):
        return f"{'name' if tool.short else 'emit_artifact'} {step.artifact}"
    if isinstance(step, ReturnStep):
        if step.holds is None:
            return "return true | false"
        return f"return {_truth(is_true(step.holds, here.frame.slots))}"
    assert isinstance(step, CompleteStep | FailStep)
    return "complete" if isinstance(step, CompleteStep) else "fail"


def _call(
    name: str,
    arguments: Arguments,
    known: Mapping[str, JSON],
    named: Mapping[str, str] | None,
) -> str:
    """With values where there are any, and ``?name`` where one has to be found out."""
    written = []
    for parameter, term in arguments:
        if isinstance(term, Literal):
            text = shown_value(term.value)
        elif term.name in known:
            text = shown_value(known[term.name])
        else:
            text = f"?{(named or {}).get(term.name, term.name)}"
        written.append(f"{parameter}={text}")
    return f"{name}({', '.join(written)})"


def _open(arguments: Arguments, known: Mapping[str, JSON]) -> list[str]:
    terms = [term for _, term in arguments if not isinstance(term, Literal)]
    return list(dict.fromkeys(term.name for term in terms if term.name not in known))


def _wanted(here: Position, step: Act) -> str:
    """The next call of a recipe whose calls look into earlier answers."""
    wanted = next_wanted(here, step)
    values = wanted.arguments if wanted is not None else {}
    written = (
        f"{name}={shown_value(values[name]) if name in values else f'?{name}'}"
        for name, _ in step.arguments
    )
    return f"{step.action}({', '.join(written)})"


def shown_value(value: JSON) -> str:
    return quote_value(value, _LONGEST_VALUE)


def _truth(holds: bool | None) -> str:
    return "undecided" if holds is None else "true" if holds else "false"
