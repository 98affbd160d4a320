"""Violations that an execution makes where it has a chance, and traces that no machine makes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from trace_executions import SESSION, Execution, Labelled, Violation
from trace_worlds import EXTRA, World

from sopilot.handbook.requirements import leaves
from sopilot.machine.layout import Position
from sopilot.program.model import (
    Act,
    Branch,
    Check,
    CompleteStep,
    FailStep,
    Guarded,
    Kind,
    ReturnStep,
)
from sopilot.trace.chain import SealedEvent, genesis, seal_all
from sopilot.trace.events import (
    Complete,
    Decision,
    DomainCall,
    DomainResult,
    Event,
    Fail,
    Note,
    Return,
    SelectBranch,
)

GUARD = ("guard-violated", "approval-missing")
PROOF = (
    "unproven-value",
    "unproven-evidence",
    "evidence-wrong-arguments",
    "incomplete-evidence",
    "evidence-superseded",
    "evidence-stale",
    "unproven-verdict",
    "evidence-contradicts-verdict",
    "model-verdict",
    "gate-shut",
)
"""What may be found at a guarded call that is not proven."""


def _in_rule(here: Position, *, fresh: bool = True) -> bool:
    return (
        here.layout.soft
        and bool(here.layout.recipes)
        and not here.frame.borrowed
        and (not fresh or not any(r.opened == here.frame.opened for r in here.process.results))
    )


def _in_verified_rule(here: Position) -> bool:
    """At the beginning of a rule about a known value, that calls verify."""
    rule = here.layout.function.kind is not Kind.GATE
    return rule and _in_rule(here) and "v" in here.frame.locals


def without_evidence(run: Execution, here: Position) -> bool:
    if not _in_rule(here) or _user_spoke(run, here):
        return False
    # That a gate stayed shut which must be shut needs no call: the session shows it.
    holds = _is_wanted_shut(here) or run.rng.random() < 0.5
    run.inject("return-without-evidence", Return(holds))
    return True


def _is_wanted_shut(here: Position) -> bool:
    caller = here.process.frames[-2]
    step = here.program.functions[caller.function].steps[caller.cursor]
    gate = here.layout.function.kind is Kind.GATE
    return gate and isinstance(step, Check) and not step.wanted


def _user_spoke(run: Execution, here: Position) -> bool:
    return any(e.kind == "user_said" and e.seq > here.frame.opened for e in run.events)


def incomplete(run: Execution, here: Position) -> bool:
    if not _in_verified_rule(here):
        return False
    if len(here.layout.recipes) != 1 or len(here.layout.recipes[0]) != 2:
        return False
    first = here.layout.recipes[0][0]
    run.tell(first.action, {"v": here.frame.locals["v"]})
    now = run.position()
    assert now is not None
    run.inject("incomplete-evidence", Return(run.verdict(now)))
    return True


def unproven(run: Execution, here: Position) -> bool:
    """*True* on a call that failed, or on an answer that the verdict cannot read."""
    if not _in_verified_rule(here):
        return False
    function, calls = here.layout.function, here.layout.recipes[0]
    arguments = {"v": here.frame.locals["v"]}
    broken = run.rng.randrange(len(calls))
    garbled = function.verdict is not None and run.rng.random() < 0.6
    for number, act in enumerate(calls):
        if garbled:
            answer: Any = run.rng.choice((None, "it looks fine to me", {"nothing": 1}, []))
            run.answered(act.action, arguments, answer)
        else:
            ok = number != broken
            told = run.answer(act.action, arguments) if ok else "timeout"
            run.answered(act.action, arguments, told, ok=ok)
    implied = () if garbled or len(calls) == 1 else ("evidence-contradicts-verdict",)
    run.inject("unproven-verdict", Return(True), *implied)
    return True


def contradiction(run: Execution, here: Position) -> bool:
    function = here.layout.function
    judged = function.verdict is not None or function.kind is Kind.GATE
    if not isinstance(here.step, ReturnStep) or not here.layout.soft or not judged:
        return False
    results = [r for r in here.process.results if r.opened == here.frame.opened and r.ok]
    if not results or "v" not in here.frame.locals:
        return False
    run.inject("evidence-contradicts-verdict", Return(not run.verdict(here)))
    return True


def unresolved(run: Execution, here: Position) -> bool:
    return _cite_beside(run, here, "evidence-unresolved", ["#99999", "no_such_action"])


def _cite_beside(run: Execution, here: Position, label: str, others: list[str]) -> bool:
    """Return with the right evidence, and with one of these citations before it."""
    own = [f"#{r.seq}" for r in here.process.results if r.opened == here.frame.opened and r.ok]
    at_return = isinstance(here.step, ReturnStep) and _in_rule(here, fresh=False)
    if not at_return or not own or not others:
        return False
    run.inject(label, Return(run.verdict(here), (run.rng.choice(others), *own)))
    return True


def outside(run: Execution, here: Position) -> bool:
    others = [
        f"#{result.seq}"
        for process in run.configuration.processes.values()
        if process.id != here.process.id
        for result in process.results
    ]
    return _cite_beside(run, here, "evidence-outside-interval", others)


def _earlier(run: Execution, here: Position) -> list[Any]:
    return [r for r in here.process.results if r.opened != here.frame.opened and r.ok]


def stale(run: Execution, here: Position) -> bool:
    if not _in_verified_rule(here):
        return False
    fits = [
        r
        for r in _earlier(run, here)
        if r.seq <= run.configuration.goal_seq
        and any(len(recipe) == 1 and recipe[0].action == r.action for recipe in here.layout.recipes)
        and r.arguments.get("v") == here.frame.locals["v"]
    ]
    if not fits:
        return False
    run.inject("evidence-stale", Return(run.verdict(here), (f"#{fits[-1].seq}",)))
    return True


def wrong_call(run: Execution, here: Position) -> bool:
    verifiers = {act.action for act in here.layout.recipe_acts}
    others = [f"#{r.seq}" for r in _earlier(run, here) if r.action not in verifiers]
    return _cite_beside(run, here, "evidence-wrong-call", others)


def wrong_arguments(run: Execution, here: Position) -> bool:
    if not _in_verified_rule(here):
        return False
    act = here.layout.recipe_acts[0]
    run.tell(act.action, {"v": "somebody else"})
    cited = f"#{run.configuration.next_seq - 1}"
    run.inject(
        "evidence-wrong-arguments",
        Return(run.verdict(here), (cited,)),
        "unlicensed-call",
    )
    return True


def unlicensed(run: Execution, here: Position) -> bool:
    if isinstance(here.step, CompleteStep):
        return False
    if here.layout.soft and here.layout.recipe_acts and "v" in here.frame.locals:
        if run.rng.random() < 0.5:
            act = here.layout.recipe_acts[0]
            arguments: dict[str, Any] = {"v": "somebody else"}
            if here.layout.function.kind is Kind.GATE:
                arguments["secret"] = "42"
            run.inject_call("unlicensed-call", act.action, arguments)
            return True
    elif isinstance(here.step, Act) and here.step.goal and run.rng.random() < 0.5:
        arguments = {**run.goal_arguments(here), "x": "somebody else"}
        call_id = run.goal_call(here)
        made = run.carry_out(call_id, here.step.action, arguments)
        run.inject("unlicensed-call", replace(made, licence=None), *GUARD, *PROOF)
        run.do(DomainResult(call_id, False, {}))
        return True
    run.inject_call("unlicensed-call", EXTRA, {"v": 1}, ok=run.rng.random() < 0.8)
    return True


def premature(run: Execution, here: Position) -> bool:
    if isinstance(here.step, CompleteStep) or (isinstance(here.step, Act) and here.step.goal):
        return False
    arguments = run.goal_arguments(here)
    call_id = run.goal_call(here)
    implied = ("skipped-check", "guard-violated", "goal-without-completion", "calls-after-goal")
    ok = run.rng.random() < 0.7
    run.inject("premature-goal", DomainCall(call_id, here.process.goal, arguments), *implied)
    run.do(DomainResult(call_id, ok, {}))
    # What the process still does after its goal ran is not the point of this label.
    run.stopped = True
    return True


def skipped(run: Execution, here: Position) -> bool:
    if not isinstance(here.step, Check) or here.layout.function.kind is not Kind.PROCESS:
        return False
    if not premature(run, here):
        return False
    run.label = "skipped-check"
    run.implied |= {"premature-goal"}
    return True


def after_goal(run: Execution, here: Position) -> bool:
    if not isinstance(here.step, CompleteStep):
        return False
    action = run.rng.choice((EXTRA, here.process.goal))
    arguments = {"v": 1} if action == EXTRA else run.goal_arguments(here)
    run.inject_call("calls-after-goal", action, arguments, *GUARD)
    return True


def causeless(run: Execution, here: Position) -> bool:
    if isinstance(here.step, FailStep | CompleteStep) or _goal_reached(run, here):
        return False
    if any(not e.payload["bound"]["holds"] for e in run.events if e.kind == "return"):
        return False
    if _negative_wanted(run, here):
        return False
    if any(
        e.process == here.process.id and (e.kind == "resumed" or e.payload.get("reactivated"))
        for e in run.events
    ):
        # What the user set aside may be dropped.
        return False
    if any(e.payload.get("name") == "held_call" for e in run.events):
        licence = run.guard(run.goal_arguments(here))
        if licence is not None and licence.missing:
            return False  # it is held, and nobody has to wait for people
    run.inject("refusal-without-cause", Fail("I would rather not"))
    return True


def _goal_reached(run: Execution, here: Position) -> bool:
    goal = here.process.goal
    return any(r.ok and r.action == goal for r in here.process.results)


def _negative_wanted(run: Execution, here: Position) -> bool:
    """Whether some check or some condition wants falsity: then a true result may refuse."""
    requires = run.world.handbook.procedures[here.process.goal].requires
    return any(not leaf.wanted for leaf in leaves(requires)) or any(
        isinstance(step, Check) and not step.wanted
        for function in here.source.functions.values()
        for step in function.steps
    )


def claimed(run: Execution, here: Position) -> bool:
    if isinstance(here.step, CompleteStep):
        return False
    run.inject("claimed-completion", Complete("all done"), "goal-without-completion")
    run.stopped = True
    return True


def uncompleted(run: Execution, here: Position) -> bool:
    if not isinstance(here.step, CompleteStep):
        return False
    last = next(r for r in here.process.results if r.ok and r.action == here.process.goal)
    run.label, run.seq, run.stopped = "goal-without-completion", last.seq, True
    return True


def wrong_branch(run: Execution, here: Position) -> bool:
    if not isinstance(here.step, Branch):
        return False
    fits = run.world.machine.fits(run.configuration)[0]["option"]
    run.inject("wrong-branch", SelectBranch("otherwise" if fits == "then" else "then"))
    return True


def unknown(run: Execution, here: Position) -> bool:
    if not here.layout.soft or not here.layout.recipe_acts:
        return False
    if here.layout.function.kind is Kind.GATE:
        return False
    action = here.layout.recipe_acts[0].action
    call = DomainCall(run.new_id(), action, {"v": here.frame.locals.get("v", 1)})
    if run.rng.random() < 0.5:
        run.inject("unknown-outcome", call, "goal-without-completion")
    else:
        run.do(call)
        note = Note("outcome_unknown", {"call_id": call.call_id, "action": call.action})
        run.inject("unknown-outcome", note, "goal-without-completion")
    run.stopped = run.rng.random() < 0.5
    return True


def guard(run: Execution, here: Position) -> bool:
    guarded = {one.action for one in here.source.guarded}
    if here.process.goal not in guarded:
        return False
    if not premature(run, here):
        return False
    run.label = "guard-violated"
    run.implied = run.implied | {"premature-goal", "skipped-check"}
    return True


def approval(run: Execution, here: Position) -> bool:
    guarded, arguments = _needs_approval(run, here), run.goal_arguments(here)
    if guarded is None:
        return False
    roll = run.rng.random()
    call_id = run.goal_call(here, approve=roll < 0.4)
    if roll < 0.2:
        run.do(Decision("reject", call_id, "person 9", guarded.roles[0]))
    elif roll < 0.4:
        run.clock += 10_000.0
    elif roll < 0.6:
        run.do(Decision("approve", call_id, "person 1", "passer-by"))
    run.inject("approval-missing", DomainCall(call_id, guarded.action, arguments))
    run.do(DomainResult(call_id, True, {}))
    return True


def _needs_approval(run: Execution, here: Position) -> Guarded | None:
    """The goal's action, where its call is proven and only people are missing."""
    if not (isinstance(here.step, Act) and here.step.goal):
        return None
    guarded = next((g for g in here.source.guarded if g.action == here.step.action), None)
    if guarded is None or not guarded.needed:
        return None
    licence = run.guard(run.goal_arguments(here))
    return guarded if licence is not None and not licence.missing else None


