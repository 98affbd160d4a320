"""Findings about guarded calls: where they ran, who had approved them, and their proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sopilot.audit.call_reading import CallReading, read_call
from sopilot.audit.state import (
    CLOSING,
    AuditState,
    CheckMade,
    HeldRequest,
    Override,
    ProcessView,
    SessionCall,
    filled_sentence,
)
from sopilot.handbook.model import BUILT_IN
from sopilot.machine.call_ledger import count_approvals
from sopilot.machine.observations import used_answers
from sopilot.machine.state import ProofLevel
from sopilot.messages.catalogue import sentence
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import SopilotError
from sopilot.program.model import Guarded, Kind
from sopilot.trace.events import AWAITS_APPROVAL, Event
from sopilot.trace.redaction import has_withheld, is_reference, words_of
from sopilot.values.json import JSON, Judge, is_same_act, same, spell


def judge_guard(
    run: AuditState,
    event: Event,
    call: SessionCall,
    process: ProcessView | None,
    *,
    violated: bool = False,
) -> None:
    """Findings about a call of a guarded action; ``violated``: the cursor does not license it."""
    programs = [process.program] if process is not None else list(run.programs.values())
    guarded = next(
        (program.guarded[call.action] for program in programs if call.action in program.guarded),
        None,
    )
    if guarded is None:
        return
    if violated:
        licensed = call.action in run.goal_actions
        code = "audit.not-where-accepted" if licensed else "audit.no-procedure"
        why = sentence(code, action=call.action)
        run.find("guard-violated", event, why, action=call.action)
    if guarded.needed == 0:
        return
    asked_of_people = _asked_of_people(run, call, process, guarded)
    if asked_of_people is None and not decided_by_people(run, event, guarded):
        run.leave_unjudged(event, sentence("audit.approval-rests", action=call.action))
    elif asked_of_people:
        _judge_approval(run, event, call, guarded)


def _asked_of_people(
    run: AuditState, call: SessionCall, process: ProcessView | None, guarded: Guarded
) -> bool | None:
    """Unless the handbook's condition is false for these arguments; ``None``: one is withheld."""
    if process is None:
        return True
    known = {name: item for name, item in call.arguments.items() if not has_withheld(item)}
    values = {**known, **process.program.program.constants}
    complete = known.keys() == call.arguments.keys()
    return needs_approval(guarded.when, run.judge, run.clock, values, otherwise=complete or None)


def needs_approval(
    when: str | None,
    judge: Judge | None,
    clock: str,
    values: Mapping[str, JSON],
    *,
    otherwise: bool | None = True,
) -> bool | None:
    """Whether the handbook's condition for an approval is met; ``otherwise``: it is undecided."""
    if when is None or judge is None:
        return True
    try:
        met = judge(when, {**({"now": clock} if clock else {}), **values})
    except SopilotError:
        return otherwise
    return otherwise if met is None else met


OPERATOR = "operator"
"""The role that decides on an unproven call where the handbook names none."""


def decided_by_people(run: AuditState, event: Event, guarded: Guarded) -> bool:
    """Whether enough people approved this very call, and nobody closed it."""
    guarded = replace(guarded, roles=guarded.roles or (OPERATOR,), needed=max(guarded.needed, 1))
    return not _closing(run, event) and _approvals(run, event, guarded) >= guarded.needed


def _decisions(run: AuditState, event: Event, *words: str) -> list[Event]:
    """The decisions on the call of this event, or those with one of these words."""
    every = run.decisions.get(str(event.payload.get("call_id")), [])
    return [item for item in every if not words or item.payload.get("decision") in words]


def _closing(run: AuditState, event: Event) -> list[Event]:
    return _decisions(run, event, *CLOSING)


def _approvals(run: AuditState, event: Event, guarded: Guarded) -> int:
    """The approvals that count for this call. An amendment voids the ones before it: they
    were for other arguments."""
    standing: list[Event] = []
    held = run.held.get(str(event.payload.get("call_id")))
    for decision in _decisions(run, event, "approve", "amend"):
        if not decision.payload.get("by") or decision.payload.get("role") not in guarded.roles:
            continue
        since = decision.at if held is None else held
        if guarded.expires_seconds is not None and event.at - since > guarded.expires_seconds:
            continue
        amends = decision.payload.get("decision") == "amend"
        standing = [decision] if amends else [*standing, decision]
    approvers = ((str(item.payload["by"]), str(item.payload["role"])) for item in standing)
    return count_approvals(approvers, guarded.roles, guarded.needed)


