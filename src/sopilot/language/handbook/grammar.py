"""The words of the handbook language: one place for the reader, the schema and the writer."""

from __future__ import annotations

import re

HANDBOOK_KEYS = (
    "handbook",
    "says",
    "parameters",
    "actions",
    "predicates",
    "requirements",
    "procedures",
)
JUDGES = ("model",)

TYPES = ("string", "number", "integer", "boolean", "object", "array")
TREE_OPERATORS = ("all", "any", "in_order", "first", "not", "when", "requires")
"""``when`` comes with ``then``, ``requires`` with ``otherwise``."""
RECIPE_OPERATORS = ("all", "any")
ARGUMENTS = "arguments"
"""The recipe of a predicate that is judged from its arguments alone."""
USER = "user"
"""The recipe of a predicate that is verified by asking the user."""

IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
HANDBOOK_NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
SIGNATURE = rf"{IDENTIFIER}(\s*\(\s*({IDENTIFIER}\s*(,\s*{IDENTIFIER}\s*)*)?\))?"
DURATION = r"[1-9][0-9]{0,8}[smhd]"

RESERVED = frozenset({"true", "false", "null", "__null__"})
"""Words that are constants where an argument stands, and therefore no names."""
NOW = "now"
"""What an expression calls the time, unless the author gives the name another meaning: ISO 8601
text from the machine's clock."""
VERDICT_NAMES = frozenset({"result", "results"})
"""What a verdict calls the evidence."""

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

_IDENTIFIER = re.compile(IDENTIFIER)


def is_identifier(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text) is not None and text not in RESERVED
