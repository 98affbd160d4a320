"""Start, suspend, resume, complete and fail, made again from the events, and judged.

Where a process stands: can it still accept, and which checks lie before acceptance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sopilot.audit.acceptance import DEEPEST, Acceptance, Settled, Truth, condition_truth
from sopilot.audit.call_reading import moment_of, read_call
from sopilot.audit.calls import covered
from sopilot.audit.leaf_reading import VERDICT, Unreadable, read_leaf
from sopilot.audit.state import (
    AuditState,
    Contradiction,
    FrameView,
    ProcessView,
    ProgramCode,
    RefusedGoal,
    ResolvedFunction,
    expect,
    filled_sentence,
    is_withheld,
    mapping,
    text,
)
from sopilot.machine.terms import plain_arguments
from sopilot.program.model import (
    Act,
    Argument,
    Arguments,
    Ask,
    Branch,
    Check,
    Choose,
    CompleteStep,
    Do,
    Emit,
    FailStep,
    Kind,
    Literal,
    Local,
    Step,
    Unknown,
)
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


def parameters_along(chain: tuple[Arguments, ...], values: Mapping[str, JSON]) -> dict[str, JSON]:
    """The last callee's parameters, each call's arguments resolved in its caller's."""
    for arguments in chain:
        resolved: dict[str, JSON] = {}
        for parameter, term in arguments:
            value = term.value if isinstance(term, Literal) else values.get(term.name, MISSING)
            if value is not MISSING:
                resolved[parameter] = value
        values = resolved
    return dict(values)


def _gate_settled(process: ProcessView, frame: FrameView) -> Settled:
    """A gate that the process opened with the same values counts wherever it is asked for."""

    def settled(step: Check, callee: ResolvedFunction, chain: tuple[Arguments, ...]) -> Truth:
        if callee.function.kind is not Kind.GATE:
            return None
        values = parameters_along(chain, frame.values)
        found = process.gates.get((step.function, key_of(values)))
        return None if found is None else found.holds

    return settled


def can_accept(process: ProcessView) -> Truth:
    """``False`` once the bound results rule acceptance out; ``None`` while it is open."""
    return _from_stack(process, lambda frame: _gate_settled(process, frame))


def remaining_checks(process: ProcessView) -> list[OpenCheck]:
    """The checks that the program still makes if all of them go well."""
    found: dict[tuple[str, str], OpenCheck] = {}
    for frame in reversed(process.frames):
        if frame.code.judges:
            continue
        slots = {name: bound.side for name, bound in frame.slots.items()}
        settled = _gate_settled(process, frame)
        _walk(process.program, frame.code, frame.cursor, slots, frame.values, (), settled, found)
    return list(found.values())


def _walk(
    program: ProgramCode,
    code: ResolvedFunction,
    label: str,
    slots: dict[str, bool],
    values: Mapping[str, JSON],
    chain: tuple[Arguments, ...],
    settled: Settled,
    found: dict[tuple[str, str], OpenCheck],
) -> None:
    """Follows the steps, every open check taken as met, and collects the open ones."""
    seen: set[str] = set()
    while label not in seen:
        seen.add(label)
        step = code.steps[label]
        if isinstance(step, Check):
            callee = program.functions[step.function]
            inner = (*chain, step.arguments)
            holds = slots.get(step.slot)
            if holds is None:
                holds = settled(step, callee, inner) if callee.judges else None
            if holds is None and callee.judges:
                _add(found, step, callee, values, inner, program.program.constants)
            elif holds is None and len(inner) < DEEPEST:
                _walk(program, callee, callee.first(), {}, values, inner, settled, found)
            slots = {**slots, step.slot: step.wanted if holds is None else holds}
            label = code.target(step, slots[step.slot])
        elif isinstance(step, Branch):
            taken = condition_truth(step.when, slots)
            label = step.then if taken else step.otherwise
        elif isinstance(step, Act) and step.goal:
            return
        elif isinstance(step, Act | Ask | Do | Emit):
            label = code.following(step)
        elif isinstance(step, Choose):
            label = step.options[0].target
        else:
            return


