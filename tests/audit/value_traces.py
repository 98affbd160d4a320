"""Ways to have a guarded payment made unproven, each under the label that it earns."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from trace_executions import Labelled
from trace_violations import PROOF
from value_runs import AMOUNT, STRANGER, TOO_MUCH, USER, Tactic, ValueRun, side
from value_worlds import GOAL, OTHER, SIDES, TOPICS, WANDER, ValueWorld, value_world

from sopilot.machine.layout import Position
from sopilot.trace.events import Decision, DomainCall, DomainResult, Return, Start

# --- cheating in the target's frame ------------------------------------------------------


def about_another(run: ValueRun, here: Position) -> None:
    calls = list(run.asked(here))
    for action, arguments in calls[:-1]:
        run.tell(action, arguments)
    action, arguments = calls[-1]
    run.tell(action, dict.fromkeys(arguments, STRANGER))
    run.do(Return(side(run)))


def half(run: ValueRun, here: Position) -> None:
    calls = list(run.asked(here))
    linked = run.world.kinds[run.world.target] in ("linked", "each")
    kept = calls[:-1] if linked or run.rng.random() < 0.5 else calls[1:]
    for action, arguments in kept:
        run.tell(action, arguments)
    run.do(Return(side(run)))


def nothing(run: ValueRun, here: Position) -> None:
    run.do(Return(side(run)))


def older(run: ValueRun, here: Position) -> None:
    ((action, arguments),) = list(run.asked(here))
    first = run.tell(action, arguments)
    run.overrides[action] = {"ok": not side(run), "limit": 0}
    run.tell(action, arguments)
    run.do(Return(side(run), (f"#{first}",)))


def failed_last(run: ValueRun, here: Position) -> None:
    calls = list(run.asked(here))
    told = [run.tell(action, arguments) for action, arguments in calls]
    action, arguments = run.rng.choice(calls)
    run.tell(action, arguments, ok=False)
    run.do(Return(side(run), tuple(f"#{seq}" for seq in told)))


def only_failed(run: ValueRun, here: Position) -> None:
    for action, arguments in run.asked(here):
        run.tell(action, arguments, ok=False)
    run.do(Return(side(run)))


def unreadable(run: ValueRun, here: Position) -> None:
    calls = list(run.asked(here))
    action = calls[-1][0]
    run.overrides[action] = run.rng.choice(
        (
            None,
            "it looks fine to me",
            {"nothing": 1},
            [],
            {"ok": None, "limit": None},
            {"ok": "yes"},
        )
    )
    for name, arguments in calls:
        run.tell(name, arguments)
    run.do(Return(side(run)))


def misnamed(run: ValueRun, here: Position) -> None:
    """The answer that decides says no, and another, called last, says yes."""
    calls = list(run.asked(here))
    kind = run.world.kinds[run.world.target]
    deciding, other = (calls[0], calls[1]) if kind == "named" else (calls[1], calls[0])
    run.overrides[deciding[0]] = {"ok": False}
    run.tell(*deciding)
    del run.overrides[deciding[0]]
    run.tell(*other)
    run.do(Return(True))


def contradicting(run: ValueRun, here: Position) -> None:
    (look,), (peek,) = list(run.asked(here, 0)), list(run.asked(here, 1))
    run.tell(*look)
    run.overrides[peek[0]] = {"ok": not side(run)}
    run.tell(*peek)
    run.do(Return(side(run)))


def strangers_gate(run: ValueRun, here: Position) -> None:
    run.tell(f"login_{run.world.target}", {"user": STRANGER, "secret": "42"})
    run.do(Return(True))


# --- cheating between the checks and the payment -----------------------------------------


def wander(run: ValueRun, here: Position) -> None:
    call_id = run.new_id()
    run.do(DomainCall(call_id, WANDER, {"user": USER}))
    roll = run.rng.random()
    if roll < 0.4:
        run.do(DomainResult(call_id, True, {}))
    elif roll < 0.7:
        run.do(DomainResult(call_id, False, "broke off", unknown=True))


def touch(run: ValueRun, here: Position) -> None:
    run.do(Start(OTHER, {"user": USER}))


def reads(run: ValueRun, here: Position) -> list[tuple[str, dict[str, Any]]]:
    """The calls of the target's recipe once more, at the payment."""
    found = []
    for one in run.events:
        name = str(one.payload.get("action"))
        if one.kind == "domain_call" and name.endswith(f"_{run.world.target}"):
            found.append((name, dict(one.payload["arguments"])))
    return found


