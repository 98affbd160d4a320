"""Who may decide about a held call: rules that every door has in common. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from sopilot.language.diagnostics import Diagnostic, did_you_mean, mistake
from sopilot.language.program import Program
from sopilot.runtime.records.people import People, Principal
from sopilot.runtime.session._approvals import HeldCall, HeldState
from sopilot.runtime.trace.identity import MACHINE, UNAUTHENTICATED, identity_of
from sopilot.runtime.trace.runtime_notes import DECISION_REFUSED
from sopilot.runtime.vm import DECISIONS, JSON, Actor, Configuration, Note
from sopilot.runtime.vm.schema_check import violation
from sopilot.runtime.vm.state import Pending
from sopilot.runtime.vm.values import Fields, same_name, spell


def named(people: People, by: str, who: Principal | None) -> str:
    """The one name of whoever decides: an alias is no second person."""
    if who is not None and who.name:
        if by and same_name(by) not in people.names_of(who.name):
            raise mistake("another-name", f"this is {who.name}'s token, and not `{by}`'s")
        return who.name
    known = people.person(by)
    return by if known is None else known.name


def objection(
    people: People,
    metadata: Fields,
    configuration: Configuration,
    held: HeldCall,
    decision: str,
    *,
    by: str,
    role: str,
    arguments: Mapping[str, JSON] | None,
    who: Principal | None,
    at: float,
    authors: Collection[str] = (),
    programs: Mapping[str, Program] | None = None,
) -> tuple[Diagnostic | None, Mapping[str, JSON]]:
    """What speaks against the decision, and how whoever makes it proved who they are."""
    problem = _problem(held, decision, by, role, arguments)
    if problem is None and arguments is not None:
        problem = _misfit(held.action, arguments, programs or {})
    given = held.arguments if arguments is None else arguments
    if problem is None and decision != "expire":
        names, both = people.names_of(by), (held.arguments, given)
        problem = _party(metadata, configuration, both, held.process, names, by, authors)
    if problem is not None or decision == "expire":
        return problem, {}
    # A limit is how much may be let happen: who says no lets nothing happen.
    within = None if decision == "reject" else given
    found = _entitlement(people, who, by, role, within, at, held.expires_at)
    return (found, {}) if isinstance(found, Diagnostic) else (None, found)


def no_witness(
    people: People, metadata: Fields, configuration: Configuration, pending: Pending, by: str,
    who: Principal | None, authors: Collection[str] = (),
) -> Diagnostic | None:  # fmt: skip
    """What keeps somebody from saying how a call ended: who has a part in it could have it made
    twice."""
    if not same_name(by):
        return Diagnostic("nobody", "say who found out how the call ended")
    if who is None and "identity" in people.demands:
        return Diagnostic(UNAUTHENTICATED, _PROVE, help=_TOKEN)
    given = (pending.arguments,)
    return _party(metadata, configuration, given, pending.process, people.names_of(by), by, authors)


_PROVE = "this store takes decisions only from people who prove who they are"
_TOKEN = "give --token-file"
_NO_MACHINE = (
    "approve with `sopilot approve approve` and a token; neither `--approve` nor a scenario's "
    "`approvals` can"
)


def principal_from_json(value: JSON) -> Principal | None:
    """As a decision that was left says it."""
    if not isinstance(value, Mapping):
        return None
    return Principal(*(str(value.get(name) or "") for name in ("name", "method", "proof")))


REFUSED = {"approved-twice", "beyond-limit", "not-entitled", "party", "unauthenticated"}
"""Attempts to decide that stand in the trace: somebody tried what they may not."""


def refusal(
    decision: str, call_id: str, by: str, role: str, who: Principal | None, problem: Diagnostic
) -> Note:
    details: dict[str, JSON] = {
        "call_id": call_id,
        "decision": decision,
        "by": by,
        "role": role,
        "identity": identity_of(who.as_json() if who is not None else None),
        "code": problem.code,
        "why": problem.message,
    }
    return Note(DECISION_REFUSED, details)


def _entitlement(
    people: People,
    who: Principal | None,
    by: str,
    role: str,
    arguments: Mapping[str, JSON] | None,
    at: float,
    expires_at: float | None,
) -> Mapping[str, JSON] | Diagnostic:
    """How they proved who they are and through what they decide in this role. ``arguments`` are
    held against its limits, where there are any."""
    through, own = "", role
    if "identity" in people.demands and (who is None or who.method == MACHINE):
        return Diagnostic(UNAUTHENTICATED, _PROVE, help=_TOKEN if who is None else _NO_MACHINE)
    if who is not None and who.method != MACHINE:
        entitled = people.entitled(by, role, at, expires_at)
        if entitled is None:
            cure = "`sopilot people list` shows who has which role, and when"
            return Diagnostic("not-entitled", f"{by} has no part as {role} now", help=cure)
        own, through = entitled
    beyond = None if arguments is None else people.beyond(own, arguments)
    if beyond is not None:
        return Diagnostic("beyond-limit", f"{own} decides within `{beyond}`, and this is not")
    return {} if who is None else who.as_json(through)


def _problem(
    held: HeldCall, decision: str, by: str, role: str, arguments: Mapping[str, JSON] | None
) -> Diagnostic | None:
    if decision not in DECISIONS:
        return Diagnostic(
            "unknown-decision",
            f"`{decision}` is not a decision",
            help=did_you_mean(decision, DECISIONS),
        )
    if held.state not in (HeldState.WAITING, HeldState.APPROVED):
        return Diagnostic("decided", f"call `{held.call_id}` is {held.state} already")
    if decision == "expire":
        return None
    if not same_name(by):
        return Diagnostic("nobody", "a decision needs the name of whoever makes it")
    if role not in held.roles:
        return Diagnostic(
            "wrong-role",
            f"`{role}` has no say in call `{held.call_id}`",
            help=did_you_mean(role, held.roles),
        )
    if (decision == "amend") != (arguments is not None):
        return Diagnostic("amendment", "`amend` needs arguments, and nothing else takes them")
    if decision == "approve" and any(
        same_name(one.by) == same_name(by)
        and one.role == role
        and one.decision in ("approve", "amend")
        for one in held.rulings
    ):
        return Diagnostic("approved-twice", f"{by} has approved as {role} already")
    return None


def _misfit(
    action: str, arguments: Mapping[str, JSON], programs: Mapping[str, Program]
) -> Diagnostic | None:
    """Whether the action takes such arguments, as far as its handbook says what it takes."""
    facts = next((one.actions[action] for one in programs.values() if action in one.actions), None)
    if facts is None or not facts.inputs:
        return None
    for name, value in arguments.items():
        if name not in facts.inputs:
            return Diagnostic(
                "unknown-argument",
                f"`{action}` takes no `{name}`",
                help=did_you_mean(name, facts.inputs),
            )
        if problem := violation(value, facts.inputs[name], f"`{name}`"):
            return Diagnostic("wrong-type", f"{problem}, not {spell(value)}")
    missing = [name for name in facts.required if name not in arguments]
    if missing:
        return Diagnostic("missing-argument", f"`{action}` needs `{missing[0]}` as well")
    return None


_NO_PERSON = {*(str(one) for one in Actor if one is not Actor.OPERATOR), "agent", "assistant"}


def _party(
    metadata: Fields, configuration: Configuration, arguments: Sequence[Mapping[str, JSON]],
    process: str | None, names: set[str], by: str, authors: Collection[str],
) -> Diagnostic | None:  # fmt: skip
    """Who asks for the call, is meant in it, or wrote the rules cannot decide on it: in it as it
    was asked for, and as they would have it."""
    whose = ""
    if names & _NO_PERSON or same_name(str(metadata.get("model") or "")) in names:
        whose = "the name of the model or of a part of the run, and no person's"
    elif same_name(str(metadata.get("requester") or "")) in names - {""}:
        whose = "who asked for it"
    elif names & set(authors):
        whose = "who wrote the handbook"
    else:
        started = configuration.processes.get(process or "")
        for given in (*arguments, started.known if started is not None else {}):
            for field, value in given.items():
                if any(same_name(one) in names for one in _names_in(value)):
                    whose = f"a party to this call (its `{field}`)"
    cure = "somebody who has no part in it must decide"
    return Diagnostic("party", f"`{by}` is {whose}", help=cure) if whose else None


def _names_in(value: JSON) -> Iterator[str]:
    """Wherever in a value somebody can be named; customers have numbers, too."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield key
            yield from _names_in(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _names_in(one)
    elif isinstance(value, float) and value.is_integer():
        yield str(int(value))
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield str(value)
