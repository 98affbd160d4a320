"""One step as pseudo-code: the same lines in a frame and in the whole program."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sopilot.language.compiler.rules import MISSING_RECIPE
from sopilot.language.handbook import Path
from sopilot.language.handbook.translated import in_language
from sopilot.language.program import (
    Act,
    Ask,
    Branch,
    CallArgument,
    CallArguments,
    Check,
    Choose,
    CompleteStep,
    Do,
    Emit,
    Function,
    Kind,
    Literal,
    Program,
    ReturnStep,
    Step,
    Unknown,
)
from sopilot.language.render._conditions import condition_text
from sopilot.language.render._quoted import Writer
from sopilot.language.render._scaffold import words
from sopilot.language.render.sentences import (
    check_saying,
    constant_texts,
    is_demand,
    named_constants,
)
from sopilot.language.render.values import quote_literal

INDENT = "    "
"""In front of what belongs to the step above it."""


class ByMachine(NamedTuple):
    """What the machine does by itself, so that no line asks the model for it."""

    enters: bool = False
    judges: bool = False


NOTHING_ALONE = ByMachine()
_SAYS_ITS_BODY = (Do, Choose, Branch)


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


def asked(step: Ask, language: str) -> str:
    """What an ``ask`` step says, if that names everything it wants; else nothing."""
    says = in_language(step.says, language)
    return says if all(name in says for name in step.wants) else ""


def supplied(arguments: CallArguments) -> list[str]:
    """The values of a call that only earlier answers or the user have."""
    return list(dict.fromkeys([term.name for _, term in arguments if isinstance(term, Unknown)]))


def judge_key(function: Function, by_machine: ByMachine = NOTHING_ALONE) -> str:
    """Who judges the function, and from what."""
    if function.is_fact:
        return "judge_fact_machine" if by_machine.judges else "judge_fact"
    is_gate = function.kind is Kind.GATE
    acts = any(isinstance(step, Act) for step in function.steps)
    if by_machine.judges and (is_gate or function.verdict is not None):
        return "judge_gate_machine" if is_gate and function.verdict is None else "judge_machine"
    if MISSING_RECIPE in function.notes:
        return "judge_unverified"
    if is_gate and acts:
        return "judge_gate" if function.verdict is None else "judge_gate_answer"
    return "judge_you" if acts or function.kind not in (Kind.RULE, Kind.GATE) else "judge_values"


def write_step(
    writer: Writer,
    lead: str,
    step: Step,
    function: Function,
    program: Program,
    language: str,
    by_machine: ByMachine = NOTHING_ALONE,
) -> None:
    """The step behind ``lead``, and below it what belongs to it. Ends with a line break."""
    if isinstance(step, Check):
        _write_check(writer, lead, step, program, language)
        return
    table = words(language)
    computed: set[str] = set()
    if isinstance(step, Act) and step.goal:
        computed = {one.computes for one in program.functions.values() if one.computes}
    body = _body(step, function, table, language, by_machine, computed)
    if isinstance(step, Ask) and asked(step, language):
        body = asked(step, language) + _goto("goto", step.next, table)
    elif not isinstance(step, _SAYS_ITS_BODY) and step.says:
        # What `do` and `choose` say is their body already, and a branch says nothing.
        body += table["remark"].format(says=in_language(step.says, language))
    lines = [f"{lead}{body}\n"]
    if isinstance(step, Choose):
        for option in step.options:
            says = in_language(option.says, language)
            says = table["option_says"].format(says=says) if says else ""
            line = table["option"].format(name=option.name, target=option.target)
            lines.append(f"{INDENT}{line}{says}\n")
    if isinstance(step, Act) and function.fallbacks and step is _last_act(function):
        for acts in function.fallbacks:
            calls = table["then"].join(act_text(act, table) for act in acts)
            lines.append(f"{INDENT}{table['instead'].format(calls=calls)}\n")
    writer.write("".join(lines))


class _CheckText(NamedTuple):
    """Behind the lead; ``saying`` is quoted with the function as its owner, or it is not."""

    before: str
    saying: str = ""
    quoted: bool = False
    after: str = ""


def _write_check(writer: Writer, lead: str, step: Check, program: Program, language: str) -> None:
    called = program.functions.get(step.function)
    if called is None:
        text = _check_text(step, program, language)
    else:
        # Programs check the same things in the same words. What is given is the same object
        # then, which the text holds alive.
        constants = named_constants(called)
        texts = constant_texts(constants, program) if constants else ()
        given = step.arguments
        where = (step.slot, step.wanted, step.met, step.unmet, step.says)
        key = (_CheckText, language, id(given), *where, *texts)
        found = called.kept.get(key)
        if found is None:
            found = called.kept[key] = (_check_text(step, program, language), given)
        text = found[0]
    before, saying, quoted, after = text
    if quoted:
        writer.around(lead + before, saying, step.function, after)
    else:
        writer.write(lead + before + saying + after)


def _check_text(step: Check, program: Program, language: str) -> _CheckText:
    table = words(language)
    call = call_text(step.function, step.arguments, table)
    if step.slot != step.function:
        call += table["bound_as"].format(slot=step.slot)
    wanted = "true" if step.wanted else "false"
    if is_demand(step):
        body = table["check_must"].format(call=call, wanted=wanted, target=step.unmet)
    else:
        body = table["check_find"].format(call=call)
        if step.met is None:
            body += table["either"]
        else:
            body += table["found"].format(wanted=wanted, target=step.met)
            body += (
                table["found_on"] if step.unmet is None else _goto("found_else", step.unmet, table)
            )
    saying = check_saying(step, program, language)
    if saying is None:
        return _CheckText(f"{body}\n")
    before, after = _around(table[saying.label]) if saying.label else ("", "")
    return _CheckText(f"{body}\n{INDENT}{before}", saying.text, saying.quoted, f"{after}\n")


def _around(template: str) -> tuple[str, str]:
    before, _, after = template.partition("{says}")
    return before, after


def _body(
    step: Step,
    function: Function,
    table: Mapping[str, str],
    language: str,
    by_machine: ByMachine,
    computed: Collection[str],
) -> str:
    if isinstance(step, Act):
        key = "goal" if step.goal else "act"
        note = ""
        if names := supplied(step.arguments):
            made = [name for name in names if name in computed]
            names = [name for name in names if name not in made]
            note = "" if step.says or not names else table["supplied"].format(names=_names(names))
            note += table["computed"].format(names=_names(made)) if made else ""
        call = act_text(step, table)
        return table[key].format(call=call) + _goto("goto", step.next, table) + note
    if isinstance(step, Branch):
        when = condition_text(step.when, table)
        return table["branch"].format(when=when, then=step.then, otherwise=step.otherwise)
    if isinstance(step, ReturnStep):
        if step.holds is None:
            return table[judge_key(function, by_machine)]
        return table["return_value"].format(when=condition_text(step.holds, table))
    if isinstance(step, Choose):
        return table["choose"].format(says=in_language(step.says, language))
    if isinstance(step, Ask):
        return table["ask"].format(names=_names(step.wants)) + _goto("goto", step.next, table)
    if isinstance(step, Do):
        uses = table["do_with"].format(names=", ".join(step.uses)) if step.uses else ""
        says = in_language(step.says, language)
        return table["do"].format(says=says) + uses + _goto("goto", step.next, table)
    if isinstance(step, Emit):
        return table["emit"].format(name=step.artifact) + _goto("goto", step.next, table)
    return table["complete"] if isinstance(step, CompleteStep) else table["fail"]


def _names(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _last_act(function: Function) -> Act | None:
    acts = [step for step in function.steps if isinstance(step, Act)]
    return acts[-1] if acts else None


def _goto(key: str, target: str | None, table: Mapping[str, str]) -> str:
    return "" if target is None else table[key].format(target=target)
