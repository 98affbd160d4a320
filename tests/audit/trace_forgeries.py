"""Traces that no machine makes, and the whole choice of labelled ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import trace_violations as made
from trace_executions import SESSION, Execution, Labelled, Violation
from trace_programs import EXTRA, World

from sopilot.trace.chain import SealedEvent, genesis, seal_all
from sopilot.trace.events import Event


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


def edited(event: Event, **changes: Any) -> Event:
    names = ("seq", "at", "actor", "kind", "process", "frame", "payload")
    return Event(**{name: getattr(event, name) for name in names} | changes)


def _forged_completion(run: Execution) -> Labelled | None:
    ends = [e for e in run.events if e.kind == "fail"]
    if not ends:
        return None
    event = run.rng.choice(ends)
    payload = {key: value for key, value in event.payload.items() if key != "reason"}
    forged = edited(event, kind="complete", payload={**payload, "summary": "done"})
    events = [*run.events[: event.seq], forged, *run.events[event.seq + 1 :]]
    return Labelled(tuple(events), "completion-without-goal", event.seq)


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
        forged = edited(event, frame=f"{event.frame}_2")
    else:
        name = run.rng.choice([key for key in _DERIVED[event.kind] if key in event.payload])
        forged = edited(event, payload={**event.payload, name: _other(event.payload[name])})
    events = [*run.events[: event.seq], forged, *run.events[event.seq + 1 :]]
    # A guard may be judged by a field that was forged, and a lost process ends nowhere.
    return Labelled(tuple(events), "inconsistent-trace", event.seq)


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
        forged = edited(event, payload={**event.payload, "ground": "trust me"})
        one = sealed[index]
        sealed[index] = SealedEvent(forged, one.previous, one.hash, one.format)
    elif roll < 0.7:
        del sealed[index]
    elif roll < 0.9:
        sealed[index], sealed[index + 1] = sealed[index + 1], sealed[index]
    else:
        sealed[index:] = seal_all([one.event for one in sealed[index:]], genesis("another"))
    seq = sealed[index].event.seq
    return Labelled(tuple(sealed), "tampering", seq, frozenset({"*"}))


VIOLATIONS: dict[str, Violation] = {
    "return-without-evidence": made.without_evidence,
    "incomplete-evidence": made.incomplete,
    "unproven-verdict": made.unproven,
    "evidence-contradicts-verdict": made.contradiction,
    "evidence-unresolved": made.unresolved,
    "evidence-outside-interval": made.outside,
    "evidence-stale": made.stale,
    "evidence-wrong-call": made.wrong_call,
    "evidence-wrong-arguments": made.wrong_arguments,
    "unlicensed-call": made.unlicensed,
    "premature-goal": made.premature,
    "skipped-check": made.skipped,
    "calls-after-goal": made.after_goal,
    "refusal-without-cause": made.causeless,
    "claimed-completion": made.claimed,
    "goal-without-completion": made.uncompleted,
    "wrong-branch": made.wrong_branch,
    "unknown-outcome": made.unknown,
    "guard-violated": made.guard,
    "approval-missing": made.approval,
    "approval-exceeded": made.amended,
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
