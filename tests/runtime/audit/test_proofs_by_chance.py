"""What lists of calls prove, by chance: every kind of rule and gate, over short histories of calls
that are right, wrong, late, broken off and about look-alikes. A line is forty histories; it counts
what came out and ends with a digest of every reading. ``SOPILOT_REGOLD=1`` rewrites them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich_walks import WORLDS
from test_whole_reports import as_it_was, digest

from sopilot.language.handbook.cel import judge
from sopilot.runtime.audit._audit_state import AuditState
from sopilot.runtime.audit._call_reading import moment_of
from sopilot.runtime.audit._leaf_reading import _covers, grade_of, read_leaf
from sopilot.runtime.audit._moment import Moment, Unreadable
from sopilot.runtime.audit._recipe_answers import answer_to, asked_calls, disturbed_by
from sopilot.runtime.audit._rereading import _is_asked_for, leaves_below
from sopilot.runtime.audit._resolved_function import ProgramCode, ResolvedFunction, read_program
from sopilot.runtime.audit._session_calls import SessionCall
from sopilot.runtime.audit._state import FrameView, Judged, PendingCall, ProcessView

HISTORIES, PLACES = 40, 170
CODES = {name: {goal: read_program(goal, one) for goal, one in programs.items()}
         for name, programs in WORLDS.items()}  # fmt: skip
WITHHELD = {"$ref": "00", "bytes": 5}
ANSWERS: tuple[Any, ...] = (
    {"verified": True, "balance": 100, "status": "closed", "case_id": "k", "valid": True,
     "cards": [{"number": 7}, {"number": 8}], "owner": "ann", "holder": "ann", "deputies": [],
     "policy": "ann", "state": "open", "held": False, "product": "health", "iban": "ann",
     "payments": [], "event_date": "2026-01-02", "from": "2024-01-01", "until": "2027-01-01",
     "answer": "yes", "said": "yes", "message": 3},
    {"verified": False, "balance": 1, "status": "frozen", "case_id": "l", "valid": False,
     "cards": [{"number": 9}], "owner": "eve", "holder": "eve", "deputies": ["ann"],
     "policy": "eve", "state": "rejected", "held": True, "product": "travel", "iban": "eve",
     "payments": [{"day": "2026-03-01", "amount": 10**6}], "event_date": "2026-01-02",
     "from": "2027-01-01", "until": "2028-01-01", "answer": "no", "said": "no", "message": 1},
    {"case_id": "k", "cards": []}, True, False, None, "no", WITHHELD,
)  # fmt: skip
LEAVES: list[tuple[str, str, ResolvedFunction]] = [
    (name, goal, code)
    for name, programs in CODES.items()
    for goal, program in programs.items()
    for code in program.functions.values()
    if code.judges
]


class History:
    """The calls of one session, most of them what the leaf asks for."""

    def __init__(self, rng: random.Random, name: str, goal: str, code: ResolvedFunction) -> None:
        self.rng, self.program = rng, CODES[name][goal]
        self.values = {one: self.value(one) for one in code.function.parameters}
        if rng.random() < 0.05 and self.values:
            self.values.pop(rng.choice(list(self.values)))
        self.known = {**self.values, "password": "x", "code": "42", "card": "c", "pin": "1"}
        if rng.random() < 0.1:
            self.known = dict(self.values)
        self.acts = [*code.acts]
        if code.function.closed_by is not None:
            self.acts += [code.function.closed_by] * 2
        if code.function.principal:
            self.acts += [
                act for one in self.program.functions.values() if one.function.principal
                for act in one.acts
            ]  # fmt: skip
        self.calls: list[SessionCall] = []
        seq = 1
        for _ in range(rng.randint(0, 6)):
            seq = self.call(seq)
        run = AuditState(CODES[name], judge if rng.random() < 0.95 else None)
        run.session_calls = self.calls
        run.clock = rng.choice(("", "2026-01-15T15:00:00"))
        entry = self.program.entry
        frame = FrameView(entry, entry.first(), dict(self.known), None, 0, goal)
        process = ProcessView("p1", self.program, [frame], dict(self.known), dict(self.known))
        process.judged = [self.judged(code) for _ in range(rng.choice((0, 1, 2)))]
        self.moment: Moment = moment_of(run, process, self.known)

    def value(self, name: str) -> Any:
        if name in ("amount", "most"):
            return self.rng.choice((5, 5.0, 50))
        if name.endswith("date"):
            return "2026-01-02"
        return "ann" if self.rng.random() < 0.9 else self.rng.choice(("bob", 5, "аnn", None))

    def call(self, seq: int) -> int:
        rng = self.rng
        answered = [one for one in self.calls if one.ok]
        if rng.random() < 0.15 or not self.acts:
            action = rng.choice([*sorted(self.program.goal_actions), "touch", "note_down", "dance"])
            arguments: dict[str, Any] = {"user": "ann"}
        else:
            act = rng.choice(self.acts)
            action, arguments = act.action, {}
            named = {one.action: one.value for one in answered}
            for parameter, term in act.arguments:
                arguments[parameter] = self.argument(term, named)
            if rng.random() < 0.05:
                arguments["more"] = 1
            if rng.random() < 0.05 and arguments:
                arguments.pop(rng.choice(list(arguments)))
        made = SessionCall(seq, action, arguments, "p1", rng.choice((0, 7)))
        self.calls.append(made)
        chance = rng.random()
        if chance < 0.88:
            made.answered = seq + rng.choice((1, 1, 1, 23))
            made.ok = chance < 0.78
            made.unknown = 0.78 <= chance < 0.82
            made.value = rng.choice(ANSWERS[:1] if rng.random() < 0.7 else ANSWERS)
        return seq + 10

    def argument(self, term: Any, named: dict[str, Any]) -> Any:
        if hasattr(term, "value"):
            return term.value
        if hasattr(term, "root"):
            return self.rng.choice((7, 8, 9, "k", "l"))
        if self.rng.random() < 0.9 and term.name in self.known:
            return self.known[term.name]
        return self.rng.choice(("ann", "bob", "аnn", 5, "Ann"))

    def judged(self, code: ResolvedFunction) -> Judged:
        rng = self.rng
        done = [one.answered for one in self.calls if one.answered is not None]
        evidence = tuple(sorted(rng.sample(done, rng.randint(0, len(done)))))
        values = self.values if rng.random() < 0.8 else {"user": "bob"}
        holds = rng.choice((True, True, False, None))
        return Judged(code.function.name, values, holds, evidence, 900, rng.choice((0, 7)))


def readings(history: History, code: ResolvedFunction) -> Iterator[Any]:
    moment, values, rng = history.moment, history.values, history.rng
    reading = read_leaf(moment, code, values)
    lack = [reading.lack.code, reading.lack.why] if reading.lack is not None else None
    yield [reading.holds, str(reading.grade), list(reading.evidence), lack]
    done = [one.answered for one in history.calls if one.answered is not None]
    cited = frozenset(done if rng.random() < 0.7 else done[:1])
    yield _covers(moment, code, values, cited)
    frame = FrameView(code, code.first(), dict(values), None, 7, "")
    yield str(grade_of(moment, frame, rng.random() < 0.7, cited, {}))
    for recipe in code.recipes:
        named = {one.answer: ANSWERS[0] for one in recipe}
        for act in recipe:
            asked = asked_calls(moment, code, act, values, named)
            yield asked if isinstance(asked, list) else [asked.code, asked.why]
            for one in asked if isinstance(asked, list) else ():
                found = answer_to(moment, act, one)
                yield getattr(found, "why", None) or getattr(found, "seq", None)
    for one in history.calls[:2]:
        disturbing = disturbed_by(moment, one)
        yield None if disturbing is None else disturbing.seq
        pending = PendingCall(99, one.action, one.arguments, "p1", 0, "")
        yield _is_asked_for(moment, pending, history.known)


def of_leaves() -> Iterator[str]:
    rng = random.Random(41)
    for number in range(PLACES):
        name, goal, code = LEAVES[number % len(LEAVES)]
        found: list[Any] = []
        outcomes: Counter[str] = Counter()
        for _ in range(HISTORIES):
            history = History(rng, name, goal, code)
            told: list[Any] = []
            try:
                told.extend(readings(history, code))
                lack = told[0][3]
                outcomes[lack[0] if lack else f"{told[0][0]} {told[0][1]}"] += 1
            except Unreadable:
                told.append("unreadable")
                outcomes["unreadable"] += 1
            found.append(told)
        counted = ", ".join(f"{one} {count}" for one, count in sorted(outcomes.items()))
        yield f"{number} {name} {goal} {code.function.name}: {counted} {digest(found)}"


def test_what_calls_prove_is_as_it_was() -> None:
    as_it_was("proofs", of_leaves())


def below(program: ProgramCode) -> list[list[Any]]:
    return [
        [code.function.name, len(chain)] for code, chain in leaves_below(program, program.entry, ())
    ]


def test_the_leaves_of_a_program() -> None:
    send = CODES["everything"]["send"]
    assert [one[0] for one in below(send)].count("logged_in") >= 1
    assert all(depth >= 1 for _, depth in below(send))
    assert {one for one, _ in below(send)} == {
        name for name, code in send.functions.items() if code.judges
    }
