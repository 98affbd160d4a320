"""The active frame: the one function a model sees, with cursor, results and values.

Its size has a bound that depends on the program alone (the paper's B_P): the function's text plus
a budget for everything that changes. Values are cut to ``VALUE_BUDGET`` characters and citations
to ``EVIDENCE_SHOWN``, and only names that the function mentions are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from sopilot.handbook.grammar import in_language
from sopilot.handbook.requirements import Path
from sopilot.machine.moves import is_true
from sopilot.machine.state import Bound
from sopilot.messages.scaffold import LONG_TOOL, StepTool, spelled, words
from sopilot.program.model import (
    MISSING_RECIPE,
    Act,
    Ask,
    Branch,
    CallArgument,
    CallArguments,
    Check,
    Choose,
    CompleteStep,
    Do,
    Emit,
    FailStep,
    Function,
    Kind,
    Literal,
    Local,
    Program,
    ReturnStep,
    Step,
    Unknown,
)
from sopilot.program.walk import checks_to_blame
from sopilot.values.text import VALUE_BUDGET, quote_literal, quote_value
from sopilot.views.quoting import Rendered, Writer
from sopilot.views.sentences import (
    check_saying,
    condition_text,
    constant_texts,
    is_demand,
    named_constants,
    purpose,
    telling,
)

INDENT = "    "
"""In front of what belongs to the step above it."""


class ByMachine(NamedTuple):
    """What the machine does by itself, so that no line asks the model for it."""

    enters: bool = False
    judges: bool = False


NOTHING_ALONE = ByMachine()
_SAYS_ITS_BODY = (Do, Choose, Branch)


def act_text(act: Act, table: Mapping[str, str]) -> str:
    """A call of an action, with what its answer is called and for which elements it is made."""
    text = call_text(act.action, act.arguments, table)
    if act.name:
        text += table["bound_as"].format(slot=act.name)
    if act.each is not None:
        text += table["for_each"].format(element=act.element, where=act.each)
    return text


def call_text(name: str, arguments: CallArguments, table: Mapping[str, str]) -> str:
    """``name(a, b=3)``; a value that is passed on under its own name is written once."""
    written = []
    for parameter, argument in arguments:
        value = argument_text(argument, table)
        written.append(value if value == parameter else f"{parameter}={value}")
    return f"{name}({', '.join(written)})"


def argument_text(argument: CallArgument, table: Mapping[str, str]) -> str:
    if isinstance(argument, Literal):
        return quote_literal(argument.value)
    if isinstance(argument, Unknown):
        return table["unknown"].format(name=argument.name)
    return str(argument) if isinstance(argument, Path) else argument.name


def question_text(step: Ask, language: str) -> str:
    """What an ``ask`` step says, if that names everything it wants; else nothing."""
    says = in_language(step.says, language)
    return says if all(name in says for name in step.wants) else ""


def supplied(arguments: CallArguments) -> list[str]:
    """The values of a call that only earlier answers or the user have."""
    return list(dict.fromkeys([term.name for _, term in arguments if isinstance(term, Unknown)]))


def judge_key(function: Function, by_machine: ByMachine = NOTHING_ALONE) -> str:
    """Who judges the function, and from what."""
    if function.is_fact:
        return "judge_fact_machine" if by_machine.judges else "judge_fact"
    is_gate = function.kind is Kind.GATE
    acts = any(isinstance(step, Act) for step in function.steps)
    if by_machine.judges and (is_gate or function.verdict is not None):
        return "judge_gate_machine" if is_gate and function.verdict is None else "judge_machine"
    if MISSING_RECIPE in function.notes:
        return "judge_unverified"
    if is_gate and acts:
        return "judge_gate" if function.verdict is None else "judge_gate_answer"
    return "judge_you" if acts or function.kind not in (Kind.RULE, Kind.GATE) else "judge_values"


def write_step(
    writer: Writer,
    lead: str,
    step: Step,
    function: Function,
    program: Program,
    language: str,
    by_machine: ByMachine = NOTHING_ALONE,
) -> None:
    """The step behind ``lead``, and below it what belongs to it. Ends with a line break."""
    if isinstance(step, Check):
        _write_check(writer, lead, step, program, language)
        return
    table = words(language)
    computed: set[str] = set()
    if isinstance(step, Act) and step.goal:
        computed = {item.computes for item in program.functions.values() if item.computes}
    body = _body(step, function, table, language, by_machine, computed)
    if isinstance(step, Ask) and question_text(step, language):
        body = question_text(step, language) + _goto("goto", step.next, table)
    elif not isinstance(step, _SAYS_ITS_BODY) and step.says:
        # What `do` and `choose` say is their body already, and a branch says nothing.
        body += table["remark"].format(says=in_language(step.says, language))
    lines = [f"{lead}{body}\n"]
    if isinstance(step, Choose):
        for option in step.options:
            says = in_language(option.says, language)
            says = table["option_says"].format(says=says) if says else ""
            line = table["option"].format(name=option.name, target=option.target)
            lines.append(f"{INDENT}{line}{says}\n")
    if isinstance(step, Act) and function.fallbacks and step is _last_act(function):
        several = sum(isinstance(item, Act) for item in function.steps) > 1
        key = "instead_of_all" if several else "instead"
        for acts in function.fallbacks:
            calls = table["then"].join(act_text(act, table) for act in acts)
            lines.append(f"{INDENT}{table[key].format(calls=calls)}\n")
    writer.write("".join(lines))


def _write_check(writer: Writer, lead: str, step: Check, program: Program, language: str) -> None:
    table = words(language)
    call = call_text(step.function, step.arguments, table)
    if step.slot != step.function:
        call += table["bound_as"].format(slot=step.slot)
    wanted = "true" if step.wanted else "false"
    if is_demand(step):
        body = table["check_must"].format(call=call, wanted=wanted, target=step.unmet)
    else:
        body = table["check_find"].format(call=call)
        if step.met is None:
            body += table["either"]
        else:
            body += table["found"].format(wanted=wanted, target=step.met)
            body += (
                table["found_on"] if step.unmet is None else _goto("found_else", step.unmet, table)
            )
    writer.write(f"{lead}{body}\n")
    saying = check_saying(step, program, language)
    if saying is None:
        return
    before, _, after = (table[saying.label] if saying.label else "{says}").partition("{says}")
    writer.write(f"{INDENT}{before}")
    if saying.quoted:
        writer.quote(saying.text, step.function)
    else:
        writer.write(saying.text)
    writer.write(f"{after}\n")


def _body(
    step: Step,
    function: Function,
    table: Mapping[str, str],
    language: str,
    by_machine: ByMachine,
    computed: Collection[str],
) -> str:
    if isinstance(step, Act):
        key = "goal" if step.goal else "act"
        note = ""
        if names := supplied(step.arguments):
            made = [name for name in names if name in computed]
            names = [name for name in names if name not in made]
            note = "" if step.says or not names else table["supplied"].format(names=_ticked(names))
            note += table["computed"].format(names=_ticked(made)) if made else ""
        call = act_text(step, table)
        return table[key].format(call=call) + _goto("goto", step.next, table) + note
    if isinstance(step, Branch):
        when = condition_text(step.when, table)
        return table["branch"].format(when=when, then=step.then, otherwise=step.otherwise)
    if isinstance(step, ReturnStep):
        if step.holds is None:
            return table[judge_key(function, by_machine)]
        return table["return_value"].format(when=condition_text(step.holds, table))
    if isinstance(step, Choose):
        return table["choose"].format(says=in_language(step.says, language))
    if isinstance(step, Ask):
        return table["ask"].format(names=_ticked(step.wants)) + _goto("goto", step.next, table)
    if isinstance(step, Do):
        uses = table["do_with"].format(names=", ".join(step.uses)) if step.uses else ""
        says = in_language(step.says, language)
        return table["do"].format(says=says) + uses + _goto("goto", step.next, table)
    if isinstance(step, Emit):
        return table["emit"].format(name=step.artifact) + _goto("goto", step.next, table)
    return table["complete"] if isinstance(step, CompleteStep) else table["fail"]


def _last_act(function: Function) -> Act | None:
    acts = [step for step in function.steps if isinstance(step, Act)]
    return acts[-1] if acts else None


def _goto(key: str, target: str | None, table: Mapping[str, str]) -> str:
    return "" if target is None else table[key].format(target=target)


EVIDENCE_SHOWN: Final = 4
"""Citations shown with a result; the trace has them all."""
REMEDY_BUDGET: Final = 400
BLOCKED_BUDGET: Final = 1_000
"""Characters of what the user could do about a refusal, and of why the goal tool is blocked."""
_CURSOR, _NO_CURSOR = "> ", "  "
_LARGEST_SEQ = 999_999_999


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
    by_machine: ByMachine = NOTHING_ALONE,
    tool: StepTool = LONG_TOOL,
    origins: Mapping[str, str] = MappingProxyType({}),
    blocked: str = "",
) -> str:
    """The frame of ``function`` at step ``cursor``. Never longer than ``frame_bound``.
    ``failed`` are the calls at the cursor that were answered so. ``origins`` has the names that
    the request gives to parameters of other names. ``blocked``: why the guard would not let the
    goal tool be called now."""
    writer = Writer()
    active = program.functions[function]
    step = next((step for step in active.steps if step.label == cursor), None)
    if isinstance(step, Ask) and (failed or all(name in known for name in step.wants)):
        # The user has answered, or a call has tried the answer: the call is what comes next.
        behind = active.steps[active.steps.index(step) + 1]
        step = behind if step.next is None and isinstance(behind, Act) else step
    cursor = cursor if step is None else step.label
    write_function(writer, active, program, language, cursor, by_machine)
    table = words(language)
    slots = [_result(slot, results[slot], table) for slot in shown_slots(active) if slot in results]
    if slots:
        writer.line(table["results"].format(items=table["separator"].join(slots)))
    values = [
        _value(name, known[name], origins.get(name, name), table)
        for name in shown_names(active)
        if name in known
    ]
    if values:
        writer.line(table["known"].format(items=table["separator"].join(values)))
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
        writer.line(_now(step, active, table, todo, by_machine, tool))
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
    """What a group returns by its results."""
    if not isinstance(step, ReturnStep) or step.holds is None:
        return ""
    return "true" if is_true(step.holds, results) else "false"


def told_on_failing(
    function: Function, program: Program, results: Mapping[str, Bound], language: str
) -> str:
    """The only reason that the user may hear if the function fails, by the checks that failed;
    empty if the user may hear every reason."""
    return " ".join(telling(blamed(function, results), program, language))


def remedies(
    function: Function, program: Program, results: Mapping[str, Bound], language: str
) -> str:
    """What the user could do about the checks for which the function fails."""
    functions = program.functions
    unmet = [functions[name] for name in blamed(function, results) if name in functions]
    replies = [
        in_language(item.remedy, language)
        for item in unmet
        if item.remedy and not item.customer_message
    ]
    return _cut(" ".join(dict.fromkeys(replies)), REMEDY_BUDGET)


def blamed(function: Function, results: Mapping[str, Bound]) -> list[str]:
    """The checks that came out otherwise than the function wants them."""
    return [
        name
        for step in checks_to_blame(function, {slot: item.holds for slot, item in results.items()})
        for name in results[step.slot].unmet or (step.function,)
    ]


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
    by_machine: ByMachine = NOTHING_ALONE,
) -> None:
    kind = words(language)[function.kind]
    writer.line(f"{kind} {function.name}({', '.join(function.parameters)})")
    for line in purpose(function, program, language):
        writer.line(line)
    for step in function.steps:
        mark = _CURSOR if step.label == cursor else _NO_CURSOR
        lead = f"{mark}{step.label}: "
        write_step(writer, lead, step, function, program, language, by_machine)


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
    """What a call may be made without: no value that its function needs, no input of the action
    that is required."""
    if not isinstance(step, Act):
        return set()
    facts = program.actions.get(step.action)
    named = [(key, term.name) for key, term in step.arguments if isinstance(term, Local | Unknown)]
    inputs = {name for key, name in named if facts is not None and key not in facts.required}
    return inputs | set(function.optional)


class _Todo(NamedTuple):
    """What moves in the line that says what to do. ``message``: all that the user may hear of why
    the program fails; ``loose``: what the call may be made without; ``named``: the missing
    values by the names that the request has for them."""

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
    by_machine: ByMachine,
    tool: StepTool,
) -> str:
    def say(key: str) -> str:
        return spelled(table, key, tool).format(tool=tool.name)

    key, fields = _what_now(step, function, todo, by_machine)
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
    step: Step, function: Function, todo: _Todo, by_machine: ByMachine
) -> tuple[str, dict[str, str]]:
    """The key of the line, and what only this step has to fill in."""
    names = _ticked(todo.missing)
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
        fields["names"] = _ticked(needed or todo.missing)
        with_names = "now_gate_with" if gate else "now_act_with"
        return with_names if needed else f"{key}_maybe", fields
    if isinstance(step, Ask):
        fields = {"names": _ticked(step.wants)}
        behind = function.steps[function.steps.index(step) + 1 :][:1]
        if step.next is None and behind and isinstance(behind[0], Act):
            return "now_ask_act", {**fields, "action": behind[0].action}
        return "now_ask", fields
    if isinstance(step, Emit):
        return "now_emit", {"name": step.artifact}
    if isinstance(step, Choose):
        return "now_choose", {"names": _ticked([option.name for option in step.options])}
    if isinstance(step, ReturnStep):
        if step.holds is not None:
            return "now_return_group", {}
        judges = by_machine.judges and function.verdict is not None
        return "now_return_machine" if judges else "now_return", {}
    if isinstance(step, FailStep):
        return "now_fail_told" if todo.message else "now_fail", {}
    if isinstance(step, Branch):
        return "now_branch", {"then": step.then, "otherwise": step.otherwise}
    return "now_do" if isinstance(step, Do) else "now_complete", {}


def _ticked(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


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
    join = " ".join(telling(program.functions, program, language))
    longest = max(map(len, _names_in(program)), default=0)
    renamed = {
        parameter
        for caller in program.functions.values()
        for check in caller.checks
        if check.function == function.name
        for parameter, term in check.arguments
        if isinstance(term, Local | Unknown) and term.name != parameter
    }
    origin = {name: _around(table["origin"]) + longest for name in renamed}
    replies = [
        in_language(item.remedy, language) for item in program.functions.values() if item.remedy
    ]
    remedied = _cut(" ".join(dict.fromkeys(replies)), REMEDY_BUDGET)
    guarded = {item.action for item in program.guarded}
    moving = 0
    for step in function.steps:
        needed = _supplied(step)
        for missing in ([], [*needed, *_needed_later(step, function, program, needed)]):
            shown = [name for name in shown_names(function) if name not in missing]
            values = [len(name) + origin.get(name, 0) + len(" = ") + VALUE_BUDGET for name in shown]
            named = {name: "_" * longest for name in missing if name in renamed}
            blocked = isinstance(step, Act) and step.action in guarded
            todos = [
                _Todo(missing, "", join, "", (), named),
                _Todo(missing, "#" * cited, "", remedied, (), named),
                _Todo(missing, "", "", "", (), named, "_" * BLOCKED_BUDGET if blocked else ""),
            ]
            todo = max(
                len(_now(step, function, table, item, pace, tool))
                for item in todos
                for pace in _PACES
                for tool in (LONG_TOOL, StepTool(LONG_TOOL.name, short=True))
            )
            moving = max(moving, _listed(table, "known", values) + todo + 1)
    return size + moving


def _names_in(program: Program) -> set[str]:
    """The names that values of the program's frames have."""
    return {name for function in program.functions.values() for name in shown_names(function)}


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
