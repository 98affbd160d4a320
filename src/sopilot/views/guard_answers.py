"""The guard's answers to an agent that calls its own tools: what to call first, or why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Protocol

from sopilot.handbook.grammar import in_language
from sopilot.handbook.model import BUILT_IN
from sopilot.handbook.wording import fill
from sopilot.machine.recipes import WantedCall
from sopilot.machine.state import CallRecord, Configuration
from sopilot.messages.catalogue import worded
from sopilot.messages.scaffold import LANGUAGES, words
from sopilot.program.model import Act, Function, Kind, Program
from sopilot.proof.agenda import Need, Plan, Unmet, inputs_beside
from sopilot.protocols import ToolSchema
from sopilot.values.json import JSON, canonical, plain
from sopilot.values.text import quote_value, visible
from sopilot.views.refusals import EVIDENCE_SHOWN, Refusal, refusal

_LISTED = re.compile(r"`(\w+\([^`]*\))`")

_ANSWER = re.compile(r"^`(\w+\([^`]*\))` → #(\d+) \((ok|failed)\): (.*)$", re.MULTILINE)

JUDGE_TOOL = "judge_check"
"""The tool with which a model judges predicates that the handbook leaves to it."""
VALUE_TOOL = "give_values"
"""The tool with which a model passes inputs that the guarded tool has no argument for."""
GUARD_TOOLS = (JUDGE_TOOL, VALUE_TOOL)


class Say(Protocol):
    def __call__(self, key: str, **fields: object) -> str: ...


def guard_text(key: str, language: str = "en", **fields: object) -> str:
    """A sentence of the guard. Reasons from the runtime are worded in the same language."""
    values = {
        name: worded(value, language) if isinstance(value, str) else value
        for name, value in fields.items()
    }
    return words(language)[f"guard_{key}"].format(**values)


def plan_text(
    plan: Plan,
    program: Program,
    action: str,
    reasons: Sequence[Refusal],
    language: str = "en",
    *,
    tools: Mapping[str, str],
    show: Configuration | None = None,
) -> str:
    """The answer to an agent whose call was not made. ``tools`` has the agent's names of its
    tools, by action, where they differ. ``show`` has the answers to calls that the runtime made by
    itself: a model that must judge them has to see them."""
    say = partial(guard_text, language=language)
    action = tools.get(action, action)
    if plan.problem:
        return say("problem", problem=plan.problem)
    if plan.needs:
        first = _steps(plan.needs, program, action, tools, language)
        added = dict.fromkeys(f"`{need.argument}`" for need in plan.needs if need.argument)
        more = say("and").join(["", *added])
        text = say("missing", action=action, first=first, again=action, more=more)
        for needs in plan.instead:
            text += say("instead", first=_steps(needs, program, action, tools, language))
        return "\n".join([text, *_shown(plan, tools, show)]) if show is not None else text
    messages = [reason.customer_message or _reason(reason, say) for reason in reasons]
    return say("refused", action=action, reasons=" ".join(messages)).strip()


def blocked_call(text: str) -> list[str]:
    """The calls that an answer lists to be made first, as they are spelled there."""
    for table in LANGUAGES.values():
        if text.startswith(table["guard_missing"].partition("{")[0]):
            first = text.partition(table["guard_instead"].partition("{")[0])[0]
            return _LISTED.findall(first)
    return []


def guard_tools(programs: Collection[Program], language: str = "en") -> list[ToolSchema]:
    """The guard's own tools: `judge_check` if the handbook leaves predicates to a model, and
    `give_values` if a procedure has inputs that its act has no argument for."""
    tools = []
    inputs: dict[str, JSON] = {}
    for program in programs:
        entry = program.functions[program.entry]
        for act in entry.steps:
            for name in inputs_beside(entry, act) if isinstance(act, Act) and act.goal else ():
                schema = plain(program.types.get(name, {}))
                # Two procedures may have inputs of one name and of two types.
                inputs[name] = schema if inputs.get(name, schema) == schema else {}
    if inputs:
        properties = dict(sorted(inputs.items()))
        tools.append(_tool(VALUE_TOOL, "value_tool", properties, language))
    checks = sorted(
        {
            function.judges
            for program in programs
            for function in program.functions.values()
            if function.kind is Kind.RULE and function.verdict is None and function.judged_by_model
        }
    )
    if checks:
        about = guard_text("judge_check", language)
        check: JSON = {"type": "string", "enum": [*checks], "description": about}
        holds = {"type": "boolean", "description": guard_text("judge_holds", language)}
        properties = {"check": check, "holds": holds}
        tools.append(_tool(JUDGE_TOOL, "judge_tool", properties, language, ("check", "holds")))
    return tools


def _tool(
    name: str,
    text: str,
    properties: Mapping[str, JSON],
    language: str,
    required: Sequence[str] = (),
) -> ToolSchema:
    parameters: dict[str, JSON] = {"type": "object", "properties": {**properties}}
    parameters |= {"required": [*required]} if required else {}
    parameters["additionalProperties"] = False
    return ToolSchema(name, guard_text(text, language), parameters)


def _shown(plan: Plan, tools: Mapping[str, str], configuration: Configuration) -> list[str]:
    cited = {seq for need in plan.needs if need.judgement for seq in need.evidence}
    return [
        f"`{_spelled(tools.get(action, action), answer.arguments)}` → "
        f"#{answer.seq} ({'ok' if answer.ok else 'failed'}): "
        + visible(canonical(plain(answer.value)).decode("utf-8", "replace"))
        for action, answers in configuration.answers.items()
        for answer in answers.values()
        if answer.seq in cited
    ]


def shown_answers(text: str) -> list[tuple[str, str, str, str]]:
    """The answers that a text shows: call, number, `ok` or `failed`, value."""
    return _ANSWER.findall(text)


def _reason(reason: Refusal, say: Say) -> str:
    shown = say("evidence", shown="; ".join(reason.evidence)) if reason.evidence else ""
    remedy = say("remedy", says=reason.remedy) if reason.remedy else ""
    return say(
        "reason", sentence=reason.sentence, state=reason.state, evidence=shown, remedy=remedy
    )


def refusals_of(
    plan: Plan,
    program: Program,
    configuration: Configuration,
    masked: Callable[[str], str],
    language: str = "en",
) -> tuple[Refusal, ...]:
    """Why a call is refused: each check with its values, what shows it, and its remedy."""
    say = partial(guard_text, language=language)
    cited = {seq for unmet in plan.unmet for seq in unmet.evidence}
    answers = {
        answer.seq: f"#{answer.seq} {name}: {quote_value(_said(name, answer), EVIDENCE_SHOWN)}"
        for name, by_arguments in configuration.answers.items()
        for answer in by_arguments.values()
        if answer.seq in cited
    }
    reasons = {}
    for unmet in plan.unmet:
        function = program.functions[unmet.function]
        shown = tuple(masked(answers[seq]) for seq in unmet.evidence if seq in answers)
        text = masked(_sentence(function, program, unmet.values, language))
        reasons[unmet.function, unmet.why] = refusal(
            function, program, text, shown, language, _state(unmet, say)
        )
    return tuple(reasons.values())


def _said(name: str, answer: CallRecord) -> JSON:
    """The answer of a tool; of the user only the words, without the question."""
    said = answer.value.get("said") if isinstance(answer.value, Mapping) else None
    return said if name in BUILT_IN and said is not None else answer.value


def _state(unmet: Unmet, say: Say) -> str:
    if unmet.holds is None:
        return say("undecided", why=unmet.why)
    return say("true" if unmet.holds else "false")


def _sentence(
    function: Function, program: Program, values: Mapping[str, JSON], language: str
) -> str:
    says = in_language(fill(function.says, {**program.constants, **values}), language)
    return visible(says) or function.judges


def _steps(
    needs: Sequence[Need], program: Program, action: str, tools: Mapping[str, str], language: str
) -> str:
    say = partial(guard_text, language=language)
    steps: dict[str, bool] = {}
    """Each with whether it opens a gate: the next step waits for that."""
    for need in needs:
        function = program.functions[need.function]
        opens_gate = function.kind is Kind.GATE
        sentence = _sentence(function, program, need.values, language)
        if need.argument:
            steps[say("argument", name=need.argument, action=action)] = False
        elif need.value:
            tool = _spelled(VALUE_TOOL, {}, (need.value,))
            steps[say("value", name=need.value, tool=tool)] = False
        elif need.judgement:
            check = _spelled(function.judges, need.values)
            tool = _spelled(JUDGE_TOOL, {"check": function.judges}, ("holds",))
            steps[say("judge", sentence=sentence, check=check, tool=tool)] = False
        for awaited in need.awaited:
            steps[say("wait", action=tools.get(awaited, awaited))] = False
        for call in need.calls:
            if call.act.action in BUILT_IN:
                values = {**program.constants, **need.values}
                question = in_language(fill(function.question, values), language)
                steps[say("ask", question=question or sentence)] = False
            elif call.again:
                steps[say("again", call=spelled(call, tools), why=call.again)] = opens_gate
            else:
                steps[say("call", call=spelled(call, tools))] = opens_gate
    text, after_gate = "", False
    for step, waited_for in steps.items():
        text += (say("after_gate" if after_gate else "and") if text else "") + step
        after_gate = waited_for
    return text


def spelled(call: WantedCall, tools: Mapping[str, str]) -> str:
    """A call as an agent would write it; `…` stands for values that only the user has."""
    action = call.act.action
    return _spelled(tools.get(action, action), call.arguments, call.open)


def _spelled(action: str, arguments: Mapping[str, JSON], unknown: Sequence[str] = ()) -> str:
    values = [f"{name}={quote_value(value)}" for name, value in arguments.items()]
    return f"{action}({', '.join([*values, *(f'{name}=…' for name in unknown)])})"
