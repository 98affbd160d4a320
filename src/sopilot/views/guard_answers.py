"""The guard's answers to an agent that calls its own tools: what to call first, or why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from sopilot.handbook.model import BUILT_IN
from sopilot.handbook.wording import fill
from sopilot.machine.proof.agenda import Need, Plan, Unmet
from sopilot.machine.recipes import WantedCall
from sopilot.machine.state import Configuration
from sopilot.program.model import Function, Kind, Program
from sopilot.protocols import ToolSchema
from sopilot.values.json import JSON, canonical, plain
from sopilot.values.text import quote_value, visible
from sopilot.views.refusals import Refusal

_EVIDENCE_SHOWN = 160
_SENTENCES = {
    "en": {
        "missing": "Not called yet: `{action}` isn't proven. First {first}; then call `{again}` "
        "again with the same arguments.",
        "instead": " Or instead: {first}.",
        "call": "call `{call}`",
        "ask": "the user must answer: {question}",
        "judge": "judge `{tool}`, true or false: {sentence}",
        "value": "find out `{name}`",
        "and": ", ",
        "refused": "Refused: `{action}` must not be called. {reasons}",
        "reason": "{state}: {sentence}{evidence}{remedy}",
        "false": "Not true",
        "true": "True, and it must not be",
        "undecided": "Can't be established ({why})",
        "evidence": " ({shown})",
        "judged": "Recorded. Call the guarded tool again.",
        "not_judged": "`{check}` doesn't wait for a judgement.",
        "judge_tool": "Judge a check that a guarded tool waits for, by the answers so far.",
        "judge_check": "The check, as the guarded tool's answer names it.",
        "judge_holds": "Whether its sentence is true.",
        "problem": "Not called: {problem}.",
        "repeated": "Not called: `{action}` was carried out with the same arguments already "
        "(#{seq}). Call it again only after the user asks for it again.",
    },
    "zh": {
        "missing": "尚未调用：`{action}` 还缺少证明。请先{first}；"
        "然后用相同的参数再次调用 `{again}`。",
        "instead": "也可以改为：{first}。",
        "call": "调用 `{call}`",
        "ask": "请用户回答：{question}",
        "judge": "判断 `{tool}` 是否成立：{sentence}",
        "value": "确定 `{name}` 的值",
        "and": "，",
        "refused": "已拒绝：不得调用 `{action}`。{reasons}",
        "reason": "{state}：{sentence}{evidence}{remedy}",
        "false": "不成立",
        "true": "成立，但要求不成立",
        "undecided": "无法确定（{why}）",
        "evidence": "（{shown}）",
        "judged": "已记录。请再次调用该工具。",
        "not_judged": "`{check}` 目前不需要判断。",
        "judge_tool": "对受保护工具正在等待的检查作出判断，依据是已有的结果。",
        "judge_check": "检查的名称，与工具的回答一致。",
        "judge_holds": "该句是否成立。",
        "problem": "未调用：{problem}。",
        "repeated": "未调用：`{action}` 已用相同的参数办理过（#{seq}）。"
        "只有用户再次提出时才能再次调用。",
    },
}

_LISTED = re.compile(r"`(\w+\([^`]*\))`")

_ANSWER = re.compile(r"^`(\w+\([^`]*\))` → #(\d+) \((ok|failed)\): (.*)$", re.MULTILINE)

JUDGE_TOOL = "judge_check"
"""The tool with which a model judges predicates that the handbook leaves to it."""


def plan_text(
    plan: Plan,
    program: Program,
    action: str,
    reasons: Sequence[Refusal],
    language: str = "en",
    *,
    show: Configuration | None = None,
) -> str:
    """What the agent reads when its call was not made. ``show`` has the answers to calls that the
    runtime made by itself: a model that must judge them has to see them."""
    words = _SENTENCES[language]
    if plan.problem:
        return words["problem"].format(problem=plan.problem)
    if plan.needs:
        text = words["missing"].format(
            action=action, first=_steps(plan.needs, program, words), again=action
        )
        for needs in plan.instead:
            text += words["instead"].format(first=_steps(needs, program, words))
        return "\n".join([text, *_shown(plan, show)]) if show is not None else text
    messages = [reason.customer_message or _reason(reason, words) for reason in reasons]
    return words["refused"].format(action=action, reasons=" ".join(messages)).strip()


def blocked_call(text: str) -> list[str]:
    """The calls that an answer lists to be made first, as they are spelled there."""
    for words in _SENTENCES.values():
        if text.startswith(words["missing"].partition("{")[0]):
            first = text.partition(words["instead"].partition("{")[0])[0]
            return _LISTED.findall(first)
    return []


def judged_text(check: str, accepted: bool, language: str = "en") -> str:
    return _SENTENCES[language]["judged" if accepted else "not_judged"].format(check=check)


def judge_tool(programs: Iterable[Program], language: str = "en") -> ToolSchema | None:
    """The one tool of the guard, for handbooks that leave predicates to a model."""
    words = _SENTENCES[language]
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
    check = {"type": "string", "enum": checks, "description": words["judge_check"]}
    holds = {"type": "boolean", "description": words["judge_holds"]}
    return ToolSchema(
        JUDGE_TOOL,
        words["judge_tool"],
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


def repeated_text(action: str, seq: int, language: str = "en") -> str:
    return _SENTENCES[language]["repeated"].format(action=action, seq=seq)


def _reason(reason: Refusal, words: Mapping[str, str]) -> str:
    shown = words["evidence"].format(shown="; ".join(reason.evidence)) if reason.evidence else ""
    remedy = f" {reason.remedy}" if reason.remedy else ""
    return words["reason"].format(
        sentence=reason.sentence, state=reason.state, evidence=shown, remedy=remedy
    )


def refusals_of(
    plan: Plan,
    program: Program,
    configuration: Configuration,
    masked: Callable[[str], str],
    language: str = "en",
) -> tuple[Refusal, ...]:
    """Why a call is refused: each check with its values, what shows it, and its remedy."""
    words = _SENTENCES[language]
    cited = {seq for unmet in plan.unmet for seq in unmet.evidence}
    answers = {
        answer.seq: f"#{answer.seq} {name}: {quote_value(answer.value, _EVIDENCE_SHOWN)}"
        for name, by_arguments in configuration.answers.items()
        for answer in by_arguments.values()
        if answer.seq in cited
    }
    reasons = {}
    for unmet in plan.unmet:
        function = program.functions[unmet.function]
        shown = tuple(masked(answers[seq]) for seq in unmet.evidence if seq in answers)
        reasons[unmet.function, unmet.why] = Refusal(
            function.judges,
            masked(_sentence(function, program, unmet.values)),
            shown,
            function.remedy,
            function.customer_message,
            _state(unmet, words),
        )
    return tuple(reasons.values())


def _state(unmet: Unmet, words: Mapping[str, str]) -> str:
    if unmet.holds is None:
        return words["undecided"].format(why=unmet.why)
    return words["true" if unmet.holds else "false"]


def _sentence(function: Function, program: Program, values: Mapping[str, JSON]) -> str:
    return visible(fill(function.says, {**program.constants, **values})) or function.judges


def _steps(needs: Sequence[Need], program: Program, words: Mapping[str, str]) -> str:
    steps: dict[str, None] = {}
    for need in needs:
        function = program.functions[need.function]
        sentence = _sentence(function, program, need.values)
        if need.value:
            steps[words["value"].format(name=need.value)] = None
        elif need.judgement:
            shown = {"check": function.judges, **need.values}
            tool = _spelled(JUDGE_TOOL, shown)
            steps[words["judge"].format(sentence=sentence, tool=tool)] = None
        for call in need.calls:
            if call.act.action in BUILT_IN:
                question = fill(function.question, {**program.constants, **need.values})
                steps[words["ask"].format(question=question or sentence)] = None
            else:
                steps[words["call"].format(call=spelled(call))] = None
    return words["and"].join(steps)


def spelled(call: WantedCall) -> str:
    """A call as an agent would write it; `…` stands for values that only the user has."""
    return _spelled(call.act.action, call.arguments, call.open)


def _spelled(action: str, arguments: Mapping[str, JSON], unknown: Sequence[str] = ()) -> str:
    values = [f"{name}={quote_value(value)}" for name, value in arguments.items()]
    return f"{action}({', '.join([*values, *(f'{name}=…' for name in unknown)])})"
