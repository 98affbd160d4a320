"""The compiled program as pseudo-code and as prose, and all renderings by name.

``correspondence`` proves that renderings quote the same sentences byte for byte: the official
family the handbook's leaves, the compiled family the program's checks, in every language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from sopilot.handbook.grammar import in_language
from sopilot.handbook.model import Handbook, Procedure
from sopilot.handbook.requirements import Path, leaves
from sopilot.handbook.wording import sentence
from sopilot.messages.diagnostic import did_you_mean
from sopilot.messages.errors import mistake
from sopilot.messages.scaffold import LANGUAGES, words
from sopilot.program.model import (
    Act,
    Always,
    Ask,
    Branch,
    CallArgument,
    CallArguments,
    Check,
    Choose,
    CompleteStep,
    Condition,
    Do,
    Emit,
    Function,
    Kind,
    Literal,
    Program,
    ReturnStep,
    Step,
    Unknown,
)
from sopilot.values.text import quote_literal
from sopilot.views.frame import (
    judge_key,
    question_text,
    render_frame,
    rendered_function,
    supplied,
)
from sopilot.views.official import (
    render_official,
    render_official_code,
    render_official_recipes,
    requirements,
)
from sopilot.views.quoting import Rendered, Writer, below
from sopilot.views.sentences import (
    check_saying,
    condition_text,
    is_demand,
    purpose,
)

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
    return _Prose(program, language).rendered()


class _Prose:
    def __init__(self, program: Program, language: str) -> None:
        self._program = program
        self._language = language
        self._table: Mapping[str, str] = words(language)
        self._writer = Writer()

    def rendered(self) -> Rendered:
        title: str | None = None
        for function in reading_order(self._program):
            if function.kind is Kind.PROCESS:
                self._process(function)
                continue
            if _TITLES[function.kind] != title:
                title = _TITLES[function.kind]
                self._writer.line()
                self._writer.line(self._table[title])
            self._writer.line()
            self._function(function)
        return self._writer.finish()

    def _process(self, function: Function) -> None:
        values = ", ".join(function.parameters) or self._table["prose_no_values"]
        writer = self._writer
        writer.line(self._say("prose_intro", name=function.name, parameters=values))
        if function.says:
            writer.line(in_language(function.says, self._language))
        writer.line(self._table["prose_steps"])
        self._points(function)

    def _function(self, function: Function) -> None:
        parameters = ""
        if function.parameters:
            parameters = self._say("prose_parameters", names=", ".join(function.parameters))
        line = self._say("prose_function", name=function.name, parameters=parameters)
        says = purpose(function, self._program, self._language)
        if says:
            line += self._table["colon"] + says[0]
        self._writer.line(line)
        for other in says[1:]:
            self._writer.line(other)
        self._points(function)

    def _points(self, function: Function) -> None:
        number = {step.label: index for index, step in enumerate(function.steps, 1)}
        for step in function.steps:
            self._writer.write(f"{number[step.label]}. ")
            self._step(step, function, number)
            self._writer.line()

    def _step(self, step: Step, function: Function, number: Mapping[str, int]) -> None:
        writer = self._writer
        if isinstance(step, Check):
            self._check(step, number)
            return
        question = question_text(step, self._language) if isinstance(step, Ask) else ""
        writer.write(question or self._sentence(step, function, number))
        if isinstance(step, Act):
            names = ", ".join(f"`{name}`" for name in supplied(step.arguments))
            if names:
                writer.write(self._say("prose_supplied", names=names))
            is_last = not any(isinstance(later, Act) for later in _after(step, function))
            for acts in function.fallbacks if is_last else ():
                calls = [self._act(act) for act in acts]
                joined = self._table["prose_list_and"].join(calls)
                writer.write(self._say("prose_instead", calls=joined))
        if not isinstance(step, Do | Choose | Branch) and step.says and not question:
            says = in_language(step.says, self._language)
            writer.write(self._say("prose_remark", says=says))
        if isinstance(step, Act | Ask | Do | Emit) and step.next is not None:
            writer.write(self._say("prose_goto", number=number[step.next]))

    def _check(self, step: Check, number: Mapping[str, int]) -> None:
        writer = self._writer
        saying = check_saying(step, self._program, self._language)
        wanted = "true" if step.wanted else "false"
        values = self._values(step.arguments, shortened=True)
        values = self._say("prose_values", values=values) if values else ""
        if step.slot != step.function:
            values += self._say("bound_as", slot=step.slot)
        if is_demand(step) and saying is not None and saying.quoted:
            if step.wanted or step.says or self._program.functions[step.function].says_not:
                writer.write(self._table["prose_check_must"])
            self._quote(saying.text, step.function)
            writer.write(self._say("prose_see", name=step.function, values=values))
            if not step.wanted:
                writer.write(self._say("prose_must", name=step.slot, wanted=wanted))
        elif is_demand(step):
            writer.write(self._say("prose_group_must", name=step.function, wanted=wanted))
            if values:
                writer.write(self._say("prose_see", name=step.function, values=values))
        else:
            writer.write(self._say("prose_check_find", name=step.slot))
            if saying is not None and saying.quoted:
                before, _, after = self._table[saying.label].partition("{says}")
                writer.write(before)
                self._quote(saying.text, step.function)
                writer.write(after)
            writer.write(self._say("prose_see", name=step.function, values=values))
        self._ways(step, wanted, number)

    def _quote(self, sentence: str, owner: str) -> None:
        """What follows stands apart from a sentence in another script."""
        self._writer.quote(sentence, owner)
        if self._language == "zh" and sentence[-1:].isascii():
            self._writer.write(" ")

    def _ways(self, step: Check, wanted: str, number: Mapping[str, int]) -> None:
        if step.met is None and step.unmet is None:
            self._writer.write(self._table["prose_either"])
            return
        if step.met is not None:
            self._writer.write(self._say("prose_met", wanted=wanted, number=number[step.met]))
        if step.unmet is not None:
            self._writer.write(self._say("prose_unmet", number=number[step.unmet]))
        else:
            self._writer.write(self._table["prose_on"])

    def _sentence(self, step: Step, function: Function, number: Mapping[str, int]) -> str:
        if isinstance(step, Act):
            call = self._act(step)
            return self._say("prose_goal" if step.goal else "prose_act", call=call)
        if isinstance(step, Branch):
            return self._say(
                "prose_branch",
                when=self._condition(step.when),
                then=number[step.then],
                otherwise=number[step.otherwise],
            )
        if isinstance(step, Choose):
            text = self._say("prose_choose", says=in_language(step.says, self._language))
            for option in step.options:
                says = in_language(option.says, self._language)
                says = self._say("prose_option_says", says=says) if says else ""
                target = number[option.target]
                text += self._say("prose_option", name=option.name, says=says, number=target)
            return text
        if isinstance(step, Ask):
            names = ", ".join(f"`{name}`" for name in step.wants)
            return self._say("prose_ask", names=names)
        if isinstance(step, Do):
            uses = self._say("prose_do_with", names=", ".join(step.uses)) if step.uses else ""
            return in_language(step.says, self._language) + uses
        if isinstance(step, Emit):
            return self._say("prose_emit", name=step.artifact)
        if isinstance(step, ReturnStep):
            if step.holds is None:
                return self._table[f"prose_{judge_key(function)}"]
            if isinstance(step.holds, Always):
                return self._say(
                    "prose_return_fixed", value="true" if step.holds.value else "false"
                )
            return self._say("prose_return_value", when=self._condition(step.holds))
        return self._table["prose_complete" if isinstance(step, CompleteStep) else "prose_fail"]

    def _condition(self, condition: Condition) -> str:
        return condition_text(condition, self._table, "prose_")

    def _values(self, arguments: CallArguments, *, shortened: bool = False) -> str:
        """Shortened: only what is not passed on under its own name."""
        parts = []
        for parameter, argument in arguments:
            value = self._argument(argument)
            if value == parameter:
                if not shortened:
                    parts.append(parameter)
            else:
                parts.append(self._say("prose_value", name=parameter, value=value))
        return self._table["prose_values_and"].join(parts)

    def _act(self, act: Act) -> str:
        values = self._values(act.arguments)
        text = self._say("prose_with", action=act.action, values=values) if values else act.action
        if act.each is not None:
            text += self._say("prose_each", element=act.element, where=act.each)
        return text + (self._say("prose_named", name=act.name) if act.name else "")

    def _argument(self, argument: CallArgument) -> str:
        if isinstance(argument, Path):
            return self._say("prose_answer", where=argument)
        if isinstance(argument, Literal):
            return quote_literal(argument.value)
        if isinstance(argument, Unknown):
            return self._say("prose_unknown", name=argument.name)
        return argument.name

    def _say(self, key: str, **values: object) -> str:
        return self._table[key].format(**values)


def _after(step: Step, function: Function) -> tuple[Step, ...]:
    position = next(i for i, other in enumerate(function.steps) if other is step)
    return function.steps[position + 1 :]


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


def correspondence(
    handbook: Handbook, procedure: Procedure | str, program: Program
) -> Correspondence:
    """Compare every rendering with its source."""
    if isinstance(procedure, str):
        procedure = handbook.procedures[procedure]
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
            ("official", official, render_official(handbook, procedure, language)),
            ("official-code", official, render_official_code(handbook, procedure, language)),
            ("official-recipes", official, render_official_recipes(handbook, procedure, language)),
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


Rendering = Callable[[Handbook, Procedure, Program, str], str]

RENDERINGS: Final[dict[str, Rendering]] = {
    "flat": lambda handbook, procedure, program, language: render_flat(program, language).text,
    "prose": lambda handbook, procedure, program, language: render_prose(program, language).text,
    "official": lambda handbook, procedure, program, language: (
        render_official(handbook, procedure, language).text
    ),
    "official-code": lambda handbook, procedure, program, language: (
        render_official_code(handbook, procedure, language).text
    ),
    "official-recipes": lambda handbook, procedure, program, language: (
        render_official_recipes(handbook, procedure, language).text
    ),
    "first-frame": lambda handbook, procedure, program, language: render_frame(
        program,
        program.entry,
        program.functions[program.entry].steps[0].label,
        {},
        {},
        language,
    ),
}
"""Name → what a model sees of a procedure before a run starts."""


def render(
    name: str,
    handbook: Handbook,
    procedure: Procedure | str,
    program: Program,
    language: str = "en",
) -> str:
    """The rendering called ``name``."""
    if name not in RENDERINGS:
        raise mistake(
            "unknown-rendering",
            f"there is no rendering `{name}`",
            help=did_you_mean(name, RENDERINGS),
        )
    if isinstance(procedure, str):
        procedure = handbook.procedures[procedure]
    return RENDERINGS[name](handbook, procedure, program, language)