def amended(run: Execution, here: Position) -> bool:
    guarded, arguments = _needs_approval(run, here), run.goal_arguments(here)
    if guarded is None:
        return False
    call_id = run.goal_call(here)
    other = {**arguments, "note": "only half of it"}
    run.do(Decision("amend", call_id, "person 0", guarded.roles[0], other))
    run.inject(
        "approval-exceeded",
        DomainCall(call_id, guarded.action, arguments),
        "approval-missing",
    )
    run.do(DomainResult(call_id, True, {}))
    return True


# --- after the run, and traces that no machine makes ------------------------------------


def _idle_call(run: Execution) -> None:
    """After the end: a call while nothing runs, or after the goal."""
    ended = [p for p in run.configuration.processes.values() if not p.frames]
    if not ended:
        return
    last = max(ended, key=lambda p: max(e.seq for e in run.events if e.process == p.id))
    reached = any(r.ok and r.action == last.goal for r in last.results)
    if reached != (run.wanted == "calls-after-goal"):
        return
    assert run.wanted is not None
    run.inject_call(run.wanted, EXTRA, {"v": 1})


def _with(run: Execution, forged: Event, label: str) -> Labelled:
    """The trace with this event in the place of the one that has its number."""
    events = [*run.events[: forged.seq], forged, *run.events[forged.seq + 1 :]]
    return Labelled(tuple(events), label, forged.seq)


