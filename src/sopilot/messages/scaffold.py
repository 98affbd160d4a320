"""The fixed words around what a model reads, by language, and how its step tool is spelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import mistake
from sopilot.messages.texts import TEXTS

TOOL: Final = "pg_program_step"
"""The one bookkeeping tool, unless a view offers it under another name."""


class StepTool(NamedTuple):
    """How the bookkeeping tool on offer is written, so that texts name nothing else."""

    name: str = TOOL
    short: bool = False
    """Fields such as `start` and `true` stand for the operations, which have no names."""
    undecided: bool = True
    amend: bool = True


LONG_TOOL: Final = StepTool()

LANGUAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {key: english for key, (english, _) in TEXTS.items()},
    "zh": {key: chinese for key, (_, chinese) in TEXTS.items()},
}


def spelled(table: Mapping[str, str], key: str, tool: StepTool) -> str:
    """The words under a key, as they are said of this tool."""
    return table.get(f"short_{key}", table[key]) if tool.short else table[key]


def words(language: str) -> Mapping[str, str]:
    """The table of fixed words of a language."""
    if language not in LANGUAGES:
        raise mistake(
            "unknown-language",
            f"there is no scaffold in `{language}`",
            help=did_you_mean(language, LANGUAGES),
        )
    return LANGUAGES[language]
