"""The active frame: the one function a model sees, with the cursor, results and values.

Its size has a bound that depends on the program alone (the paper's B_P): the
function's own text, plus a budget for everything that moves. Values are cut to
``VALUE_BUDGET`` characters and citations to ``EVIDENCE_SHOWN``, and only names
that the function itself mentions are shown, so neither the depth of calls nor
the length of the dialog can make a frame larger.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from sopilot.language.program import (
    Act,
    Ask,
    Branch,
    Check,
    Choose,
    CompleteStep,
    Do,
    Emit,
    FailStep,
    Function,
    Kind,
    Local,
    Program,
    ReturnStep,
    Step,
    Unknown,
)
from sopilot.language.program.causes import checks_to_blame
from sopilot.language.render._quoted import Rendered, Writer
from sopilot.language.render._scaffold import TOOL, words
from sopilot.language.render._steps import NOTHING_ALONE, ByMachine, write_step
from sopilot.language.render.sentences import (
    constant_texts,
    named_constants,
    purpose,
    telling,
    wants_false,
)
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

    @property
    def unmet(self) -> tuple[str, ...]:
        """Of a group that did not come out as wanted: the checks that are to blame."""
        ...


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
    *,
    failed: Sequence[int] = (),
    by_machine: ByMachine = NOTHING_ALONE,
) -> str:
    """The frame of ``function`` at step ``cursor``. Never longer than ``frame_bound``.
    ``failed`` are the calls at the cursor that were answered so."""
    writer = Writer()
    active = program.functions[function]
    write_function(writer, active, program, language, cursor, by_machine)
    table = words(language)
    slots = [_result(slot, results[slot], table) for slot in shown_slots(active) if slot in results]
    if slots:
        writer.line(table["results"].format(items=table["separator"].join(slots)))
    values = [_value(name, known[name]) for name in shown_names(active) if name in known]
    if values:
        writer.line(table["known"].format(items=table["separator"].join(values)))
    step = next((step for step in active.steps if step.label == cursor), None)
    if step is not None:
        if isinstance(step, Ask) and failed:
            # What was asked for has been tried: what to make of that comes before asking again.
            step = next((one for one in active.steps if isinstance(one, Act)), step)
        missing = [name for name in _supplied(step) if name not in known]
        if isinstance(step, Check) and step.function in program.functions:
            callee = program.functions[step.function]
            found = (*callee.optional, callee.computes)  # left out, or computed there
            missing = [name for name in missing if name not in found]
        told = told_on_failing(active, program, results, language)
        loose = _loose(step, active, program)
        writer.line(_now(step, active, table, missing, _cited(failed), by_machine, told, loose))
    return writer.finish().text


def told_on_failing(
    function: Function, program: Program, results: Mapping[str, FrameResult], language: str
) -> str:
    """All that the user may hear of why the function fails, by the checks that came out
    otherwise than it wants them; empty where nothing is kept from the user."""
    blamed = [
        name
        for step in checks_to_blame(function, {slot: one.holds for slot, one in results.items()})
        for name in results[step.slot].unmet or (step.function,)
    ]
    return " ".join(telling(blamed, program, language))


def frame_bound(program: Program, language: str = "en") -> int:
    """B_P: no frame of the program is longer, whatever a run does."""
    return max(_bound(function, program, language) for function in program.functions.values())


def write_function(
    writer: Writer,
    function: Function,
    program: Program,
    language: str,
    cursor: str | None = None,
    by_machine: ByMachine = NOTHING_ALONE,
) -> None:
    _write_head(writer, function, program, language)
    for step in function.steps:
        mark = _CURSOR if step.label == cursor else _NO_CURSOR
        lead = f"{mark}{step.label}: "
        write_step(writer, lead, step, function, program, language, by_machine)


def _write_head(writer: Writer, function: Function, program: Program, language: str) -> None:
    table = words(language)
    writer.write(f"{table[function.kind]} {function.name}({', '.join(function.parameters)})\n")
    for line in purpose(function, program, language):
        writer.line(line)


class FunctionText:
    """The texts of a function that do not depend on a run, with their quotations: by language
    and constants, for the same functions that it checks."""

    __slots__ = ("_called", "_own", "_parts", "_texts", "_varying", "constants")

    def __init__(self, function: Function, called: list[Function]) -> None:
        self._own = self.constants = named_constants(function)
        self._varying: list[str] = []
        """The functions whose checks read otherwise with other constants."""
        self._called = called
        for one in called:
            if names := named_constants(one):
                self._varying.append(one.name)
                self.constants = tuple(dict.fromkeys([*self.constants, *names]))
        self._texts: dict[tuple[str | None, ...], Rendered] = {}
        self._parts: dict[str, list[Rendered | Check]] = {}

    def of(self, function: Function, program: Program, language: str) -> Rendered:
        constants = self.constants
        key = (language, *constant_texts(constants, program)) if constants else (language,)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = self._written(function, program, language)
        return text

    def _written(self, function: Function, program: Program, language: str) -> Rendered:
        writer = Writer()
        if not self.constants:
            write_function(writer, function, program, language)
            return writer.finish()
        if self._own:
            _write_head(writer, function, program, language)
        parts = self._parts.get(language)
        if parts is None:
            parts = self._parts[language] = self._cut(function, program, language)
        for part in parts:
            if isinstance(part, Rendered):
                writer.include(part)
            else:
                write_step(writer, f"{_NO_CURSOR}{part.label}: ", part, function, program, language)
        return writer.finish()

    def _cut(self, function: Function, program: Program, language: str) -> list[Rendered | Check]:
        """What reads the same whatever the constants, and between it the checks that do not."""
        parts: list[Rendered | Check] = []
        fixed = Writer()
        if not self._own:
            _write_head(fixed, function, program, language)
        for step in function.steps:
            if isinstance(step, Check) and step.function in self._varying:
                parts += [fixed.finish(), step] if len(fixed) else [step]
                fixed = Writer()
            else:
                write_step(fixed, f"{_NO_CURSOR}{step.label}: ", step, function, program, language)
        return [*parts, fixed.finish()]


def rendered_function(function: Function, program: Program, language: str = "en") -> Rendered:
    denied = bool(function.says_not) and wants_false(function, program)
    return function_text(function, program, denied).of(function, program, language)


def function_text(function: Function, program: Program, denied: bool) -> FunctionText:
    """Kept with the function, which programs share: by the identity of those that it checks
    (the text holds them alive), and whether its other side is wanted, too."""
    functions = program.functions
    checks = function.checks
    called = (
        [functions[one.function] for one in checks if one.function in functions] if checks else []
    )
    key = (FunctionText, denied, *map(id, called))
    text: FunctionText | None = function.kept.get(key)
    if text is None:
        text = function.kept[key] = FunctionText(function, called)
    return text


def shown_slots(function: Function) -> tuple[str, ...]:
    return tuple(dict.fromkeys([step.slot for step in function.checks]))


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
    word = table["undecided"] if result.holds is None else "true" if result.holds else "false"
    text = f"{slot} = {word}"
    if result.unmet:
        names = result.unmet[:EVIDENCE_SHOWN]
        more = ("…",) if len(result.unmet) > EVIDENCE_SHOWN else ()
        text += table["not_met"].format(names=", ".join([*names, *more]))
    if result.evidence:
        text += table["evidence"].format(items=_cited(result.evidence))
    if result.value is not None:
        text += table["keeps"].format(value=quote_value(result.value))
    return text


def _cited(evidence: Sequence[int]) -> str:
    cited = [f"#{min(seq, _LARGEST_SEQ)}" for seq in evidence[:EVIDENCE_SHOWN]]
    return " ".join([*cited, "…"] if len(evidence) > EVIDENCE_SHOWN else cited)


def _value(name: str, value: object) -> str:
    return f"{name} = {quote_value(value)}"


def _supplied(step: Step) -> list[str]:
    """The names whose values the step needs."""
    if isinstance(step, Ask):
        return list(step.wants)
    if not isinstance(step, Check | Act):
        return []
    terms = [term for _, term in step.arguments if isinstance(term, Local | Unknown)]
    return list(dict.fromkeys(term.name for term in terms))


def _loose(step: Step, function: Function, program: Program) -> set[str]:
    """What a call may be made without: no value that its function needs, no input of the action
    that is required."""
    if not isinstance(step, Act):
        return set()
    facts = program.actions.get(step.action)
    named = [(key, term.name) for key, term in step.arguments if isinstance(term, Local | Unknown)]
    inputs = {name for key, name in named if facts is not None and key not in facts.required}
    return inputs | set(function.optional)


def _now(
    step: Step,
    function: Function,
    table: Mapping[str, str],
    missing: Sequence[str],
    failed: str,
    by_machine: ByMachine,
    told: str = "",
    loose: Collection[str] = (),
) -> str:
    """``told``: all that the user may hear of why the program fails; ``loose``: what the call
    may be made without."""
    fields = {"tool": TOOL, "names": ", ".join(f"`{name}`" for name in missing), "seqs": failed}
    fields["way"] = table["way_gate" if function.kind is Kind.GATE else "way_fail"]
    if isinstance(step, Check):
        fields["function"] = step.function
        key = "now_check_with" if missing else "now_check"
    elif isinstance(step, Act):
        fields["action"] = step.action
        key = "now_goal" if step.goal else "now_act"
        if failed:
            key += "_failed"
        elif missing:
            needed = [name for name in missing if name not in loose]
            fields["names"] = ", ".join(f"`{name}`" for name in needed or missing)
            key = "now_act_with" if needed else f"{key}_maybe"
    elif isinstance(step, Ask):
        fields["names"] = ", ".join(f"`{name}`" for name in step.wants)
        behind = function.steps[function.steps.index(step) + 1 :][:1]
        key = "now_ask"
        if step.next is None and behind and isinstance(behind[0], Act):
            key, fields["action"] = "now_ask_act", behind[0].action
    elif isinstance(step, Emit):
        fields["name"] = step.artifact
        key = "now_emit"
    elif isinstance(step, ReturnStep) and by_machine.judges and function.verdict is not None:
        key = "now_return_machine"
    elif isinstance(step, FailStep) and told:
        key, fields["says"] = "now_fail_told", told
    else:
        key = _NOW[type(step)]
    return table["now"].format(todo=table[key].format(**fields))


_NOW: dict[type, str] = {
    Branch: "now_branch",
    Choose: "now_choose",
    Do: "now_do",
    ReturnStep: "now_return",
    CompleteStep: "now_complete",
    FailStep: "now_fail",
}


def _bound(function: Function, program: Program, language: str) -> int:
    table = words(language)
    size = max(_length(function, program, language, pace) for pace in _PACES)
    widest = max(map(len, ("true", "false", table["undecided"])))
    cited = len(" ".join([f"#{_LARGEST_SEQ}"] * EVIDENCE_SHOWN + ["…"]))
    blamed = (max(map(len, program.functions)) + len(", ")) * EVIDENCE_SHOWN + len("…")
    result = len(" = ") + widest + _around(table["evidence"]) + cited
    result += _around(table["not_met"]) + blamed + _around(table["keeps"]) + VALUE_BUDGET
    slots = [len(slot) + result for slot in shown_slots(function)]
    size += _listed(table, "results", slots)
    told = " ".join(telling(program.functions, program, language))
    moving = 0
    for step in function.steps:
        for missing in ([], _supplied(step)):
            shown = [name for name in shown_names(function) if name not in missing]
            values = [len(name) + len(" = ") + VALUE_BUDGET for name in shown]
            todo = max(
                len(_now(step, function, table, missing, failed, pace, words_told))
                for failed in ("", "#" * cited)
                for words_told in ("", told)
                for pace in _PACES
            )
            moving = max(moving, _listed(table, "known", values) + todo + 1)
    return size + moving


def _listed(table: Mapping[str, str], key: str, items: Sequence[int]) -> int:
    """The length of a line that lists items of these lengths; none without items."""
    if not items:
        return 0
    return _around(table[key]) + sum(items) + 1 + len(table["separator"]) * (len(items) - 1)


_PACES = (NOTHING_ALONE, ByMachine(enters=True, judges=True))


def _length(function: Function, program: Program, language: str, by_machine: ByMachine) -> int:
    if not by_machine.judges:
        return len(render_function(function, program, language))
    writer = Writer()
    write_function(writer, function, program, language, by_machine=by_machine)
    return len(writer)


def _around(template: str) -> int:
    """The characters of a template with one field, without the field."""
    return len(template) - len(template[template.index("{") : template.index("}") + 1])
