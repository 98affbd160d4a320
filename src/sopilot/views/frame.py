"""The active frame: the one function a model sees, with cursor, results and values.

Its size has a bound that depends on the program alone (the paper's B_P): the function's text plus
a budget for everything that changes. Values are cut to ``VALUE_BUDGET`` characters and citations
to ``EVIDENCE_SHOWN``, and only names that the function mentions are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from sopilot.handbook.grammar import in_language
from sopilot.machine.moves import blamed, is_true, names_of
from sopilot.machine.state import Bound
from sopilot.messages.scaffold import LONG_TOOL, StepTool, spelled, words
from sopilot.program.model import (
    Act,
    Ask,
    Branch,
    Check,
    Choose,
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
from sopilot.values.text import VALUE_BUDGET, quote_value
from sopilot.views.check_sentences import constant_texts, named_constants, purpose, telling
from sopilot.views.quoting import Rendered, Writer
from sopilot.views.steps import StepWriter, ticked

EVIDENCE_SHOWN: Final = 4
"""Citations shown with a result; the trace has them all."""
REMEDY_BUDGET: Final = 400
BLOCKED_BUDGET: Final = 1_000
"""Characters of what the user could do about a refusal, and of why the goal tool is blocked."""
_CURSOR, _NO_CURSOR = "> ", "  "
_LARGEST_SEQ = 999_999_999
_WIDEST_VALUE = "x" * VALUE_BUDGET


def render_function(function: Function, program: Program, language: str = "en") -> str:
    """The text of a function that does not depend on a run."""
    return rendered_function(function, program, language).text


def render_frame(
    program: Program,
    function: str,
    cursor: str,
    results: Mapping[str, Bound],
    known: Mapping[str, object],
    language: str = "en",
    *,
    failed: Sequence[int] = (),
    judged: bool = False,
    tool: StepTool = LONG_TOOL,
    origins: Mapping[str, str] = MappingProxyType({}),
    blocked: str = "",
) -> str:
    """The frame of ``function`` at step ``cursor``. Never longer than ``frame_bound``.
    ``failed`` are the calls at the cursor that were answered so. ``origins`` has the names that
    the request gives to parameters of other names. ``judged``: the runtime judges what it can.
    ``blocked``: why the guard would not let the
    goal tool be called now."""
    writer = Writer()
    active = program.functions[function]
    step = next((step for step in active.steps if step.label == cursor), None)
    if isinstance(step, Ask) and (failed or all(name in known for name in step.wants)):
        # The user has answered, or a call has tried the answer: the call is what comes next.
        behind = active.steps[active.steps.index(step) + 1]
        step = behind if step.next is None and isinstance(behind, Act) else step
    cursor = cursor if step is None else step.label
    write_function(writer, active, program, language, cursor, judged=judged)
    table = words(language)
    slots = [_result(slot, results[slot], table) for slot in shown_slots(active) if slot in results]
    writer.write(_line(table, "results", slots))
    values = [
        _value(name, known[name], origins.get(name, name), table)
        for name in shown_names(active)
        if name in known
    ]
    writer.write(_line(table, "known", values))
    if step is not None:
        missing = [name for name in _supplied(step) if name not in known]
        if isinstance(step, Check) and step.function in program.functions:
            callee = program.functions[step.function]
            result = (*callee.optional, callee.computes)  # left out, or computed there
            missing = [name for name in missing if name not in result]
        if missing and tool.short:
            missing = [*missing, *_needed_later(step, active, program, {*missing, *known})]
        todo = _Todo(
            missing,
            _cited(failed),
            told_on_failing(active, program, results, language),
            remedies(active, program, results, language),
            tuple(_loose(step, active, program)),
            {name: origins.get(name, name) for name in missing},
            _cut(blocked, BLOCKED_BUDGET),
            _outcome(step, results),
        )
        writer.line(_now(step, active, table, todo, tool, judged=judged))
    return writer.finish().text


def _needed_later(
    step: Step, function: Function, program: Program, besides: Collection[str]
) -> list[str]:
    """At a check of the process: the request's other missing values, so that the user gives all at
    once. Values that are computed or optional aren't missing."""
    if not isinstance(step, Check) or function.name != program.entry:
        return []
    results = {*function.optional, *(item.computes for item in program.functions.values())}
    return [name for name in function.parameters if name not in {*besides, *results}]


def _outcome(step: Step, results: Mapping[str, Bound]) -> str:
    """The value that a group returns by its results."""
    if not isinstance(step, ReturnStep) or step.holds is None:
        return ""
    return "true" if is_true(step.holds, results) else "false"


def told_on_failing(
    function: Function, program: Program, results: Mapping[str, Bound], language: str
) -> str:
    """The only reason that the user may hear if the function fails, by the checks that failed;
    empty if the user may hear every reason."""
    return " ".join(telling(names_of(blamed(function, results)), program, language))


