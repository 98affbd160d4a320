"""The people of a store: who may decide what, by which tokens, roles, limits and deputies.

People are folded from the entries of a journal, so what was in force at any moment is known.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sopilot.machine.approvals import HeldCall, HeldState
from sopilot.machine.state import CallRecord, Configuration
from sopilot.messages.diagnostic import Diagnostic, did_you_mean
from sopilot.messages.errors import UserMistake, mistake
from sopilot.program.model import Program
from sopilot.protocols import Clock
from sopilot.records.journal import folded, write
from sopilot.records.selection import read_condition, read_moment, value_at
from sopilot.records.store import Store
from sopilot.trace.events import (
    DECISION_REFUSED,
    DECISIONS,
    MACHINE,
    UNAUTHENTICATED,
    Actor,
    Note,
    identity_of,
)
from sopilot.values.json import JSON, Fields, same_name, spell
from sopilot.values.schema import violation
from sopilot.values.text import moment, table

ADMINISTRATOR = "administrator"
"""Who may change people once there is one."""

TOKEN, OPENID = "token", "openid"
ADDED = "person_added"


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who proved who they are: ``proof`` names the token, or issuer and subject."""

    name: str
    method: str
    proof: str = ""

    def as_json(self, through: str = "") -> dict[str, JSON]:
        values = {"method": self.method, "proof": self.proof, "through": through}
        return {name: value for name, value in values.items() if value}


THE_MACHINE = Principal("", MACHINE)
"""The run itself, told to approve: nobody looked."""


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    roles: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    """Other names of the same person: customer numbers, addresses."""
    subjects: tuple[str, ...] = ()
    """``issuer#subject`` at OpenID Connect providers."""

    @property
    def names(self) -> set[str]:
        return {same_name(item) for item in (self.name, *self.aliases, *self.subjects)}