def _add(
    found: dict[tuple[str, str], OpenCheck],
    step: Check,
    callee: ResolvedFunction,
    values: Mapping[str, JSON],
    chain: tuple[Arguments, ...],
    constants: Mapping[str, JSON],
) -> None:
    function = callee.function
    subject = parameters_along(chain, values)
    said = filled_sentence(function, constants, subject, wanted=step.wanted) or step.says
    one = OpenCheck(step.function, function.judges, said, subject)
    found.setdefault(one.key, one)


def _from_stack(process: ProcessView, settle_for: Callable[[FrameView], Settled]) -> Truth:
    """Acceptance from the cursors of the stack on, innermost first."""
    inner: Truth = None
    for depth in range(len(process.frames) - 1, -1, -1):
        frame = process.frames[depth]
        entered = depth < len(process.frames) - 1
        if frame.code.judges:
            step = process.frames[depth - 1].step if depth else None
            if isinstance(step, Check):
                settled = settle_for(process.frames[depth - 1])
                inner = settled(step, frame.code, (step.arguments,))
            continue
        acceptance = Acceptance(process.program, settle_for(frame))
        slots = {name: bound.side for name, bound in frame.slots.items()}
        inner = acceptance.from_step(
            frame.code, frame.cursor, slots, (), inner=inner, entered=entered
        )
    return inner


def start(run: AuditState, event: Event) -> None:
    goal = text(event.payload, "goal")
    program = run.programs.get(goal)
    if program is None:
        raise Contradiction(f"no program is called `{goal}`")
    given: dict[str, JSON] = {
        k: v for k, v in mapping(event.payload, "arguments").items() if v is not None
    }
    process = _suspended_errand(run, event, goal, given)
    if process is not None:
        run.suspended.remove(process.id)
        process.status = "running"
        reactivated = True
    else:
        entry = program.entry
        frame = FrameView(entry, entry.first(), dict(given), None, event.seq, entry.function.name)
        process = ProcessView(f"p{len(run.processes) + 1}", program, [frame], given, dict(given))
        run.processes[process.id] = process
        reactivated = False
    run.late_look_ups.clear()
    left = run.active
    if left is not None:
        previous = run.processes[left]
        previous.status = "suspended"
        previous.set_aside = bool(previous.frames) and previous.frames[0].user_spoke
        run.suspended.append(left)
    run.active = process.id
    if event.process != process.id:
        raise Contradiction(f"process `{event.process}` should be `{process.id}`")
    expect(event.payload, "opened", process.frames[0].opened)
    expect(event.payload, "suspended", left)
    expect(event.payload, "reactivated", reactivated)


def amend(run: AuditState, event: Event) -> None:
    """Other values for the running process: it begins again, with the results that none of the
    changed names can touch."""
    process, _ = run.here()
    root, entry = process.frames[0], process.program.entry
    given = {k: v for k, v in mapping(event.payload, "arguments").items() if v is not None}
    have = {**process.known, **root.values}
    changed = {
        name
        for name, value in given.items()
        if name not in have or not process.say_the_same(have[name], value)
    }
    if not changed:
        raise Contradiction("values are amended that are none other")
    if process.goal_reached is not None:
        raise Contradiction("values are amended although the goal was carried out with others")
    if any(call.process == process.id for call in run.pending.values()):
        raise Contradiction("values are amended while a call is not answered")
    kept = {
        step.slot: root.slots[step.slot]
        for step in entry.function.steps
        if isinstance(step, Check)
        and step.slot in root.slots
        and not _is_touched(process.program, step, changed)
    }
    expect(event.payload, "changed", sorted(changed))
    expect(event.payload, "kept", sorted(kept))
    expect(event.payload, "unwound", [one.path for one in reversed(process.frames[1:])])
    process.known.update(given)
    own = entry.function.parameters
    root.values.update((name, value) for name, value in given.items() if name in own)
    root.slots, root.cursor = kept, entry.first()
    process.frames = [root]
    process.unmet, process.goal_failed = [], None
    process.done.clear()
    process.set_aside = False


