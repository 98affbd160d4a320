"""The people of a store: their tokens, roles, limits and deputies.

People are folded from the entries of a journal, so what was in force at any moment is known.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

from sopilot.messages.errors import mistake, unnamed
from sopilot.protocols import Clock
from sopilot.records.journal import folded, write
from sopilot.records.log import Entry
from sopilot.records.selection import read_condition, value_at
from sopilot.records.store import Store
from sopilot.trace.events import MACHINE, identity_of
from sopilot.values.json import JSON, Fields, same_name
from sopilot.values.text import moment, table

ADMINISTRATOR = "administrator"
"""Once a person with this role can prove it, only administrators change people."""

TOKEN, OPENID = "token", "openid"
ADDED = "person_added"
_LISTS = ("roles", "aliases", "subjects")
TOKEN_HELP = "pass a token: sopilot --token-file"


@dataclass(frozen=True, slots=True)
class Principal:
    """A person with a proof of identity: ``proof`` names the token, or issuer and subject."""

    name: str
    method: str
    proof: str = ""

    def as_json(self, through: str = "") -> dict[str, JSON]:
        values = {"method": self.method, "proof": self.proof, "through": through}
        return {name: value for name, value in values.items() if value}


def principal_from_json(value: JSON) -> Principal | None:
    """The identity in a decision that was queued."""
    if not isinstance(value, Mapping):
        return None
    return Principal(*(str(value.get(name) or "") for name in ("name", "method", "proof")))


THE_MACHINE = Principal("", MACHINE)
"""The run itself approves; no person looked at the call."""


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

    def __str__(self) -> str:
        return f"{self.name} (revoked)" if self.revoked else self.name


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

    def apply(self, name: str, it: Fields) -> None:
        """Apply an entry of the journal. Unknown entries are a later release's, and ignored."""
        match name:
            case "person_added":
                lists = (tuple(it[key]) for key in _LISTS)
                self.persons[same_name(str(it["person"]))] = Person(str(it["person"]), *lists)
            case "person_removed":
                gone = same_name(str(it["person"]))
                self.persons.pop(gone, None)
                # Tokens stay revoked if a person of that name is added again.
                self._revoke(lambda token: same_name(token.person) == gone)
            case "token_issued":
                until = it.get("expires_at")
                self.tokens[str(it["sha256"])] = Token(
                    str(it["token"]), str(it["person"]), None if until is None else float(until)
                )
            case "token_revoked":
                self._revoke(lambda token: token.name == it["token"])
            case "limit_set":
                self.limits[str(it["role"])] = tuple(it["conditions"])
            case "deputy_named":
                person, absent, role = (str(it[key]) for key in ("person", "for", "role"))
                begin, end = float(it["begin"]), float(it["end"])
                self.deputies.append(Deputy(person, absent, role, begin, end))
            case "escalation_set":
                self.escalations[str(it["role"])] = str(it["to"]), float(it["before_seconds"])
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
        """Find a person by any of their names."""
        wanted = same_name(name)
        return next((item for item in self.persons.values() if wanted in item.names), None)

    def has_administrator(self) -> bool:
        """Whether an administrator can prove who they are: until then everybody is one."""
        holders = {same_name(token.person) for token in self.tokens.values() if not token.revoked}
        return any(
            ADMINISTRATOR in item.roles and (key in holders or item.subjects)
            for key, item in self.persons.items()
        )

    def roles_of(self, who: Principal | None) -> frozenset[str]:
        person = self.person(who.name) if who is not None else None
        return frozenset(person.roles if person is not None else ())

    def may_manage(self, who: Principal | None, *roles: str) -> bool:
        """Whether a person is an administrator or has one of the roles. Everybody may manage until
        there is an administrator."""
        wanted = {ADMINISTRATOR, *roles}
        return not self.has_administrator() or bool(wanted & self.roles_of(who))

    def name_of(self, by: str, who: Principal | None) -> str:
        """The person's own name for an alias: an alias isn't a second person."""
        if who is not None and who.name:
            if by and same_name(by) not in self.names_of(who.name):
                raise mistake("another-name", f"this is {who.name}'s token, not `{by}`'s")
            return who.name
        known = self.person(by)
        return by if known is None else known.name

    def tokens_of(self, person: Person) -> list[Token]:
        return [token for token in self.tokens.values() if token.person == person.name]

    def names_of(self, name: str) -> set[str]:
        result = self.person(name)
        return {same_name(name)} | (result.names if result else set())

    def of_token(self, token: str, at: float) -> Principal:
        result = self.tokens.get(token_digest(token))
        if result is None:
            raise mistake("unknown-token", "this token belongs to nobody in this store")
        if result.revoked or same_name(result.person) not in self.persons:
            raise mistake("revoked-token", f"the token `{result.name}` was revoked")
        if result.expires_at is not None and at >= result.expires_at:
            raise mistake("expired-token", f"the token `{result.name}` has expired")
        return Principal(result.person, TOKEN, result.name)

    def of_subject(self, issuer: str, subject: str) -> Principal:
        wanted = f"{issuer}#{subject}"
        # As it is spelled, unlike people's names: a provider's `ABC` and `abc` are two people.
        result = next((item for item in self.persons.values() if wanted in item.subjects), None)
        if result is None:
            raise mistake(
                "unknown-subject",
                f"`{subject}` of {issuer} isn't a person known to this store",
                help=f"an administrator adds them: `sopilot people add NAME --openid {wanted}`",
            )
        return Principal(result.name, OPENID, wanted)

    def entitled(
        self, name: str, role: str, at: float, expires_at: float | None
    ) -> tuple[str, str] | None:
        """The role of their own in which a person may decide as ``role``, and through what."""
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
        """The first limit of the role that these arguments exceed, or whose argument is missing."""
        for text in self.limits.get(role, ()):
            condition = read_condition(text)
            if value_at(arguments, condition.path) is None or not condition.holds(arguments):
                return text
        return None


