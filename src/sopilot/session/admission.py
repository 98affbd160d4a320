"""The guard: admit an irreversible call if it is proven or approved; else hold it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sopilot.handbook.model import BUILT_IN
from sopilot.machine.call_ledger import HeldCall, HeldState
from sopilot.machine.evidence import changes, is_current, may_unprove
from sopilot.machine.layout import Position
from sopilot.machine.leaves import prover_at
from sopilot.machine.recipes import WantedCall
from sopilot.machine.state import NEVER, ProofLevel
from sopilot.messages.catalogue import message_json, sentence
from sopilot.messages.errors import SopilotError, UserMistake
from sopilot.program.model import Act, Guarded
from sopilot.proof.agenda import inputs_beside
from sopilot.proof.guard import Hold, hold_reason, license_here
from sopilot.proof.licence import Licence
from sopilot.protocols import ConnectedTools, RecallsOutcomes, ToolResult
from sopilot.session.calls import (
    begin,
    call_key,
    perform,
    read_failure,
    unknown_call,
)
from sopilot.session.elsewhere import open_elsewhere
from sopilot.session.fence import fence_reason, known_fence
from sopilot.trace.events import (
    AWAITS_APPROVAL,
    AWAITS_DECISION,
    AWAITS_OUTCOME,
    AWAITS_PROOF,
    AWAITS_RELEASE,
    HELD_CALL,
    PROGRAM_CHANGED,
    Actor,
    Decision,
    DomainCall,
    DomainResult,
    Event,
    Note,
    UserSaid,
)
from sopilot.values.json import JSON, ArgumentsKey, is_same_act, key_of, same
from sopilot.values.schema import defaults_of, filled_in, without_defaults
from sopilot.views.guard_answers import guard_text
from sopilot.views.step_answers import CallAnswer, CallStatus, waiting_text

if TYPE_CHECKING:
    from sopilot.session.session import Session


_OTHERS = (Actor.MODEL, Actor.USER, Actor.OPERATOR)
OPERATOR = "operator"
"""The role that decides on an unproven call where the handbook names none."""


MOST_REREADS = 3
"""How often one read is repeated before one call, if others move each time."""
_ACTOR: ContextVar[Actor | None] = ContextVar("sopilot_actor", default=None)
"""The actor of calls that a tool makes: the machine, while the runtime makes a call of its own."""


class Admitted(NamedTuple):
    """A call that may be made. ``recalled`` is how it ended before the store was restored: then
    it isn't made again."""

    call: DomainCall
    recalled: ToolResult | None = None


Decided = CallAnswer | Admitted | WantedCall
"""A ``WantedCall`` is one that the runtime makes first."""


async def carry_out(
    session: Session,
    action: str,
    decide: Callable[[], Awaitable[Decided]],
    *,
    rehearsed: bool = False,
    made: set[tuple[str, ArgumentsKey]] | None = None,
) -> CallAnswer | None:
    """Make a call as soon as ``decide`` admits it. The runtime records a call that must come first
    in the same turn and adds it to ``made``. It makes that call outside of the lock, because its
    tool may call guarded functions, and then decides again. A ``rehearsed`` call isn't made: the
    result is ``None`` if it would be."""
    about = action
    while True:
        async with session.writing(about) as connection:
            decided = await decide()
            if isinstance(decided, CallAnswer):
                return decided
            if isinstance(decided, Admitted):
                if rehearsed:
                    return None
                call, recalled = decided
                actor = None if action in session.programs.guarded else _ACTOR.get()
            else:
                arguments, recalled = dict(decided.arguments), None
                call = DomainCall(session.ledger.fresh_id(""), decided.act.action, arguments)
                actor = Actor.MACHINE
            other = call.action != about and isinstance(session.tools, ConnectedTools)
            if not other:
                await begin(session, call, actor=actor)
        if other:
            about = call.action  # on its own connection, if the decision then is the same
        elif isinstance(decided, Admitted):
            return await perform(session, call, connection, recalled=recalled)
        else:
            if made is not None:
                made.add((call.action, key_of(call.arguments)))
            token = _ACTOR.set(Actor.MACHINE)
            try:
                await perform(session, call, connection)
            finally:
                _ACTOR.reset(token)
            about = action