@dataclass(frozen=True, slots=True)
class Token:
    name: str
    person: str
    expires_at: float | None = None
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Deputy:
    person: str
    stands_for: str
    role: str
    begin: float
    end: float
    """Exclusive."""


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenID Connect provider whose tokens for ``audience`` are believed."""

    issuer: str
    audience: str


@dataclass(slots=True)
class People:
    persons: dict[str, Person] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    """By the SHA-256 of the token."""
    limits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Role → conditions on the arguments of what it approves."""
    deputies: list[Deputy] = field(default_factory=list)
    escalations: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Role → the role that may decide as well, so many seconds before a request expires."""
    providers: dict[str, Provider] = field(default_factory=dict)
    demands: set[str] = field(default_factory=set)
    """``identity``: only people who proved who they are decide. ``sign-off``: only handbooks
    that were signed off run. ``privacy``: contents stand beside the traces. ``keys``: there they
    are encrypted."""

    def apply(self, name: str, it: Mapping[str, JSON]) -> None:
        """Apply an entry of the journal. Unknown entries are a later release's, and ignored."""
        match name:
            case "person_added":
                lists = (_texts(it[key]) for key in ("roles", "aliases", "subjects"))
                self.persons[same_name(str(it["person"]))] = Person(str(it["person"]), *lists)
            case "person_removed":
                gone = same_name(str(it["person"]))
                self.persons.pop(gone, None)
                # Also when somebody of that name comes back.
                self._revoke(lambda token: same_name(token.person) == gone)
            case "token_issued":
                until = it.get("expires_at")
                self.tokens[str(it["sha256"])] = Token(
                    str(it["token"]), str(it["person"]), None if until is None else _number(until)
                )
            case "token_revoked":
                self._revoke(lambda token: token.name == it["token"])
            case "limit_set":
                self.limits[str(it["role"])] = _texts(it["conditions"])
            case "deputy_named":
                person, absent, role = (str(it[key]) for key in ("person", "for", "role"))
                begin, end = _number(it["begin"]), _number(it["end"])
                self.deputies.append(Deputy(person, absent, role, begin, end))
            case "escalation_set":
                self.escalations[str(it["role"])] = str(it["to"]), _number(it["before_seconds"])
            case "provider_named":
                self.providers[str(it["issuer"])] = Provider(str(it["issuer"]), str(it["audience"]))
            case "demanded":
                (self.demands.add if it["on"] is True else self.demands.discard)(str(it["what"]))

    def _revoke(self, revoked: Callable[[Token], bool]) -> None:
        self.tokens = {
            digest: replace(token, revoked=token.revoked or revoked(token))
            for digest, token in self.tokens.items()
        }

    def person(self, name: str) -> Person | None:
        """By any of the names."""
        wanted = same_name(name)
        return next((item for item in self.persons.values() if wanted in item.names), None)

    def has_administrator(self) -> bool:
        """One who could prove it: else nobody could ever change anything."""
        holders = {same_name(token.person) for token in self.tokens.values() if not token.revoked}
        return any(
            ADMINISTRATOR in item.roles and (key in holders or item.subjects)
            for key, item in self.persons.items()
        )

    def names_of(self, name: str) -> set[str]:
        result = self.person(name)
        return {same_name(name)} | (result.names if result else set())

    def of_token(self, token: str, at: float) -> Principal | Diagnostic:
        result = self.tokens.get(token_digest(token))
        if result is None:
            return Diagnostic("unknown-token", "nobody has this token")
        if result.revoked or same_name(result.person) not in self.persons:
            return Diagnostic("revoked-token", f"the token `{result.name}` was revoked")
        if result.expires_at is not None and at >= result.expires_at:
            return Diagnostic("expired-token", f"the token `{result.name}` is out of date")
        return Principal(result.person, TOKEN, result.name)

    def of_subject(self, issuer: str, subject: str) -> Principal | Diagnostic:
        wanted = f"{issuer}#{subject}"
        # As it is spelled, unlike people's names: a provider's `ABC` and `abc` are two people.
        result = next((item for item in self.persons.values() if wanted in item.subjects), None)
        if result is None:
            return Diagnostic(
                "unknown-subject",
                f"`{subject}` of {issuer} is nobody here",
                help=f"an administrator adds them: `sopilot people add NAME --openid {wanted}`",
            )
        return Principal(result.name, OPENID, wanted)

    def entitled(
        self, name: str, role: str, at: float, expires_at: float | None
    ) -> tuple[str, str] | None:
        """In which role of their own, and through what, somebody may decide as ``role``."""
        person = self.person(name)
        if person is None:
            return None
        if role in person.roles:
            return role, ""
        for deputy in self.deputies:
            if same_name(deputy.person) == same_name(person.name) and deputy.role == role:
                absent = self.person(deputy.stands_for)
                if deputy.begin <= at < deputy.end and absent is not None and role in absent.roles:
                    return role, f"deputy for {absent.name}"
        above = self.escalations.get(role)
        if above is None or above[0] not in person.roles or expires_at is None:
            return None
        return (above[0], f"escalated to {above[0]}") if at >= expires_at - above[1] else None

    def beyond(self, role: str, arguments: Mapping[str, JSON]) -> str | None:
        """The first limit of the role that these arguments are not within: also where the
        argument is not there."""
        for text in self.limits.get(role, ()):
            condition = read_condition(text)
            if value_at(arguments, condition.path) is None or not condition.holds(arguments):
                return text
        return None


