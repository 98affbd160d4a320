"""Program → YAML. Built by hand: the same program always gives the same bytes, fast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sopilot.language.program.model import (
    Act,
    ActionFacts,
    Always,
    Ask,
    Branch,
    CallArguments,
    Check,
    Choose,
    CompleteStep,
    Condition,
    Do,
    Emit,
    Every,
    FailStep,
    Function,
    Holds,
    Option,
    Program,
    ReturnStep,
    Step,
)
from sopilot.language.program.scalars import (
    argument_to_yaml,
    json_to_yaml,
    path_to_text,
    scalar_to_yaml,
    text_to_yaml,
)

Parts = list[str]
"""``key: value`` texts in the order they are shown, for a block or a flow mapping."""


def program_to_yaml(program: Program) -> str:
    """The artifact: deterministic, readable, and read back to an equal program."""
    source = program.source
    lines = [
        f"sopilot_program: {program.format}",
        f"entry: {text_to_yaml(program.entry)}",
    ]
    if program.compiler:
        lines.append(f"compiler: {text_to_yaml(program.compiler)}")
    named = [
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
            f"  {text_to_yaml(name)}: {_constant(value)}"
            for name, value in program.constants.items()
        ]
    if program.guarded:
        lines.append("guarded:")
        for guarded in program.guarded:
            parts = [f"action: {text_to_yaml(guarded.action)}"]
            if guarded.roles:
                parts.append(f"roles: {_names(guarded.roles)}")
            if guarded.needed:
                parts.append(f"needed: {guarded.needed!r}")
            if guarded.expires_seconds is not None:
                parts.append(f"expires_seconds: {guarded.expires_seconds!r}")
            if guarded.recheck:
                parts.append("recheck: true")
            if guarded.when is not None:
                parts.append(f"when: {text_to_yaml(guarded.when)}")
            lines.append(f"  - {_flow(parts)}")
    if program.secrets:
        lines.append(f"secrets: {_names(program.secrets)}")
    if program.not_found:
        lines.append("not_found:")
        lines += [
            f"  {text_to_yaml(name)}: {text_to_yaml(one)}"
            for name, one in program.not_found.items()
        ]
    if program.types:
        lines.append("types:")
        lines += [
            f"  {text_to_yaml(name)}: {_schema(schema)}" for name, schema in program.types.items()
        ]
    if program.actions:
        lines.append("actions:")
        lines += [
            f"  {text_to_yaml(name)}: {_facts(facts)}" for name, facts in program.actions.items()
        ]
    if program.read_only:
        lines.append(f"read_only: {_names(program.read_only)}")
    lines.append("functions:" if program.functions else "functions: {}")
    for name, function in program.functions.items():
        _write_function(name, function, lines)
    lines.append("")
    return "\n".join(lines)


def _constant(value: object) -> str:
    return json_to_yaml(value) if isinstance(value, list | dict) else scalar_to_yaml(value)  # type: ignore[arg-type]  # JSON


def _schema(schema: Mapping[str, object]) -> str:
    kind = schema.get("type")
    if len(schema) == 1 and isinstance(kind, str):
        return text_to_yaml(kind)
    return json_to_yaml(schema)


def _facts(facts: ActionFacts) -> str:
    parts = []
    if facts.inputs:
        written = [f"{text_to_yaml(name)}: {_schema(one)}" for name, one in facts.inputs.items()]
        parts.append(f"input: {{{', '.join(written)}}}")
    if facts.required:
        parts.append(f"required: {_names(facts.required)}")
    if facts.changes is not None:
        parts.append(f"changes: {_names(facts.changes)}")
    if facts.reads is not None:
        parts.append(f"reads: {_names(facts.reads)}")
    return _flow(parts)


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
        ("computes", function.computes or None),
        ("value", function.value),
        ("question", function.question or None),
        ("tells", function.tells or None),
    ):
        if value is not None:
            lines.append(f"    {key}: {text_to_yaml(value)}")
    if function.optional:
        lines.append(f"    optional: {_names(function.optional)}")
    if function.principal:
        lines.append("    principal: true")
    if function.judged_by_model:
        lines.append("    judged_by: model")
    if function.closed_by is not None:
        lines.append(f"    closed_by: {_flow(step_parts(function.closed_by))}")
    lines.append("    steps:" if function.steps else "    steps: []")
    lines += ["      - " + "\n        ".join(step_parts(step)) for step in function.steps]
    if function.fallbacks:
        lines.append("    fallbacks:")
        lines += [
            "      - [" + ", ".join(_flow(step_parts(act)) for act in acts) + "]"
            for acts in function.fallbacks
        ]
    if function.notes:
        lines.append("    notes:")
        lines += [f"      - {text_to_yaml(note)}" for note in function.notes]


def step_parts(step: Step) -> Parts:
    """A step as it is written: its label, what it is, then what it needs."""
    parts = [f"step: {text_to_yaml(step.label)}"]
    if isinstance(step, Check):
        parts.append(f"call: {text_to_yaml(step.function)}")
        _with(parts, step.arguments)
        parts.append(f"bind: {text_to_yaml(step.slot)}")
        if not step.wanted:
            parts.append("wanted: false")
        _jump(parts, "met", step.met)
        _jump(parts, "unmet", step.unmet)
        _says(parts, step.says)
    elif isinstance(step, Act):
        parts.append(f"act: {text_to_yaml(step.action)}")
        _with(parts, step.arguments)
        if step.goal:
            parts.append("goal: true")
        if step.name:
            parts.append(f"name: {text_to_yaml(step.name)}")
        if step.each is not None:
            each = f"{path_to_text(step.each)} as {step.element}"
            parts.append(f"for_each: {text_to_yaml(each)}")
        _says(parts, step.says)
        _jump(parts, "next", step.next)
    elif isinstance(step, ReturnStep):
        value = "null" if step.holds is None else condition_to_yaml(step.holds)
        parts.append(f"return: {value}")
        _says(parts, step.says)
    elif isinstance(step, Branch):
        parts.append(f"branch: {condition_to_yaml(step.when)}")
        _jump(parts, "then", step.then)
        _jump(parts, "otherwise", step.otherwise)
    elif isinstance(step, CompleteStep):
        parts.append(f"complete: {text_to_yaml(step.says)}")
    elif isinstance(step, FailStep):
        parts.append(f"fail: {text_to_yaml(step.says)}")
        _jump(parts, "starts", step.starts or None)
    elif isinstance(step, Choose):
        parts.append(f"choose: {text_to_yaml(step.says)}")
        parts.append("options: [" + ", ".join(map(_option, step.options)) + "]")
    elif isinstance(step, Ask):
        parts.append(f"ask: {_names(step.wants)}")
        _says(parts, step.says)
        _jump(parts, "next", step.next)
    elif isinstance(step, Do):
        parts.append(f"do: {text_to_yaml(step.says)}")
        if step.uses:
            parts.append(f"uses: {_names(step.uses)}")
        _jump(parts, "next", step.next)
    elif isinstance(step, Emit):
        parts.append(f"emit: {text_to_yaml(step.artifact)}")
        _says(parts, step.says)
        if step.schema is not None:
            parts.append(f"schema: {json_to_yaml(step.schema)}")
        _jump(parts, "next", step.next)
    return parts


def condition_to_yaml(condition: Condition) -> str:
    if isinstance(condition, Holds):
        return text_to_yaml(condition.slot if condition.wanted else f"not {condition.slot}")
    if isinstance(condition, Always):
        return "true" if condition.value else "false"
    word = "all" if isinstance(condition, Every) else "any"
    return f"{{{word}: [" + ", ".join(map(condition_to_yaml, condition.conditions)) + "]}"


def _option(option: Option) -> str:
    parts = [f"name: {text_to_yaml(option.name)}", f"to: {text_to_yaml(option.target)}"]
    _says(parts, option.says)
    return _flow(parts)


def _with(parts: Parts, arguments: CallArguments) -> None:
    if arguments:
        written = [f"{text_to_yaml(name)}: {argument_to_yaml(value)}" for name, value in arguments]
        parts.append(f"with: {{{', '.join(written)}}}")


def _jump(parts: Parts, key: str, target: str | None) -> None:
    if target is not None:
        parts.append(f"{key}: {text_to_yaml(target)}")


def _says(parts: Parts, says: str) -> None:
    if says:
        parts.append(f"says: {text_to_yaml(says)}")


def _names(names: Iterable[str]) -> str:
    return "[" + ", ".join(map(text_to_yaml, names)) + "]"


def _flow(parts: Parts) -> str:
    return "{" + ", ".join(parts) + "}"