async def admit(
    session: Session, guarded: Guarded, wish: DomainCall, since: int, *, amended: bool = False
) -> Decided:
    """Inside ``writing``: the call to make, or why not now. ``wish`` is the call as it was asked
    for, under the id that the asker gave it. Amended arguments are people's: they need not be the
    ones that were checked, but they are proven, or decided about, anew. A read counts as made
    just before the call from the event ``since`` on."""
    action, arguments = wish.action, wish.arguments
    await session.look_at_clock()
    guarded = _asked_of_people(session, guarded, arguments)
    hold = hold_reason(session.machine, session.configuration, action, arguments, amended=amended)
    hold = hold or under_way(session, action)
    if hold is not None:
        return await hold_call(session, wish, hold)
    licence = _license(session, arguments)
    if not licence.missing and guarded.recheck:
        due = _due(session, licence, since)
        if isinstance(due, Hold):
            return await hold_call(session, wish, due)
        if due is not None:
            return due
    if not licence.missing:
        await _drop_doubted(session, action, arguments, but=wish.call_id if amended else "")
        if guarded.needed <= 0 and not amended:
            # A request for this very call, amended until it needs no approval, is used up by it.
            served = [held.call_id for held in session.held_calls if held.serves(action, arguments)]
            own_id = served[0] if served else session.ledger.fresh_id(wish.call_id)
            call = DomainCall(own_id, action, arguments, licence.as_json())
            return await _behind_fence(session, call)
    await expire_due(session)
    if amended:
        held = _amended_request(session, guarded, wish.call_id, licence)
    else:
        held = _standing(session, guarded, arguments, licence)
    if held is not None and held.state is HeldState.APPROVED:
        record = licence.as_json()
        if licence.missing:
            # A call that people let through without the proof is a claim.
            record = {"grade": str(ProofLevel.CLAIMED), "missing": licence.missing}
            record |= {"uses": uses} if (uses := _answers_used_up(session, licence)) else {}
        call = DomainCall(held.call_id, action, dict(held.arguments), record, amended)
        return await _behind_fence(session, call)
    blocked = "no-longer-proven" if session.settings.guard else "blocked"
    doubt = sentence(blocked, action=action, missing=licence.missing) if licence.missing else ""
    own_id = session.ledger.fresh_id(wish.call_id)
    if held is None and not amended:
        held = amended_since(session, action, arguments)
    if held is None:
        request = replace(wish, call_id=own_id, amended=amended)
        held = await _request(session, guarded, request, doubt, licence)
    else:
        details = {"call_id": own_id, "action": action, "awaits": AWAITS_DECISION}
        await session.step(Note(HELD_CALL, {**details, "held": held.call_id}))
    if doubt and held.state is HeldState.WAITING:
        # Not handed on as waiting: the model can still prove it, and need not wait for people.
        return CallAnswer(held.call_id, CallStatus.HELD, problem=doubt)
    text = waiting_text(session.secrets.shown_call(held))
    return CallAnswer(held.call_id, CallStatus.HELD, problem=text, held=held)


