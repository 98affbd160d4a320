"""Pieces of sessions by chance, each over hundreds of odd inputs: where secrets stand, who may
decide, what a stored setting means, what a file of a trace says, and the words for people. A line
ends with a digest of all that came out. ``SOPILOT_REGOLD=1`` rewrites them."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from life_desk import FIRST

from counter_desk import COUNTER
from sopilot.language.diagnostics import SopilotError
from sopilot.runtime.records.completeness import Gap
from sopilot.runtime.records.log import head_of, seal_head
from sopilot.runtime.records.people import Deputy, People, Person, Principal
from sopilot.runtime.session._approvals import HeldCall, HeldState, Ruling, count_approvals, rule
from sopilot.runtime.session._entitlement import objection, principal_from_json
from sopilot.runtime.session._settings import settings_from_json
from sopilot.runtime.session._store import SessionRecord
from sopilot.runtime.session._trace_file import TraceFile, read_trace, write_trace
from sopilot.runtime.session.privacy import Shredded, _names, _texts
from sopilot.runtime.session.pruning import Pruning
from sopilot.runtime.session.recovery import program_changes
from sopilot.runtime.session.reminders import DueCall, due_lines
from sopilot.runtime.session.sealing import Sealing, Verified
from sopilot.runtime.session.secrets import Secrets, _kept_back, secret_places
from sopilot.runtime.session.session_text import session_lines, waiting_lines
from sopilot.runtime.session.trace_check import as_recorded, verify_trace
from sopilot.runtime.session.unsettled import LeftOpen, Waiting, is_unsettled
from sopilot.runtime.session.verified_text import sealed_lines, verified_json, verified_lines
from sopilot.runtime.trace import Head, genesis, reference, seal_all
from sopilot.runtime.trace.signing import SigningKey, sign_head
from sopilot.runtime.vm import JSON, Configuration, Event
from sopilot.runtime.vm.values import canonical

GOLDEN = Path(__file__).parent / "golden" / "pieces.txt"
KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(32)))
OTHER = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([1] * 32)))
_WORDS = ("una", "Bob", "4711-0815", "wire", "", "password", "x y")
_NAMES = ("username", "password", "pin", "amount", "more", "to", "number", "reason", "calls")


def anything(rng: random.Random, depth: int = 0) -> Any:
    match rng.randrange(9 if depth < 2 else 6):
        case 0:
            return rng.choice((0, 1, -1, 60, 2.5))
        case 1:
            return rng.choice((None, True, False))
        case 2 | 3 | 4:
            return rng.choice(_WORDS)
        case 5:
            return reference(rng.choice(_WORDS), b"")
        case 6:
            return [anything(rng, depth + 1) for _ in range(rng.randrange(3))]
        case _:
            return given(rng, depth + 1)


def given(rng: random.Random, depth: int = 1) -> dict[str, Any]:
    return {name: anything(rng, depth) for name in rng.sample(_NAMES, rng.randrange(4))}


def event(rng: random.Random) -> Event:
    kind = rng.choice(("domain_call", "start", "note", "rejected", "decision", "call", "user_said"))
    arguments = given(rng) if rng.random() < 0.85 else anything(rng)
    payload: dict[str, Any] = {"arguments": arguments, "reason": anything(rng)}
    if kind in ("domain_call", "note"):
        payload["action"] = rng.choice(("login", "wire", "dance", "read_card"))
    if kind == "start":
        payload["goal"] = rng.choice(("wire", "rename", "dance"))
    if kind == "note":
        name = rng.choice(("held_call", "malformed_call", "seen", "program_changed"))
        payload = {"name": name, "details": payload if rng.random() < 0.9 else anything(rng)}
        if rng.random() < 0.3:
            payload["details"] = {"programs": rng.choice(({"a": "b"}, 5, None))}
    if kind == "rejected":
        asked = rng.choice(("call", "domain_call", "start", "fail", "complete"))
        payload = {"operation": {"operation": asked, **payload}, "code": "x"}
        if rng.random() < 0.1:
            payload["operation"] = anything(rng)
    return Event(rng.randrange(9), 1.0, rng.choice(("model", "runtime")), kind, "p1", "", payload)


def held_call(rng: random.Random) -> HeldCall:
    roles = tuple(rng.sample(("boss", "auditor", "clerk"), rng.randint(1, 3)))
    expires = rng.choice((None, 50.0, 500.0))
    return HeldCall(
        "c", "wire", {"username": "una", "amount": rng.choice((1, 900))}, rng.choice(("p1", None)),
        roles, rng.randint(1, 3), 10.0, expires, 3,
        tuple(ruling(rng) for _ in range(rng.randrange(4))),
        rng.choice(list(HeldState)), rng.random() < 0.3, rng.choice(("", "4711-0815 is missing")),
    )  # fmt: skip


def ruling(rng: random.Random) -> Ruling:
    proven = {"name": "ann", "method": "token", "proof": "t"} if rng.random() < 0.4 else {}
    return Ruling(
        rng.choice(("approve", "approve", "amend", "reject", "expire")),
        rng.choice(("ann", "Ann ", "bo", "cy", "")), rng.choice(("boss", "auditor", "clerk")),
        rng.choice(("", "4711-0815", "fine")), rng.randrange(9), proven,
    )  # fmt: skip


# --- the pieces -----------------------------------------------------------------------


def secrets_in_events(rng: random.Random) -> Any:
    one, programs = event(rng), rng.choice((FIRST, FIRST, COUNTER))
    places = secret_places(programs)
    kept = {**one.payload, "arguments": anything(rng)}
    return [
        sorted(places.fields_in(one)), sorted(places.strange_in(one)),
        sorted(places.kept_back_in(one)), sorted(places.values_in(one)),
        _kept_back(one.payload, kept, places.kept_back_in(one)),
    ]  # fmt: skip


def secrets_shown(rng: random.Random) -> Any:
    secrets = Secrets(rng.choice((FIRST, FIRST, COUNTER)), Configuration(), [held_call(rng)])
    if rng.random() < 0.8:
        secrets.learn(event(rng))
        secrets.values.learn({"4711-0815"} if rng.random() < 0.5 else ())
    held = held_call(rng)
    decided = {"call_id": rng.choice(("c", "x")), "arguments": given(rng), "reason": anything(rng)}
    left = decided if rng.random() < 0.9 else anything(rng)
    action = rng.choice(("login", "wire", "dance"))
    return [
        secrets.shown(action, given(rng)), secrets.shown_call(held).as_json(),
        secrets.shown_decision(left, {"c": held}), secrets.masked("a 4711-0815 b"),
    ]  # fmt: skip


def who_may_decide(rng: random.Random) -> Any:
    people = People()
    for name in rng.sample(("ann", "bo", "cy"), rng.randrange(4)):
        roles = tuple(rng.sample(("boss", "auditor", "clerk"), 2))
        people.persons[name] = Person(name, roles, ("Annie",) if name == "ann" else ())
    people.demands = set(rng.choice(((), ("identity",))))
    people.limits = rng.choice(({}, {"boss": ("amount < 500",)}))
    people.escalations = rng.choice(({}, {"boss": ("auditor", 100.0)}))
    people.deputies = [Deputy("ann", "bo", "boss", 0.0, 60.0)] if rng.random() < 0.2 else []
    metadata = {
        "model": rng.choice(("", "gpt", "cy")),
        "requester": rng.choice(("", "bo", "Annie")),
    }
    by = rng.choice(("ann", "Annie", "bo", "cy", "una", "", "model", "900"))
    word = rng.choice(("approve", "approve", "amend", "reject", "expire", "perhaps"))
    changed = {"username": "una", "amount": rng.choice((5, 900, "x"))}
    if rng.random() < 0.2:
        changed[rng.choice(("to", "more"))] = [{"who": by}]
    principal = Principal(by, rng.choice(("token", "machine", "openid")), "t")
    problem, proof = objection(
        people, metadata, Configuration(), held_call(rng), word, by=by,
        role=rng.choice(("boss", "auditor", "chief")),
        arguments=changed if rng.random() < (0.9 if word == "amend" else 0.1) else None,
        who=principal if rng.random() < 0.5 else None, at=rng.choice((20.0, 45.0, 90.0)),
        authors=rng.choice(((), ("ann",))), programs=rng.choice((None, FIRST.programs)),
    )  # fmt: skip
    told = None if problem is None else [problem.code, problem.message, problem.help]
    found = principal_from_json(anything(rng) if rng.random() < 0.5 else asdict(principal))
    return [told, dict(proof), None if found is None else asdict(found)]


def rulings(rng: random.Random) -> Any:
    held, one = held_call(rng), ruling(rng)
    after = rule(
        held, decision=one.decision, by=one.by, role=one.role, arguments={"amount": 7},
        reason=one.reason, seq=9, at=rng.choice((20.0, 50.0, 51.0)), principal=one.principal,
    )  # fmt: skip
    now = rng.choice((50.0, 50.5))
    standing = tuple(ruling(rng) for _ in range(6))
    return [
        after.as_json(), held.has_expired(now), held.is_open(now), held.lasts, held.approvals,
        None if held.rejection is None else held.rejection.seq,
        held.serves("wire", {"username": "una", "amount": 1.0}),
        count_approvals(standing, held.roles, held.needed), count_approvals(standing, ("boss",), 2),
    ]  # fmt: skip


def settings(rng: random.Random) -> Any:
    value: Any = {
        "inline_limit": rng.choice((None, 5, 5.0, True, "x")),
        "lease_seconds": rng.choice((3, 2.5, False, None)),
        "by_reference": rng.choice((["a"], ("b", 1), "a", None)),
        "private": rng.choice((True, False, 1, None)),
        "columns": rng.choice((["a"], 5, [])),
        "automation": rng.choice(({"fail": True}, {"fail": 1}, 5, {"odd": 1}, {})),
        "limits": rng.choice(({}, {"odd": 1}, 5)),
    }
    value = {name: one for name, one in value.items() if rng.random() < 0.4}
    return settings_from_json(value if rng.random() < 0.97 else anything(rng)).as_json()


def records(rng: random.Random) -> Any:
    summary = {
        "status": rng.choice(("running", "unknown", "completed", "waiting", "new")),
        "open": rng.choice(([], ["a"])), "waiting": rng.choice(([], ["a"])), "goal": "g",
    }  # fmt: skip
    summary = {name: one for name, one in summary.items() if rng.random() < 0.8}
    metadata = {"handbook": "h", "salt": "s", "extra": {"a": 1}, "model": "m", "format": 1}
    more = rng.choice(({}, {"shredded": 5.0}, {"pruned": 5.0}, {"locked": "x"}, {"shredded": None}))
    record = SessionRecord(
        "s", 5.0, 60.0, {**metadata, **more}, summary, Head("s", rng.choice((-1, 0, 4)), "h"),
        rng.choice(("", "me")), rng.choice((0.0, 10.0, 20.0)),
    )  # fmt: skip
    return [
        record.as_json(), record.is_erased, record.is_pruned, record.is_locked,
        record.is_unfinished, is_unsettled(record, now=10.0), record.metadata_when_erased(1.0),
        record.metadata_when_pruned(2.0), list(session_lines([record] * 2, rng.choice((2, 3)))),
    ]  # fmt: skip


def words(rng: random.Random) -> Any:
    entries = ()
    seal = seal_head(KEY, head_of(entries, 5.0))

    def few() -> list[str]:
        return [f"s{number}" for number in range(rng.randrange(3))]

    verified = Verified(
        [Gap("erased-session", "gone", "s", 1)] * rng.randrange(3), seal, rng.randrange(4),
        rng.randrange(4), rng.randrange(3), rng.randrange(3), rng.randrange(3), few(),
        rng.randrange(3), few(), rng.randrange(3),
    )  # fmt: skip
    without = rng.random() < 0.5
    sealing = Sealing(seal, entries, rng.randrange(3), tuple(few()), tuple(few()))
    shredded = Shredded(
        tuple(few()), dict.fromkeys(few(), "court"), tuple(few()), tuple(few()), tuple(few()),
        tuple(few()),
    )  # fmt: skip
    pruned = Pruning(tuple(few()), dict.fromkeys(few(), "court"), tuple(few()), rng.randrange(3),
                     rng.random() < 0.5)  # fmt: skip
    due = [
        DueCall("s", "c", "pay", 1, 2, rng.choice((None, 50.0)), {"boss": few()},
                rng.choice(({}, {"boss": "chief"})))
        for _ in range(rng.randrange(3))
    ]  # fmt: skip
    open_ = tuple(LeftOpen("s", one, "pay") for one in few())
    waiting = Waiting(tuple(held_call(rng) for _ in few()), open_, rng.random() < 0.5, tuple(few()))
    return [
        verified.complete, verified_json(verified, without),
        list(verified_lines(verified, without)),
        sealing.as_json(), list(sealed_lines(sealing)), shredded.lines(), shredded.as_json(),
        shredded.all_erased, pruned.lines(), pruned.as_json(), list(due_lines(due)),
        [one.as_json() for one in due], [one.told_as for one in due], waiting.as_json(),
        list(waiting_lines(waiting)) if not waiting.left else None,
    ]  # fmt: skip


def trace_files(rng: random.Random) -> Any:
    opening = {"programs": {"g": "00"}, "handbook": "h", "arm": "", "model": "", "goals": []}
    details: Any = rng.choice((opening, opening, reference(opening, b"\1")))
    first = Event(0, 1.0, "runtime", "note", None, "", {"name": "opened", "details": details})
    later = [Event(seq, 1.0, "user", "user_said", None, "", {"text": "x"}) for seq in (1, 2)]
    sealed = seal_all([first, *later], genesis("s"))
    text = "program"
    trace = TraceFile(
        "s", tuple(sealed), {"g": rng.choice(("00", "01"))},
        {hashlib.sha256(text.encode()).hexdigest(): rng.choice((text, "other"))},
        {name: one for name, one in opening.items() if name != "programs"}
        | rng.choice(({}, {}, {"more": 1}, {"model": "m"})),
        tuple(
            sign_head(rng.choice((KEY, OTHER)), Head(*one), at=1.0)
            for one in rng.sample(
                (("s", 2, sealed[2].hash), ("s", -1, genesis("s")), ("t", 0, "h"), ("s", 3, "h"),
                 ("s", 1, "h")), rng.randrange(3))
        ),
        rng.choice(({}, {str(reference(opening, b"\1")["$ref"]): opening}, {"00": 5})),
        rng.choice(("01", "01", "", "odd")),
    )  # fmt: skip
    changes: list[Callable[[], TraceFile]] = [
        lambda: trace,
        lambda: replace(trace, events=trace.events[:1]),
        lambda: replace(trace, events=()),
        lambda: replace(trace, events=trace.events[1:]),
        lambda: replace(trace, session_id="t"),
    ]
    changed = rng.choice(changes)()
    keys = rng.choice((None, [], [KEY.public], [KEY.public, OTHER.public]))
    found = [str(one) for one in verify_trace(changed, keys=keys)]
    kept = as_recorded(changed)
    said = [dict(kept.programs), sorted(kept.program_texts), dict(kept.payloads)]
    lines = write_trace(trace).split("\n")
    place = rng.randrange(len(lines))
    torn = [
        lines[:-1], [*lines[:place], *lines[place + 1 :]], [*lines[:place], "{}", *lines[place:]],
        [*lines[:place], lines[place].replace(":", ": ", 1), *lines[place + 1 :]],
        [lines[0].replace('"s"', "5"), *lines[1:]], [lines[0].replace('trace":1', 'trace":2')],
        ['{"odd":1,' + lines[0][1:], *lines[1:]], ["[]", *lines[1:]], ["nan", *lines[1:]], lines,
    ]  # fmt: skip
    try:
        again: Any = read_trace("\n".join(rng.choice(torn)))
        again = [len(again.events), len(again.signatures), dict(again.payloads), again.salt]
    except SopilotError as problem:
        again = str(problem)
    return [found, said, again]


def searched(rng: random.Random) -> Any:
    value = rng.choice((anything(rng), json.dumps(anything(rng)), ["ＵＮＡ", "a\\u0062"]))
    wanted = [rng.choice(("una", "BOB", "4711", "", "ab", "1"))]
    several = [event(rng) for _ in range(3)]
    return [
        list(_texts(value)),
        _names(value, wanted),
        [list(one) for one in program_changes(several)],
    ]


PIECES: Mapping[str, tuple[Callable[[random.Random], Any], int]] = {
    "secrets in events": (secrets_in_events, 900),
    "secrets shown": (secrets_shown, 400),
    "who may decide": (who_may_decide, 1200),
    "rulings": (rulings, 500),
    "settings": (settings, 400),
    "records": (records, 250),
    "words": (words, 150),
    "trace files": (trace_files, 400),
    "searched": (searched, 300),
}


def lines() -> Iterator[str]:
    for name, (piece, count) in PIECES.items():
        rng, refused = random.Random(f"pieces {name}"), 0
        told: list[JSON] = []
        for number in range(1, count + 1):
            try:
                told.append(piece(rng))
            except SopilotError as problem:
                refused += 1
                told.append(str(problem))
            if number % 50 == 0:
                digest = hashlib.sha256(canonical(told)).hexdigest()[:12]
                yield f"{name} {number}: {refused} refused {digest}"
                told, refused = [], 0


def test_pieces_are_as_they_were() -> None:
    found = list(lines())
    if os.environ.get("SOPILOT_REGOLD"):
        GOLDEN.write_text("\n".join(found) + "\n", "utf-8")
    assert found == GOLDEN.read_text("utf-8").splitlines()
