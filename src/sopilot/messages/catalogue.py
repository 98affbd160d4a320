"""Messages by code, worded where somebody reads them.

``sentence`` makes a message of the runtime: English text that knows its code and its fields.
Traces and logs keep the text; ``worded`` says the same in another language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sopilot.messages.audit import EXPLANATIONS
from sopilot.messages.runtime import RUNTIME_SENTENCES
from sopilot.values.json import JSON
from sopilot.values.text import CodedText

SENTENCES: Final[Mapping[str, tuple[str, str]]] = {**RUNTIME_SENTENCES, **EXPLANATIONS}

_LIST: Final = "list"


def sentence(code: str, **fields: object) -> CodedText:
    """The message with this code. A field may be a message itself."""
    return CodedText(SENTENCES[code][0].format(**fields), code, fields)


def listed(parts: list[str]) -> CodedText:
    """Several messages in a row."""
    return CodedText(SENTENCES["separator"][0].join(parts), _LIST, dict(enumerate(parts)))


def worded(text: str, language: str) -> str:
    """A message in this language; text without a code as it is."""
    if not isinstance(text, CodedText) or language == "en":
        return str(text)
    fields = {
        str(name): worded(value, language) if isinstance(value, str) else str(value)
        for name, value in text.fields.items()
    }
    if text.code == _LIST:
        return SENTENCES["separator"][1].join(fields.values())
    return SENTENCES[text.code][1].format(**fields)


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
    if not isinstance(parts, Mapping) or code not in (_LIST, *SENTENCES):
        return ""
    fields = {str(name): kept_message(part) for name, part in parts.items()}
    try:
        return listed(list(fields.values())) if code == _LIST else sentence(code, **fields)
    except LookupError:
        return ""
