"""The words of a transcript: whether a yes is one to a guarded call, and what a refusal may be.

A foreign agent speaks in its own words. They are enough to doubt something, not to prove it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from sopilot.audit.leaf_reading import touches
from sopilot.audit.state import AuditState, SessionCall
from sopilot.audit.transcript_files import AgentWords, UserWords
from sopilot.handbook.model import CONFIRM
from sopilot.handbook.yes_or_no import assent
from sopilot.messages.catalogue import sentence
from sopilot.values.json import JSON, as_seen, parts_of

_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_DECIMAL_COMMA = re.compile(r"[0-9]+,[0-9]{1,2}")
_QUESTION = re.compile(r"[^.!?。！？\n]*[?？]")
_ANYTHING_ELSE = re.compile(
    r"\b(any|some)(thing|one)? (else|more|other|further)\b|其他|别的", re.IGNORECASE
)
_YES_OR_NO = re.compile(r"\byes(?: or |/)no\b|是或否|是否", re.IGNORECASE)
_OTHERWISE = re.compile(
    r"\b(?:not|no|never|without|instead|stop|cancel|abort|undo|keep|wait|hold|or|either|object|mind"
    r"|against|wrong|declin\w+|den(?:y|ied)|refuse|reject|skip|drop|delay|postpone|block|reverse|revoke"
    r"|delete|remove)\b|n't\b|不|取消|停止|还是|或者|反对|拒绝|暂缓|推迟|放弃|撤销|撤回|跳过",
    re.IGNORECASE,
)
_PAST = re.compile(r"\W*(?:did|was|were|has|have|had)\b|.*(?:之前|已经|了吗|过吗)", re.IGNORECASE)
_REFUSES = re.compile(
    r"\b(?:can(?:not|'t)|can not|could(?:n't| not)|unable|not (?:able|possible|allowed|eligible)"
    r"|won't|will not|unfortunately|sorry|declin\w+|refus\w+|denied)\b|无法|不能|不可以|抱歉|拒绝",
    re.IGNORECASE,
)
_SAYS_NO = re.compile(
    r"\s*(?:(?:no|nope|nah|stop|wait|hold on|not (?:yet|now))(?=\W*$|[,.!;])"
    r"|(?:don't|do not) (?!worry|hesitate|mind)|不|别|等)",
    re.IGNORECASE,
)
_MAY_AGREE = re.compile(
    r"\b(?:yes|yeah|ok|okay|sure|fine|agree|confirm|proceed|go ahead|do it|please)\b|好|可以|行",
    re.IGNORECASE,
)
_CLAIMS = re.compile(
    r"\b(?:i|we)(?:'ve| have)\b(?! not\b)|\b(?:has|have) been\b|\b(?:done|completed|processed)\b"
    r"|\bsuccess|已|成功",
    re.IGNORECASE,
)


def questions(text: str) -> list[str]:
    """The questions of a message but those whether there is anything else."""
    every = _QUESTION.findall(text)
    return [question for question in every if not _ANYTHING_ELSE.search(question)]


def answer_in_words(reply: UserWords) -> str | None:
    """``yes``, ``no``, or ``None`` where a reply may be either, or may answer another question."""
    meaning = assent(reply.text)
    if meaning == "yes":
        return meaning
    count = len(_QUESTION.findall(reply.question))
    if count > 1 or (count and not questions(reply.question)):
        return None
    says_no = _SAYS_NO.match(reply.text) is not None and _MAY_AGREE.search(reply.text) is None
    return "no" if meaning == "no" or says_no else None


def reads_as_refusal(text: str) -> bool:
    """Whether a message refuses something, and claims nothing to be done."""
    folded = text.replace("’", "'")
    return _REFUSES.search(folded) is not None and _CLAIMS.search(folded) is None


def may_be_withdrawn(said: Sequence[AgentWords], replies: Sequence[UserWords]) -> bool:
    """Whether the user may have given a request up: by a reply that is no yes, to words that
    aren't a mere refusal, or by no reply to a question. Both are those after the last call."""
    if replies:
        question = replies[-1].question
        refused = reads_as_refusal(question) and not questions(question)
        return assent(replies[-1].text) != "yes" and not refused
    return bool(said) and bool(questions(said[-1].text))


