"""The compiled program as pseudo-code and as prose, and all renderings by name.

``correspondence`` proves that renderings quote the same sentences byte for byte: the official
family the handbook's leaves, the compiled family the program's checks, in every language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import ClassVar, Final

from sopilot.handbook.grammar import in_language
from sopilot.handbook.model import Handbook, Procedure
from sopilot.handbook.requirements import leaves
from sopilot.handbook.wording import sentence
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import mistake
from sopilot.messages.scaffold import LANGUAGES, words
from sopilot.program.model import CallArguments, Check, Function, Kind, Program
from sopilot.views.check_sentences import check_saying, is_demand, purpose
from sopilot.views.frame import render_frame, rendered_function
from sopilot.views.official import OFFICIAL, requirements
from sopilot.views.quoting import Rendered, Writer, below
from sopilot.views.steps import StepWriter

_KINDS = tuple(Kind)


def render_flat(program: Program, language: str = "en") -> Rendered:
    """The whole program as pseudo-code: the process, then groups, gates and rules."""
    texts = [rendered_function(item, program, language) for item in reading_order(program)]
    return below(words(language)["flat_intro"] + "\n", texts)


def reading_order(program: Program) -> list[Function]:
    """Functions as a reader meets them: by kind, each kind in the program's order."""
    return [
        function
        for kind in _KINDS
        for function in program.functions.values()
        if function.kind is kind
    ]


_TITLES = {Kind.GROUP: "prose_groups", Kind.GATE: "prose_gates", Kind.RULE: "prose_rules"}


def render_prose(program: Program, language: str = "en") -> Rendered:
    writer = Writer()
    prose = _Prose(writer, program, language)
    title: str | None = None
    for function in reading_order(program):
        if function.kind is Kind.PROCESS:
            prose.process(function)
            continue
        if _TITLES[function.kind] != title:
            title = _TITLES[function.kind]
            writer.line()
            writer.line(prose.table[title])
        writer.line()
        prose.function(function)
    return writer.finish()