def token_digest(token: str) -> str:
    """Tokens are 256 random bits: nothing slower is needed against guessing."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def why_not(people: People, name: str, details: Mapping[str, JSON]) -> Diagnostic | None:
    """Apply the entry to ``people``; return what speaks against it."""
    had = people.has_administrator()
    people.apply(name, details)
    new = people.persons.get(same_name(str(details.get("person")))) if name == ADDED else None
    for person in people.persons.values():
        if new is not None and person is not new and (shared := new.names & person.names):
            cure = f"choose another, or say anew who {person.name} is: `sopilot people add --anew`"
            message = f"`{min(shared)}` is a name of {person.name}: nobody is two people"
            return Diagnostic("name-taken", message, help=cure)
    if had and not people.has_administrator():
        message = "without this administrator anybody could change the people of this store"
        return Diagnostic("last-administrator", message, help="give another one a token first")
    return None


def fold_people(entries: Iterable[tuple[str, Mapping[str, JSON]]]) -> People:
    people = People()
    for name, details in entries:
        people.apply(name, details)
    return people


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _number(value: JSON) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def person_details(people: People, values: Mapping[str, JSON]) -> dict[str, JSON]:
    """A person as they are then: with what was known of them, unless it is said anew."""
    name = str(values["person"])
    own = people.persons.get(same_name(name))
    reply: dict[str, JSON] = {"person": own.name if own is not None else name}
    for field_name in ("roles", "aliases", "subjects"):
        known = () if own is None or values.get("anew") else getattr(own, field_name)
        reply[field_name] = list(dict.fromkeys((*known, *_texts(values.get(field_name)))))
    names = (name, *_texts(reply["roles"]), *_texts(reply["aliases"]), *_texts(reply["subjects"]))
    if not all(map(same_name, names)):
        raise mistake("empty-name", "a person, a role and another name must not be empty")
    return reply


def limit_details(values: dict[str, Any]) -> dict[str, Any]:
    for text in values["conditions"]:
        read_condition(text)
    return values


def deputy_details(values: dict[str, Any]) -> dict[str, Any]:
    """Between two dates, as people write them."""
    return {
        **values,
        "begin": read_moment(values["begin"]),
        "end": read_moment(values["end"], whole_day=True),
    }


def token_details(values: dict[str, Any]) -> dict[str, Any]:
    until = values["expires_at"]
    return {**values, "expires_at": None if until is None else read_moment(until, whole_day=True)}


def people_lines(people: People) -> Iterator[str]:
    rows = [
        (
            person.name,
            ", ".join(person.aliases) or "-",
            ", ".join(person.roles) or "-",
            _tokens(people, person.name) or "-",
        )
        for person in people.persons.values()
    ]
    yield table(rows, ("NAME", "ALSO", "ROLES", "TOKENS")) if rows else "nobody is known here"
    for role, conditions in people.limits.items():
        yield f"{role} decides within {', '.join(conditions) or 'no limit'}"
    for deputy in people.deputies:
        begin, end = moment(deputy.begin), moment(deputy.end)
        yield (
            f"{deputy.person} stands for {deputy.stands_for} as {deputy.role} from {begin} to {end}"
        )
    for role, (to, seconds) in people.escalations.items():
        yield f"{to} may decide as {role} {seconds / 60:g} minutes before a request expires"
    for demand in sorted(people.demands):
        yield f"demanded: {demand}"


def _tokens(people: People, person: str) -> str:
    own = [token for token in people.tokens.values() if token.person == person]
    return ", ".join(f"{item.name} (revoked)" if item.revoked else item.name for item in own)


def people_json(people: People) -> dict[str, Any]:
    return {
        "people": [
            {
                "name": person.name,
                "roles": list(person.roles),
                "aliases": list(person.aliases),
                "openid": list(person.subjects),
                "tokens": [
                    {"name": t.name, "expires_at": t.expires_at, "revoked": t.revoked}
                    for t in people.tokens.values()
                    if t.person == person.name
                ],
            }
            for person in people.persons.values()
        ],
        "limits": {role: list(texts) for role, texts in people.limits.items()},
        "providers": [
            {"issuer": p.issuer, "audience": p.audience} for p in people.providers.values()
        ],
        "demands": sorted(people.demands),
    }


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
    requesters: Collection[str] = (),
    programs: Mapping[str, Program] | None = None,
) -> tuple[Diagnostic | None, Mapping[str, JSON]]:
    """What speaks against the decision, and how whoever makes it proved who they are."""
    problem = _problem(held, decision, by, role, arguments)
    if problem is None and arguments is not None:
        problem = _misfit(held.action, arguments, programs or {})
    value = held.arguments if arguments is None else arguments
    if problem is None and decision != "expire":
        names, both = people.names_of(by), (held.arguments, value)
        problem = _party(
            metadata, configuration, both, held.process, names, by, authors, requesters
        )
    if problem is not None or decision == "expire":
        return problem, {}
    # A limit is how much may be let happen: who says no lets nothing happen.
    within = None if decision == "reject" else value
    entitlement = _entitlement(people, who, by, role, within, at, held.expires_at)
    if isinstance(entitlement, Diagnostic):
        return entitlement, {}
    if decision != "reject" and "identity" in people.demands:
        problem = _without_requester(metadata, requesters)
    return problem, {} if problem is not None else entitlement


def no_witness(
    people: People, metadata: Fields, configuration: Configuration, pending: CallRecord, by: str,
    who: Principal | None, authors: Collection[str] = (), requesters: Collection[str] = (),
) -> Diagnostic | None:  # fmt: skip
    """What keeps somebody from saying how a call ended: who has a part in it could have it made
    twice."""
    if not same_name(by):
        return Diagnostic("nobody", "say who found out how the call ended")
    if who is None and "identity" in people.demands:
        return Diagnostic(UNAUTHENTICATED, _PROVE, help=_TOKEN)
    value = (pending.arguments,)
    names = people.names_of(by)
    return _party(metadata, configuration, value, pending.process, names, by, authors, requesters)


_PROVE = "this store takes decisions only from people who prove who they are"
_TOKEN = "give a token: sopilot --token-file"

_NO_MACHINE = (
    "approve with `sopilot approvals approve` and a token; neither `--approve` nor a scenario's "
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
        same_name(ruling.by) == same_name(by)
        and ruling.role == role
        and ruling.decision in ("approve", "amend")
        for ruling in held.rulings
    ):
        return Diagnostic("approved-twice", f"{by} has approved as {role} already")
    return None


def _misfit(
    action: str, arguments: Mapping[str, JSON], programs: Mapping[str, Program]
) -> Diagnostic | None:
    """Whether the action takes such arguments, as far as its handbook says what it takes."""
    facts = next(
        (program.actions[action] for program in programs.values() if action in program.actions),
        None,
    )
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


_NO_PERSON = {*(str(item) for item in Actor if item is not Actor.OPERATOR), "agent", "assistant"}


def _party(
    metadata: Fields, configuration: Configuration, arguments: Sequence[Mapping[str, JSON]],
    process: str | None, names: set[str], by: str, authors: Collection[str],
    requesters: Collection[str],
) -> Diagnostic | None:  # fmt: skip
    """Who asks for the call, is meant in it, or wrote the rules cannot decide on it: in it as it
    was asked for, and as they would have it."""
    whose = ""
    if names & _NO_PERSON or same_name(str(metadata.get("model") or "")) in names:
        whose = "the name of the model or of a part of the run, and no person's"
    elif {same_name(str(metadata.get("requester") or "")), *requesters} & (names - {""}):
        whose = "who asked for it"
    elif names & set(authors):
        whose = "who wrote the handbook"
    else:
        started = configuration.processes.get(process or "")
        for argument in (*arguments, started.known if started is not None else {}):
            for field, value in argument.items():
                if any(same_name(item) in names for item in _names_in(value)):
                    whose = f"a party to this call (its `{field}`)"
    cure = "somebody who has no part in it must decide"
    return Diagnostic("party", f"`{by}` is {whose}", help=cure) if whose else None


def _without_requester(metadata: Fields, requesters: Collection[str]) -> Diagnostic | None:
    if metadata.get("requester") or requesters:
        return None
    return Diagnostic(
        "no-requester",
        "nobody knows who asked for this session, so nobody can approve a call of it",
        help="reject the call and start the session again, with the requester's token",
    )


def _names_in(value: JSON) -> Iterator[str]:
    """Wherever in a value somebody can be named; customers have numbers, too."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _names_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _names_in(item)
    elif isinstance(value, float) and value.is_integer():
        yield str(int(value))
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield str(value)


