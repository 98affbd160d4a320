"""The steps of a program in words: as pseudo-code here, as prose in ``program_text``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from sopilot.handbook.grammar import in_language
from sopilot.handbook.requirements import Constant, Path
from sopilot.messages.scaffold import words
from sopilot.program.model import (
    MISSING_RECIPE,
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
    Program,
    ReturnStep,
    Step,
    Unknown,
)
from sopilot.values.text import quote_literal
from sopilot.views.check_sentences import check_saying, condition_text, is_demand
from sopilot.views.quoting import Writer

INDENT = "    "
"""In front of what belongs to the step above it."""
_SAYS_ITS_BODY = (Do, Choose, Branch)


def question_text(step: Ask, language: str) -> str:
    """The author's question of an ``ask`` step, if it names everything that the step wants."""
    says = in_language(step.says, language)
    return says if all(name in says for name in step.wants) else ""


def ticked(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def judge_key(function: Function, *, judged: bool) -> str:
    """Who judges the function, and from what. ``judged``: the runtime judges what it can."""
    if function.is_fact:
        return "judge_fact_machine" if judged else "judge_fact"
    is_gate = function.kind is Kind.GATE
    acts = any(isinstance(step, Act) for step in function.steps)
    if judged and (is_gate or function.verdict is not None):
        return "judge_gate_machine" if is_gate and function.verdict is None else "judge_machine"
    if MISSING_RECIPE in function.notes:
        return "judge_unverified"
    if is_gate and acts:
        return "judge_gate" if function.verdict is None else "judge_gate_answer"
    return "judge_you" if acts or function.kind not in (Kind.RULE, Kind.GATE) else "judge_values"


class StepWriter:
    """Writes steps as pseudo-code. ``prefix`` chooses the words of the table; ``judged``: the
    runtime judges what it can, so no line asks the model for that."""

    prefix: ClassVar[str] = ""

    def __init__(
        self,
        writer: Writer,
        program: Program,
        language: str,
        *,
        judged: bool = False,
    ) -> None:
        self.writer = writer
        self.program = program
        self.language = language
        self.table = words(language)
        self.judged = judged

    def say(self, key: str, **values: object) -> str:
        return self.table[f"{self.prefix}{key}"].format(**values)

    def own(self, text: str) -> str:
        """The author's words."""
        return in_language(text, self.language)

    def target(self, label: str) -> object:
        return label

    def write(self, step: Step, function: Function) -> None:
        """The step, and what belongs to it."""
        if isinstance(step, Check):
            self.check(step)
            return
        question = question_text(step, self.language) if isinstance(step, Ask) else ""
        body = question or self.sentence(step, function)
        if isinstance(step, Act):
            body += self.sources(step)
        after = ""
        if not isinstance(step, _SAYS_ITS_BODY) and step.says and not question:
            after = self.say("remark", says=self.own(step.says))
        if isinstance(step, Act | Ask | Do | Emit) and step.next is not None:
            after += self.say("goto", target=self.target(step.next))
        self.compose(body, list(self.ways(step, function)), after)

    def compose(self, body: str, ways: Sequence[str], after: str) -> None:
        self.writer.write("".join([f"{body}{after}\n", *(f"{INDENT}{way}\n" for way in ways)]))

    def sentence(self, step: Step, function: Function) -> str:
        if isinstance(step, Act):
            return self.say("goal" if step.goal else "act", call=self.act(step))
        if isinstance(step, Branch):
            then, otherwise = self.target(step.then), self.target(step.otherwise)
            when = self.condition(step.when)
            return self.say("branch", when=when, then=then, otherwise=otherwise)
        if isinstance(step, Choose):
            return self.say("choose", says=self.own(step.says))
        if isinstance(step, Ask):
            return self.say("ask", names=ticked(step.wants))
        if isinstance(step, Do):
            uses = self.say("do_with", names=", ".join(step.uses)) if step.uses else ""
            return self.say("do", says=self.own(step.says)) + uses
        if isinstance(step, Emit):
            return self.say("emit", name=step.artifact)
        if isinstance(step, ReturnStep):
            if step.holds is None:
                return self.say(judge_key(function, judged=self.judged))
            key = "return_fixed" if isinstance(step.holds, Always) else "return_value"
            return self.say(key, when=self.condition(step.holds))
        return self.say("complete" if isinstance(step, CompleteStep) else "fail")

    def sources(self, act: Act) -> str:
        """The sources of values that the program doesn't have."""
        terms = [term.name for _, term in act.arguments if isinstance(term, Unknown)]
        functions = self.program.functions.values()
        computed = {item.computes for item in functions if item.computes} if act.goal else set()
        made = [name for name in dict.fromkeys(terms) if name in computed]
        others = [name for name in dict.fromkeys(terms) if name not in computed]
        text = self.say("supplied", names=ticked(others)) if others and not act.says else ""
        return text + (self.say("computed", names=ticked(made)) if made else "")

    def ways(self, step: Step, function: Function) -> Iterator[str]:
        """The options of a choice; the other recipes behind the last call of the first."""
        if isinstance(step, Choose):
            for option in step.options:
                says = self.own(option.says)
                yield self.say(
                    "option",
                    name=option.name,
                    says=self.say("option_says", says=says) if says else "",
                    target=self.target(option.target),
                )
        acts = [item for item in function.steps if isinstance(item, Act)]
        if acts and step is acts[-1]:
            key = "instead_of_all" if len(acts) > 1 else "instead"
            for recipe in function.fallbacks:
                yield self.say(key, calls=self.say("then").join(map(self.act, recipe)))

    def condition(self, condition: Condition) -> str:
        return condition_text(condition, self.table, self.prefix)

    # --- calls ----------------------------------------------------------------------

    def act(self, act: Act) -> str:
        """A call, with the elements that it is made for and the name of its answer."""
        text = self.call(act.action, act.arguments)
        if act.each is not None:
            text += self.say("for_each", element=act.element, where=act.each)
        return text + (self.say("bound_as", slot=act.name) if act.name else "")

    def call(self, name: str, arguments: CallArguments) -> str:
        return f"{name}({', '.join(self.values(arguments))})"

    def values(self, arguments: CallArguments) -> list[str]:
        """A value that is passed on under its own name is written once."""
        written = []
        for parameter, argument in arguments:
            value = self.argument(argument)
            same = value == parameter
            written.append(value if same else self.say("value", name=parameter, value=value))
        return written

    def argument(self, argument: CallArgument) -> str:
        if isinstance(argument, Constant):
            return quote_literal(argument.value)
        if isinstance(argument, Unknown):
            return self.say("unknown", name=argument.name)
        return self.say("answer", where=argument) if isinstance(argument, Path) else argument.name

    # --- checks ---------------------------------------------------------------------

    def check(self, step: Check) -> None:
        call = self.call(step.function, step.arguments)
        if step.slot != step.function:
            call += self.say("bound_as", slot=step.slot)
        wanted = "true" if step.wanted else "false"
        if is_demand(step):
            body = self.say("check_must", call=call, wanted=wanted, target=step.unmet)
        elif step.met is None:
            body = self.say("check_find", call=call) + self.say("either")
        else:
            body = self.say("check_find", call=call)
            body += self.say("found", wanted=wanted, target=step.met)
            missed = self.say("found_on"), self.say("found_else", target=step.unmet)
            body += missed[step.unmet is not None]
        self.writer.line(body)
        saying = check_saying(step, self.program, self.language)
        if saying is None:
            return
        template = self.table[saying.label] if saying.label else "{says}"
        before, _, after = template.partition("{says}")
        self.writer.write(f"{INDENT}{before}")
        if saying.quoted:
            self.writer.quote(saying.text, step.function)
        else:
            self.writer.write(saying.text)
        self.writer.line(after)