def _is_touched(program: ProgramCode, step: Check, changed: set[str]) -> bool:
    """Whether the check is about one of these names, or somebody below it asks for one."""
    if any(not isinstance(term, Literal) and term.name in changed for _, term in step.arguments):
        return True
    below, seen = [step.function], {step.function}
    for name in below:
        code = program.functions[name]
        asked = [term for act in code.acts for _, term in act.arguments]
        for inner in code.function.steps:
            if isinstance(inner, Ask) and not changed.isdisjoint(inner.wants):
                return True
            if isinstance(inner, Check):
                asked += [term for _, term in inner.arguments]
                if inner.function not in seen:
                    seen.add(inner.function)
                    below.append(inner.function)
        if any(isinstance(term, Unknown) and term.name in changed for term in asked):
            return True
    return False


def _suspended_errand(
    run: AuditState, event: Event, goal: str, given: dict[str, JSON]
) -> ProcessView | None:
    """The latest suspended process for the same goal whose values are not contradicted. Where a
    value is withheld nobody can tell, and the trace is believed."""
    for id_ in reversed(run.suspended):
        process = run.processes[id_]
        inputs = process.frames[0].values
        shared = [(inputs[name], value) for name, value in given.items() if name in inputs]
        if process.goal != goal or not all(process.say_the_same(*pair) for pair in shared):
            continue
        certain = all(is_withheld(left) == is_withheld(right) for left, right in shared)
        if certain or process.id == event.process:
            return process
    return None


def resumed(run: AuditState, event: Event) -> None:
    if run.active is not None or not run.suspended:
        raise Contradiction("a process is resumed although none waits for it")
    process = run.processes[run.suspended.pop()]
    process.status = "running"
    run.active = process.id
    expect(event.payload, "goal", process.goal)