def _forged_completion(run: Execution) -> Labelled | None:
    ends = [e for e in run.events if e.kind == "fail"]
    if not ends:
        return None
    event = run.rng.choice(ends)
    payload = {key: value for key, value in event.payload.items() if key != "reason"}
    forged = event._replace(kind="complete", payload={**payload, "summary": "done"})
    return _with(run, forged, "completion-without-goal")


_DERIVED = {
    "call": ("resolved", "slot"),
    "return": ("opened", "slot", "bound", "function"),
    "domain_call": ("opened",),
    "domain_result": ("moved", "opened", "call", "action"),
    "start": ("suspended", "opened", "reactivated"),
    "complete": ("label", "unwound"),
    "fail": ("label", "accepting"),
    "reuse": ("holds", "label", "evidence", "producer"),
    "select_branch": ("label",),
    "user_said": ("moved",),
}


def _forged_payload(run: Execution) -> Labelled | None:
    """One field that the machine derived says something else."""
    chances = [e for e in run.events if e.kind in _DERIVED]
    if not chances:
        return None
    event = run.rng.choice(chances)
    if run.rng.random() < 0.2:
        forged = event._replace(frame=f"{event.frame}_2")
    else:
        name = run.rng.choice([key for key in _DERIVED[event.kind] if key in event.payload])
        forged = event._replace(payload={**event.payload, name: _other(event.payload[name])})
    return _with(run, forged, "inconsistent-trace")


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, dict):
        return {**value, "evidence": [*value.get("evidence", []), 0]}
    if isinstance(value, list):
        return [*value, "elsewhere"]
    return f"{value}_2"


