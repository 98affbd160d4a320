"""The active frame: the one function a model sees, with the cursor, results and values.

Its size has a bound that depends on the program alone (the paper's B_P): the
function's own text, plus a budget for everything that moves. Values are cut to
``VALUE_BUDGET`` characters and citations to ``EVIDENCE_SHOWN``, and only names
that the function itself mentions are shown, so neither the depth of calls nor
the length of the dialog can make a frame larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from sopilot.language.handbook.wording import fill, placeholders
from sopilot.language.program import (
    Act,
    Ask,
    Branch,
    Check,
    Choose,
    Complete,
    Do,
    Emit,
    Fail,
    Function,
    Kind,
    Program,
    Return,
    Step,
    Unknown,
)
from sopilot.language.render._quoted import Rendered, Writer
from sopilot.language.render._scaffold import TOOL, note, words
from sopilot.language.render._steps import write_step
from sopilot.language.render.values import VALUE_BUDGET, quote_value

EVIDENCE_SHOWN: Final = 4
"""Citations shown with a result; the trace has them all."""

_CURSOR, _NO_CURSOR = "> ", "  "
_LARGEST_SEQ = 999_999_999


class FrameResult(Protocol):
    """A bound result: what a frame shows of ``{holds, evidence}``."""

    @property
    def holds(self) -> bool | None: ...

    @property
    def evidence(self) -> tuple[int, ...]: ...

    @property
    def value(self) -> object: ...


def render_function(function: Function, program: Program, language: str = "en") -> str:
    """The text of a function that does not depend on a run."""
    return rendered_function(function, program, language).text


def render_frame(
    program: Program,
    function: str,
    cursor: str,
    results: Mapping[str, FrameResult],
    known: Mapping[str, object],
    language: str = "en",
) -> str:
    """The frame of ``function`` at step ``cursor``. Never longer than ``frame_bound``."""
    writer = Writer()
    active = program.functions[function]
    write_function(writer, active, program, language, cursor)
    table = words(language)
    slots = [_result(slot, results[slot], table) for slot in shown_slots(active) if slot in results]
    if slots:
        writer.line(table["results"].format(items=table["separator"].join(slots)))
    values = [_value(name, known[name]) for name in shown_names(active) if name in known]
    if values:
        writer.line(table["known"].format(items=table["separator"].join(values)))
    step = next((step for step in active.steps if step.label == cursor), None)
    if step is not None:
        writer.line(_now(step, table))
    return writer.finish().text


def frame_bound(program: Program, language: str = "en") -> int:
    """B_P: no frame of the program is longer, whatever a run does."""
    return max(_bound(function, program, language) for function in program.functions.values())


def write_function(
    writer: Writer, function: Function, program: Program, language: str, cursor: str | None = None
) -> None:
    table = words(language)
    writer.line(f"{table[function.kind]} {function.name}({', '.join(function.parameters)})")
    says = purpose(function, program, language)
    if says:
        writer.line(says)
    for step in function.steps:
        mark = _CURSOR if step.label == cursor else _NO_CURSOR
        write_step(writer, f"{mark}{step.label}: ", step, function, language)


def purpose(function: Function, program: Program, language: str) -> str:
    """What a function is for: the goal's description, the part's logic or the predicate."""
    if not function.says:
        return ""
    if function.predicate is None:
        return words(language)["purpose"].format(says=note(function.says, language))
    names = {**program.constants, **{name: name for name in function.parameters}}
    opens = function.kind is Kind.GATE and not function.is_fact
    key = "establishes" if opens else "judges"
    return words(language)[key].format(says=fill(function.says, names))


_KEPT_AT_MOST: Final = 8_192
_kept: dict[tuple[object, ...], tuple[Function, Rendered]] = {}


def rendered_function(function: Function, program: Program, language: str = "en") -> Rendered:
    """The function's text and quotations. Programs share functions, so texts are kept by
    the function's identity (the entry holds it alive) and the constants it names."""
    named = placeholders(function.says) if function.predicate is not None else ()
    # As text: 500 and 500.0 are equal numbers and different words.
    key = (id(function), language, *[str(program.constants.get(name)) for name in named])
    kept = _kept.get(key)
    if kept is None:
        writer = Writer()
        write_function(writer, function, program, language)
        if len(_kept) >= _KEPT_AT_MOST:
            _kept.clear()
        kept = _kept[key] = (function, writer.finish())
    return kept[1]


def shown_slots(function: Function) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s.slot for s in function.steps if isinstance(s, Check)))


def shown_names(function: Function) -> tuple[str, ...]:
    """Parameters, what is asked for, and what calls must find out: all a frame has room for."""
    names = dict.fromkeys(function.parameters)
    steps: list[Step] = [*function.steps, *(act for acts in function.fallbacks for act in acts)]
    for step in steps:
        if isinstance(step, Ask):
            names |= dict.fromkeys(step.wants)
        elif isinstance(step, Check | Act):
            learned = [value.name for _, value in step.arguments if isinstance(value, Unknown)]
            names |= dict.fromkeys(learned)
    if function.reads_clock:
        names["now"] = None
    return tuple(names)


def _result(slot: str, result: FrameResult, table: Mapping[str, str]) -> str:
    word = "undecided" if result.holds is None else "true" if result.holds else "false"
    text = f"{slot} = {table[word]}"
    if result.evidence:
        cited = [f"#{min(seq, _LARGEST_SEQ)}" for seq in result.evidence[:EVIDENCE_SHOWN]]
        if len(result.evidence) > EVIDENCE_SHOWN:
            cited.append("…")
        text += table["evidence"].format(items=" ".join(cited))
    if result.value is not None:
        text += table["keeps"].format(value=quote_value(result.value))
    return text


def _value(name: str, value: object) -> str:
    return f"{name} = {quote_value(value)}"


def _now(step: Step, table: Mapping[str, str]) -> str:
    if isinstance(step, Check):
        todo = table["now_check"].format(tool=TOOL, function=step.function)
    elif isinstance(step, Act):
        key = "now_goal" if step.goal else "now_act"
        todo = table[key].format(action=step.action)
    elif isinstance(step, Ask):
        todo = table["now_ask"].format(names=", ".join(step.wants))
    elif isinstance(step, Emit):
        todo = table["now_emit"].format(tool=TOOL, name=step.artifact)
    else:
        todo = table[_NOW[type(step)]].format(tool=TOOL)
    return table["now"].format(todo=todo)


_NOW: dict[type, str] = {
    Branch: "now_branch",
    Choose: "now_choose",
    Do: "now_do",
    Return: "now_return",
    Complete: "now_complete",
    Fail: "now_fail",
}


def _bound(function: Function, program: Program, language: str) -> int:
    table = words(language)
    size = len(render_function(function, program, language))
    widest = max(len(table[word]) for word in ("true", "false", "undecided"))
    cited = len(" ".join([f"#{_LARGEST_SEQ}"] * EVIDENCE_SHOWN + ["…"]))
    result = len(" = ") + widest + _around(table["evidence"]) + cited
    result += _around(table["keeps"]) + VALUE_BUDGET
    slots = [len(slot) + result for slot in shown_slots(function)]
    values = [len(name) + len(" = ") + VALUE_BUDGET for name in shown_names(function)]
    for key, items in (("results", slots), ("known", values)):
        if items:
            size += _around(table[key]) + sum(items) + 1
            size += len(table["separator"]) * (len(items) - 1)
    return size + max(len(_now(step, table)) for step in function.steps) + 1


def _around(template: str) -> int:
    """The characters of a template with one field, without the field."""
    return len(template) - len(template[template.index("{") : template.index("}") + 1])
