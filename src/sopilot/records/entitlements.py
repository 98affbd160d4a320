"""The rules about deciding on a held call and saying how a call ended.

The person must have no part in the call, must prove who they are where the store requires it, and
votes in a role and within its limits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from sopilot.machine.call_ledger import CallLedger, HeldCall, HeldState
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.state import CallRecord, Configuration
from sopilot.messages.diagnostic import Diagnostic, did_you_mean
from sopilot.messages.errors import mistake, unnamed
from sopilot.program.model import Program
from sopilot.records.people import TOKEN_HELP, People, Principal, load_people
from sopilot.records.store import Store
from sopilot.records.versions import authors_of
from sopilot.trace.events import (
    DECISION_REFUSED,
    DECISIONS,
    MACHINE,
    UNAUTHENTICATED,
    Actor,
    Note,
    identity_of,
)
from sopilot.values.json import JSON, Fields, parts_of, same_name, spell
from sopilot.values.schema import violation

REFUSED = {"approved-twice", "beyond-limit", "not-entitled", "party", "unauthenticated"}
"""Codes of refused decisions that are recorded in the trace."""

_PROVE = "this store takes decisions only from people who prove who they are"

_NO_MACHINE = (
    "approve with `sopilot approvals approve` and a token; neither `--approve` nor a scenario's "
    "`approvals` can"
)
_NO_PERSON = {*(str(item) for item in Actor if item is not Actor.OPERATOR), "agent", "assistant"}


class Ballot(TypedDict, total=False):
    """The fields of a ``Vote`` besides the decision."""

    by: str
    role: str
    arguments: Mapping[str, JSON] | None
    reason: str
    who: Principal | None


@dataclass(frozen=True, slots=True)
class Vote:
    """A person's decision on a held call: ``approve``, ``reject``, ``amend`` or ``expire``. Only an
    amendment has ``arguments``. ``who`` is the proof of identity, if any."""

    decision: str
    by: str = ""
    role: str = ""
    arguments: Mapping[str, JSON] | None = None
    reason: str = ""
    who: Principal | None = None


def refused_vote(vote: Vote, call_id: str, problem: Diagnostic) -> Note:
    """The note of a refused decision."""
    details: dict[str, JSON] = {
        "call_id": call_id,
        "decision": vote.decision,
        "by": vote.by,
        "role": vote.role,
        "identity": identity_of(vote.who.as_json() if vote.who is not None else None),
        "code": problem.code,
        "why": problem.message,
    }
    return Note(DECISION_REFUSED, details)


@dataclass(frozen=True, slots=True)
class Entitlements:
    """The people of a store, and a session of it. Names in ``authors`` and ``requesters`` are
    spelled as ``same_name`` does."""

    people: People
    metadata: Fields
    configuration: Configuration
    authors: Collection[str] = ()
    requesters: Collection[str] = ()
    programs: Mapping[str, Program] = field(default_factory=dict)

    def require(self, vote: Vote, held: HeldCall, at: float) -> Mapping[str, JSON]:
        """Return the voter's proof of identity and what entitles them. Raise ``UserMistake`` if a
        rule forbids the decision."""
        _require_open(vote, held)
        if vote.arguments is not None:
            self._require_fit(held.action, vote.arguments)
        if vote.decision == "expire":
            return {}
        arguments = held.arguments if vote.arguments is None else vote.arguments
        self._require_no_part(vote.by, held.process, held.arguments, arguments)
        # A limit is the most that may be let happen: a rejection lets nothing happen.
        rejects = vote.decision == "reject"
        principal = self._role(vote, held, at, None if rejects else arguments)
        known = self.metadata.get("requester") or self.requesters
        if not rejects and not known and "identity" in self.people.demands:
            raise mistake(
                "no-requester",
                "this session has no known requester, so its calls can't be approved",
                help="reject the call and start the session again, with the requester's token",
            )
        return principal

    def require_witness(self, pending: CallRecord, by: str, who: Principal | None) -> None:
        """Raise for a person who can't resolve a call: a party to it could have it made twice."""
        if not same_name(by):
            raise unnamed()
        if who is None and "identity" in self.people.demands:
            raise mistake(UNAUTHENTICATED, _PROVE, help=TOKEN_HELP)
        self._require_no_part(by, pending.process, pending.arguments)

    def _role(
        self, vote: Vote, held: HeldCall, at: float, arguments: Mapping[str, JSON] | None
    ) -> Mapping[str, JSON]:
        """Return the proof of identity. Raise unless the person has the role, within its limits."""
        who, role, through = vote.who, vote.role, ""
        is_person = who is not None and who.method != MACHINE
        if "identity" in self.people.demands and not is_person:
            raise mistake(UNAUTHENTICATED, _PROVE, help=TOKEN_HELP if who is None else _NO_MACHINE)
        if is_person:
            entitled = self.people.entitled(vote.by, role, at, held.expires_at)
            if entitled is None:
                cure = "`sopilot people list` shows who has which role, and when"
                raise mistake(
                    "not-entitled", f"{vote.by} doesn't have the role {role} now", help=cure
                )
            role, through = entitled
        beyond = None if arguments is None else self.people.beyond(role, arguments)
        if beyond is not None:
            raise mistake(
                "beyond-limit", f"the limit of {role} is `{beyond}`, and this call exceeds it"
            )
        return {} if who is None else who.as_json(through)

    def _require_fit(self, action: str, arguments: Mapping[str, JSON]) -> None:
        """Raise unless the arguments fit the inputs that the handbook declares, if any."""
        every = (program.actions.get(action) for program in self.programs.values())
        facts = next((item for item in every if item is not None), None)
        if facts is None or not facts.inputs:
            return
        for name, value in arguments.items():
            if name not in facts.inputs:
                cure = did_you_mean(name, facts.inputs)
                raise mistake("unknown-argument", f"`{action}` takes no `{name}`", help=cure)
            if problem := violation(value, facts.inputs[name], f"`{name}`"):
                secret = any(name in program.secrets for program in self.programs.values())
                raise mistake("wrong-type", problem if secret else f"{problem}, not {spell(value)}")
        missing = [name for name in facts.required if name not in arguments]
        if missing:
            raise mistake("missing-argument", f"`{action}` needs `{missing[0]}` as well")

    def _require_no_part(
        self, by: str, process: str | None, *arguments: Mapping[str, JSON]
    ) -> None:
        """Raise for a person who requested the call, is named in it, or wrote the handbook: in the
        call as it was requested, and as they amend it."""
        whose, names = "", self.people.names_of(by)
        model = same_name(str(self.metadata.get("model") or ""))
        requester = same_name(str(self.metadata.get("requester") or ""))
        if names & _NO_PERSON or model in names:
            whose = "the name of the model or of a part of the run, not of a person"
        elif {requester, *self.requesters} & (names - {""}):
            whose = "who asked for it"
        elif names & set(self.authors):
            whose = "who wrote the handbook"
        else:
            started = self.configuration.processes.get(process or "")
            for values in (*arguments, started.known if started is not None else {}):
                for name, value in values.items():
                    if any(same_name(item) in names for item in _names_in(value)):
                        whose = f"a party to this call (its `{name}`)"
        if whose:
            cure = "a person who isn't involved must decide"
            raise mistake("party", f"`{by}` is {whose}", help=cure)


