"""The whole program as pseudo-code: the process, then groups, gates and rules."""

from __future__ import annotations

from sopilot.language.program import Function, Kind, Program
from sopilot.language.render._quoted import Rendered, below
from sopilot.language.render._scaffold import words
from sopilot.language.render.frame import function_text
from sopilot.language.render.sentences import constant_texts, denied_functions

_KINDS = tuple(Kind)


class _ProgramText:
    """The texts of all programs with the same functions, by language and constants."""

    __slots__ = ("_constants", "_functions", "_texts")

    def __init__(self, program: Program) -> None:
        denied = denied_functions(program)
        self._functions = [
            (one.name, function_text(one, program, bool(one.says_not) and one.name in denied))
            for one in reading_order(program)
        ]
        named = [name for _, text in self._functions for name in text.constants]
        self._constants = tuple(dict.fromkeys(named))
        self._texts: dict[tuple[str | None, ...], Rendered] = {}

    def of(self, program: Program, language: str) -> Rendered:
        constants = self._constants
        key = (language, *constant_texts(constants, program)) if constants else (language,)
        text = self._texts.get(key)
        if text is None:
            functions = program.functions
            texts = [kept.of(functions[name], program, language) for name, kept in self._functions]
            text = self._texts[key] = below(words(language)["flat_intro"] + "\n", texts)
        return text


def render_flat(program: Program, language: str = "en") -> Rendered:
    """Kept with the entry, by the identity of the other functions (which are held alive): a
    resident text is asked for with every request."""
    entry = program.functions[program.entry]
    key = (_ProgramText, *map(id, program.functions.values()))
    found = entry.kept.get(key)
    if found is None:
        others = [one for one in program.functions.values() if one is not entry]
        found = entry.kept[key] = (_ProgramText(program), others)
    text: _ProgramText = found[0]
    return text.of(program, language)


def reading_order(program: Program) -> list[Function]:
    """Functions as a reader meets them: by kind, each kind in the program's order."""
    return [one for kind in _KINDS for one in program.functions.values() if one.kind is kind]
