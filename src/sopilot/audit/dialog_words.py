"""The words of a transcript: whether a yes is one to a guarded call, and what a refusal may be.

A foreign agent speaks in its own words. They are enough to doubt something, not to prove it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sopilot.audit.leaf_reading import touches
from sopilot.audit.state import AuditState, SessionCall
from sopilot.audit.transcript_files import AgentWords, UserWords
from sopilot.handbook.grammar import each_language
from sopilot.handbook.model import CONFIRM
from sopilot.handbook.wording import fill, placeholders
from sopilot.handbook.yes_or_no import assent
from sopilot.messages.catalogue import sentence
from sopilot.values.json import JSON, as_seen, parts_of

_LETTER = "[^\\W\u2e80-\u9fff]"
"""Of a script with spaces between words: beside a Chinese character, a word may begin or end."""
_BEGINS = rf"(?<!{_LETTER})(?<![0-9][.,])"
_ENDS = rf"(?!{_LETTER})(?![.,][0-9])"
_NUMBER = re.compile(
    rf"{_BEGINS}(?:[0-9]+[.,][0-9]{{1,2}}|[0-9]{{1,3}}(?:,[0-9]{{3}})+(?:\.[0-9]{{1,2}})?){_ENDS}"
)
_DECIMAL_COMMA = re.compile(r"[0-9]+,[0-9]{1,2}")
_SENTENCE_END = re.compile(r"[.?!]+(?=\s|$)|[。！？\n]")
_VALUE_IN_PLACE = re.compile(r"[^\s{}]*\s?\{=?\w+\}[^\s{}]*")
_ASKING = (
    r"(?:shall|should|may|can) i|i will|i'll|i am going to|i'm going to"
    r"|(?:do you want|would you like)(?: me)? to|are you sure(?: (?:that )?you want(?: me)? to)?"
    r"|is (?:it|that|this) (?:right|correct|ok|okay)(?: that i| to)?|right|correct|ok|okay"
    r"|(?:do you |please )?confirm(?: (?:it|this|that))?|do you agree(?: to)?"
    r"|proceed|go ahead|continue|please|now|the|this|your|yes(?: or |/)no|y/n"
    "|请问|请您?|您?是否(?:确认|确定|同意|继续|需要我|要)?|您?(?:确认|确定|同意)要?|需要我|继续"
    "|对吗|好吗|可以吗|是吗|吗|现在|是或否"
)
"""Words that ask whether to do something, and can't turn a question into another one."""
_MARKS = re.compile(r"[\s.,:;!?()\"'*`…。，：；！？、（）“”「」]*")
_QUESTION = re.compile(r"[^.!?。！？\n]*[?？]")
_ANYTHING_ELSE = re.compile(
    r"\b(any|some)(thing|one)? (else|more|other|further)\b|其他|别的", re.IGNORECASE
)
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
    *,
    confirm: str,
    says: str,
    since_said: str,
) -> str:
    """Why a yes may be one to something else than ``call``; empty if nothing says so. ``earlier``
    are the calls before it. ``confirm`` is the handbook's own question and ``says`` its sentence
    about the action; ``since_said`` is what the agent has said since the yes."""
    since = [item for item in earlier if item.message > yes.message and item.may_have_run]
    guarded = {action for program in run.programs.values() for action in program.guarded}
    if any(item.action in guarded for item in since):
        return sentence("audit.yes-to-another-call")
    if any(touches(run.facts, run.goal_actions, item.action, CONFIRM) for item in since):
        return sentence("audit.yes-before-change")
    clear = not questions(since_said) and _asks_for(call, yes.question, confirm, says)
    return "" if clear else sentence("audit.own-words")


def _asks_for(call: SessionCall, question: str, confirm: str, says: str) -> bool:
    """Whether the words before a yes ask for this call and say nothing else. They may hold its
    values, the words of the action, the handbook's sentences about it, and the closed forms of a
    question. Any other word may turn it into another question."""
    text = _plain(question)
    values = {name: _spelled(value) for name, value in call.arguments.items()}
    named = {name for name, parts in values.items() if any(_holds(text, part) for part in parts)}
    silent = {
        name for name, value in call.arguments.items() if value is None or isinstance(value, bool)
    }
    has_to = call.arguments.keys() & placeholders(confirm)
    if (values and not named) or not has_to <= named | silent:
        return False
    sentences = [item for form in (confirm, says) for item in _sentences(form, call)]
    words = _plain(call.action.replace("_", " ")).split()
    if not any(_holds(text, item) for item in sentences) and not all(
        _holds(text, word) for word in words
    ):
        return False
    in_place = [item for item in _values_in_place(confirm, call) if item]
    known = {*sentences, *in_place, *words, *(part for parts in values.values() for part in parts)}
    pieces = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    rest = re.sub(rf"{_BEGINS}(?:{pieces}|{_ASKING}){_ENDS}", " ", text)
    return _MARKS.fullmatch(rest) is not None


def _spelled(value: JSON) -> list[str]:
    """The texts and numbers of a value as they may stand in a question."""
    parts = [part for part in parts_of(value) if isinstance(part, str | int | float)]
    spelled = [_plain(str(part)) for part in parts if not isinstance(part, bool)]
    return [text for text in spelled if text]


def _sentences(template: str, call: SessionCall) -> list[str]:
    """Every sentence of a text of the handbook, in each language, with the call's values."""
    texts = each_language(fill(template, call.arguments)).values()
    spelled = (_plain(part) for text in texts for part in _SENTENCE_END.split(text))
    return [text for text in spelled if text]


def _values_in_place(template: str, call: SessionCall) -> list[str]:
    """Each value with the words that it touches in a text of the handbook: ``to bob``."""
    texts = each_language(template).values()
    places = (place for text in texts for place in _VALUE_IN_PLACE.findall(text))
    return [_plain(fill(place, call.arguments)) for place in places]


def _holds(text: str, part: str) -> bool:
    return re.search(f"{_BEGINS}{re.escape(part)}{_ENDS}", text) is not None


def _plain(text: str) -> str:
    """A form that is equal for texts that read the same: 1,200.50 is 1200.5, and 1,5 is 1.5."""
    folded = " ".join(as_seen(text).casefold().replace("’", "'").split())
    return _NUMBER.sub(lambda match: _number(match[0]), folded).strip(" .?!,;:。，；：")


def _number(text: str) -> str:
    decimal = text.replace(",", "." if _DECIMAL_COMMA.fullmatch(text) else "")
    return f"{float(decimal):.15g}"