async def _behind_fence(session: Session, call: DomainCall) -> CallAnswer | Admitted:
    """Hold a call that another session of the store may have made; in a fenced session, one whose
    outcome the tools can't recall."""
    why = await fence_reason(session._store, session.id, session.created_at, clock=session.clock)
    if not why:
        other = await open_elsewhere(session, call.action, call.arguments)
        if other is None:
            return Admitted(call)
        why = sentence(
            "outcome-elsewhere", action=call.action, call=other.call_id, session=other.session_id
        )
        hold = Hold(AWAITS_OUTCOME, why)
        return await hold_call(session, call, hold)
    tools: object = session.tools
    if isinstance(tools, RecallsOutcomes):
        with suppress(Exception):  # a tool is foreign code
            key = call_key(session.id, call.call_id, call.action, call.arguments)
            recalled: object = await tools.recall(key)
            if isinstance(recalled, ToolResult):
                return Admitted(call, read_failure(session, call.action, recalled))
    hold = Hold(AWAITS_RELEASE, sentence("fenced", action=call.action, why=why))
    return await hold_call(session, call, hold, own_id=call.call_id)


async def admit_unguarded(session: Session, wish: DomainCall) -> CallAnswer | Admitted:
    action = wish.action
    hold = under_way(session, action) or _declined(session, wish)
    if hold is not None:
        return await hold_call(session, wish, hold)
    if action in session.machine.programs.goal_actions:
        await session.look_at_clock()
    if session.from_store and may_unprove(session.machine.programs, action):
        # A guarded call that a restored store has lost may still be open (P10).
        why = await known_fence(session._store, session.id, session.created_at)
        if why:
            hold = Hold(AWAITS_RELEASE, sentence("fenced", action=action, why=why))
            return await hold_call(session, wish, hold)
    return Admitted(replace(wish, call_id=session.ledger.fresh_id(wish.call_id)))


async def admit_held(session: Session, call_id: str, since: int) -> Decided:
    """Admit a call that people have decided about, with the arguments that they saw or chose."""
    held = session.ledger.held.get(call_id)
    if held is None:
        raise unknown_call(call_id, session.ledger.held)
    action, arguments = held.action, dict(held.arguments)
    wish = DomainCall(call_id, action, arguments)
    guarded = session.programs.guarded.get(action)
    if guarded is None:
        raise UserMistake(f"`{action}` is not an action of the current programs")
    if not same(as_received(session, action, arguments), arguments):
        why = f"`{action}` would fill in arguments by itself: amend it with values for all"
        return await hold_call(session, wish, Hold("root", why))
    if session.settings.guard and (why := repeated(session, action, arguments)):
        return await hold_call(session, wish, Hold(AWAITS_PROOF, why))
    return await admit(session, guarded, wish, since, amended=held.amended)


def _asked_of_people(session: Session, guarded: Guarded, arguments: Mapping[str, JSON]) -> Guarded:
    """Drop the approvals where the handbook's condition is false for these arguments. An undecided
    condition keeps them."""
    if guarded.when is None:
        return guarded
    clock, process = session.configuration.clock, session.configuration.process
    constants = session.programs.programs[process.goal].constants if process is not None else {}
    variables = {**({"now": clock} if clock else {}), **arguments, **constants}
    try:
        judge = session.judge(guarded.when, variables)
    except SopilotError:
        judge = None
    return replace(guarded, needed=0) if judge is False else guarded


def _here(session: Session) -> Position:
    here = session.machine.position(session.configuration)
    assert here is not None  # the root has accepted
    return here


def _license(session: Session, arguments: Mapping[str, JSON]) -> Licence:
    return license_here(_here(session), arguments, session.judge)


def _due(session: Session, licence: Licence, since: int) -> WantedCall | Hold | None:
    """The next read that the licence rests on and that the machine hasn't made since a model or a
    person moved last. Its answer may lead to another option or another customer's case: then that
    one's reads are due, too. This ends, because only calls of recipes can follow. A read whose own
    gate is shut isn't repeated: the call waits."""
    if session.tools is None:
        return None
    events, here, begun = session.own_events, _here(session), since
    others = (event.seq for event in reversed(events) if event.actor in _OTHERS)
    since = max(since, next(others, NEVER) + 1)
    for call in licence.calls:
        answer = session.configuration.answers[call.act.action][key_of(call.arguments)]
        read = answer.call_seq >= since and events[answer.call_seq].actor == Actor.MACHINE
        if read or not _reads(session, call):
            continue
        if prover_at(here, here.process.known, session.judge).may_precede(call) is False:
            return Hold(AWAITS_PROOF, sentence("not-reread", action=call.act.action))
        if _own_calls(events[begun:], call) >= MOST_REREADS:
            return Hold(AWAITS_PROOF, sentence("reread-in-vain", action=call.act.action))
        return call
    return None


