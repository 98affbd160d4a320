"""Judge how processes start and end. Where a process stands: can it still accept, and which checks
lie before acceptance?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from sopilot.audit.call_reading import read_call
from sopilot.audit.leaf_reading import VERDICT, Moment, Unreadable
from sopilot.audit.state import (
    AuditState,
    ProcessView,
    RefusedGoal,
    covered,
    filled_sentence,
    step_of,
)
from sopilot.machine.evidence import admissible, frame_results
from sopilot.machine.layout import Position
from sopilot.machine.moves import blamed
from sopilot.machine.state import Frame
from sopilot.machine.terms import plain_arguments, value_of
from sopilot.messages.catalogue import sentence
from sopilot.program.model import (
    Act,
    Argument,
    Ask,
    Check,
    Do,
    Emit,
    FailStep,
    Kind,
    Local,
    Unknown,
)
from sopilot.program.walk import Activation, Flow, Walk
from sopilot.trace.events import EXECUTORS, Actor, Event
from sopilot.values.json import JSON, MISSING, canonical, key_of


@dataclass(frozen=True, slots=True)
class OpenCheck:
    """A check without a result. ``values`` are the rule's parameters as far as known."""

    function: str
    predicate: str
    sentence: str
    values: Mapping[str, JSON]

    @property
    def key(self) -> tuple[str, str]:
        return self.function, canonical(dict(self.values)).decode("utf-8", "replace")


UNDECIDED = cast("bool", "undecided")
"""A bound result that is neither true nor false."""


def _results(frame: Frame) -> dict[str, bool | None]:
    """The bound results, for conditions."""
    return {
        name: UNDECIDED if bound.holds is None else bound.holds
        for name, bound in frame.slots.items()
    }


class _OpenedGates:
    """The oracle of a walk over what a process has settled: a gate that it opened with the same
    values counts wherever it is asked for. Everything else is open."""

    def __init__(self, process: ProcessView) -> None:
        self._gates = process.state.gates

    def judge(self, check: Check, callee: Flow, values: Mapping[str, JSON]) -> bool | None:
        opened = self._gates.get((callee.function.name, key_of(values)))
        return None if opened is None else opened.holds

    def was_done(self, within: Activation, step: Act | Do | Emit) -> bool:
        return True


def can_accept(process: ProcessView) -> bool | None:
    """``False`` once the bound results rule acceptance out; ``None`` while it is open."""
    functions = process.program.functions
    walk = Walk(functions, _OpenedGates(process), {})
    check: Check | None = None
    inner: bool | None = None
    for depth in range(len(process.frames) - 1, -1, -1):
        frame = process.frames[depth]
        within = Activation(functions[frame.function], frame.locals, depth=depth)
        if functions[frame.function].soft:
            caller = process.frames[depth - 1]
            check = _check_at(process, caller)
            inner = walk.result(check, Activation(functions[caller.function], caller.locals))
        elif check is None:
            inner = walk.from_step(within, frame.cursor, _results(frame))
        else:
            inner = walk.past_check(within, check, inner, _results(frame))
        check = _check_at(process, process.frames[depth - 1]) if depth else None
    return inner


def _check_at(process: ProcessView, frame: Frame) -> Check:
    """The check that a caller is at."""
    step = step_of(process.program, frame)
    assert isinstance(step, Check)
    return step


class _Remaining(_OpenedGates):
    """Takes every open check as met, and notes it."""

    def __init__(self, process: ProcessView) -> None:
        super().__init__(process)
        self._constants = process.program.program.constants
        self.checks: dict[tuple[str, str], OpenCheck] = {}

    def judge(self, check: Check, callee: Flow, values: Mapping[str, JSON]) -> bool | None:
        holds = super().judge(check, callee, values)
        if holds is None:
            function = callee.function
            says = filled_sentence(function, self._constants, values, wanted=check.wanted)
            item = OpenCheck(check.function, function.judges, says or check.says, values)
            self.checks.setdefault(item.key, item)
        return check.wanted if holds is None else holds


def remaining_checks(process: ProcessView) -> list[OpenCheck]:
    """The checks that the program still makes if all of them go well."""
    remaining = _Remaining(process)
    walk = Walk(process.program.functions, remaining, {})
    for frame in reversed(process.frames):
        layout = process.program.functions[frame.function]
        if not layout.soft:
            walk.from_step(Activation(layout, frame.locals), frame.cursor, _results(frame))
    return list(remaining.checks.values())


def judge_start(run: AuditState) -> None:
    run.late_look_ups.clear()
    left = run.process
    if left is not None:
        left.set_aside = bool(left.frames) and left.frames[0].opened in left.spoken_in


def judge_amend(run: AuditState, process: ProcessView) -> None:
    """The process begins again with other values."""
    process.unmet, process.goal_failed = [], None
    process.set_aside = False


def judge_complete(run: AuditState, event: Event, process: ProcessView, *, accepting: bool) -> None:
    run.last_ended = process.id
    has_goal = bool(process.program.goal_actions)
    unreached = has_goal and process.goal_reached is None
    if accepting and not unreached:
        return
    code = "audit.goal-not-done" if unreached else "audit.not-accepting"
    run.find("completion-without-goal", event, sentence(code, goal=process.goal), process=process)
    process.lost = True