JOURNAL = "people"
TOKEN_PREFIX = "sop_"


async def load_people(store: Store) -> People:
    return await folded(
        store, JOURNAL, lambda result: fold_people((item.name, item.details) for item in result)
    )


async def change_people(
    store: Store, name: str, details: Mapping[str, JSON], *, who: Principal | None, clock: Clock
) -> None:
    """Written with whoever did it. Once an administrator can prove who they are, only one may."""
    people = await load_people(store)
    if people.has_administrator():
        person = people.person(who.name) if who is not None else None
        if person is None or ADMINISTRATOR not in person.roles:
            raise mistake(
                "not-administrator",
                "only an administrator changes the people of this store",
                help="give an administrator's token: sopilot --token-file",
            )
    entry = person_details(people, details) if name == ADDED else details
    problem = why_not(people, name, entry)
    if problem is not None:
        raise UserMistake([problem])
    await write(store, JOURNAL, name, {**entry, **written_by(who)}, clock=clock)


def requester_name(people: People, requester: Principal | str | None) -> str:
    """The name of a session's requester. Where the store requires identity, raise unless it is a
    person of this store who proved who they are: only a known person can be kept from approving."""
    if not isinstance(requester, Principal):
        name, proven = requester or "", False
    else:
        name, proven = requester.name, requester.method not in ("", MACHINE)
    if "identity" not in people.demands:
        return name
    if not name or not proven:
        raise mistake(
            "no-requester",
            "this store requires identity: a session needs a requester who proves who they are",
            help="set SOPILOT_TOKEN, or pass the requester's token",
        )
    known = people.person(name)
    if known is None:
        raise mistake(
            "no-requester",
            f"this store requires identity, and `{name}` isn't one of its people",
            help=f"an administrator adds them: `sopilot people add {name}`, or an alias",
        )
    return known.name