def _own_calls(events: Sequence[Event], call: WantedCall) -> int:
    """How often the runtime itself has made the call."""
    wanted = key_of(call.arguments)
    return sum(
        event.kind == DomainCall.kind
        and event.actor == Actor.MACHINE
        and event.payload["action"] == call.act.action
        and key_of(event.payload["arguments"]) == wanted
        for event in events
    )


def _reads(session: Session, call: WantedCall) -> bool:
    action = call.act.action
    own = action not in BUILT_IN and action not in session.programs.guarded
    return own and changes(session.machine.programs, action) == ()


async def _drop_doubted(
    session: Session, action: str, arguments: Mapping[str, JSON], *, but: str
) -> None:
    """Expire the requests for this call from when it was not proven, except the one that is being
    carried out."""
    for held in _requests(session, action, arguments, but=but):
        if held.why:
            await _expire(session, held, "its checks are proven now")


async def expire_others(session: Session, amended: HeldCall) -> None:
    """Expire the other requests for a call into which people have amended this one."""
    for held in _requests(session, amended.action, amended.arguments, but=amended.call_id):
        await _expire(session, held, f"`{amended.call_id}` was amended into this call")


def _requests(
    session: Session, action: str, arguments: Mapping[str, JSON], *, but: str
) -> list[HeldCall]:
    return [
        held
        for held in session.held_calls
        if held.call_id != but and held.serves(action, arguments)
    ]


async def _expire(session: Session, held: HeldCall, why: str) -> None:
    await session.step(Decision("expire", held.call_id, reason=why), actor=Actor.RUNTIME)


def repeated(session: Session, action: str, arguments: Mapping[str, JSON]) -> str:
    """P16: why the call isn't made if the same act succeeded and the user hasn't spoken since. One
    request is carried out once, also if it is spelled or amended in another way."""
    successes = [
        answer.succeeded
        for answer in session.configuration.answers.get(action, {}).values()
        if answer.succeeded != NEVER and is_same_act(answer.arguments, arguments)
    ]
    if not successes or asked_since(session, max(successes)):
        return ""
    tool = session.tool_names.get(action, action)
    return guard_text("repeated", session.language, action=tool, seq=max(successes))


def asked_since(session: Session, seq: int) -> bool:
    """Whether the user has spoken since, other than in answer to a question of the runtime."""
    questions: set[str] = {
        call_id
        for call_id, pending in session.configuration.pending.items()
        if pending.action in BUILT_IN and pending.call_seq < seq
    }
    for event in session.own_events[seq + 1 :]:
        if event.kind == DomainCall.kind and event.payload["action"] in BUILT_IN:
            questions.add(event.payload["call_id"])
        elif event.kind == DomainResult.kind:
            questions.discard(event.payload["call_id"])
        elif event.kind == UserSaid.kind and not questions:
            return True
    return False


def _declined(session: Session, wish: DomainCall) -> Hold | None:
    """Why a question isn't put again: the user said no to it, nothing has changed since, and the
    user has asked for nothing since."""
    if wish.action not in BUILT_IN:
        return None
    configuration, programs = session.configuration, session.machine.programs
    reply = configuration.answers.get(wish.action, {}).get(key_of(wish.arguments))
    if reply is None or not isinstance(reply.value, Mapping) or reply.value.get("answer") != "no":
        return None
    if not is_current(programs, configuration, reply) or asked_since(session, reply.seq):
        return None
    return Hold(AWAITS_PROOF, sentence("declined", seq=reply.seq))