def doubt_of_yes(
    yes: UserWords,
    call: SessionCall,
    run: AuditState,
    earlier: Sequence[SessionCall],
    every: Sequence[SessionCall],
    *,
    named: Collection[str],
    wording: str,
    since_said: str,
) -> str:
    """Why a yes may be one to something else than ``call``; empty if nothing says so. ``earlier``
    are the calls before it, ``every`` those of the transcript. ``named`` are the inputs that the
    handbook's own question names, ``wording`` its words and those of the action; ``since_said`` is
    what the agent has said since the yes."""
    since = [item for item in earlier if item.message > yes.message and item.may_have_run]
    guarded = {action for program in run.programs.values() for action in program.guarded}
    if any(item.action in guarded for item in since):
        return sentence("audit.yes-to-another-call")
    if any(touches(run.facts, run.goal_actions, item.action, CONFIRM) for item in since):
        return sentence("audit.yes-before-change")
    others = (guarded | run.goal_actions) - {call.action}
    clear = not questions(since_said) and _asks_one_thing(yes.question, call, wording, others)
    is_about = clear and _is_about(yes.question, call, every, named)
    return "" if is_about else sentence("audit.own-words")


def _asks_one_thing(text: str, call: SessionCall, wording: str, others: Collection[str]) -> bool:
    """Whether a question offers no choice, isn't put the other way round, and asks what to do.
    ``others`` are further actions: a question that names one of them may be about it."""
    question = _YES_OR_NO.sub("", text)
    for value in call.arguments.values():
        for part in parts_of(value):
            question = question.replace(part, "") if isinstance(part, str) and part else question
    odd = {word.casefold() for word in _OTHERWISE.findall(question.replace("’", "'"))}
    own = {word.casefold() for word in _OTHERWISE.findall(wording.replace("_", " "))}
    every = questions(text)
    named = [name for name in others if _names_action(question, name)]
    if not _names_action(question, call.action) and not all(
        _names_action(wording, name) for name in named
    ):
        return False
    return odd <= own and len(every) <= 1 and not any(map(_PAST.match, every))


def _names_action(text: str, name: str) -> bool:
    """Whether all words of an action's name begin words of the text (`refund`: "refunding")."""
    spoken = text.casefold().replace("_", " ")
    return all(re.search(rf"\b{re.escape(word)}", spoken) for word in name.casefold().split("_"))


def _is_about(
    text: str, call: SessionCall, every: Sequence[SessionCall], named: Collection[str]
) -> bool:
    """Whether a question names the values of the call that it has to name (at least one), and no
    other one in place of a value."""
    question = as_seen(text).casefold()
    numbers = {_number(token) for token in _NUMBER.findall(question)}
    values = call.arguments.items()
    shown = [name for name, value in values if _names(question, numbers, value)]
    silent = [name for name, value in values if value is None or isinstance(value, bool)]
    if (values and not shown) or not call.arguments.keys() & named <= {*shown, *silent}:
        return False
    return not any(
        _names_other(question, numbers, value, [item.arguments.get(name) for item in every])
        for name, value in values
    )


def _names(question: str, numbers: set[float], value: JSON) -> bool:
    return any(_is_in(question, numbers, part) for part in parts_of(value))


def _is_in(question: str, numbers: set[float], value: JSON) -> bool:
    if isinstance(value, str):
        text = as_seen(value).casefold()
        return bool(text) and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", question) is not None
    return isinstance(value, int | float) and not isinstance(value, bool) and value in numbers


def _names_other(question: str, numbers: set[float], value: JSON, others: Sequence[JSON]) -> bool:
    """Whether the question names another value of the same input, and not this one."""
    if _names(question, numbers, value):
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(numbers)
    return any(_names(question, numbers, other) for other in others)


def _number(text: str) -> float:
    """1,200.50 is 1200.5, and 1,5 is 1.5."""
    if _DECIMAL_COMMA.fullmatch(text):
        return float(text.replace(",", "."))
    whole, _, rest = text.replace(",", "").partition(".")
    return float(f"{whole}.{rest.replace('.', '')}")
