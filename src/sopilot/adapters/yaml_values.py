"""YAML that people write beside handbooks: settings, tasks, studies. An alias may stand for a
value; a few of them in a row may stand for more values than a machine has memory."""

from __future__ import annotations

from typing import Any

import yaml

_MOST_VALUES = 1_000_000


def load_yaml(text: str) -> Any:
    """Its values; a ``yaml.YAMLError`` where written out they would never end."""
    found = yaml.safe_load(text)
    counted, waiting = 0, [found]
    while waiting:
        value = waiting.pop()
        inner = list(value.values()) if isinstance(value, dict) else value
        if isinstance(inner, list):
            counted += len(inner)
            if counted > _MOST_VALUES:
                raise yaml.YAMLError("its aliases stand for too many values, or for themselves")
            waiting += inner
    return found