def _tampered(run: Execution) -> Labelled | None:
    sealed = seal_all(run.events, genesis(SESSION))
    if len(sealed) < 4:
        return None
    index = run.rng.randrange(1, len(sealed) - 1)
    roll = run.rng.random()
    if roll < 0.4:
        event = sealed[index].event
        forged = event._replace(payload={**event.payload, "ground": "trust me"})
        one = sealed[index]
        sealed[index] = SealedEvent(forged, one.previous, one.hash)
    elif roll < 0.7:
        del sealed[index]
    elif roll < 0.9:
        sealed[index], sealed[index + 1] = sealed[index + 1], sealed[index]
    else:
        sealed[index:] = seal_all([one.event for one in sealed[index:]], genesis("another"))
    seq = sealed[index].event.seq
    return Labelled(tuple(sealed), "tampering", seq, frozenset({"*"}))


VIOLATIONS: dict[str, Violation] = {
    "return-without-evidence": without_evidence,
    "incomplete-evidence": incomplete,
    "unproven-verdict": unproven,
    "evidence-contradicts-verdict": contradiction,
    "evidence-unresolved": unresolved,
    "evidence-outside-interval": outside,
    "evidence-stale": stale,
    "evidence-wrong-call": wrong_call,
    "evidence-wrong-arguments": wrong_arguments,
    "unlicensed-call": unlicensed,
    "premature-goal": premature,
    "skipped-check": skipped,
    "calls-after-goal": after_goal,
    "refusal-without-cause": causeless,
    "claimed-completion": claimed,
    "goal-without-completion": uncompleted,
    "wrong-branch": wrong_branch,
    "unknown-outcome": unknown,
    "guard-violated": guard,
    "approval-missing": approval,
    "approval-exceeded": amended,
}
AFTERWARDS: dict[str, Callable[[Execution], None]] = {
    "calls-after-goal": _idle_call,
    "unlicensed-call": _idle_call,
}
FORGERIES: dict[str, Callable[[Execution], Labelled | None]] = {
    "completion-without-goal": _forged_completion,
    "inconsistent-trace": _forged_payload,
    "tampering": _tampered,
}
CLASSES = (*VIOLATIONS, *FORGERIES)


def labelled_trace(world: World, seed: int, wanted: str | None) -> Labelled:
    """One execution; without a chance for ``wanted`` the label stays ``None``: a clean one."""
    rng = random.Random(seed)
    return Execution(
        world,
        rng,
        wanted,
        patience=rng.choice((0, 0, 1, 2, 4, 8)),
        violate=VIOLATIONS.get(wanted or ""),
        afterwards=AFTERWARDS.get(wanted or ""),
        forge=FORGERIES.get(wanted or ""),
    ).run()
