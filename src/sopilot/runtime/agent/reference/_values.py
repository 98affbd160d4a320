"""Values for a call: from the frame, from what the user told, from earlier evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sopilot.language.handbook import Path
from sopilot.language.program.model import CallArguments, Literal, Unknown
from sopilot.language.render.values import abbreviation_name, digest_of
from sopilot.runtime.agent.reference._moves import Move
from sopilot.runtime.agent.reference.facts import Facts
from sopilot.runtime.session.protocols import JSON


@dataclass(slots=True)
class Resolved:
    """``found_out`` are the values that the frame did not have; ``missing`` names, as the
    user knows them, for which there is none."""

    values: dict[str, JSON] = field(default_factory=dict)
    found_out: dict[str, JSON] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def resolve(move: Move, facts: Facts) -> Resolved:
    return call_arguments(
        move.arguments, move.known, facts, users_own=move.kind in ("call", "goal")
    )


def call_arguments(
    arguments: CallArguments, known: Mapping[str, JSON], facts: Facts, *, users_own: bool = False
) -> Resolved:
    """``users_own``: the names are the user's, as in processes and groups. Evidence may use
    the same names for other things, so there it counts only when the user cannot tell."""
    resolved = Resolved()
    for parameter, term in arguments:
        if isinstance(term, Literal):
            resolved.values[parameter] = whole(term.value, facts)
        elif isinstance(term, Path):
            # It stands in an answer: whoever follows the recipe knows which.
            resolved.missing.append(str(term))
        elif known.get(term.name) is not None:
            resolved.values[parameter] = whole(known[term.name], facts)
        else:
            value = None
            if users_own and not facts.is_unavailable(term.name):
                value = facts.values.get(term.name)
            elif users_own or isinstance(term, Unknown):
                value = facts.value(term.name)
            if value is None:
                resolved.missing.append(term.name)
            else:
                resolved.values[parameter] = resolved.found_out[parameter] = value
    return resolved


def whole(value: JSON, facts: Facts) -> JSON:
    """A value that a frame had to cut, as it was said."""
    name = abbreviation_name(value)
    if name is None:
        return value
    for source in (*facts.values.values(), *(one.value for one in facts.seen)):
        for said in _parts(source):
            if digest_of(said) == name:
                return said
    return value


def _parts(value: JSON) -> Iterator[JSON]:
    """Every text, list and object in a value."""
    nested: Iterable[JSON] = ()
    if isinstance(value, Mapping):
        nested = value.values()
    elif isinstance(value, list):
        nested = value
    elif not isinstance(value, str):
        return
    yield value
    for item in nested:
        yield from _parts(item)
