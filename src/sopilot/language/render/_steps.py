"""One step as pseudo-code: the same lines in a frame and in the whole program."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.handbook import Path
from sopilot.language.program import (
    Act,
    Always,
    Ask,
    Branch,
    CallArgument,
    CallArguments,
    Check,
    Choose,
    Complete,
    Condition,
    Do,
    Emit,
    Every,
    Function,
    Holds,
    Literal,
    Return,
    Step,
    Unknown,
)
from sopilot.language.render._quoted import Writer
from sopilot.language.render._scaffold import note, words
from sopilot.language.render.values import quote_literal

INDENT = "    "
"""In front of what belongs to the step above it."""


def act_text(act: Act, table: Mapping[str, str]) -> str:
    """A call of an action, with what its answer is called and for which elements it is made."""
    text = call_text(act.action, act.arguments, table)
    if act.name:
        text += table["bound_as"].format(slot=act.name)
    if act.each is not None:
        text += table["for_each"].format(element=act.element, where=act.each)
    return text


def call_text(name: str, arguments: CallArguments, table: Mapping[str, str]) -> str:
    """``name(a, b=3)``; a value that is passed on under its own name is written once."""
    written = []
    for parameter, argument in arguments:
        value = argument_text(argument, table)
        written.append(value if value == parameter else f"{parameter}={value}")
    return f"{name}({', '.join(written)})"


def argument_text(argument: CallArgument, table: Mapping[str, str]) -> str:
    if isinstance(argument, Literal):
        return quote_literal(argument.value)
    if isinstance(argument, Unknown):
        return table["unknown"].format(name=argument.name)
    return str(argument) if isinstance(argument, Path) else argument.name


def condition_text(condition: Condition, table: Mapping[str, str]) -> str:
    if isinstance(condition, Holds):
        return condition.slot if condition.wanted else table["not"].format(slot=condition.slot)
    if isinstance(condition, Always):
        return table["true"] if condition.value else table["false"]
    if not condition.conditions:
        return table["true"] if isinstance(condition, Every) else table["false"]
    joint = table["and"] if isinstance(condition, Every) else table["or"]
    parts = [
        text if isinstance(part, Holds | Always) or len(condition.conditions) == 1 else f"({text})"
        for part in condition.conditions
        for text in [condition_text(part, table)]
    ]
    return joint.join(parts)


def is_demand(step: Check) -> bool:
    """Whether going on means that the check is met; otherwise it only finds something out."""
    return step.met is None and step.unmet is not None


def asked(step: Ask, language: str) -> str:
    """What an ``ask`` step says, if that names everything it wants; else nothing."""
    says = note(step.says, language)
    return says if all(name in says for name in step.wants) else ""


def write_step(writer: Writer, lead: str, step: Step, function: Function, language: str) -> None:
    """The step behind ``lead``, and below it what belongs to it. Ends with a line break."""
    table = words(language)
    if isinstance(step, Check):
        _write_check(writer, lead, step, table)
        return
    body = _body(step, table)
    if isinstance(step, Ask) and asked(step, language):
        body = asked(step, language) + _goto("goto", step.next, table)
    elif not isinstance(step, Do | Choose | Branch) and step.says:
        # What `do` and `choose` say is their body already, and a branch says nothing.
        body += table["remark"].format(says=note(step.says, language))
    lines = [f"{lead}{body}\n"]
    if isinstance(step, Choose):
        for option in step.options:
            says = table["option_says"].format(says=option.says) if option.says else ""
            line = table["option"].format(name=option.name, target=option.target)
            lines.append(f"{INDENT}{line}{says}\n")
    if isinstance(step, Act) and function.fallbacks and step is _last_act(function):
        for acts in function.fallbacks:
            calls = table["then"].join(act_text(act, table) for act in acts)
            lines.append(f"{INDENT}{table['instead'].format(calls=calls)}\n")
    writer.write("".join(lines))


def _write_check(writer: Writer, lead: str, step: Check, table: Mapping[str, str]) -> None:
    call = call_text(step.function, step.arguments, table)
    if step.slot != step.function:
        call += table["bound_as"].format(slot=step.slot)
    key = "check_must" if is_demand(step) else "check_want"
    body = table[key].format(call=call, wanted=_truth(step.wanted, table))
    if step.met is None and step.unmet is None:
        body += table["either"]
    elif step.unmet is None:
        body += table["met_or_on"].format(target=step.met)
    else:
        body += _goto("met", step.met, table) + _goto("unmet", step.unmet, table)
    if not step.says:
        writer.write(f"{lead}{body}\n")
        return
    writer.write(f"{lead}{body}\n{INDENT}")
    writer.quote(step.says, step.function)
    writer.write("\n")


def _body(step: Step, table: Mapping[str, str]) -> str:
    if isinstance(step, Act):
        key = "goal" if step.goal else "act"
        call = act_text(step, table)
        return table[key].format(call=call) + _goto("goto", step.next, table)
    if isinstance(step, Branch):
        when = condition_text(step.when, table)
        return table["branch"].format(when=when, then=step.then, otherwise=step.otherwise)
    if isinstance(step, Return):
        if step.holds is None:
            return table["return_judged"]
        return table["return_value"].format(when=condition_text(step.holds, table))
    if isinstance(step, Choose):
        return table["choose"].format(says=step.says)
    if isinstance(step, Ask):
        return table["ask"].format(names=", ".join(step.wants)) + _goto("goto", step.next, table)
    if isinstance(step, Do):
        uses = table["do_with"].format(names=", ".join(step.uses)) if step.uses else ""
        return table["do"].format(says=step.says) + uses + _goto("goto", step.next, table)
    if isinstance(step, Emit):
        return table["emit"].format(name=step.artifact) + _goto("goto", step.next, table)
    return table["complete"] if isinstance(step, Complete) else table["fail"]


def _last_act(function: Function) -> Act | None:
    acts = [step for step in function.steps if isinstance(step, Act)]
    return acts[-1] if acts else None


def _goto(key: str, target: str | None, table: Mapping[str, str]) -> str:
    return "" if target is None else table[key].format(target=target)


def _truth(value: bool, table: Mapping[str, str]) -> str:
    return table["true"] if value else table["false"]