class _Prose(StepWriter):
    """Steps are numbered points, and everything is a sentence."""

    prefix: ClassVar[str] = "prose_"

    def process(self, function: Function) -> None:
        values = ", ".join(function.parameters) or self.say("no_values")
        self.writer.line(self.say("intro", name=function.name, parameters=values))
        if function.says:
            self.writer.line(self.own(function.says))
        self.writer.line(self.say("steps"))
        self._points(function)

    def function(self, function: Function) -> None:
        names = ", ".join(function.parameters)
        parameters = self.say("parameters", names=names) if names else ""
        line = self.say("function", name=function.name, parameters=parameters)
        says = purpose(function, self.program, self.language)
        if says:
            line += self.table["colon"] + says[0]
        for text in (line, *says[1:]):
            self.writer.line(text)
        self._points(function)

    def _points(self, function: Function) -> None:
        self._numbers = {step.label: index for index, step in enumerate(function.steps, 1)}
        for step in function.steps:
            self.writer.write(f"{self._numbers[step.label]}. ")
            self.write(step, function)
            self.writer.line()

    def target(self, label: str) -> int:
        return self._numbers[label]

    def compose(self, body: str, ways: Sequence[str], after: str) -> None:
        self.writer.write("".join([body, *ways, after]))

    def call(self, name: str, arguments: CallArguments) -> str:
        values = self.say("and_value").join(self.values(arguments))
        return self.say("with", action=name, values=values) if values else name

    def check(self, step: Check) -> None:
        writer = self.writer
        saying = check_saying(step, self.program, self.language)
        wanted = "true" if step.wanted else "false"
        # Values that are passed on under their own names are left out.
        renamed = set(self.values(step.arguments)) - dict(step.arguments).keys()
        shown = [item for item in self.values(step.arguments) if item in renamed]
        values = self.say("values", values=self.say("and_value").join(shown)) if shown else ""
        if step.slot != step.function:
            values += self.table["bound_as"].format(slot=step.slot)
        see = self.say("see", name=step.function, values=values)
        if is_demand(step) and saying is not None and saying.quoted:
            if step.wanted or step.says or self.program.functions[step.function].says_not:
                writer.write(self.say("check_must"))
            self._quote(saying.text, step.function)
            writer.write(see)
            if not step.wanted:
                writer.write(self.say("must", name=step.slot, wanted=wanted))
        elif is_demand(step):
            writer.write(self.say("group_must", name=step.function, wanted=wanted))
            writer.write(see if values else "")
        else:
            writer.write(self.say("check_find", name=step.slot))
            if saying is not None and saying.quoted:
                before, _, after = self.table[saying.label].partition("{says}")
                writer.write(before)
                self._quote(saying.text, step.function)
                writer.write(after)
            writer.write(see)
        if step.met is None and step.unmet is None:
            writer.write(self.say("either"))
            return
        if step.met is not None:
            writer.write(self.say("met", wanted=wanted, target=self.target(step.met)))
        if step.unmet is not None:
            writer.write(self.say("unmet", target=self.target(step.unmet)))
        else:
            writer.write(self.say("on"))

    def _quote(self, sentence: str, owner: str) -> None:
        """Quote a sentence; a space separates Latin script from Chinese."""
        self.writer.quote(sentence, owner)
        if self.language == "zh" and sentence[-1:].isascii():
            self.writer.write(" ")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Leaf number ``position`` of a rendering is not what the source says."""

    rendering: str
    position: int
    expected: str | None
    actual: str | None

    def __str__(self) -> str:
        expected = "nothing" if self.expected is None else f"`{self.expected}`"
        result = "nothing" if self.actual is None else f"`{self.actual}`"
        return f"{self.rendering}, leaf {self.position + 1}: expected {expected}, found {result}"


@dataclass(frozen=True, slots=True)
class Correspondence:
    """``leaves`` sentences of the official text and ``checks`` of the program were compared
    in every rendering that quotes them, ``compared`` comparisons in all."""

    leaves: int
    checks: int
    compared: int
    mismatches: tuple[Mismatch, ...]


def correspondence(handbook: Handbook, procedure: Procedure, program: Program) -> Correspondence:
    """Compare every rendering with its source."""
    compared = 0
    mismatches: list[Mismatch] = []
    for language in LANGUAGES:
        official = [
            (action, in_language(sentence(handbook, leaf), language))
            for action, tree in requirements(handbook, procedure)
            for leaf in leaves(tree)
        ]
        checks = list(_checked(program, language))
        frames = [rendered_function(item, program, language) for item in reading_order(program)]
        for name, expected, rendered in (
            *(
                (name, official, make(handbook, procedure, language))
                for name, make in OFFICIAL.items()
            ),
            ("flat", checks, render_flat(program, language)),
            ("prose", checks, render_prose(program, language)),
            ("frames", checks, below("", frames)),
        ):
            compared += len(expected)
            mismatches += compare(f"{name} ({language})", expected, rendered)
    return Correspondence(len(official), len(checks), compared, tuple(mismatches))


def _checked(program: Program, language: str) -> Iterator[tuple[str, str]]:
    for function in reading_order(program):
        for step in function.steps:
            if isinstance(step, Check):
                saying = check_saying(step, program, language)
                if saying is not None and saying.quoted:
                    yield step.function, saying.text


def compare(
    rendering: str, expected: Sequence[tuple[str, str]], rendered: Rendered
) -> list[Mismatch]:
    """``expected`` are (owner, sentence) in order; what the text really says is taken from
    the text, never from what its author meant to quote."""
    results = [(quote.owner, rendered.text[quote.start : quote.end]) for quote in rendered.quotes]
    return [
        Mismatch(rendering, position, wanted and wanted[1], result and result[1])
        for position, (wanted, result) in enumerate(zip_longest(expected, results))
        if wanted != result
    ]


def _first_frame(program: Program, language: str) -> Rendered:
    first = program.functions[program.entry].steps[0].label
    return Rendered(render_frame(program, program.entry, first, {}, {}, language))


COMPILED: Final[Mapping[str, Callable[[Program, str], Rendered]]] = {
    "flat": render_flat,
    "prose": render_prose,
    "first-frame": _first_frame,
}
"""Name → a rendering that needs no more than the program."""

RENDERINGS: Final = ("flat", "prose", *OFFICIAL, "first-frame")
"""What a model sees of a procedure before a run starts."""


def render(
    name: str, handbook: Handbook, procedure: Procedure, program: Program, language: str = "en"
) -> str:
    """The rendering called ``name``."""
    if name in COMPILED:
        return COMPILED[name](program, language).text
    if name in OFFICIAL:
        return OFFICIAL[name](handbook, procedure, language).text
    raise mistake(
        "unknown-rendering",
        f"there is no rendering `{name}`",
        help=did_you_mean(name, RENDERINGS),
    )