def remedies(
    function: Function, program: Program, results: Mapping[str, Bound], language: str
) -> str:
    """The remedies for the checks for which the function fails."""
    functions = program.functions
    unmet = [functions[name] for name in names_of(blamed(function, results)) if name in functions]
    replies = [
        in_language(item.remedy, language)
        for item in unmet
        if item.remedy and not item.customer_message
    ]
    return _cut(" ".join(dict.fromkeys(replies)), REMEDY_BUDGET)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def frame_bound(program: Program, language: str = "en") -> int:
    """B_P: no frame of the program is longer, whatever a run does."""
    return max(_bound(function, program, language) for function in program.functions.values())


def write_function(
    writer: Writer,
    function: Function,
    program: Program,
    language: str,
    cursor: str | None = None,
    *,
    judged: bool = False,
) -> None:
    kind = words(language)[function.kind]
    writer.line(f"{kind} {function.name}({', '.join(function.parameters)})")
    for line in purpose(function, program, language):
        writer.line(line)
    steps = StepWriter(writer, program, language, judged=judged)
    for step in function.steps:
        mark = _CURSOR if step.label == cursor else _NO_CURSOR
        writer.write(f"{mark}{step.label}: ")
        steps.write(step, function)


def rendered_function(function: Function, program: Program, language: str = "en") -> Rendered:
    """The text of a function that doesn't depend on a run. Programs share functions, so it is
    cached there: by the functions that it checks (the entry holds them alive) and by what the
    sentences have of the constants."""
    functions = program.functions
    called = [functions[item.function] for item in function.checks if item.function in functions]
    names = dict.fromkeys(name for item in (function, *called) for name in named_constants(item))
    key = (Rendered, language, *map(id, called), *constant_texts(names, program))
    result = function.cache.get(key)
    if result is None:
        writer = Writer()
        write_function(writer, function, program, language)
        result = function.cache[key] = (writer.finish(), called)
    text: Rendered = result[0]
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


def _result(slot: str, result: Bound, table: Mapping[str, str]) -> str:
    word = table["undecided"] if result.holds is None else "true" if result.holds else "false"
    text = f"{slot} = {word}"
    if result.unmet:
        names = names_of(result.unmet)
        more = ("…",) if len(names) > EVIDENCE_SHOWN else ()
        text += table["not_met"].format(names=", ".join([*names[:EVIDENCE_SHOWN], *more]))
    if result.evidence:
        text += table["evidence"].format(items=_cited(result.evidence))
    if result.value is not None:
        text += table["keeps"].format(value=quote_value(result.value))
    return text


def _cited(evidence: Sequence[int]) -> str:
    cited = [f"#{min(seq, _LARGEST_SEQ)}" for seq in evidence[:EVIDENCE_SHOWN]]
    return " ".join([*cited, "…"] if len(evidence) > EVIDENCE_SHOWN else cited)


def _value(name: str, value: object, origin: str, table: Mapping[str, str]) -> str:
    shown = name if origin == name else name + table["origin"].format(name=origin)
    return f"{shown} = {quote_value(value)}"


def _supplied(step: Step) -> list[str]:
    """The names whose values the step needs."""
    if isinstance(step, Ask):
        return list(step.wants)
    if not isinstance(step, Check | Act):
        return []
    terms = [term for _, term in step.arguments if isinstance(term, Local | Unknown)]
    return list(dict.fromkeys(term.name for term in terms))


def _loose(step: Step, function: Function, program: Program) -> set[str]:
    """The names that a call may leave out: neither its function nor the action requires them."""
    if not isinstance(step, Act):
        return set()
    facts = program.actions.get(step.action)
    named = [(key, term.name) for key, term in step.arguments if isinstance(term, Local | Unknown)]
    inputs = {name for key, name in named if facts is not None and key not in facts.required}
    return inputs | set(function.optional)


class _Todo(NamedTuple):
    """The moving parts of the line that says what to do. ``message``: the only reason for the
    refusal that the user may hear; ``loose``: names that the call may leave out; ``named``: the
    missing values by the names that the request has for them."""

    missing: Sequence[str] = ()
    failed: str = ""
    message: str = ""
    remedies: str = ""
    loose: Collection[str] = ()
    named: Mapping[str, str] = MappingProxyType({})
    blocked: str = ""
    holds: str = "false"


def _now(
    step: Step,
    function: Function,
    table: Mapping[str, str],
    todo: _Todo,
    tool: StepTool,
    *,
    judged: bool,
) -> str:
    def say(key: str) -> str:
        return spelled(table, key, tool).format(tool=tool.name)

    key, fields = _what_now(step, function, todo, judged=judged)
    called = function.is_fact or any(isinstance(item, Act) for item in function.steps)
    text = spelled(table, key, tool).format(
        **{
            "tool": tool.name,
            "seqs": todo.failed,
            "says": todo.message,
            "why": todo.blocked,
            "holds": todo.holds,
            "next": say("way_next"),
            "verdict": say("verdict" if called else "verdict_values"),
            "way": say("way_gate" if function.kind is Kind.GATE else "way_fail"),
            "undecided": say("or_undecided" if tool.undecided else "or_fail"),
            "amend": say("or_amend") if tool.amend else "",
            **fields,
        }
    )
    if key == "now_fail" and todo.remedies:
        text += table["remedy"].format(says=todo.remedies)
    return table["now"].format(todo=text)