def _judge_approval(run: AuditState, event: Event, call: SessionCall, guarded: Guarded) -> None:
    closed = _closing(run, event)
    if closed:
        rejected = closed[-1].payload.get("decision") == "reject"
        word = sentence("audit.rejected" if rejected else "audit.expired")
        run.find(
            "approval-missing",
            event,
            sentence("audit.ran-after", action=call.action, decision=word, seq=closed[-1].seq),
            decision=str(word),
        )
    elif (count := _approvals(run, event, guarded)) < guarded.needed:
        run.find(
            "approval-missing",
            event,
            sentence(
                "audit.too-few-approvals",
                action=call.action,
                n=count,
                needed=guarded.needed,
                roles=", ".join(guarded.roles),
            ),
        )
    amended = _decisions(run, event, "amend")
    if amended and not _the_same(amended[-1].payload.get("arguments"), dict(call.arguments)):
        run.find(
            "approval-exceeded",
            event,
            sentence("audit.other-arguments", action=call.action, seq=amended[-1].seq),
        )


def _the_same(amended: JSON, called: JSON) -> bool:
    return is_reference(amended) != is_reference(called) or same(amended, called)


def hold(run: AuditState, event: Event, details: Mapping[str, JSON]) -> None:
    """Record what was in doubt when a call was held, for people or as unproven."""
    action, arguments = str(details.get("action", "")), details.get("arguments")
    process = run.process
    if not isinstance(arguments, Mapping):
        return
    reading = read_call(run, process, action, arguments) if process is not None else None
    if reading is not None and process is not None:
        run.proofs[event.seq] = _requirements(event, process, reading)
    if details.get("awaits") != AWAITS_APPROVAL:
        return
    run.requests[str(details.get("call_id", ""))] = HeldRequest(
        action,
        dict(arguments),
        process.id if process is not None else None,
        reading.keys if reading is not None else frozenset(),
    )
    if details.get("why") and reading is not None and not reading.doubts:
        run.find(
            "guard-disagrees",
            event,
            sentence("audit.held-but-shown", action=action, grade=reading.grade),
            process=process,
            severity=Severity.WARNING,
            held=words_of(details.get("why")),
        )


def _requirements(
    event: Event, process: ProcessView, reading: CallReading
) -> tuple[CheckMade, ...]:
    """The requirements of a guarded call as the trace shows them."""
    constants = process.program.program.constants
    return tuple(
        CheckMade(
            event.seq,
            process.id,
            event.frame,
            leaf.predicate,
            filled_sentence(
                process.program.functions[leaf.function].function,
                constants,
                leaf.values,
                wanted=leaf.wanted,
            ),
            leaf.holds,
            leaf.evidence,
            needs_evidence=bool(process.program.functions[leaf.function].recipes),
            covered=leaf.holds is not None,
            grade=str(leaf.grade) if leaf.holds is not None else "",
            wanted=leaf.wanted,
        )
        for leaf in reading.checks
    )


def judge_proof(run: AuditState, event: Event, call: SessionCall, process: ProcessView) -> None:
    """Findings about a guarded call at its step: unproven, or told otherwise by the guard."""
    guarded = process.program.guarded.get(call.action)
    if guarded is None:
        return
    if process.direct:
        _judge_repeated(run, event, call)
    reading = read_call(run, process, call.action, call.arguments, event=event)
    if reading is None:
        recorded = event.payload.get("licence")
        if isinstance(recorded, Mapping) and recorded.get("missing"):
            _override(run, event, call, [words_of(recorded["missing"])])
        return
    # A call that people let through uses up answers that prove nothing.
    call.uses = _used_answers(process, reading).union(used_answers(event.payload))
    run.proofs[event.seq] = _requirements(event, process, reading)
    _compare_licence(run, event, call, process, reading)
    if guarded.recheck and not reading.doubts:
        _judge_rereading(run, event, call, process, reading)
    request = run.requests.get(str(event.payload.get("call_id")))
    if (
        request is not None
        and request.process == process.id
        and request.doubts == reading.keys
        and decided_by_people(run, event, guarded)
    ):
        if reading.doubts:
            _override(run, event, call, [doubt.why for doubt in reading.doubts])
        return
    for doubt in reading.doubts:
        run.find(
            doubt.code,
            event,
            sentence("audit.ran-unproven", action=call.action, why=doubt.why),
            process=process,
            predicate=doubt.predicate or None,
            sentence=doubt.sentence,
            values=dict(doubt.values or {}),
        )


