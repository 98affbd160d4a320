"""Whether what somebody said is a yes, a no or something else. Pure, and on the safe side.

A yes is a message in which every word is known: words of assent, words that change nothing, and
words of the question itself. One word more may be a condition, a correction or somebody else's
name, and makes it something else; so does a question, and a sign that is not in the question
(a thumb that points down, another currency). Whoever is asked again says yes in fewer words.
"""

from __future__ import annotations

import re
import unicodedata

_LONGEST = 2_000
_STEM = 5
"""Words of the question count in other forms too: cancel, cancelled, cancellation."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_YES = _set(
    """
    yes yeah yep yup y sure ok okay okey k confirm confirmed confirming agree agreed
    correct right proceed absolutely certainly definitely approve approved fine
    """
)
_YES_PHRASES = re.compile(
    r"\b(go ahead|please do|do it|do that|do so|go for it|sounds good|looks good|of course|"
    r"that works|works for me|by all means)\b"
)
_HARMLESS_PHRASES = re.compile(
    r"\b(no problem|no worries|nothing else|no (other|further|more) questions|thank you|"
    r"(would|'d) like (you )?to|want (you )?to|"
    r"(you )?(can|may) (please )?(now )?(go ahead|proceed)|"
    r"let's|the (information|details) (above|provided)|as (described|discussed|listed|stated|"
    r"outlined|shown|proposed|above))\b"
)
_POLITE_NO = re.compile(
    r"\b(i'm|im|i am|we're|we are) (all |quite |perfectly |just )?(fine|ok|okay|okey|right)\b"
    r"(?! (with|to)\b)"
)
_POLITE_NO_THANKS = re.compile(
    r"\b(it's|its|it is|that's|thats|that is) (all right|quite ok|fine|ok|okay|okey|alright)\b"
    r"(?=[^?]*\b(thanks|thank you|thx)\b)(?! (with|to)\b)"
)
"""`Do you want that?` — `I'm fine, thanks.`"""
_DOUBTING = re.compile(
    r"\byou( really| quite| very)? sure\b|\b(yeah|yep|sure|ok),? right\b|"
    r"\bcorrect (it|that|this|these|those|the|my|your|our|all|both|a|an|everything|me|us)\b"
)
"""To correct something is an order, and no yes to it."""
_HARMLESS = _set(
    """
    i i'm im we me my you your it it's its that that's this these those is am are the a an
    and all to with for of on in at so very much please thanks thank thx hi hello well
    great good perfect excellent wonderful alright now then everything dear sir madam both
    """
)
_ASKING = _set(
    """
    is are am was were do does did can could may might will would should shall who whom
    whose what which when where why how
    """
)
_NO = _set(
    """
    no nope nah nay non nein not never none nobody nothing neither nor without cannot cant
    dont wont isnt refuse refused reject rejected decline declined disagree disagreed stop
    abort wrong incorrect false
    """
)
_DOUBT = _set(
    """
    but however instead rather except unless until if when whenever once after before only
    wait hold later tomorrow yet maybe perhaps possibly unsure actually different
    another other half otherwise think almost hardly forget keep leave undo
    """
)

_CHINESE_ASSENT = "是的|好的|确认|确定|同意|可以|没错|对的|继续|没问题"
_CHINESE_YES = re.compile(f"{_CHINESE_ASSENT}|是|好|对|行")
_CHINESE_POLITE = "请|吧|啊|呀|哦|嗯|了|的|我|谢谢|您|你|就|这样|办理|办|来|一切|都"
_CHINESE_HARMLESS = re.compile(_CHINESE_POLITE)
# A sign that is a yes by itself is the beginning of a word before another: 行程, 对方, 银行.
_CHINESE_SAID_YES = re.compile(
    f"{_CHINESE_ASSENT}|^(?:{_CHINESE_POLITE})*[是好对行]+(?=$|{_CHINESE_POLITE}|{_CHINESE_ASSENT})"
)
_CHINESE_NO = re.compile("[不别没未无非勿莫]|拒绝|取消吧|算了|停|错")
_CHINESE_DOUBT = re.compile(
    "[吗呢么谁哪几]|但|除非|等|先|改|换|另|也许|可能|考虑|如果|要是|之后|以后|只"
)
_FRIENDLY = frozenset("👍👌✅✔☑🙏🙂😊😀😃😄👏🎉💯" + "🏻🏼🏽🏾🏿\ufe0e\ufe0f" + "`´^")
_CHANGING = frozenset(("Sc", "Sk", "Sm", "So", "Mn", "Me"))
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_IDEOGRAPHS = re.compile("[\u3400-\u9fff]+")
_WORDS = re.compile(r"(?:(?<!\S)-(?=\d))?[^\W_](?:[^\W_]|[-'._@:/,](?=[^\W_]))*")


def assent(said: str, asked: str = "") -> str | None:
    """``yes``, ``no``, or ``None`` where it is neither; ``asked`` is the question."""
    text = _plain(said)
    if not text or len(text) > _LONGEST:
        return None
    if _DOUBTING.search(text) or _signs(text) - _signs(_plain(asked)):
        return None
    runs = _IDEOGRAPHS.findall(text)
    chinese = "".join(runs)
    rest = _POLITE_NO_THANKS.sub(" ", _POLITE_NO.sub(" ", text))
    rest, agrees = _YES_PHRASES.subn(" ", _HARMLESS_PHRASES.sub(_keep_assent, rest))
    words = _WORDS.findall(_IDEOGRAPHS.sub(" ", rest))
    agrees += sum(word in _YES for word in words)
    agrees += sum(len(_CHINESE_SAID_YES.findall(run)) for run in runs)
    no_problem = chinese.replace("没问题", "").replace("没错", "")
    if any(_is_no(word) for word in words) or _CHINESE_NO.search(no_problem):
        return None if agrees or "?" in text else "no"
    if not agrees or "?" in text or _asks(words) or _CHINESE_DOUBT.search(chinese):
        return None
    known = _plain(asked)
    if any(not _is_known(word, known) for word in words) or _turns_back(words):
        return None
    left = _CHINESE_HARMLESS.sub(" ", _CHINESE_YES.sub(" ", chinese)).split()
    return "yes" if all(piece in known for piece in left) else None


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).lower().replace("’", "'").replace("？", "?")
    return " ".join(folded.split())


def _signs(text: str) -> set[str]:
    """What is no word and may change one: currencies, pictures, arrows, a per cent, a line
    through it, the order in which it is read."""
    return {
        sign
        for sign in text
        if (unicodedata.category(sign) in _CHANGING or sign in "%‰" or sign in _REORDERING)
        and sign not in _FRIENDLY
    }


def _keep_assent(found: re.Match[str]) -> str:
    return " proceed " if found[0].endswith(("go ahead", "proceed")) else " "


def _is_no(word: str) -> bool:
    return word in _NO or word.endswith(("n't", "less"))


def _turns_back(words: list[str]) -> bool:
    """Whether a word of the question is used against itself: cancel the cancellation."""
    forms = {word for word in words if len(word) >= _STEM and word.isalpha() and word not in _YES}
    return len({word[:_STEM] for word in forms}) < len(forms)


def _asks(words: list[str]) -> bool:
    return bool(words) and words[0] in _ASKING


def _is_known(word: str, asked: str) -> bool:
    if word in _DOUBT:
        return False
    if word in _YES or word in _HARMLESS:
        return True
    there = _WORDS.findall(asked)
    return word in there or (
        len(word) >= _STEM
        and word.isalpha()
        and any(one[:_STEM] == word[:_STEM] and one.isalpha() for one in there)
    )
