"""Whether what somebody said is a yes, a no or something else. Pure, and on the safe side: a yes
with a condition, a question or a correction in it is something else."""

from __future__ import annotations

import re

_NEUTRAL = re.compile(
    r"\bno (problem|worries|other|others|more|further|additional|changes?|questions?)\b[\w ]*"
    r"|\b(nothing|not?) (else|anything else)\b|\bwhy not\b|没问题|没有其他|没有别的|没别的",
)
_DOUBT = re.compile(
    r"\?|？|\b(but|however|instead|rather|except|unless|only if|wait|hold on|first|before|"
    r"change|different|another|other than|actually|maybe|perhaps|not sure|unsure|think about)\b"
    r"|但是|但|不过|除非|等等|等一下|先|改成|换成|另外|也许|可能|不确定|考虑",
)
_NO = re.compile(
    r"\b(no|nope|nah|not|never|don'?t|do not|stop|cancel that|refuse|decline|disagree)\b"
    r"|不|别|没有同意|拒绝|取消吧|算了",
)
_YES = re.compile(
    r"\b(yes|yeah|yep|yup|sure|ok|okay|confirm|confirmed|i confirm|agreed?|i agree|correct|"
    r"proceed|go ahead|please do|do it|sounds good|that works|absolutely|certainly|definitely|"
    r"of course|approved?|fine)\b|^y$|是的|^是|好的|^好|确认|同意|可以|没错|对的|^对|行|继续",
)


def assent(said: str) -> str | None:
    """``yes``, ``no``, or ``None`` where it is neither."""
    text = " ".join(said.lower().replace("’", "'").split()).strip(" .!,。！，")
    plain = _NEUTRAL.sub(" ", text)
    no, yes, doubt = (pattern.search(plain) for pattern in (_NO, _YES, _DOUBT))
    if doubt is not None or (no is not None and yes is not None) or len(text) > 2_000:
        return None
    if no is not None:
        return "no"
    agreed = yes is not None or (not plain.strip() and bool(text))
    return "yes" if agreed else None