def written_by(who: Principal | None, name: str = "") -> dict[str, JSON]:
    """Who stands behind an entry of a journal, and how they proved it."""
    principal = who.as_json() if who is not None else None
    by = who.name if who is not None and who.name else name
    return {"by": by, "identity": identity_of(principal)}


async def required_writer(store: Store, who: Principal | None, by: str) -> dict[str, JSON]:
    """As ``written_by``; raise for a person who isn't named, or must prove who they are."""
    if who is None and "identity" in (await load_people(store)).demands:
        message = "this store asks people to prove who they are"
        raise mistake("unauthenticated", message, help=_TOKEN)
    writer = written_by(who, by)
    if not same_name(str(writer["by"])):
        raise mistake("nobody", "whoever does this must be named: --as, or a token")
    return writer


async def issue_token(
    store: Store,
    entry: str,
    details: Mapping[str, JSON],
    *,
    who: Principal | None,
    clock: Clock,
) -> str:
    """The token itself, which is kept nowhere: the journal has its hash. ``details``: person,
    token (its name), expires_at."""
    people = await load_people(store)
    person, name = str(details["person"]), str(details["token"])
    result = people.person(person)
    if result is None:
        raise mistake("unknown-person", f"`{person}` is nobody here", help="`sopilot people add`")
    if any(same_name(item.name) == same_name(name) for item in people.tokens.values()):
        raise mistake("token-exists", f"there is a token `{name}` already")
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    values = {**details, "person": result.name, "sha256": token_digest(token)}
    await change_people(store, entry, values, who=who, clock=clock)
    return token