def _amended_request(
    session: Session, guarded: Guarded, call_id: str, licence: Licence
) -> HeldCall | None:
    """The request that people amended; ``None`` if a doubt has come up that they didn't know, or
    the amended call needs more approvals."""
    held = session.ledger.held[call_id]
    knew = not licence.missing or (
        _same_facts(session, held, licence) and _same_values(session, held)
    )
    enough = (held.roles, held.needed) == (guarded.roles or (OPERATOR,), max(guarded.needed, 1))
    if not knew or (guarded.needed > 0 and not enough):
        return None
    return held if held.state not in (HeldState.EXPIRED, HeldState.USED) else None


def _answers_used_up(session: Session, licence: Licence) -> Sequence[JSON]:
    """P9: the user's answers behind a call that people let through, also if they are in doubt."""
    here = session.machine.position(session.configuration)
    used = {seq for leaf in licence.leaves for seq in leaf.uses}
    for fact in licence.facts:
        answers: Any = fact.get("answers", ())
        if here is not None and answers:
            function = here.program.functions[str(fact["function"])].function
            if function.question and not function.reusable:
                used.update(answered for _, answered in answers)
    return sorted(used)


def _same_facts(session: Session, held: HeldCall, licence: Licence) -> bool:
    """P14: an approval covers the unmet facts with the answers that made them so. Any difference
    makes another fact."""
    if held.facts is None or bool(held.facts) != bool(licence.facts):
        return False
    if not held.facts:
        return True
    events = session.own_events
    if any(event.note == PROGRAM_CHANGED for event in events[held.seq :]):
        return False
    then = [_with_answers(events, fact) for fact in held.facts]
    return same(then, [_with_answers(events, fact) for fact in licence.facts])


def _with_answers(events: Sequence[Event], fact: JSON) -> JSON:
    """The fact with what its calls were and were answered, in the place of their events."""
    if not isinstance(fact, Mapping) or "answers" not in fact:
        return fact
    pairs: Any = fact["answers"]
    answers = [
        [*map(events[request].payload.get, ("action", "arguments")),
         *map(events[answered].payload.get, ("ok", "value"))]
        for request, answered in pairs
    ]  # fmt: skip
    return {**fact, "answers": answers}


def _same_values(session: Session, held: HeldCall) -> bool:
    """Whether the process still has the values that people saw."""
    for sealed in reversed(session.events):
        if sealed.event.seq <= held.seq:
            break
        if sealed.event.kind == "amend" and sealed.event.process == held.process:
            return False
    return True


def _same_errand(session: Session, held: HeldCall) -> bool:
    """Whether the running process has the procedure that people saw, and the same values of its
    inputs that the tool never gets. The others are arguments, which people may have amended."""
    here = session.machine.position(session.configuration)
    before = session.configuration.processes.get(held.process or "")
    if here is None or before is None or not _same_values(session, held):
        return False
    # An attempt takes what the application supplies since.
    known = {**here.process.known, **(session.supplied if session.settings.guard else {})}
    return (
        isinstance(here.step, Act)
        and here.process.goal == before.goal
        and all(
            same(known.get(name), before.known.get(name))
            for name in inputs_beside(here.layout.function, here.step)
        )
    )


def amended_since(session: Session, action: str, arguments: Mapping[str, JSON]) -> HeldCall | None:
    """The open request for this call and errand, if people have given it other arguments."""
    for held in reversed(session.held_calls):
        requested = session.own_events[held.seq].details["arguments"]
        is_this = held.action == action and same(requested, dict(arguments))
        if is_this and _same_errand(session, held):
            return held if held.amended and not held.serves(action, arguments) else None
    return None


