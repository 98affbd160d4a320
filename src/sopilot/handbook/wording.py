"""The sentence of a leaf: the predicate's own words under the leaf's arguments.

Every representation a model sees quotes these sentences byte for byte.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final

from sopilot.handbook.grammar import Translated, each_language
from sopilot.handbook.model import Handbook, Predicate
from sopilot.handbook.requirements import Leaf, Name

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(=?)([A-Za-z_][A-Za-z0-9_]*)\}")

_FORBIDDEN: Final[Mapping[str, str]] = {
    "en": "This must NOT be the case: ",
    "zh": "以下情况不得成立：",
}
_DENIED: Final[Mapping[str, str]] = {
    "en": "It is not the case that: ",
    "zh": "以下情况不成立：",
}

_QUOTES: Final = dict(zip("\"'`“‘「『«", "\"'`”’」』»", strict=True))
"""Around a placeholder that its author has set apart already."""


class Named(str):
    """The name of a value that is not there, which stands for it in a sentence."""


def named(names: Mapping[str, str]) -> dict[str, Named]:
    return {name: Named(other) for name, other in names.items()}


def fill(template: str, values: Mapping[str, object]) -> str:
    """Replace ``{name}``; an unknown name stays as written, ``{{`` and ``}}`` are braces.

    A ``Named`` value stands in angle brackets, so that "the account {to}" does not read "the
    account to", and takes the place of its own word before it: "the amount {amount}" is "the
    <amount>". A word after it stays: "{days} days" has a unit.
    ``{=name}`` stands bare, for texts that must stay as they are.
    """
    if isinstance(template, Translated):
        return Translated({item: _fill(text, values) for item, text in template.texts.items()})
    return _fill(template, values)


def _fill(template: str, values: Mapping[str, object]) -> str:
    filled, closing = "", ""
    for text, name, bare in _parts(template):
        if name is None or name not in values:
            if closing and text.startswith(closing):
                text = text[1:]
            closing = ""
            filled += text
            continue
        value = values[name]
        if isinstance(value, Named) and not bare and filled[-1:] in _QUOTES:
            # In quotation marks a name would read as the value itself.
            filled, closing = filled[:-1] + f"<{value}>", _QUOTES[filled[-1]]
        elif isinstance(value, Named) and not bare:
            word = re.escape(value.replace("_", " "))
            if filled[-2:].rstrip("\n").endswith(" "):
                filled = re.sub(rf"(?<!\w){word} $", "", filled, flags=re.IGNORECASE)
            filled += f"<{value}>"
        else:
            filled += str(value)
    return filled


@functools.lru_cache(maxsize=4096)
def _parts(template: str) -> tuple[tuple[str, str | None, bool], ...]:
    """The template cut into plain text and placeholders (as written, with their name)."""
    parts: list[tuple[str, str | None, bool]] = []
    end = 0
    for match in _PLACEHOLDER.finditer(template):
        if match.start() > end:
            parts.append((template[end : match.start()], None, False))
        name = match.group(2)
        if name is None:
            parts.append((match.group(0)[0], None, False))
        else:
            parts.append((match.group(0), name, bool(match.group(1))))
        end = match.end()
    if end < len(template):
        parts.append((template[end:], None, False))
    return tuple(parts)


@functools.lru_cache(maxsize=4096)
def placeholders(template: str) -> tuple[str, ...]:
    """The names a template asks for in any language, each once, in order of first use."""
    texts = dict.fromkeys(each_language(template).values())
    names = (name for text in texts for _, name, _ in _parts(text) if name is not None)
    return tuple(dict.fromkeys(names))


def negative(says: str, says_not: str) -> str:
    """The requirement that a sentence isn't true: the author's own words for it, else plainly
    said."""
    return says_not or _introduced(_FORBIDDEN, says)


def denied(says: str, says_not: str) -> str:
    """The same as a statement of what is so."""
    return says_not or _introduced(_DENIED, says)


def _introduced(words: Mapping[str, str], says: str) -> str:
    if not says:
        return says
    texts = each_language(says).items()
    return Translated({item: words.get(item, words["en"]) + text for item, text in texts})


def template(predicate: Predicate, leaf: Leaf) -> str:
    return predicate.says if leaf.wanted else negative(predicate.says, predicate.says_not)


def sentence(handbook: Handbook, leaf: Leaf) -> str:
    """The leaf's official sentence, with parameter names as the tree calls them."""
    values: dict[str, object] = dict(handbook.parameters)
    for parameter, term in leaf.arguments:
        values[parameter] = Named(term.name) if isinstance(term, Name) else term.value
    return fill(template(handbook.predicates[leaf.predicate], leaf), values)