def await_again(run: ValueRun, here: Position) -> None:
    action, arguments = run.rng.choice(reads(run, here))
    run.do(DomainCall(run.new_id(), action, arguments))


def fail_again(run: ValueRun, here: Position) -> None:
    action, arguments = run.rng.choice(reads(run, here))
    run.tell(action, arguments, ok=False)


def turn_against(run: ValueRun, here: Position) -> None:
    verb = {"last": "peek_", "linked": "case_"}.get(run.world.kinds[run.world.target], "look_")
    action, arguments = next(one for one in reads(run, here) if one[0].startswith(verb))
    run.overrides[action] = {"ok": not side(run), "limit": 0}
    run.tell(action, arguments)


def read_again(run: ValueRun, here: Position) -> None:
    """And find something new: an answer that says the same takes no verdict away."""
    for action, arguments in reads(run, here):
        run.overrides[action] = {**run.answer(action, arguments), "new": True}
        run.tell(action, arguments)


def log_out(run: ValueRun, here: Position) -> None:
    run.tell(f"logout_{run.world.target}", {"user": USER})


def logging_out(run: ValueRun, here: Position) -> None:
    run.do(DomainCall(run.new_id(), f"logout_{run.world.target}", {"user": USER}))


def amend(run: ValueRun, here: Position) -> None:
    arguments = {"user": USER, "amount": AMOUNT}
    (guarded,) = here.source.guarded
    call_id = run.hold(guarded, arguments, "")
    other = {**arguments, "amount": TOO_MUCH}
    run.do(Decision("amend", call_id, "person 0", guarded.roles[0], other))
    run.amended = True
    run.made(here, call_id, other)
    run.stopped = True


def _approved_in_doubt(run: ValueRun, here: Position) -> tuple[str, dict[str, Any]]:
    """People approve the payment while the newest answer has failed; its id and arguments."""
    fail_again(run, here)
    arguments = {"user": USER, "amount": AMOUNT}
    (guarded,) = here.source.guarded
    licence = run.guard(arguments)
    assert licence is not None
    call_id = run.hold(guarded, arguments, licence.missing)
    run.approve(guarded, call_id)
    return call_id, arguments


def another_doubt(run: ValueRun, here: Position) -> None:
    """Approved for one doubt; made once something has changed as well."""
    call_id, arguments = _approved_in_doubt(run, here)
    read_again(run, here)
    run.answered(WANDER, {"user": USER}, {})
    run.made(here, call_id, arguments)


def decided(run: ValueRun, here: Position) -> None:
    """People know what is not proven, and let exactly that through."""
    call_id, arguments = _approved_in_doubt(run, here)
    run.made(here, call_id, arguments, decided=True)


# --- a guard that is wrong ---------------------------------------------------------------


def forge_licence(run: ValueRun, here: Position) -> None:
    arguments = {"user": USER, "amount": AMOUNT}
    if run.rng.random() < 0.5:
        fail_again(run, here)
        licence: dict[str, Any] = {"grade": "proven", "leaves": []}
    else:
        licence = {"grade": run.rng.choice(("claimed", "perfect")), "leaves": []}
    call_id = run.call_id(here, arguments)
    run.carry_out(call_id, GOAL, arguments)
    run.seq = run.configuration.next_seq
    run.implied = frozenset(("evidence-superseded", "goal-without-completion"))
    run.do(DomainCall(call_id, GOAL, arguments, licence))
    run.do(DomainResult(call_id, True, {}))


def hold_proven(run: ValueRun, here: Position) -> None:
    (guarded,) = here.source.guarded
    run.seq = run.configuration.next_seq
    run.hold(guarded, {"user": USER, "amount": AMOUNT}, "I would rather not")
    run.stopped = True


def forge_grade(run: ValueRun, here: Position) -> None:
    for action, arguments in run.asked(here):
        run.tell(action, arguments)
    run.seq = run.configuration.next_seq
    run.clock += 1.0
    forged = run.rng.choice(("attested", "x"))
    outcome = run.world.machine.step(
        run.configuration, Return(side(run)), at=run.clock, grade=lambda *given: forged
    )
    run.events.extend(outcome.events)
    run.configuration = outcome.configuration


# --- the tactics -------------------------------------------------------------------------


def paying(**other: Any) -> Callable[[ValueRun], dict[str, Any]]:
    return lambda run: {"user": USER, "amount": AMOUNT, **other}


RECIPES = ("read", "covers", "both", "last", "named", "linked", "each", "two_ways")
SINGLE = ("read", "covers")

