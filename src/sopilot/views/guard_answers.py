"""The guard's answers to an agent that calls its own tools: what to call first, or why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from sopilot.handbook.grammar import in_language
from sopilot.handbook.model import BUILT_IN
from sopilot.handbook.wording import fill
from sopilot.machine.proof.agenda import Need, Plan, Unmet
from sopilot.machine.recipes import WantedCall
from sopilot.machine.state import Configuration
from sopilot.messages.catalogue import worded
from sopilot.messages.scaffold import LANGUAGES, words
from sopilot.program.model import Function, Kind, Program
from sopilot.protocols import ToolSchema
from sopilot.values.json import JSON, canonical, plain
from sopilot.values.text import quote_value, visible
from sopilot.views.refusals import EVIDENCE_SHOWN, Refusal, refusal

_LISTED = re.compile(r"`(\w+\([^`]*\))`")

_ANSWER = re.compile(r"^`(\w+\([^`]*\))` → #(\d+) \((ok|failed)\): (.*)$", re.MULTILINE)

JUDGE_TOOL = "judge_check"
"""The tool with which a model judges predicates that the handbook leaves to it."""


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
    show: Configuration | None = None,
) -> str:
    """The answer to an agent whose call was not made. ``show`` has the answers to calls that the
    runtime made by itself: a model that must judge them has to see them."""
    say = partial(guard_text, language=language)
    if plan.problem:
        return say("problem", problem=plan.problem)
    if plan.needs:
        first = _steps(plan.needs, program, language)
        text = say("missing", action=action, first=first, again=action)
        for needs in plan.instead:
            text += say("instead", first=_steps(needs, program, language))
        return "\n".join([text, *_shown(plan, show)]) if show is not None else text
    messages = [reason.customer_message or _reason(reason, say) for reason in reasons]
    return say("refused", action=action, reasons=" ".join(messages)).strip()


def blocked_call(text: str) -> list[str]:
    """The calls that an answer lists to be made first, as they are spelled there."""
    for table in LANGUAGES.values():
        if text.startswith(table["guard_missing"].partition("{")[0]):
            first = text.partition(table["guard_instead"].partition("{")[0])[0]
            return _LISTED.findall(first)
    return []


def judge_tool(programs: Iterable[Program], language: str = "en") -> ToolSchema | None:
    """The one tool of the guard, for handbooks that leave predicates to a model."""
    checks = sorted(
        {
            function.judges
            for program in programs
            for function in program.functions.values()
            if function.kind is Kind.RULE and function.verdict is None and function.judged_by_model
        }
    )
    if not checks:
        return None
    check = {"type": "string", "enum": checks, "description": guard_text("judge_check", language)}
    holds = {"type": "boolean", "description": guard_text("judge_holds", language)}
    return ToolSchema(
        JUDGE_TOOL,
        guard_text("judge_tool", language),
        {
            "type": "object",
            "properties": {"check": check, "holds": holds},
            "required": ["check", "holds"],
            "additionalProperties": False,
        },
    )


def _shown(plan: Plan, configuration: Configuration) -> list[str]:
    cited = {seq for need in plan.needs if need.judgement for seq in need.evidence}
    return [
        f"`{_spelled(action, answer.arguments)}` → "
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
        answer.seq: f"#{answer.seq} {name}: {quote_value(answer.value, EVIDENCE_SHOWN)}"
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


def _state(unmet: Unmet, say: Say) -> str:
    if unmet.holds is None:
        return say("undecided", why=unmet.why)
    return say("true" if unmet.holds else "false")


def _sentence(
    function: Function, program: Program, values: Mapping[str, JSON], language: str
) -> str:
    says = in_language(fill(function.says, {**program.constants, **values}), language)
    return visible(says) or function.judges


def _steps(needs: Sequence[Need], program: Program, language: str) -> str:
    say = partial(guard_text, language=language)
    steps: dict[str, None] = {}
    for need in needs:
        function = program.functions[need.function]
        sentence = _sentence(function, program, need.values, language)
        if need.value:
            steps[say("value", name=need.value)] = None
        elif need.judgement:
            shown = {"check": function.judges, **need.values}
            tool = _spelled(JUDGE_TOOL, shown)
            steps[say("judge", sentence=sentence, tool=tool)] = None
        for action in need.awaited:
            steps[say("wait", action=action)] = None
        for call in need.calls:
            if call.act.action in BUILT_IN:
                values = {**program.constants, **need.values}
                question = in_language(fill(function.question, values), language)
                steps[say("ask", question=question or sentence)] = None
            elif call.again:
                steps[say("again", call=spelled(call), why=call.again)] = None
            else:
                steps[say("call", call=spelled(call))] = None
    return say("and").join(steps)


def spelled(call: WantedCall) -> str:
    """A call as an agent would write it; `…` stands for values that only the user has."""
    return _spelled(call.act.action, call.arguments, call.open)


def _spelled(action: str, arguments: Mapping[str, JSON], unknown: Sequence[str] = ()) -> str:
    values = [f"{name}={quote_value(value)}" for name, value in arguments.items()]
    return f"{action}({', '.join([*values, *(f'{name}=…' for name in unknown)])})"