def complete(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    accepting = isinstance(frame.step, CompleteStep)
    has_goal = bool(process.program.goal_actions)
    if not accepting or (has_goal and process.goal_reached is None):
        run.find(
            "completion-without-goal",
            event,
            f"`{process.goal}` was completed although "
            + (
                "its goal action never succeeded"
                if has_goal and process.goal_reached is None
                else "the program does not accept there"
            ),
            process=process,
            sentence=process.program.entry.function.says,
        )
        process.lost = True
    _end(run, event, process, "completed", accepting)


def fail(run: AuditState, event: Event) -> None:
    process, frame = run.here()
    process.given_up = event.actor not in EXECUTORS
    if process.set_aside:
        # The user wanted something else and this was not taken up again: nobody was refused.
        _end(run, event, process, "failed", isinstance(frame.step, FailStep))
        return
    refusing = isinstance(frame.step, FailStep)
    # A program that nothing could satisfy is no cause by itself: something must have been shown.
    shown = any(check.process == process.id for check in run.checks)
    obstacle = _obstacle(run, process, frame)
    caused = (
        refusing
        or bool(obstacle)
        or (shown and can_accept(process) is False)
        or _turned_down(run, process)
    )
    reason = event.payload.get("reason", "")
    blamed = frame.to_blame() if refusing and len(process.frames) == 1 else None
    run.refusals.append(
        RefusedGoal(
            event.seq,
            process.id,
            process.goal,
            reason if isinstance(reason, str) else "",
            tuple(
                {
                    "predicate": one.predicate,
                    "sentence": one.sentence,
                    "found": one.found,
                    "holds": one.holds,
                    "evidence": list(one.evidence),
                    "return": one.producer,
                    "remedy": one.remedy,
                    "tells": one.tells,
                }
                for one in process.unmet
                if blamed is None or one.producer in blamed
            ),
            obstacle,
            str(frame.step.says) if isinstance(frame.step, FailStep) else "",
            frame.step.starts if isinstance(frame.step, FailStep) else "",
        )
    )
    by_executor = event.actor in EXECUTORS
    if by_executor and not caused and process.goal_reached is None:
        some = "the false ones do not rule it out" if process.unmet else "no check came out false"
        # The ground may be that the user was asked for something and did not give it.
        withheld = any(asked is None for asked, _ in process.unanswered)
        if withheld:
            run.leave_unjudged(event, "what the user was asked may be the ground of the refusal")
        else:
            run.find(
                "refusal-without-cause",
                event,
                f"`{process.goal}` was refused while it could still be accepted: {some}",
                process=process,
                sentence=process.program.entry.function.says,
                unmet=[one.predicate for one in process.unmet],
            )
    _end(run, event, process, "failed", refusing)


def _obstacle(run: AuditState, process: ProcessView, frame: FrameView) -> str:
    """Why the goal action cannot be carried out although the program asks for it, or nothing."""
    step = frame.step
    missing = _not_given(process, frame, step)
    if missing:
        return f"the user was heard and did not give {', '.join(f'`{one}`' for one in missing)}"
    if frame.code.function.kind is Kind.RULE:
        return _failed_verifier(process, frame) or _undecided(run, process, frame)
    if not isinstance(step, Act) or not step.goal:
        return ""
    if step.action in run.not_offered:
        return f"`{step.action}` is not on offer"
    if process.goal_failed is not None:
        return f"`{step.action}` failed (#{process.goal_failed})"
    for one in run.requests.values():
        if one.process != process.id or not one.doubts:
            continue
        now = read_call(run, process, one.action, one.arguments)
        # The world may be another than when its checks were judged: refusing is then right. Who
        # has looked again, and found all as it should be, has no cause any more.
        if now is None or now.doubts:
            return f"`{step.action}` was held, because not all that it needs is proven"
    return ""


def _failed_verifier(process: ProcessView, frame: FrameView) -> str:
    """A check that nobody can make: what verifies it failed, and no recipe is answered."""
    verifiers = {act.action for act in frame.code.acts}
    tried = [one for one in process.results if one.opened == frame.opened]
    failed = [one for one in tried if one.action in verifiers and not one.ok]
    if not failed or covered(process, frame, [one for one in tried if one.ok]):
        return ""
    last = failed[-1]
    return f"`{last.action}` failed (#{last.seq}), so `{frame.code.function.name}` is undecided"


def _undecided(run: AuditState, process: ProcessView, frame: FrameView) -> str:
    """A check whose verdict can't be told from the answers: a field is missing, or of another
    type. Refusing is then the safe side."""
    values = {**process.known, **frame.values}
    try:
        reading = read_leaf(moment_of(run, process, values), frame.code, frame.values)
    except Unreadable:
        return ""
    if reading.holds is not None or reading.lack is None or reading.lack.code != VERDICT:
        return ""
    return f"`{frame.code.function.name}` is undecided: {reading.lack.why}"


def _not_given(process: ProcessView, frame: FrameView, step: Step) -> list[str]:
    """What the step needs and nobody knows, though the user was asked for it by name while the
    process ran, and said nothing of it."""
    if isinstance(step, Ask):
        terms: list[Argument] = [Unknown(name) for name in step.wants]
    elif isinstance(step, Check):
        terms = [term for _, term in step.arguments]
    elif isinstance(step, Act):
        terms = [term for _, term in plain_arguments(step.arguments)]
    else:
        return []
    named = [term for term in terms if isinstance(term, Local | Unknown)]
    missing = [one.name for one in named if process.value_of(one, frame) in (MISSING, None)]
    return [
        name
        for name in missing
        if any(asked and _speaks_of(asked, name) for asked, _ in process.unanswered)
        and not any(_speaks_of(heard, name) for _, heard in process.unanswered)
    ]


def _speaks_of(text: str, name: str) -> bool:
    return name.lower() in text or name.lower().replace("_", " ") in text


def _turned_down(run: AuditState, process: ProcessView) -> bool:
    """Somebody entitled rejected the goal's call, or nobody has decided before its time ran out:
    whatever the checks say, it must not run."""
    roles = {role for guarded in process.program.guarded.values() for role in guarded.roles}
    made = [
        one
        for decisions in run.decisions.values()
        for one in decisions
        if one.process == process.id
    ]
    last = max(made, key=lambda one: one.seq, default=None)
    expired = last is not None and last.payload.get("decision") == "expire"
    if last is not None and expired and last.actor == Actor.RUNTIME:
        return True
    return any(
        one.payload.get("decision") == "reject"
        and one.payload.get("by")
        and one.payload.get("role") in roles
        for one in made
    )


def _end(run: AuditState, event: Event, process: ProcessView, status: str, accepting: bool) -> None:
    frame = process.frames[-1]
    unwound = [one.path for one in reversed(process.frames)]
    label = frame.step.label
    process.frames = []
    process.status = status
    run.active = None
    run.last_ended = process.id
    if not process.lost:
        expect(event.payload, "label", label)
        expect(event.payload, "accepting", accepting)
        expect(event.payload, "unwound", unwound)
