"""Official text as somebody else wrote it → the same content as code, leaf by leaf.

Reads the structured layout (``* action:``, headers, bullets and numbers) line by
line, so that nothing is lost or invented: a leaf is whatever stands behind its
bullet, byte for byte, and levels are as deep as the text shows them.
"""

from __future__ import annotations

import re

from sopilot.language.render.quoted import Rendered, Writer
from sopilot.language.render.scaffold import words

_ACTION = re.compile(r"\* ([A-Za-z_][A-Za-z0-9_.-]*)(:?)")
_ITEM = re.compile(r"( *)(?:•|[0-9]+\.) (.*)", re.DOTALL)
_BLOCKS = {
    "official_all": "code_all",
    "official_any": "code_any",
    "official_in_order": "code_in_order",
    "official_first": "code_first",
}
_INDENT = "    "


def resyntax_official(text: str, language: str = "en") -> Rendered:
    """Lines outside of any action become comments."""
    table = words(language)
    blocks = {table[header]: table[block] for header, block in _BLOCKS.items()}
    writer = Writer()
    action: str | None = None
    for line in text.split("\n"):
        start = _ACTION.fullmatch(line)
        if start is not None:
            action = start.group(1)
            writer.line(f"action {action}:")
            if not start.group(2):
                writer.line(_INDENT + table["code_none"])
                action = None
        elif not line:
            action = None
            writer.line()
        elif action is None:
            writer.line(f"# {line}")
        else:
            item = _ITEM.fullmatch(line)
            depth = 1 if item is None else 2 + len(item.group(1)) // 2
            content = line if item is None else item.group(2)
            writer.write(_INDENT * depth)
            if content in blocks:
                writer.line(blocks[content])
            elif item is None and content == table["official_none"]:
                writer.line(table["code_none"])
            else:
                writer.write(table["code_check"])
                writer.quote(content, action)
                writer.line()
    return writer.finish()