def _judge_repeated(run: AuditState, event: Event, call: SessionCall) -> None:
    """P16: without a protocol nothing but the user's words tells one request from the next. A
    message while a question of the runtime is open answers that."""
    questions = [
        session_call for session_call in run.session_calls if session_call.action in BUILT_IN
    ]
    requests = [
        seq
        for seq in run.user_messages
        if not any(question.seq < seq < question.answered_at() for question in questions)
    ]
    latest = max(requests, default=-1)
    for earlier in run.session_calls:
        done = earlier.answered if earlier.ok and earlier.action == call.action else None
        if done is not None and done > latest and is_same_act(earlier.arguments, call.arguments):
            run.find(
                "guard-violated",
                event,
                sentence("audit.carried-out-already", action=call.action, seq=done),
            )


def _override(run: AuditState, event: Event, call: SessionCall, unproven: Sequence[str]) -> None:
    names = (decision.payload.get("by") for decision in _decisions(run, event))
    by = dict.fromkeys(str(name) for name in names if name)
    run.overrides.append(Override(event.seq, call.action, tuple(by), tuple(unproven)))


def _used_answers(process: ProcessView, reading: CallReading) -> frozenset[int]:
    """P9: the answers of the user that the call rests on, each of which serves one call."""
    codes = [(process.program.functions[leaf.function].function, leaf) for leaf in reading.leaves]
    once = [item for function, item in codes if function.question and not function.reusable]
    return frozenset(seq for item in once for seq in item.evidence)


def _judge_rereading(
    run: AuditState, event: Event, call: SessionCall, process: ProcessView, reading: CallReading
) -> None:
    """With `recheck` the machine itself has read, just before, all that the call rests on."""
    rules = [
        leaf
        for leaf in reading.leaves
        if process.program.functions[leaf.function].function.kind is Kind.RULE
    ]
    answers = {seq: rule.predicate for rule in rules for seq in rule.evidence}
    for made in run.session_calls:
        predicate = answers.get(made.answered if made.answered is not None else -1)
        facts = run.facts.get(made.action)
        if predicate is None or facts is None or facts.changes != ():
            continue
        if made.action in run.guarded or made.action in BUILT_IN:
            continue  # the machine makes no such call by itself
        if not made.by_machine or made.seq < run.moved:
            run.find(
                "not-read-again",
                event,
                sentence(
                    "audit.ran-on-older", action=call.action, read=made.action, seq=made.answered
                ),
                process=process,
                predicate=predicate,
            )


def _compare_licence(
    run: AuditState, event: Event, call: SessionCall, process: ProcessView, reading: CallReading
) -> None:
    recorded = event.payload.get("licence")
    if not isinstance(recorded, Mapping):
        return
    grade = recorded.get("grade")
    if grade != reading.grade:
        disagree(run, event, process, f"`{call.action}`", grade, reading.grade)
        return
    if reading.doubts:
        return
    leaves = recorded.get("leaves")
    named = {
        _spelled(item)
        for item in (leaves if isinstance(leaves, list | tuple) else ())
        if isinstance(item, Mapping) and item.get("holds") is not None
    }
    shown = {
        spell([leaf.predicate, leaf.holds, str(leaf.grade), list(leaf.evidence)])
        for leaf in reading.leaves
    }
    if named != shown:
        run.find(
            "guard-disagrees",
            event,
            sentence("audit.other-leaves", action=call.action),
            process=process,
            severity=Severity.WARNING,
            recorded=sorted(named - shown),
            shown=sorted(shown - named),
        )


def _spelled(leaf: Mapping[str, JSON]) -> str:
    names = ("predicate", "holds", "grade", "evidence")
    return spell([leaf.get(name) for name in names])


def disagree(
    run: AuditState,
    event: Event,
    process: ProcessView,
    what: str,
    recorded: JSON,
    shown: ProofLevel,
    predicate: str | None = None,
) -> None:
    """An error where the record says more than the trace shows, else a warning."""
    levels: list[JSON] = list(ProofLevel)
    says_more = recorded not in levels or levels.index(recorded) < levels.index(shown)
    run.find(
        "guard-disagrees",
        event,
        sentence("audit.recorded-as", what=what, recorded=recorded, shown=shown),
        process=process,
        predicate=predicate,
        severity=Severity.ERROR if says_more else Severity.WARNING,
        recorded=str(recorded),
        shown=str(shown),
    )
