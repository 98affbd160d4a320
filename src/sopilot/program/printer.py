"""Program → a listing for people, as in golden files and ``sopilot show``."""

from __future__ import annotations

from sopilot.handbook.requirements import Constant, Path
from sopilot.program.codec import json_to_yaml
from sopilot.program.model import (
    Act,
    ActionFacts,
    Always,
    Ask,
    Branch,
    CallArgument,
    CallArguments,
    Check,
    Choose,
    Condition,
    Do,
    Emit,
    Every,
    Function,
    Guarded,
    Holds,
    Prerequisite,
    Program,
    ReturnStep,
    Some,
    Step,
    Unknown,
    step_kind,
)


def print_program(program: Program) -> str:
    """Every function of a program, one step a line, in the program's order."""
    lines = [f"program {program.entry}"]
    source = program.source
    if source.handbook or source.procedure:
        lines.append(f"  from {source.handbook}/{source.procedure} {source.sha256[:12]}".rstrip())
    if source.tools:
        lines.append(f"  tools {source.tools}")
    if program.compiler:
        lines.append(f"  by {program.compiler}")
    lines += [
        f"  constant {name} = {json_to_yaml(value)}" for name, value in program.constants.items()
    ]
    lines += [f"  guarded {_guarded(guarded)}" for guarded in program.guarded]
    lines += [f"  type of {name}: {json_to_yaml(item)}" for name, item in program.types.items()]
    lines += [f"  action {_facts(name, facts)}" for name, facts in program.actions.items()]
    if program.read_only:
        lines.append(f"  reads only: {', '.join(program.read_only)}")
    for function in program.functions.values():
        lines += ["", *_function(function)]
    return "\n".join(lines) + "\n"


def print_condition(condition: Condition) -> str:
    """A condition in words: ``a and (b or not c)``."""
    if isinstance(condition, Holds):
        return condition.slot if condition.wanted else f"not {condition.slot}"
    if isinstance(condition, Always):
        return "always" if condition.value else "never"
    if not condition.conditions:
        return "always" if isinstance(condition, Every) else "never"
    word = " and " if isinstance(condition, Every) else " or "
    parts = [
        f"({print_condition(part)})"
        if isinstance(part, Every | Some) and len(part.conditions) > 1
        else print_condition(part)
        for part in condition.conditions
    ]
    return word.join(parts)


def print_argument(argument: CallArgument) -> str:
    if isinstance(argument, Constant):
        return json_to_yaml(argument.value)
    if isinstance(argument, Path):
        return str(argument)
    return f"?{argument.name}" if isinstance(argument, Unknown) else argument.name


def print_call(name: str, arguments: CallArguments) -> str:
    """``name(parameter=value, …)``; a parameter passed on under its own name is not repeated."""
    written = []
    for parameter, argument in arguments:
        value = print_argument(argument)
        written.append(value if value == parameter else f"{parameter}={value}")
    return f"{name}({', '.join(written)})"


def print_act(act: Act) -> str:
    text = print_call(act.action, act.arguments)
    if act.name:
        text = f"{act.name} ← {text}"
    return text if act.each is None else f"{text} for each {act.element} in {act.each}"


def _function(function: Function) -> list[str]:
    lines = [f"{function.kind} {function.name}({', '.join(function.parameters)})"]
    for name, text in (
        ("predicate", function.predicate),
        ("says", function.says),
        ("says_not", function.says_not),
        ("verdict", function.verdict),
        ("remedy", function.remedy),
        ("computes", function.computes),
        ("question", function.question),
        ("customer_message", function.customer_message),
    ):
        if text:
            lines.append(f"  {name}: {text}")
    lines += [f"  note: {note}" for note in function.notes]
    width = max((len(step.label) for step in function.steps), default=0) + 1
    for step in function.steps:
        lines.append(f"  {step.label + ':':<{width}} {_step(step)}")
        if step_says := "" if isinstance(step, Branch) else step.says:
            lines.append(f"  {'':<{width}} # {step_says}")
        if isinstance(step, Choose):
            for option in step.options:
                says = f"  # {option.says}" if option.says else ""
                lines.append(f"  {'':<{width}} - {option.name} → {option.target}{says}")
    for acts in function.fallbacks:
        lines.append("  or: " + "; ".join(map(print_act, acts)))
    if function.principal:
        lines.append("  open for one customer at a time")
    if function.reusable:
        lines.append("  one answer serves several calls")
    if function.judged_by_model:
        lines.append("  judged by the model, also before a guarded action")
    if function.closed_by is not None:
        lines.append(f"  closed by: {print_act(function.closed_by)}")
    return lines


def _step(step: Step) -> str:
    if isinstance(step, Check):
        call = f"{step.slot} ← {print_call(step.function, step.arguments)}"
        wanted = "" if step.wanted else ", wanted false"
        return f"{call}{wanted}{_goto('; met → ', step.met)}{_goto('; unmet → ', step.unmet)}"
    if isinstance(step, Branch):
        return f"if {print_condition(step.when)} → {step.then} else → {step.otherwise}"
    if isinstance(step, Act):
        goal = "goal " if step.goal else ""
        return f"{goal}act {print_act(step)}{_goto('; → ', step.next)}"
    if isinstance(step, ReturnStep):
        value = "judged" if step.holds is None else print_condition(step.holds)
        return f"return {value}"
    if isinstance(step, Ask):
        return f"ask {', '.join(step.wants)}{_goto('; → ', step.next)}"
    if isinstance(step, Do):
        uses = f" with {', '.join(step.uses)}" if step.uses else ""
        return f"do{uses}{_goto('; → ', step.next)}"
    if isinstance(step, Emit):
        schema = "" if step.schema is None else f" {json_to_yaml(step.schema)}"
        return f"emit {step.artifact}{schema}{_goto('; → ', step.next)}"
    return step_kind(step)


def _goto(words: str, target: str | None) -> str:
    return "" if target is None else words + target


def _facts(name: str, facts: ActionFacts) -> str:
    """``name(input: schema, optional?: schema), changes …, reads …, requires …``."""
    inputs = ", ".join(
        f"{item}{'' if item in facts.required else '?'}: {json_to_yaml(schema)}"
        for item, schema in facts.inputs.items()
    )
    message = f"{name}({inputs}), changes {_topics(facts.changes)}, reads {_topics(facts.reads)}"
    if facts.requires:
        groups = (" or ".join(map(_prerequisite, group)) for group in facts.requires)
        message += f", requires {' and '.join(groups)}"
    return f"{message}, shared" if facts.shared else message


def _prerequisite(item: Prerequisite) -> str:
    call = print_call(item.predicate, item.arguments)
    return call if item.wanted else f"not {call}"


def _topics(topics: tuple[str, ...] | None) -> str:
    if topics is None:
        return "everything"
    return ", ".join(topics) or "nothing"


def _guarded(guarded: Guarded) -> str:
    text = guarded.action
    if guarded.needed:
        text += f": {guarded.needed} of {', '.join(guarded.roles)}"
    if guarded.expires_seconds is not None:
        text += f", for {guarded.expires_seconds} s"
    if guarded.recheck:
        text += ", rechecked"
    if guarded.when is not None:
        text += f", when {guarded.when}"
    if guarded.not_done is not None:
        text += f", not done if {guarded.not_done}"
    return text