async def load_entitlements(
    store: Store,
    metadata: Fields,
    configuration: Configuration,
    ledger: CallLedger,
    programs: ProgramSet,
) -> Entitlements:
    return Entitlements(
        await load_people(store), metadata, configuration, await authors_of(store, metadata),
        ledger.requesters, programs.programs,
    )  # fmt: skip


def _require_open(vote: Vote, held: HeldCall) -> None:
    decision, by, role = vote.decision, vote.by, vote.role
    if decision not in DECISIONS:
        cure = did_you_mean(decision, DECISIONS)
        raise mistake("unknown-decision", f"`{decision}` is not a decision", help=cure)
    if held.state not in (HeldState.WAITING, HeldState.APPROVED):
        raise mistake("decided", f"call `{held.call_id}` is already {held.state}")
    if decision == "expire":
        return
    if not same_name(by):
        raise unnamed()
    if role not in held.roles:
        cure = did_you_mean(role, held.roles)
        raise mistake("wrong-role", f"`{role}` can't decide about call `{held.call_id}`", help=cure)
    if (decision == "amend") != (vote.arguments is not None):
        raise mistake("amendment", "`amend` needs arguments; other decisions take none")
    if decision == "approve" and any(
        same_name(ruling.by) == same_name(by)
        and ruling.role == role
        and ruling.decision in ("approve", "amend")
        for ruling in held.rulings
    ):
        raise mistake("approved-twice", f"{by} has already approved as {role}")


def _names_in(value: JSON) -> Iterator[str]:
    """Every text and number in a value: customers may be named by a number."""
    for part in parts_of(value):
        if isinstance(part, Mapping):
            yield from part
        elif isinstance(part, float) and part.is_integer():
            yield str(int(part))
        elif isinstance(part, str | int) and not isinstance(part, bool):
            yield str(part)
