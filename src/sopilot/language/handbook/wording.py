"""The sentence of a leaf: the predicate's own words under the leaf's arguments.

Every representation a model sees quotes these sentences byte for byte.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from sopilot.language.handbook._model import Handbook, Predicate
from sopilot.language.handbook._tree import Leaf, Name, Scalar

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")


def fill(template: str, values: Mapping[str, object]) -> str:
    """Replace ``{name}``; an unknown name stays as written, ``{{`` and ``}}`` are braces."""
    return "".join(
        text if name is None else str(values[name]) if name in values else text
        for text, name in _parts(template)
    )


@functools.lru_cache(maxsize=4096)
def _parts(template: str) -> tuple[tuple[str, str | None], ...]:
    """The template cut into plain text and placeholders (as written, with their name)."""
    parts: list[tuple[str, str | None]] = []
    end = 0
    for match in _PLACEHOLDER.finditer(template):
        if match.start() > end:
            parts.append((template[end : match.start()], None))
        name = match.group(1)
        parts.append((match.group(0)[0], None) if name is None else (match.group(0), name))
        end = match.end()
    if end < len(template):
        parts.append((template[end:], None))
    return tuple(parts)


@functools.lru_cache(maxsize=4096)
def placeholders(template: str) -> tuple[str, ...]:
    """The names a template asks for, each once, in order of first use."""
    return tuple(dict.fromkeys(name for _, name in _parts(template) if name is not None))


def negative(predicate: Predicate) -> str:
    return predicate.says_not or f"It must not be the case that: {predicate.says}"


def template(predicate: Predicate, leaf: Leaf) -> str:
    return predicate.says if leaf.wanted else negative(predicate)


def leaf_sentence(predicate: Predicate, leaf: Leaf, constants: Mapping[str, Scalar]) -> str:
    """The leaf's official sentence, with parameter names as the tree calls them."""
    values: dict[str, Scalar] = dict(constants)
    for parameter, term in leaf.arguments:
        values[parameter] = term.name if isinstance(term, Name) else term.value
    return fill(template(predicate, leaf), values)


def sentence(handbook: Handbook, leaf: Leaf) -> str:
    return leaf_sentence(handbook.predicates[leaf.predicate], leaf, handbook.parameters)
