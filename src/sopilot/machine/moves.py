"""Call, return, branch, emit: the transitions inside one process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from sopilot.handbook.requirements import Constant
from sopilot.machine.evidence import bind_evidence, past_done
from sopilot.machine.layout import Moved, Position, Refused, locate_process, refused
from sopilot.machine.state import Bound, Frame, RuleKey
from sopilot.machine.terms import Learning, value_of
from sopilot.program.model import (
    Ask,
    Branch,
    Check,
    Choose,
    Condition,
    Do,
    Emit,
    Function,
    Kind,
    ReturnStep,
    Unknown,
)
from sopilot.program.walk import checks_to_blame, truth
from sopilot.trace.events import Call, EmitArtifact, JudgeCheck, Return, SelectBranch
from sopilot.trace.redaction import has_withheld
from sopilot.values.json import JSON, MISSING, Fields, key_of, plain, shown
from sopilot.values.schema import violation

NEXT = "next"
_YES = frozenset({"then", "true", "yes", "met", "真", "是"})
_NO = frozenset({"otherwise", "else", "false", "no", "unmet", "假", "否"})


def is_true(condition: Condition, slots: Mapping[str, Bound]) -> bool:
    """Evaluate a condition over bound results. Undecided and unbound slots satisfy nothing."""
    return truth(condition, {slot: bound.holds for slot, bound in slots.items()}) is True


def rule_key(function: str, values: Mapping[str, JSON]) -> RuleKey:
    return function, key_of(values)


def judge_check(here: Position, operation: JudgeCheck, fields: Fields) -> Moved | Refused:
    """Bind a model's judgement to a rule that the handbook leaves to it. The guard checks later
    whether the evidence is whole and newest."""
    layout = here.program.functions.get(operation.function)
    if layout is None or layout.function.verdict is not None or not layout.soft:
        return Refused("not-judged", f"`{operation.function}` isn't left to a model's judgement")
    seq = here.configuration.next_seq
    bound = Bound(operation.holds, operation.evidence, seq, operation.function)
    key = rule_key(operation.function, operation.arguments)
    process = here.process.moved(
        here.process.frames, verdicts={**here.process.verdicts, key: bound}
    )
    return Moved(here.configuration.updated(process), {})


def call(here: Position, operation: Call, fields: Fields) -> Moved | Refused:
    step = here.step
    if not isinstance(step, Check):
        return here.wrong_step("call")
    function = fields["function"]
    if function is not None and function != step.function:
        return refused("wrong-function", wanted=step.function, function=shown(function))
    if len(here.process.frames) >= here.programs.limits.depth:
        return refused("depth-exceeded", limit=here.programs.limits.depth)
    learning = Learning(here.program, here.process)
    resolved = _resolve(here, step, dict(fields["arguments"]), learning)
    if isinstance(resolved, Refused):
        return resolved
    mistyped = _mistyped(here, learning)
    if mistyped is not None:
        return mistyped
    opened = Frame(
        step.function,
        here.program.functions[step.function].first,
        resolved,
        {},
        here.configuration.next_seq,
        f"{here.frame.path}/{step.function}",
    )
    process = here.process.moved((*learning.frames, opened), known=learning.known)
    inside = locate_process(here.programs, here.configuration, process)
    if inside is not None and inside.layout.soft and inside.layout.linked:
        first = opened.at(past_done(inside, opened.cursor))
        process = process.moved((*learning.frames, first), steps=0)
    added = {
        "function": step.function,
        "resolved": resolved,
        "slot": step.slot,
        "learned": learning.learned,
    }
    return Moved(here.configuration.updated(process), added)


def _resolve(
    here: Position, step: Check, supplied: dict[str, JSON], learning: Learning
) -> dict[str, JSON] | Refused:
    """The callee's values: the frame's own, completed by what the executor supplies."""
    values: dict[str, JSON] = {}
    parameters = {parameter for parameter, _ in step.arguments}
    for parameter, term in step.arguments:
        have = value_of(term, here.layout, learning.frames[-1], learning.known)
        value = supplied.pop(parameter, None)
        if value is None and not isinstance(term, Constant) and term.name not in parameters:
            value = supplied.pop(term.name, None)
        if value is None:
            if have is not MISSING:
                values[parameter] = have
        elif have is not MISSING and not isinstance(term, Unknown):
            if not here.program.agree(have, value):
                return _contradiction(parameter, have, value)
            values[parameter] = have
        else:
            values[parameter] = value
            if not isinstance(term, Constant) and (
                have is MISSING or not here.program.agree(have, value)
            ):
                learning.learn(term.name, value)
    problem = _learn_beside(here, supplied, learning)
    return values if problem is None else problem


def _learn_beside(
    here: Position, supplied: Mapping[str, JSON], learning: Learning
) -> Refused | None:
    """Learn values for other names that the function knows."""
    for name, value in supplied.items():
        if value is None:
            continue
        if name in here.layout.learnable:
            learning.learn(name, value)
        elif name in here.layout.parameters:
            have = learning.frames[-1].locals.get(name, MISSING)
            if have is MISSING:
                learning.learn(name, value)
            elif not here.program.agree(have, value):
                return _contradiction(name, have, value)
        else:
            return refused("unknown-argument", name=shown(name))
    return None


def _mistyped(here: Position, learning: Learning) -> Refused | None:
    """Refuse learned values that don't have the types of the goal's inputs."""
    had, have = here.process.frames[0].locals, learning.frames[0].locals
    for name, value in have.items():
        if name not in had or had[name] is not value:
            problem = here.program.type_problem(name, value)
            if problem is not None:
                return Refused("wrong-type", problem)
    return None


def _contradiction(name: str, have: JSON, value: JSON) -> Refused:
    return refused("contradiction", name=shown(name), have=shown(have), value=shown(value))


def do_return(here: Position, operation: Return, fields: Fields) -> Moved | Refused:
    kind = here.layout.function.kind
    if kind is Kind.PROCESS:
        return refused("wrong-step", "return-from-process")
    holds = _verdict(here, operation)
    if isinstance(holds, Refused):
        return holds
    learning = Learning(here.program, here.process)
    if operation.arguments:
        problem = _learn_beside(here, fields["arguments"], learning) or _mistyped(here, learning)
        if problem is not None:
            return problem
    frame = learning.frames.pop()
    caller = learning.frames[-1]
    layout = here.program.functions[caller.function]
    step = layout.steps[caller.cursor]
    assert isinstance(step, Check)
    citation = bind_evidence(here, fields["evidence"])
    producer = here.configuration.next_seq
    blames = kind is Kind.GROUP and not holds
    unmet = blamed(here.layout.function, frame.slots) if blames else ()
    result = Bound(holds, citation.evidence, producer, frame.function, fields["value"], unmet)
    target = (layout.after if holds == step.wanted else layout.unmet)[step.label]
    learning.frames[-1] = caller.bound(step.slot, result, target)
    gates = here.process.gates
    verdicts = here.process.verdicts
    if kind is not Kind.GROUP:
        key = rule_key(frame.function, parameter_values(here, frame))
        verdicts = {**verdicts, key: result}
        if kind is Kind.GATE and holds:
            gates = {**gates, key: result}
    process = here.process.moved(
        tuple(learning.frames), known=learning.known, gates=gates, verdicts=verdicts
    )
    added = {
        "opened": frame.opened,
        "function": frame.function,
        "function_kind": str(kind),
        "slot": step.slot,
        "bound": citation.as_json(holds),
        "learned": learning.learned,
    }
    return Moved(here.configuration.updated(process), added)


def blamed(function: Function, slots: Mapping[str, Bound]) -> tuple[Bound, ...]:
    """The results that a function is to be blamed on. A group gives those of its own checks, since
    only those were verified."""
    results = {name: bound.holds for name, bound in slots.items()}
    steps = checks_to_blame(function, results)
    return tuple(item for step in steps for item in slots[step.slot].unmet or (slots[step.slot],))


def names_of(results: Iterable[Bound]) -> tuple[str, ...]:
    """The functions that were checked, without repetitions."""
    return tuple(dict.fromkeys(bound.function for bound in results))


def parameter_values(here: Position, frame: Frame) -> Mapping[str, JSON]:
    have = frame.locals
    parameters = here.layout.parameters
    if have.keys() == parameters:
        return have
    return {name: have[name] for name in parameters & have.keys()}


def _verdict(here: Position, operation: Return) -> bool | Refused | None:
    claimed = operation.holds
    step = here.step
    if not here.layout.soft and not isinstance(step, ReturnStep):
        return here.wrong_step("return")
    condition = step.holds if isinstance(step, ReturnStep) else None
    if condition is None:
        if operation.undecided:
            return None
        if claimed is None:
            return refused("missing-verdict")
        return claimed
    computed = is_true(condition, here.frame.slots)
    if claimed is not None and claimed != computed:
        shown = "true" if computed else "false"
        return refused("verdict-contradicts", holds=shown)
    return computed


def select_branch(here: Position, operation: SelectBranch, fields: Fields) -> Moved | Refused:
    step = here.step
    option = fields["option"]
    if isinstance(step, Branch):
        target = _branch_target(here, step, option)
        if isinstance(target, Refused):
            return target
    elif isinstance(step, Choose):
        for known in step.options:
            if known.name == option:
                target = known.target
                break
        else:
            names = ", ".join(f"`{known.name}`" for known in step.options)
            return refused("unknown-option", names=names)
    elif isinstance(step, Ask | Do):
        if option not in (None, NEXT):
            return refused("unknown-option", "only-option", name=NEXT)
        target = here.layout.after[step.label]
    else:
        return here.wrong_step("select_branch")
    done = (here.layout.name, step.label, key_of({})) if isinstance(step, Do) else None
    after = here.with_frame(here.frame.at(target), passed=done)
    return Moved(after, {"label": step.label, "target": target})


def _branch_target(here: Position, step: Branch, option: str | None) -> str | Refused:
    holds = is_true(step.when, here.frame.slots)
    right = step.then if holds else step.otherwise
    if option is None or option == right:
        return right
    word = option.lower()
    if word not in _YES and word not in _NO and option not in (step.then, step.otherwise):
        return refused("unknown-option", "two-options")
    if word in (_YES if holds else _NO):
        return right
    taken = "then" if holds else "otherwise"
    return refused("branch-contradicts", option=taken)


def emit(here: Position, operation: EmitArtifact, fields: Fields) -> Moved | Refused:
    step = here.step
    if not isinstance(step, Emit):
        return here.wrong_step("emit_artifact")
    if fields["name"] != step.artifact:
        return refused("wrong-artifact", name=step.artifact)
    content = fields["content"]
    if step.schema is not None and not (here.program.redacted and has_withheld(content)):
        problem = violation(content, step.schema)
        if problem is not None and isinstance(content, str):
            # The tool's schema gives the content one type, so objects come as JSON text.
            content = _spelled(content)
            problem = violation(content, step.schema)
        if problem is not None:
            return refused("bad-artifact", name=step.artifact, problem=problem)
    target = here.layout.after[step.label]
    artifacts = {**here.process.artifacts, step.artifact: content}
    done = (here.layout.name, step.label, key_of({}))
    after = here.with_frame(here.frame.at(target), artifacts=artifacts, passed=done)
    return Moved(after, {"label": step.label})


def _spelled(text: str) -> JSON:
    try:
        return plain(json.loads(text))
    except (ValueError, RecursionError):
        return text
