"""Abbreviations of frames, taken back for the whole values that they stand for.

A frame has room for so much of a value. What it cuts it gives a name, and whoever copies that
from a frame cannot be wrong by copying: the machine puts the whole value in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sopilot.language.render.values import abbreviation_name, digest_of
from sopilot.runtime.vm.state import Configuration
from sopilot.runtime.vm.values import JSON

_NESTED = (list, dict)


def whole_values(configuration: Configuration, arguments: dict[str, JSON]) -> dict[str, JSON]:
    """The arguments with every abbreviation of a known value replaced by it."""
    for value in arguments.values():
        if (isinstance(value, str) and value[:1] == "@") or (
            isinstance(value, _NESTED) and _named(value)
        ):
            break
    else:
        return arguments
    known: dict[str, JSON] = {}
    twice: set[str] = set()
    for value in _known(configuration):
        name = digest_of(value)
        if name in known and known[name] != value:
            twice.add(name)
        known[name] = value

    def whole(value: JSON) -> JSON:
        if isinstance(value, list):
            return [whole(item) for item in value]
        if isinstance(value, dict):
            return {key: whole(item) for key, item in value.items()}
        name = abbreviation_name(value)
        return known[name] if name in known and name not in twice else value

    return {key: whole(value) for key, value in arguments.items()}


def _named(value: JSON) -> bool:
    if isinstance(value, list):
        return any(_named(item) for item in value)
    if isinstance(value, dict):
        return any(_named(item) for item in value.values())
    return abbreviation_name(value) is not None


def _known(configuration: Configuration) -> Iterator[JSON]:
    for process in configuration.processes.values():
        yield from _long(process.arguments)
        yield from _long(process.known)
        for frame in process.frames:
            yield from _long(frame.locals)
            yield from (bound.value for bound in frame.slots.values() if bound.value is not None)

    for by_arguments in configuration.answers.values():
        for answered in by_arguments.values():
            yield from _parts(answered.value)


def _parts(value: JSON) -> Iterator[JSON]:
    """A recipe may lead to any place in an answer, and a frame shows what stands there."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        yield value
        for item in value if isinstance(value, list) else value.values():
            yield from _parts(item)


def _long(values: Mapping[str, JSON]) -> Iterator[JSON]:
    yield from (value for value in values.values() if not isinstance(value, int | float | bool))
