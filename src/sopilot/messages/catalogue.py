"""Messages by code, worded where somebody reads them.

``sentence`` makes a message of the runtime: English text that knows its code and its fields.
Traces and logs keep the text; ``worded`` says the same in another language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sopilot.messages.audit import EXPLANATIONS
from sopilot.messages.chinese import CHINESE_SENTENCES
from sopilot.messages.english import ENGLISH_SENTENCES
from sopilot.values.json import JSON
from sopilot.values.text import CodedText

SENTENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {**ENGLISH_SENTENCES, **{code: pair[0] for code, pair in EXPLANATIONS.items()}},
    "zh": {**CHINESE_SENTENCES, **{code: pair[1] for code, pair in EXPLANATIONS.items()}},
}

_LIST: Final = "list"


def sentence(code: str, **fields: object) -> CodedText:
    """The message with this code. A field may be a message itself."""
    return CodedText(SENTENCES["en"][code].format(**fields), code, fields)


def listed(parts: list[str]) -> CodedText:
    """Several messages in a row."""
    return CodedText(ENGLISH_SENTENCES["separator"].join(parts), _LIST, dict(enumerate(parts)))


def worded(text: str, language: str) -> str:
    """A message in this language; text without a code as it is."""
    if not isinstance(text, CodedText) or language == "en":
        return str(text)
    fields = {str(name): _field(value, language) for name, value in text.fields.items()}
    if text.code == _LIST:
        return SENTENCES[language]["separator"].join(fields.values())
    return SENTENCES[language][text.code].format(**fields)


def _field(value: object, language: str) -> str:
    return worded(value, language) if isinstance(value, str) else str(value)


def message_json(text: str) -> JSON:
    """A message as a trace keeps it, to be worded again."""
    if not isinstance(text, CodedText):
        return str(text)
    fields = {
        str(name): message_json(value if isinstance(value, str) else str(value))
        for name, value in text.fields.items()
    }
    return {"code": text.code, "fields": fields}


def kept_message(value: JSON) -> str:
    """The message that ``message_json`` kept; empty where none was, or it cannot be read."""
    if not isinstance(value, Mapping):
        return str(value or "")
    parts, code = value.get("fields"), str(value.get("code"))
    if not isinstance(parts, Mapping) or code not in (_LIST, *SENTENCES["en"]):
        return ""
    fields = {str(name): kept_message(part) for name, part in parts.items()}
    try:
        return listed(list(fields.values())) if code == _LIST else sentence(code, **fields)
    except LookupError:
        return ""
