"""Program → YAML. Built by hand: the same program always gives the same bytes, fast."""

from __future__ import annotations

from collections.abc import Iterable

from sopilot.program.model import (
    Act,
    Always,
    Arguments,
    Ask,
    Branch,
    Check,
    Choose,
    Complete,
    Condition,
    Do,
    Emit,
    Every,
    Fail,
    Function,
    Holds,
    Program,
    Return,
    Step,
)
from sopilot.program.scalars import (
    argument_to_yaml,
    json_to_yaml,
    scalar_to_yaml,
    text_to_yaml,
)

Pairs = list[tuple[str, str]]
"""Key → written value, in the order they are shown."""


def program_to_yaml(program: Program) -> str:
    """The artifact: deterministic, readable, and read back to an equal program."""
    source = program.source
    lines = [
        f"sopilot_program: {program.format}",
        f"entry: {text_to_yaml(program.entry)}",
    ]
    if program.compiler:
        lines.append(f"compiler: {text_to_yaml(program.compiler)}")
    named: Pairs = [
        ("handbook", source.handbook),
        ("procedure", source.procedure),
        ("sha256", source.sha256),
        ("tools", source.tools),
    ]
    if any(value for _, value in named):
        lines.append("source:")
        lines += [f"  {key}: {text_to_yaml(value)}" for key, value in named if value]
    if program.constants:
        lines.append("constants:")
        lines += [
            f"  {text_to_yaml(name)}: {scalar_to_yaml(value)}"
            for name, value in program.constants.items()
        ]
    if program.guarded:
        lines.append("guarded:")
        for guarded in program.guarded:
            pairs: Pairs = [("action", text_to_yaml(guarded.action))]
            if guarded.roles:
                pairs.append(("roles", _names(guarded.roles)))
            if guarded.needed:
                pairs.append(("needed", repr(guarded.needed)))
            if guarded.expires_seconds is not None:
                pairs.append(("expires_seconds", repr(guarded.expires_seconds)))
            lines.append(f"  - {_flow(pairs)}")
    lines.append("functions:" if program.functions else "functions: {}")
    for name, function in program.functions.items():
        _write_function(name, function, lines)
    lines.append("")
    return "\n".join(lines)


def _write_function(name: str, function: Function, lines: list[str]) -> None:
    lines.append(f"  {text_to_yaml(name)}:")
    lines.append(f"    kind: {function.kind.value}")
    if function.parameters:
        lines.append(f"    parameters: {_names(function.parameters)}")
    for key, value in (
        ("predicate", function.predicate),
        ("says", function.says or None),
        ("says_not", function.says_not or None),
        ("verdict", function.verdict),
        ("remedy", function.remedy or None),
    ):
        if value is not None:
            lines.append(f"    {key}: {text_to_yaml(value)}")
    lines.append("    steps:" if function.steps else "    steps: []")
    for step in function.steps:
        prefix = "      - "
        for key, value in step_pairs(step):
            lines.append(f"{prefix}{key}: {value}")
            prefix = "        "
    if function.fallbacks:
        lines.append("    fallbacks:")
        lines += [
            "      - [" + ", ".join(_flow(step_pairs(act)) for act in acts) + "]"
            for acts in function.fallbacks
        ]
    if function.notes:
        lines.append("    notes:")
        lines += [f"      - {text_to_yaml(note)}" for note in function.notes]


def step_pairs(step: Step) -> Pairs:
    """A step as it is written: its label, what it is, then what it needs."""
    pairs: Pairs = [("step", text_to_yaml(step.label))]
    if isinstance(step, Check):
        pairs.append(("call", text_to_yaml(step.function)))
        _with(pairs, step.arguments)
        pairs.append(("bind", text_to_yaml(step.slot)))
        if not step.wanted:
            pairs.append(("wanted", "false"))
        _jump(pairs, "met", step.met)
        _jump(pairs, "unmet", step.unmet)
        _says(pairs, step.says)
    elif isinstance(step, Act):
        pairs.append(("act", text_to_yaml(step.action)))
        _with(pairs, step.arguments)
        if step.goal:
            pairs.append(("goal", "true"))
        _says(pairs, step.says)
        _jump(pairs, "next", step.next)
    elif isinstance(step, Return):
        pairs.append(("return", "null" if step.holds is None else condition_to_yaml(step.holds)))
        _says(pairs, step.says)
    elif isinstance(step, Branch):
        pairs.append(("branch", condition_to_yaml(step.when)))
        _jump(pairs, "then", step.then)
        _jump(pairs, "otherwise", step.otherwise)
    elif isinstance(step, Complete | Fail):
        pairs.append((type(step).__name__.lower(), text_to_yaml(step.says)))
    elif isinstance(step, Choose):
        pairs.append(("choose", text_to_yaml(step.says)))
        options = []
        for option in step.options:
            inner: Pairs = [
                ("name", text_to_yaml(option.name)),
                ("to", text_to_yaml(option.target)),
            ]
            _says(inner, option.says)
            options.append(_flow(inner))
        pairs.append(("options", "[" + ", ".join(options) + "]"))
    elif isinstance(step, Ask):
        pairs.append(("ask", _names(step.wants)))
        _says(pairs, step.says)
        _jump(pairs, "next", step.next)
    elif isinstance(step, Do):
        pairs.append(("do", text_to_yaml(step.says)))
        if step.uses:
            pairs.append(("uses", _names(step.uses)))
        _jump(pairs, "next", step.next)
    elif isinstance(step, Emit):
        pairs.append(("emit", text_to_yaml(step.artifact)))
        _says(pairs, step.says)
        if step.schema is not None:
            pairs.append(("schema", json_to_yaml(step.schema)))
        _jump(pairs, "next", step.next)
    return pairs


def condition_to_yaml(condition: Condition) -> str:
    if isinstance(condition, Holds):
        return text_to_yaml(condition.slot if condition.wanted else f"not {condition.slot}")
    if isinstance(condition, Always):
        return "true" if condition.value else "false"
    word = "all" if isinstance(condition, Every) else "any"
    return f"{{{word}: [" + ", ".join(map(condition_to_yaml, condition.conditions)) + "]}"


def _with(pairs: Pairs, arguments: Arguments) -> None:
    if arguments:
        written = ", ".join(
            f"{text_to_yaml(name)}: {argument_to_yaml(value)}" for name, value in arguments
        )
        pairs.append(("with", f"{{{written}}}"))


def _jump(pairs: Pairs, key: str, target: str | None) -> None:
    if target is not None:
        pairs.append((key, text_to_yaml(target)))


def _says(pairs: Pairs, says: str) -> None:
    if says:
        pairs.append(("says", text_to_yaml(says)))


def _names(names: Iterable[str]) -> str:
    return "[" + ", ".join(map(text_to_yaml, names)) + "]"


def _flow(pairs: Pairs) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