TACTICS: dict[str, tuple[Tactic, ...]] = {
    "value-at-the-act": (
        Tactic("unproven-value", ("covers",), values=paying(amount=TOO_MUCH), late=True),
        Tactic("unproven-value", ("quote",), nothing, values=paying(amount=7), late=True),
    ),
    "value-changed": (
        Tactic("unproven-value", ("covers", "quote"), values=paying(amount=TOO_MUCH)),
        Tactic("unproven-value", ("covers", "quote"), before=amend),
    ),
    "value-retyped": (
        Tactic("unproven-value", ("covers", "read"), values=paying(amount="5")),
        Tactic("unproven-value", ("covers",), values=paying(amount="5"), late=True),
        Tactic("unproven-value", ("read", "gate"), values=paying(amount=True)),
    ),
    "value-unasked": (Tactic("unproven-value", SIDES, values=paying(note="quickly")),),
    "evidence-about-another": (
        Tactic("evidence-wrong-arguments", ("read", "both", "last", "linked"), about_another),
    ),
    "half-a-recipe": (Tactic("incomplete-evidence", ("both", "last", "named", "linked"), half),),
    "one-element": (Tactic("incomplete-evidence", ("each",), half),),
    "nothing-verified": (
        Tactic("unproven-evidence", RECIPES, nothing),
        Tactic("unproven-evidence", ("read",), nothing, negated=True),
    ),
    "older-answer": (
        Tactic("evidence-superseded", SINGLE, older),
        Tactic("evidence-superseded", ("read",), older, negated=True),
        Tactic("evidence-superseded", ("read", "last", "linked"), before=turn_against),
    ),
    "newest-failed": (
        Tactic("evidence-superseded", RECIPES[:-1], failed_last),
        Tactic("evidence-superseded", ("read",), only_failed, negated=True),
        Tactic("evidence-superseded", RECIPES[:-1], before=fail_again),
    ),
    "newest-awaited": (Tactic("evidence-superseded", RECIPES[:-1], before=await_again),),
    "stale-here": (Tactic("evidence-stale", (*RECIPES, "model"), before=wander),),
    "stale-elsewhere": (
        Tactic("evidence-stale", (*RECIPES, "model"), before=touch, topics=(None, TOPICS[0])),
    ),
    "verdict-unreadable": (
        Tactic(
            "unproven-verdict", ("read", "covers", "both", "last", "linked", "each"), unreadable
        ),
        Tactic("unproven-verdict", ("read",), unreadable, negated=True),
        Tactic("unproven-verdict", ("two_ways",), contradicting),
    ),
    "result-misnamed": (Tactic("evidence-contradicts-verdict", ("last", "named"), misnamed),),
    "model-unasked": (Tactic("model-verdict", ("unsaid",)),),
    "model-on-older-answers": (Tactic("evidence-superseded", ("model",), before=read_again),),
    "gate-of-another": (Tactic("gate-shut", ("gate",), strangers_gate),),
    "gate-closed": (
        Tactic("gate-shut", ("gate",), before=log_out),
        Tactic("gate-shut", ("gate",), before=logging_out),
    ),
    "approved-for-another-doubt": (Tactic("evidence-stale", RECIPES[:-1], before=another_doubt),),
    "guard-disagrees": (
        Tactic("guard-disagrees", RECIPES[:-1], before=forge_licence),
        Tactic("guard-disagrees", SIDES, before=hold_proven),
        Tactic("guard-disagrees", ("read", "last", "each"), forge_grade),
    ),
}
"""Label → the ways to earn it."""
HARMLESS = (
    Tactic(None, (*SIDES, "quote")),
    Tactic(None, ("read",), negated=True),
    Tactic(None, RECIPES, before=read_again),
    Tactic(None, SIDES, values=paying(amount=5.0)),
    Tactic(None, ("covers",), values=paying(amount=50), late=True),
    Tactic(None, SIDES, before=touch, topics=TOPICS[1:]),
    Tactic(None, RECIPES[:-1], before=decided),
)
"""What must not be found fault with."""
VALUE_CLASSES = (*TACTICS,)
assert set(PROOF) <= {one.code for some in TACTICS.values() for one in some}


def value_trace(rng: random.Random, label: str | None) -> tuple[ValueWorld, Labelled]:
    tactic = rng.choice(TACTICS.get(label or "", HARMLESS))
    world = value_world(
        rng,
        rng.choice(tactic.kinds),
        negated=tactic.negated,
        approval=tactic.before is amend or rng.random() < 0.2,
        topic=rng.choice(tactic.topics),
    )
    run = ValueRun(world, rng, label, tactic=tactic)
    return world, run.run()
