"""Reads a reply to a yes/no question: yes, no, or neither. Pure.

A closed choice: the whole reply is one of a few phrases, with thanks at most. Any word more may
be a condition, a correction or a question, so the reply is neither and the question is put again.
The question itself has no say: its words may come from a model.

A reply to a call that is about to be made may also be an order: "Go ahead.", "Don't do it." To a
question an order is neither: "Don't do it." isn't a no to "Do you object?".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from sopilot.handbook.model import CONFIRM

_LONGEST = 200

_ENGLISH_GO_AHEAD = (
    "by all means|that works|sounds good|looks good|(?:(?:please|you can|you may) )?"
    "(?:go ahead|proceed)|(?:please )?do (?:it|so|that)|please do"
)

_ENGLISH_YES = (
    "y|yes|yeah|yep|yup|ok|okay|sure|absolutely|certainly|definitely|of course"
    "|agreed|confirmed|i agree|i (?:do )?confirm(?: (?:it|this|that))?|i do|(?:i am|i'm) sure"
    "|(?:yes|that is|that's|this is|it is|it's) (?:correct|right)"
    f"|(?:yes )?confirm(?= yes|$)|{_ENGLISH_GO_AHEAD}"
)

_ENGLISH_PLAIN_NO = "n|no|nope|nah|no way|never|i (?:don't|do not)"

_ENGLISH_NO = (
    f"{_ENGLISH_PLAIN_NO}|i refuse|i decline|i disagree|i (?:don't|do not)( agree)?"
    "|(?:please )?(?:don't|do not)(?: (?:do (?:it|so|that)|proceed))?"
    "|(?:that's|that is|it's|it is) (?:not (?:correct|right)|wrong)|incorrect"
)

_ENGLISH_POLITE = (
    "thanks(?: a lot)?|thank you(?: (?:very|so) much)?|many thanks|thx|great|perfect|sorry"
)

_CHINESE_GO_AHEAD = "请?继续吧?|请办理吧?"
_CHINESE_YES = (
    f"是的?|好的?|好吧|对的?|行吧?|可以|没错|没问题|我?确认|我?确定|我?同意|{_CHINESE_GO_AHEAD}"
)
_CHINESE_PLAIN_NO = "否|不(?!拒绝)|不是|没有"
_CHINESE_NO = (
    f"{_CHINESE_PLAIN_NO}|不要|不行|不可以|不同意|不确认|不用了?|不需要|不对|算了|我?拒绝|算了吧"
)
# Behind another word, 吧 may ask for an answer: 对吧, "right?".
_CHINESE_POLITE = "谢谢[您你]?|多谢|啊|呀|哦|嗯|抱歉"
_YES_SIGNS = "[👍👌✅✔☑]"
_IGNORED = re.compile("[\\s,.!;，。！；、🙏🙂😊\ufe0f🏻-🏿]+")


def _reply(english: str, chinese: str) -> re.Pattern[str]:
    polite = f"(?:(?:{_ENGLISH_POLITE})(?![a-z0-9'])|{_CHINESE_POLITE}) ?"
    choice = f"(?:(?:{english})(?![a-z0-9'])|{chinese}) ?"
    after = f"(?:{choice}|{polite}|please(?= (?:{_ENGLISH_POLITE})|$) ?)"
    return re.compile(f"(?:{polite})*{choice}{after}*")


_YES = _reply(_ENGLISH_YES, f"{_CHINESE_YES}|{_YES_SIGNS}")
_NO = _reply(_ENGLISH_NO, _CHINESE_NO)
_GO_AHEAD = _reply(_ENGLISH_GO_AHEAD, _CHINESE_GO_AHEAD)
_PLAIN_NO = _reply(_ENGLISH_PLAIN_NO, _CHINESE_PLAIN_NO)


def assent(reply: str) -> str | None:
    """``yes``, ``no``, or ``None`` where the reply is neither."""
    if len(reply) > _LONGEST:
        return None
    text = _folded(reply)
    if _YES.fullmatch(text):
        return "yes"
    return "no" if _NO.fullmatch(text) else None


def reply_to(action: str, reply: str) -> str | None:
    """The same of a reply to a question that the machine puts by ``action``."""
    meaning = assent(reply)
    if action == CONFIRM or meaning is None:
        return meaning
    text = _folded(reply)
    plain = _PLAIN_NO.fullmatch(text) if meaning == "no" else not _GO_AHEAD.fullmatch(text)
    return meaning if plain else None


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    return _IGNORED.sub(" ", folded).strip()


def is_decided(answer: object) -> bool:
    """Whether the recorded answer to a question is a yes or a no."""
    return isinstance(answer, Mapping) and answer.get("answer") is not None