def token_digest(token: str) -> str:
    """A fast hash is enough: tokens are 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def fold_people(entries: Iterable[Entry]) -> People:
    people = People()
    for entry in entries:
        people.apply(entry.name, entry.details)
    return people


def _require_consistent(people: People, name: str, details: Mapping[str, JSON]) -> None:
    """Apply the entry to ``people``; raise if two people then share a name, or no administrator is
    left."""
    had = people.has_administrator()
    people.apply(name, details)
    new = people.persons.get(same_name(str(details.get("person")))) if name == ADDED else None
    for person in people.persons.values():
        if new is not None and person is not new and (shared := new.names & person.names):
            cure = f"choose another, or replace the names of {person.name} with `--anew`"
            message = f"the name `{min(shared)}` already belongs to {person.name}"
            raise mistake("name-taken", message, help=cure)
    if had and not people.has_administrator():
        message = "without this administrator anyone could change the people of this store"
        raise mistake(
            "last-administrator", message, help="give another administrator a token first"
        )


def person_details(people: People, values: Fields) -> dict[str, Any]:
    """A person with the roles and names they have already, unless ``anew`` replaces them."""
    name = str(values["person"])
    own = people.persons.get(same_name(name))
    lists: dict[str, list[str]] = {}
    for key in _LISTS:
        known = () if own is None or values.get("anew") else getattr(own, key)
        lists[key] = list(dict.fromkeys((*known, *(values.get(key) or ()))))
    if not all(map(same_name, (name, *chain(*lists.values())))):
        raise mistake("empty-name", "names of persons and roles must not be empty")
    return {"person": own.name if own is not None else name, **lists}


def limit_details(values: dict[str, Any]) -> dict[str, Any]:
    for text in values["conditions"]:
        read_condition(text)
    return values


def people_lines(people: People) -> Iterator[str]:
    rows = [
        (
            person.name,
            ", ".join(person.aliases) or "-",
            ", ".join(person.roles) or "-",
            ", ".join(map(str, people.tokens_of(person))) or "-",
        )
        for person in people.persons.values()
    ]
    yield table(rows, ("NAME", "ALSO", "ROLES", "TOKENS")) if rows else "no people yet"
    for role, conditions in people.limits.items():
        yield f"{role} decides within {', '.join(conditions) or 'no limit'}"
    for deputy in people.deputies:
        begin, end = moment(deputy.begin), moment(deputy.end)
        yield (
            f"{deputy.person} decides for {deputy.stands_for} as {deputy.role} "
            f"from {begin} to {end}"
        )
    for role, (to, seconds) in people.escalations.items():
        yield f"{to} may decide as {role} {seconds / 60:g} minutes before a request expires"
    for demand in sorted(people.demands):
        yield f"demanded: {demand}"


def people_json(people: People) -> dict[str, Any]:
    return {
        "people": [
            {
                "name": person.name,
                "roles": list(person.roles),
                "aliases": list(person.aliases),
                "openid": list(person.subjects),
                "tokens": [
                    {"name": item.name, "expires_at": item.expires_at, "revoked": item.revoked}
                    for item in people.tokens_of(person)
                ],
            }
            for person in people.persons.values()
        ],
        "limits": {role: list(texts) for role, texts in people.limits.items()},
        "providers": [asdict(provider) for provider in people.providers.values()],
        "demands": sorted(people.demands),
    }


JOURNAL = "people"
TOKEN_PREFIX = "sop_"


async def load_people(store: Store) -> People:
    return await folded(store, JOURNAL, fold_people)


async def change_people(
    store: Store, name: str, details: Mapping[str, JSON], *, who: Principal | None, clock: Clock
) -> None:
    """Record a change with the person who makes it. Once an administrator can prove who they are,
    only an administrator may."""
    people = await load_people(store)
    if not people.may_manage(who):
        raise mistake(
            "not-administrator",
            "only an administrator changes the people of this store",
            help="give an administrator's token: sopilot --token-file",
        )
    entry = person_details(people, details) if name == ADDED else details
    _require_consistent(people, name, entry)
    await write(store, JOURNAL, name, {**entry, **written_by(who)}, clock=clock)


def requester_name(people: People, requester: Principal | str | None) -> str:
    """The name of a session's requester. Where the store requires identity, raise unless it is a
    person of this store who proved who they are: only a known person can be kept from approving."""
    principal = requester if isinstance(requester, Principal) else Principal(requester or "", "")
    name = principal.name
    if "identity" not in people.demands:
        return name
    if not name or principal.method in ("", MACHINE):
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
    """The author of a journal's entry, and the proof of identity."""
    principal = who.as_json() if who is not None else None
    by = who.name if who is not None and who.name else name
    return {"by": by, "identity": identity_of(principal)}


async def required_writer(store: Store, who: Principal | None, by: str) -> dict[str, JSON]:
    """As ``written_by``; raise for a person who isn't named, or must prove who they are."""
    if who is None and "identity" in (await load_people(store)).demands:
        message = "this store asks people to prove who they are"
        raise mistake("unauthenticated", message, help=TOKEN_HELP)
    writer = written_by(who, by)
    if not same_name(str(writer["by"])):
        raise unnamed()
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
        raise mistake(
            "unknown-person", f"this store has no person `{person}`", help="`sopilot people add`"
        )
    if any(same_name(item.name) == same_name(name) for item in people.tokens.values()):
        raise mistake("token-exists", f"there is already a token `{name}`")
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    values = {**details, "person": result.name, "sha256": token_digest(token)}
    await change_people(store, entry, values, who=who, clock=clock)
    return token