def _standing(
    session: Session, guarded: Guarded, arguments: Mapping[str, JSON], licence: Licence
) -> HeldCall | None:
    """The latest request that this call would repeat. An approval doesn't count for other unproven
    facts, another errand or other rules of approval."""
    active = session.configuration.active
    request = (guarded.roles or (OPERATOR,), max(guarded.needed, 1), guarded.expires_seconds)
    for held in reversed(session.ledger.held.values()):
        if not held.serves(guarded.action, arguments) or not _same_facts(session, held, licence):
            continue
        if (held.roles, held.needed, held.lasts) != request:
            continue
        if (licence.missing and held.process != active) or not _same_errand(session, held):
            continue
        if held.state in (HeldState.WAITING, HeldState.APPROVED):
            return held
        if held.state is HeldState.REJECTED and held.process == active:
            return held
    return None


async def _request(
    session: Session, guarded: Guarded, call: DomainCall, doubt: str, licence: Licence
) -> HeldCall:
    expires = None
    if guarded.expires_seconds is not None:
        expires = session.clock.now() + guarded.expires_seconds
    details: dict[str, JSON] = {
        "call_id": call.call_id,
        "action": call.action,
        "arguments": dict(call.arguments),
        "awaits": AWAITS_APPROVAL,
        "roles": list(guarded.roles or (OPERATOR,)),
        "needed": max(guarded.needed, 1),
        "expires_at": expires,
    }
    if doubt:
        facts: list[JSON] = [dict(fact) for fact in licence.facts]
        details |= {"why": doubt, "message": message_json(doubt), "facts": facts}
    if call.amended:
        details["amended"] = True
    await session.step(Note(HELD_CALL, details))
    return session.ledger.held[call.call_id]


def as_received(session: Session, name: str, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """P12: the arguments as the tool receives them, with the defaults that count and no others."""
    schemas = session.tools.schemas() if session.tools is not None else ()
    for schema in schemas:
        if schema.name == name:
            own = dict(arguments)
            filled = filled_in(own, schema.parameters) if name in session.programs.guarded else own
            assert isinstance(filled, Mapping)
            counted = counted_inputs(session, name, arguments)
            return without_defaults(filled, arguments, defaults_of(schema.parameters), counted)
    return dict(arguments)


def counted_inputs(session: Session, name: str, written: Mapping[str, object]) -> set[str]:
    """The inputs whose value counts although it is the tool's own default: all of a guarded
    action; of others those that a check passes, because the check names the call with them."""
    if name in session.programs.guarded:
        facts = session.machine.programs.actions.get(name)
        return set(facts.inputs) if facts is not None else set()
    return session.programs.passed.get(name, set()) & written.keys()


def under_way(session: Session, action: str) -> Hold | None:
    """P10: why a call waits. A call that may unprove something waits until each open guarded call
    is answered or resolved."""
    for call_id in session.open_guarded:
        if not may_unprove(session.machine.programs, action):
            return None
        guarded = session.configuration.pending[call_id].action
        why = sentence("being-carried-out", guarded=guarded, action=action)
        if call_id not in session.in_flight:
            why = sentence("outcome-needed", call=call_id, guarded=guarded, action=action)
        return Hold(AWAITS_OUTCOME, why)
    return None


async def hold_call(
    session: Session, wish: DomainCall, hold: Hold, *, own_id: str = ""
) -> CallAnswer:
    own_id = own_id or session.ledger.fresh_id(wish.call_id)
    details: dict[str, JSON] = {
        "call_id": own_id,
        "action": wish.action,
        "arguments": dict(wish.arguments),
        "awaits": hold.awaits,
        "why": hold.why,
        "message": message_json(hold.why),
    }
    await session.step(Note(HELD_CALL, details))
    return CallAnswer(own_id, CallStatus.HELD, problem=hold.why, awaits=hold.awaits)


async def expire_due(session: Session) -> None:
    """Inside ``writing``: record which requests have expired."""
    now = session.clock.now()
    for held in tuple(session.ledger.held.values()):
        waiting = held.state in (HeldState.WAITING, HeldState.APPROVED)
        if waiting and held.has_expired(now):
            await _expire(session, held, "the approval expired")
