"""The active frame in words; and where the machine stands, without the SOP's text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sopilot.handbook.requirements import Constant
from sopilot.machine.affordances import completed
from sopilot.machine.evidence import frame_results
from sopilot.machine.layout import Position
from sopilot.messages.catalogue import worded
from sopilot.messages.scaffold import LONG_TOOL, StepTool, spelled, words
from sopilot.program.model import Act, Ask, Check, FailStep, Unknown
from sopilot.proof.guard import license_here
from sopilot.values.json import JSON
from sopilot.values.text import quote_value
from sopilot.views.frame import render_frame, told_on_failing
from sopilot.views.moment import Moment, known_values
from sopilot.views.moves import (
    FrameMessage,
    Move,
    Value,
    frame_move,
    gathered,
    next_move,
    start_move,
)

_LONGEST_VALUE = 400


def frame_message(moment: Moment) -> FrameMessage:
    """The active frame and nothing else."""
    here = moment.here
    if here is None:
        return no_process(moment)
    text = render_frame(
        here.source,
        here.frame.function,
        here.frame.cursor,
        here.frame.slots,
        known_values(here),
        moment.briefing.language,
        failed=_failed_here(here),
        judged=moment.automation.machine_verdicts and moment.judge is not None,
        tool=moment.step,
        origins=_origins(here),
        blocked=_blocked(moment, here),
    )
    return FrameMessage(text.rstrip(), frame_move(here, moment.briefing.language))


def _origins(here: Position) -> dict[str, str]:
    """Parameter → the name that the request has for the value, where that is another one."""
    origins: dict[str, str] = {}
    for frame in here.process.frames[:-1]:
        step = here.program.functions[frame.function].steps[frame.cursor]
        if isinstance(step, Check):
            terms = [
                (name, item) for name, item in step.arguments if not isinstance(item, Constant)
            ]
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
        license_here(here, arguments, moment.judge).missing,
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


def state_message(moment: Moment) -> FrameMessage:
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
    move = replace(next_move(here, known_values(here)), gathered=gathered(here))
    if move.known:
        values = [f"{name} = {shown_value(value)}" for name, value in move.known.items()]
        lines.append(table["known"].format(items=between.join(values)))
    lines += evidence_line(here, table)
    if isinstance(here.step, FailStep):
        function = here.source.functions[here.frame.function]
        message = told_on_failing(function, here.source, here.frame.slots, moment.briefing.language)
        lines += [table["told"].format(says=message)] if message else []
        move = replace(move, message=message)
    lines.append(table["next"].format(items=move_text(move, table)))
    return FrameMessage("\n".join(lines), move)


def evidence_line(here: Position, table: Mapping[str, str]) -> list[str]:
    shown = " ".join(f"#{seq}" for seq in gathered(here))
    return [table["gathered"].format(items=shown)] if shown else []


def no_process(moment: Moment) -> FrameMessage:
    """The goals that can be started, with what each takes."""
    table = words(moment.briefing.language)
    lines = [table["no_process"]]
    move = start_move(moment)
    for goal, names in move.goals.items():
        items = f"start {goal}({', '.join(names)})"
        if goal in move.needed:
            items += table["at_least"].format(names=", ".join(move.needed[goal]))
        lines.append(table["next"].format(items=items))
    return FrameMessage("\n".join(lines), move)


def move_text(
    move: Move, table: Mapping[str, str], *, enters: bool = False, tool: StepTool = LONG_TOOL
) -> str:
    """A move in words. A machine that ``enters`` functions by itself lacks a value where it
    doesn't."""
    match move.kind:
        case "call":
            names = [term.name for _, term in move.arguments if isinstance(term, Unknown)]
            ticked = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
            key = "move_values" if enters and names else "move_call"
            return spelled(table, key, tool).format(call=_call(move), names=ticked)
        case "tool" | "goal":
            return table[f"move_{move.kind}"].format(call=_call(move))
        case "ask":
            return table["move_ask"].format(names=", ".join(move.options))
        case "branch":
            return f"select_branch {move.name}"
        case "choose":
            return f"{_branch(tool)} {' | '.join(move.options)}"
        case "emit":
            return f"{'name' if tool.short else 'emit_artifact'} {move.name}"
        case "judge":
            return "return true | false"
        case "return":
            return f"return {move.name}"
        case "next":
            return f"{_branch(tool)} next"
        case ending:
            return ending


def _branch(tool: StepTool) -> str:
    return "option" if tool.short else "select_branch"


def _call(move: Move) -> str:
    """With values where there are any, and ``?name`` where one has to be found out."""
    written = (
        f"{name}={shown_value(term.value)}" if isinstance(term, Value) else f"{name}=?{term.name}"
        for name, term in move.arguments
        if isinstance(term, Value | Unknown)
    )
    return f"{move.name}({', '.join(written)})"


def shown_value(value: JSON) -> str:
    return quote_value(value, _LONGEST_VALUE)


def _truth(holds: bool | None) -> str:
    return "undecided" if holds is None else "true" if holds else "false"
