"""Call, return, reuse, branch and emit, made again from the events."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.handbook.wording import fill
from sopilot.language.program.model import (
    Act,
    Ask,
    Branch,
    Check,
    Choose,
    Condition,
    Do,
    Emit,
    Kind,
    Literal,
    ReturnStep,
    Unknown,
)
from sopilot.runtime.audit._acceptance import condition_truth
from sopilot.runtime.audit._audit_state import AuditState, Contradiction, boolean, expect, mapping
from sopilot.runtime.audit._call_reading import passed_along
from sopilot.runtime.audit._evidence import answers, cite
from sopilot.runtime.audit._learning import learn, learn_beside
from sopilot.runtime.audit._returns import ReturnReview
from sopilot.runtime.audit._sentence import found_sentence
from sopilot.runtime.audit._standing_verdict import standing_verdict
from sopilot.runtime.audit._state import (
    BoundSlot,
    FrameView,
    Judged,
    ProcessView,
    UnmetCheck,
)
from sopilot.runtime.vm.events import Event
from sopilot.runtime.vm.values import JSON, MISSING, key_of


def call(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    step = frame.step
    if not isinstance(step, Check):
        raise Contradiction("a call where the program checks nothing")
    process.set_aside = False
    named = event.payload.get("function")
    if named is not None and named != step.function:
        raise Contradiction(f"the step calls `{step.function}`, not `{named}`")
    learned: dict[str, JSON] = {}
    values = _resolved(process, frame, step, mapping(event.payload, "arguments"), learned)
    expect(event.payload, "resolved", values)
    expect(event.payload, "slot", step.slot)
    expect(event.payload, "learned", learned)
    callee = process.program.functions[step.function]
    process.frames.append(
        FrameView(
            callee,
            callee.first(),
            values,
            step.slot,
            event.seq,
            f"{frame.path}/{step.function}",
        )
    )


def _resolved(
    process: ProcessView,
    frame: FrameView,
    step: Check,
    supplied: dict[str, JSON],
    learned: dict[str, JSON],
) -> dict[str, JSON]:
    values: dict[str, JSON] = {}
    parameters = {parameter for parameter, _ in step.arguments}
    for parameter, term in step.arguments:
        have = process.value_of(term, frame)
        given = supplied.pop(parameter, None)
        if given is None and not isinstance(term, Literal) and term.name not in parameters:
            given = supplied.pop(term.name, None)
        if given is None:
            if have is not MISSING:
                values[parameter] = have
        elif have is not MISSING and not isinstance(term, Unknown):
            if not process.say_the_same(have, given):
                raise Contradiction(f"`{parameter}` is known to be another value here")
            values[parameter] = have
        else:
            values[parameter] = given
            if not isinstance(term, Literal) and (
                have is MISSING or not process.say_the_same(have, given)
            ):
                learn(process, term.name, given, learned)
    learn_beside(process, frame, supplied, learned)
    return values


def give_back(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    payload = event.payload
    kind = frame.code.function.kind
    if len(process.frames) < 2:
        raise Contradiction("a return where nothing was called")
    holds = _verdict(run, event, frame)
    citations = payload.get("evidence", [])
    if not isinstance(citations, list) or not all(isinstance(one, str) for one in citations):
        raise Contradiction("`evidence` is not a list of strings")
    learned: dict[str, JSON] = {}
    cited = cite(process, frame, citations)
    if frame.code.judges:
        ReturnReview(run, event, process, frame, holds, cited).judge()
    supplied = mapping(payload, "arguments")
    if supplied:
        learn_beside(process, frame, supplied, learned)
    caller = process.frames[-2]
    step = caller.step
    if not isinstance(step, Check):
        raise Contradiction("the caller waits for no result")
    blamed = frozenset[int]() if frame.code.judges else frame.to_blame()
    binding = BoundSlot(holds, cited.evidence, event.seq, frame.code.function.name, blamed)
    expect(payload, "opened", frame.opened)
    expect(payload, "function", binding.function)
    expect(payload, "function_kind", str(kind))
    expect(payload, "slot", step.slot)
    expect(payload, "bound", cited.as_payload(holds))
    expect(payload, "learned", learned)
    process.frames.pop()
    run.producers[event.seq] = frame.opened
    own = {
        name: frame.values[name] for name in frame.code.function.parameters if name in frame.values
    }
    if frame.code.judges:
        process.judged.append(
            Judged(binding.function, own, holds, cited.evidence, event.seq, frame.opened)
        )
    if frame.code.judges and holds != step.wanted:
        process.unmet.append(_unmet(run, process, frame, step, binding))
    _bind(process, caller, step, binding)
    if kind is Kind.GATE and holds:
        process.gates[(binding.function, key_of(own))] = binding


def _verdict(run: AuditState, event: Event, frame: FrameView) -> bool | None:
    step = frame.step
    if not frame.code.judges and not isinstance(step, ReturnStep):
        raise Contradiction("a group returns before its end")
    condition = step.holds if isinstance(step, ReturnStep) else None
    if condition is None:
        if event.payload.get("undecided") is True:
            return None
        return boolean(event.payload, "holds")
    computed = _truth(condition, frame.slots)
    claimed = event.payload.get("holds")
    if claimed is not None and claimed is not computed:
        run.find(
            "wrong-branch",
            event,
            f"`{frame.code.function.name}` returned {_word(bool(claimed))}, its bound results "
            f"make it {_word(computed)}",
            sentence=run.sentence_of(run.here()[0], frame),
        )
        run.here()[0].lost = True
    return computed


def _unmet(
    run: AuditState, process: ProcessView, frame: FrameView, step: Check, binding: BoundSlot
) -> UnmetCheck:
    function = frame.code.function
    return UnmetCheck(
        function.judges,
        function.name,
        run.sentence_of(process, frame, wanted=step.wanted) or step.says,
        found_sentence(
            function, process.program.program.constants, frame.values, holds=binding.holds
        ),
        function.remedy,
        fill(function.tells, process.program.program.constants),
        binding.holds,
        binding.evidence,
        binding.producer,
    )


def _bind(process: ProcessView, frame: FrameView, step: Check, binding: BoundSlot) -> None:
    frame.slots = {**frame.slots, step.slot: binding}
    frame.cursor = frame.code.target(step, binding.holds)


def reuse(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    step = frame.step
    expect(event.payload, "label", step.label)
    if "result" in event.payload:
        _take_over(run, event, process, frame)
        return
    if not isinstance(step, Check):
        raise Contradiction("a result is reused where nothing is checked")
    binding = frame.slots.get(step.slot)
    if binding is None:
        values = {}
        for parameter, term in step.arguments:
            value = process.value_of(term, frame)
            if value is MISSING:
                raise Contradiction("a verdict is reused although its values are not known")
            values[parameter] = value
        binding = process.gates.get((step.function, key_of(values)))
        binding = binding or standing_verdict(run, process, step, values)
    if binding is None:
        raise Contradiction("a result is reused that nothing produced, or that no longer stands")
    expect(event.payload, "slot", step.slot)
    expect(event.payload, "function", step.function)
    expect(event.payload, "producer", binding.producer)
    expect(event.payload, "evidence", list(binding.evidence))
    expect(event.payload, "holds", binding.holds)
    if binding.producer not in run.producers:
        raise Contradiction(f"#{binding.producer} is no return")
    run.reused += 1
    judged = process.program.functions[step.function]
    told = any(one.producer == binding.producer for one in process.unmet)
    if judged.judges and binding.holds != step.wanted and not told:
        values = passed_along((step.arguments,), {**process.known, **frame.values})
        seen = FrameView(judged, judged.first(), values, step.slot, -1, "")
        process.unmet.append(_unmet(run, process, seen, step, binding))
    _bind(process, frame, step, binding)


def _take_over(run: AuditState, event: Event, process: ProcessView, frame: FrameView) -> None:
    """An earlier, fresh success of the same call passes an act of a rule."""
    step = frame.step
    wanted = event.payload["result"]
    result = next((one for one in process.results if one.seq == wanted), None)
    if not isinstance(step, Act) or not frame.code.judges or result is None:
        raise Contradiction("evidence is taken over that is not there")
    if not result.ok or result.seq <= run.goal_seq or not answers(process, frame, step, result):
        raise Contradiction(f"#{result.seq} does not answer the step")
    expect(event.payload, "evidence", [result.seq])
    frame.borrowed.append(result.seq)
    frame.cursor = frame.code.following(step)
    run.reused += 1


def select_branch(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    step = frame.step
    option = event.payload.get("option")
    if isinstance(step, Branch):
        right = step.then if _truth(step.when, frame.slots) else step.otherwise
        taken = event.payload.get("target")
        contradicted = isinstance(option, str) and _means(step, option) not in (None, right)
        if taken != right or contradicted:
            run.find(
                "wrong-branch",
                event,
                f"the branch at `{step.label}` went against the bound results, which lead to "
                f"`{right}`",
                process=process,
                sentence=run.sentence_of(process, frame),
            )
            process.lost = True
            return
        target = right
    elif isinstance(step, Choose):
        named = [one.target for one in step.options if one.name == option]
        if not named:
            raise Contradiction(f"`{option}` is no option here")
        target = named[0]
    elif isinstance(step, Ask | Do) and option in (None, "next"):
        target = frame.code.following(step)
        if isinstance(step, Do):
            process.done.append((frame.code.function.name, step.label, {}))
    else:
        raise Contradiction("a branch is taken where there is none")
    expect(event.payload, "label", step.label)
    expect(event.payload, "target", target)
    frame.cursor = target


def _means(step: Branch, option: str) -> str | None:
    """The label that an option asks for."""
    word = option.lower()
    if option in (step.then, step.otherwise):
        return option
    if word in ("then", "true", "yes", "met"):
        return step.then
    if word in ("otherwise", "else", "false", "no", "unmet"):
        return step.otherwise
    return None


def emit(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    step = frame.step
    if not isinstance(step, Emit) or event.payload.get("name") != step.artifact:
        raise Contradiction("an artifact is handed over where none is due")
    expect(event.payload, "label", step.label)
    process.done.append((frame.code.function.name, step.label, {}))
    frame.cursor = frame.code.following(step)


def _truth(condition: Condition, slots: Mapping[str, BoundSlot]) -> bool:
    """As the machine decides: an unbound slot satisfies nothing."""
    return condition_truth(condition, {name: bound.side for name, bound in slots.items()}) is True


def _word(holds: bool) -> str:
    return "true" if holds else "false"