def judge_fail(run: AuditState, event: Event, process: ProcessView, here: Position) -> None:
    run.last_ended = process.id
    process.given_up = event.actor not in EXECUTORS
    if process.set_aside:
        # The user wanted something else and dropped this, so it isn't a refusal.
        return
    step = here.step
    refusing = isinstance(step, FailStep)
    # An unsatisfiable program isn't a cause by itself: something must have been shown.
    shown = any(check.process == process.id for check in run.checks)
    obstacle = _obstacle(run, process, here)
    caused = (
        refusing
        or bool(obstacle)
        or (shown and can_accept(process) is False)
        or _turned_down(run, process)
    )
    reason = event.payload.get("reason", "")
    returns = {item.producer for item in blamed(here.layout.function, here.frame.slots)}
    run.refusals.append(
        RefusedGoal(
            event.seq,
            process.id,
            process.goal,
            reason if isinstance(reason, str) else "",
            tuple(
                item.as_cause()
                for item in process.unmet
                if not refusing or item.producer in returns
            ),
            obstacle,
            str(step.says) if isinstance(step, FailStep) else "",
            step.starts if isinstance(step, FailStep) else "",
        )
    )
    by_executor = event.actor in EXECUTORS
    if by_executor and not caused and process.goal_reached is None:
        code = "audit.refused-other-false" if process.unmet else "audit.refused-no-false"
        # The ground may be that the user was asked for something and did not give it.
        withheld = any(request is None for request, _ in process.unanswered)
        if withheld:
            run.leave_unjudged(event, sentence("audit.ground-withheld"))
        else:
            run.find(
                "refusal-without-cause",
                event,
                sentence(code, goal=process.goal),
                process=process,
                unmet=[item.predicate for item in process.unmet],
            )


def _obstacle(run: AuditState, process: ProcessView, here: Position) -> str:
    """Why the goal action can't be carried out although the program asks for it, or nothing."""
    step = here.step
    missing = _not_given(process, here)
    if missing:
        names = ", ".join(f"`{item}`" for item in missing)
        return sentence("audit.user-did-not-give", names=names)
    if here.layout.function.kind is Kind.RULE:
        return _failed_verifier(here) or _undecided(run, process, here)
    if not isinstance(step, Act) or not step.goal:
        return ""
    if step.action in run.not_offered:
        return sentence("audit.not-offered", action=step.action)
    if process.goal_failed is not None:
        return sentence("call-failed", action=step.action, seq=process.goal_failed)
    if process.direct:
        arguments = {
            parameter: value
            for parameter, term in plain_arguments(step.arguments)
            if (value := value_of(term, here.layout, here.frame, here.process.known)) is not MISSING
        }
        reading = read_call(run, process, step.action, arguments)
        if reading is None or reading.doubts:
            return sentence("audit.not-all-proven", action=step.action)
    for request in run.requests.values():
        if request.process != process.id or not request.doubts:
            continue
        now = read_call(run, process, request.action, request.arguments)
        # The facts may have changed since the checks were judged, and refusing is right. After
        # a second look that proves everything, there is no cause any more.
        if now is None or now.doubts:
            return sentence("audit.held-unproven", action=step.action)
    return ""


def _failed_verifier(here: Position) -> str:
    """Why a check can't be made: its verifier failed for its values, and no recipe is answered."""
    tried = frame_results(here)
    failed = [item for item in tried if not item.ok and admissible(here, item)]
    if not failed or covered(here, [item for item in tried if item.ok]):
        return ""
    last = failed[-1]
    return sentence(
        "audit.verifier-failed", action=last.action, seq=last.seq, predicate=here.layout.name
    )


def _undecided(run: AuditState, process: ProcessView, here: Position) -> str:
    """Why the answers don't decide a check: a field is missing, or of another type. Refusing is
    then the safe side."""
    values = {**here.process.known, **here.frame.locals}
    try:
        reading = Moment(run, process, values).read(here.layout, here.frame.locals)
    except Unreadable:
        return ""
    if reading.holds is not None or reading.lack is None or reading.lack.code != VERDICT:
        return ""
    return sentence("audit.is-undecided", predicate=here.layout.name, why=reading.lack.why)


def _not_given(process: ProcessView, here: Position) -> list[str]:
    """The values that the step lacks, that the user was asked for by name while the process ran,
    and that no reply speaks of."""
    step = here.step
    if isinstance(step, Ask):
        terms: list[Argument] = [Unknown(name) for name in step.wants]
    elif isinstance(step, Check):
        terms = [term for _, term in step.arguments]
    elif isinstance(step, Act):
        terms = [term for _, term in plain_arguments(step.arguments)]
    else:
        return []
    missing = [
        term.name
        for term in terms
        if isinstance(term, Local | Unknown)
        and value_of(term, here.layout, here.frame, here.process.known) in (MISSING, None)
    ]
    return [
        name
        for name in missing
        if any(request and _speaks_of(request, name) for request, _ in process.unanswered)
        and not any(_speaks_of(heard, name) for _, heard in process.unanswered)
    ]


def _speaks_of(text: str, name: str) -> bool:
    return name.lower() in text or name.lower().replace("_", " ") in text


def _turned_down(run: AuditState, process: ProcessView) -> bool:
    """Whether an entitled person rejected the goal's call, or its time ran out undecided."""
    roles = {role for guarded in process.program.guarded.values() for role in guarded.roles}
    made = [
        decision
        for decisions in run.decisions.values()
        for decision in decisions
        if decision.process == process.id
    ]
    last = max(made, key=lambda item: item.seq, default=None)
    expired = last is not None and last.payload.get("decision") == "expire"
    if last is not None and expired and last.actor == Actor.RUNTIME:
        return True
    return any(
        item.payload.get("decision") == "reject"
        and item.payload.get("by")
        and item.payload.get("role") in roles
        for item in made
    )
