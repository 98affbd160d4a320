"""Who may decide what: people, their tokens, roles, limits and deputies. Pure.

Folded from the entries of a journal, so that what held at any moment can be told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sopilot.language.diagnostics import Diagnostic, mistake
from sopilot.runtime.records._selection import read_condition, read_moment, value_at
from sopilot.runtime.trace.identity import MACHINE
from sopilot.runtime.vm.values import JSON, same_name

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
        said = {"method": self.method, "proof": self.proof, "through": through}
        return {name: value for name, value in said.items() if value}


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
        return {same_name(one) for one in (self.name, *self.aliases, *self.subjects)}


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
    """Not included."""


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

    def person(self, name: str) -> Person | None:
        """By any of the names."""
        wanted = same_name(name)
        return next((one for one in self.persons.values() if wanted in one.names), None)

    def has_administrator(self) -> bool:
        """One who could prove it: else nobody could ever change anything."""
        holders = {same_name(one.person) for one in self.tokens.values() if not one.revoked}
        return any(
            ADMINISTRATOR in one.roles and (key in holders or one.subjects)
            for key, one in self.persons.items()
        )

    def names_of(self, name: str) -> set[str]:
        found = self.person(name)
        return {same_name(name)} | (found.names if found else set())

    def of_token(self, token: str, at: float) -> Principal | Diagnostic:
        found = self.tokens.get(token_digest(token))
        if found is None:
            return Diagnostic("unknown-token", "nobody has this token")
        if found.revoked or same_name(found.person) not in self.persons:
            return Diagnostic("revoked-token", f"the token `{found.name}` was revoked")
        if found.expires_at is not None and at >= found.expires_at:
            return Diagnostic("expired-token", f"the token `{found.name}` is out of date")
        return Principal(found.person, TOKEN, found.name)

    def of_subject(self, issuer: str, subject: str) -> Principal | Diagnostic:
        wanted = f"{issuer}#{subject}"
        # As it is spelled, unlike people's names: a provider's `ABC` and `abc` are two people.
        found = next((one for one in self.persons.values() if wanted in one.subjects), None)
        if found is None:
            return Diagnostic(
                "unknown-subject",
                f"`{subject}` of {issuer} is nobody here",
                help=f"an administrator adds them: `sopilot people add NAME --openid {wanted}`",
            )
        return Principal(found.name, OPENID, wanted)

    def entitled(
        self, name: str, role: str, at: float, expires_at: float | None
    ) -> tuple[str, str] | None:
        """In which role of their own, and through what, somebody may decide as ``role``."""
        person = self.person(name)
        if person is None:
            return None
        if role in person.roles:
            return role, ""
        for one in self.deputies:
            if same_name(one.person) == same_name(person.name) and one.role == role:
                absent = self.person(one.stands_for)
                if one.begin <= at < one.end and absent is not None and role in absent.roles:
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
    """What speaks against an entry. Changes ``people`` by it."""
    had = people.has_administrator()
    if fold := _FOLDS.get(name):
        fold(people, details)
    new = people.persons.get(same_name(str(details.get("person")))) if name == ADDED else None
    for one in people.persons.values():
        if new is not None and one is not new and (shared := new.names & one.names):
            return Diagnostic(
                "name-taken",
                f"`{min(shared)}` is a name of {one.name}: nobody is two people",
                help=f"choose another, or say anew who {one.name} is: `sopilot people add --anew`",
            )
    if had and not people.has_administrator():
        return Diagnostic(
            "last-administrator",
            "without this administrator anybody could change the people of this store",
            help="give another one a token first",
        )
    return None


def fold_people(entries: Iterable[tuple[str, Mapping[str, JSON]]]) -> People:
    """Entries by name; unknown ones are a later release's, and ignored."""
    people = People()
    for name, details in entries:
        if fold := _FOLDS.get(name):
            fold(people, details)
    return people


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _number(value: JSON) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _added(people: People, it: Mapping[str, JSON]) -> None:
    one = Person(
        str(it["person"]), _texts(it["roles"]), _texts(it["aliases"]), _texts(it["subjects"])
    )
    people.persons[same_name(one.name)] = one


def _removed(people: People, it: Mapping[str, JSON]) -> None:
    gone = same_name(str(it["person"]))
    people.persons.pop(gone, None)
    for digest, one in people.tokens.items():
        if same_name(one.person) == gone:  # also when somebody of that name comes back
            people.tokens[digest] = replace(one, revoked=True)


def _issued(people: People, it: Mapping[str, JSON]) -> None:
    until = it.get("expires_at")
    people.tokens[str(it["sha256"])] = Token(
        str(it["token"]), str(it["person"]), None if until is None else _number(until)
    )


def _revoked(people: People, it: Mapping[str, JSON]) -> None:
    for digest, one in people.tokens.items():
        if one.name == it["token"]:
            people.tokens[digest] = replace(one, revoked=True)


def _limited(people: People, it: Mapping[str, JSON]) -> None:
    people.limits[str(it["role"])] = _texts(it["conditions"])


def _deputised(people: People, it: Mapping[str, JSON]) -> None:
    people.deputies.append(
        Deputy(
            str(it["person"]), str(it["for"]), str(it["role"]),
            _number(it["begin"]), _number(it["end"]),
        )
    )  # fmt: skip


def _escalated(people: People, it: Mapping[str, JSON]) -> None:
    people.escalations[str(it["role"])] = str(it["to"]), _number(it["before_seconds"])


def _provided(people: People, it: Mapping[str, JSON]) -> None:
    people.providers[str(it["issuer"])] = Provider(str(it["issuer"]), str(it["audience"]))


def _demanded(people: People, it: Mapping[str, JSON]) -> None:
    what = str(it["what"])
    if it["on"] is True:
        people.demands.add(what)
    else:
        people.demands.discard(what)


_FOLDS = {
    ADDED: _added,
    "person_removed": _removed,
    "token_issued": _issued,
    "token_revoked": _revoked,
    "limit_set": _limited,
    "deputy_named": _deputised,
    "escalation_set": _escalated,
    "provider_named": _provided,
    "demanded": _demanded,
}


def added(people: People, given: Mapping[str, JSON]) -> dict[str, JSON]:
    """A person as they are then: with what was known of them, unless it is said anew."""
    name = str(given["person"])
    own = people.persons.get(same_name(name))
    said: dict[str, JSON] = {"person": own.name if own is not None else name}
    for field_name in ("roles", "aliases", "subjects"):
        known = () if own is None or given.get("anew") else getattr(own, field_name)
        said[field_name] = list(dict.fromkeys((*known, *_texts(given.get(field_name)))))
    names = (name, *_texts(said["roles"]), *_texts(said["aliases"]), *_texts(said["subjects"]))
    if not all(map(same_name, names)):
        raise mistake("empty-name", "a person, a role and another name must not be empty")
    return said


def limit_details(given: dict[str, Any]) -> dict[str, Any]:
    for text in given["conditions"]:
        read_condition(text)
    return given


def deputy_details(given: dict[str, Any]) -> dict[str, Any]:
    """Between two dates, as people write them."""
    return {
        **given,
        "begin": read_moment(given["begin"]),
        "end": read_moment(given["end"], whole_day=True),
    }


def token_details(given: dict[str, Any]) -> dict[str, Any]:
    until = given["expires_at"]
    return {**given, "expires_at": None if until is None else read_moment(until, whole_day=True)}
