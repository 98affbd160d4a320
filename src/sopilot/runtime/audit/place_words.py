"""Places and moments of a run in words: what the compiler and the clock call them is no reading."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from sopilot.runtime.vm.values import JSON

_GROUP = re.compile(r"(all_of|any_of|in_order|first_of)_(?:(\d+)_to_)?\w+")
_TOGETHER = {
    "all_of": "all of {0} requirements",
    "any_of": "one of {0} ways",
    "in_order": "{0} requirements in their order",
    "first_of": "the first of {0} ways that holds",
}


def place_in_words(frame: str) -> str:
    """``transfer/all_of_6_to_within_limit/logged_in@ask`` is `transfer › logged in`."""
    path = frame.split("@", 1)[0].split("/")
    return " › ".join(part.replace("_", " ") for part in path if not _GROUP.fullmatch(part))


def function_in_words(name: str) -> str:
    """The handbook's own name, or what a group of checks is: only the compiler named that one."""
    found = _GROUP.fullmatch(name)
    return name if found is None else _TOGETHER[found[1]].format(found[2] or "the")


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def with_moments(value: JSON) -> JSON:
    """Numbers under names such as ``expires_at`` as dates."""
    if not isinstance(value, Mapping):
        return value
    return {
        key: moment(item)
        if (key == "at" or key.endswith("_at"))
        and isinstance(item, int | float)
        and 0 < item < 1e11
        else item
        for key, item in value.items()
    }