def _what_now(
    step: Step, function: Function, todo: _Todo, *, judged: bool
) -> tuple[str, dict[str, str]]:
    """The key of the line, and what only this step has to fill in."""
    names = ticked(todo.missing)
    if isinstance(step, Check):
        values = ", ".join(f'"{todo.named.get(name, name)}": …' for name in todo.missing)
        fields = {"function": step.function, "names": names, "values": f"{{{values}}}"}
        return "now_check_with" if todo.missing else "now_check", fields
    if isinstance(step, Act):
        fields = {"action": step.action, "names": names}
        key = "now_goal" if step.goal else "now_act"
        gate = function.kind is Kind.GATE and not step.goal
        if todo.failed:
            return "now_gate_failed" if gate else f"{key}_failed", fields
        if step.goal and todo.blocked:
            return "now_goal_blocked", fields
        if not todo.missing:
            return key, fields
        needed = [name for name in todo.missing if name not in todo.loose]
        fields["names"] = ticked(needed or todo.missing)
        with_names = "now_gate_with" if gate else "now_act_with"
        return with_names if needed else f"{key}_maybe", fields
    if isinstance(step, Ask):
        fields = {"names": ticked(step.wants)}
        behind = function.steps[function.steps.index(step) + 1 :][:1]
        if step.next is None and behind and isinstance(behind[0], Act):
            return "now_ask_act", {**fields, "action": behind[0].action}
        return "now_ask", fields
    if isinstance(step, Emit):
        return "now_emit", {"name": step.artifact}
    if isinstance(step, Choose):
        return "now_choose", {"names": ticked([option.name for option in step.options])}
    if isinstance(step, ReturnStep):
        if step.holds is not None:
            return "now_return_group", {}
        judged = judged and function.verdict is not None
        return "now_return_machine" if judged else "now_return", {}
    if isinstance(step, FailStep):
        return "now_fail_told" if todo.message else "now_fail", {}
    if isinstance(step, Branch):
        return "now_branch", {"then": step.then, "otherwise": step.otherwise}
    return "now_do" if isinstance(step, Do) else "now_complete", {}


def _bound(function: Function, program: Program, language: str) -> int:
    table = words(language)
    size = max(_length(function, program, language, judged=item) for item in (False, True))
    cited = (_LARGEST_SEQ,) * (EVIDENCE_SHOWN + 1)
    longest_first = sorted(program.functions, key=len, reverse=True)
    unmet = tuple(Bound(None, (), 0, name) for name in longest_first)
    widest = Bound(None, cited, 0, "", _WIDEST_VALUE, unmet)
    results = [_result(slot, widest, table) for slot in shown_slots(function)]
    size += len(_line(table, "results", results))
    join = " ".join(telling(program.functions, program, language))
    longest = "_" * max(map(len, _names_in(program)), default=0)
    renamed = {
        parameter
        for caller in program.functions.values()
        for check in caller.checks
        if check.function == function.name
        for parameter, term in check.arguments
        if isinstance(term, Local | Unknown) and term.name != parameter
    }
    replies = [
        in_language(item.remedy, language) for item in program.functions.values() if item.remedy
    ]
    remedied = _cut(" ".join(dict.fromkeys(replies)), REMEDY_BUDGET)
    guarded = {item.action for item in program.guarded}
    moving = 0
    for step in function.steps:
        needed = _supplied(step)
        for missing in ([], [*needed, *_needed_later(step, function, program, needed)]):
            values = [
                _value(name, _WIDEST_VALUE, longest if name in renamed else name, table)
                for name in shown_names(function)
                if name not in missing
            ]
            named = {name: longest for name in missing if name in renamed}
            blocked = isinstance(step, Act) and step.action in guarded
            todos = [
                _Todo(missing, "", join, "", (), named),
                _Todo(missing, _cited(cited), "", remedied, (), named),
                _Todo(missing, "", "", "", (), named, "_" * BLOCKED_BUDGET if blocked else ""),
            ]
            todo = max(
                len(_now(step, function, table, item, tool, judged=judged))
                for item in todos
                for judged in (False, True)
                for tool in (LONG_TOOL, StepTool(LONG_TOOL.name, short=True))
            )
            moving = max(moving, len(_line(table, "known", values)) + todo + 1)
    return size + moving


def _names_in(program: Program) -> set[str]:
    """The names that values of the program's frames have."""
    return {name for function in program.functions.values() for name in shown_names(function)}


def _length(function: Function, program: Program, language: str, *, judged: bool) -> int:
    if not judged:
        return len(render_function(function, program, language))
    writer = Writer()
    write_function(writer, function, program, language, judged=judged)
    return len(writer)


def _line(table: Mapping[str, str], key: str, items: Sequence[str]) -> str:
    """A line that lists items; nothing without items."""
    return table[key].format(items=table["separator"].join(items)) + "\n" if items else ""
