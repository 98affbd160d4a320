"""Walks by chance through programs of every kind: mostly what fits, with a good deal that does
not, with people, notes, broken-off calls and changes of mind."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path as File
from typing import Any

from test_audit_trace import BOOK as APPROVED
from vm_programs import PROGRAMS as BY_HAND
from vm_programs import program

from sopilot.desks.bundled import load_desk
from sopilot.language.compiler import compile_handbook
from sopilot.language.handbook import Handbook, Path, load_handbook
from sopilot.language.handbook.assent import assent
from sopilot.language.program.model import (
    Act,
    ActionFacts,
    Ask,
    Check,
    CompleteStep,
    Every,
    FailStep,
    Function,
    Guarded,
    Holds,
    Kind,
    Local,
    Program,
    ReturnStep,
    Unknown,
)
from sopilot.runtime.vm import (
    JSON,
    Amend,
    AssistantSaid,
    Automation,
    BindEvidence,
    Call,
    Complete,
    Decision,
    DomainCall,
    DomainResult,
    EmitArtifact,
    Event,
    Fail,
    Judge,
    Machine,
    Note,
    Operation,
    Return,
    SelectBranch,
    Start,
    UserSaid,
)


def _compiled(book: Handbook) -> Mapping[str, Program]:
    return {name: one.program for name, one in compile_handbook(book).items()}


_POLICY = File(__file__).parents[1] / "policies" / "policy.yaml"
USER = (("user", Local("user")),)
ODD = replace(
    program(
        "odd",
        Function(
            "odd",
            Kind.PROCESS,
            ("user", "n"),
            (
                Ask("ask", ("code",)),
                Act("note", "note", (*USER, ("code", Unknown("code")))),
                Check("known", "known", USER, "known", unmet="no"),
                Check("fine", "fine", USER, "fine", met="both", unmet="both"),
                Check("both", "pair", (*USER, ("n", Local("n"))), "pair", unmet="again"),
                Check("again", "small", (("n", Local("n")),), "again", unmet="no"),
                Act("act", "close", (*USER, ("n", Local("n"))), goal=True),
                CompleteStep("done"),
                FailStep("no", "Refuse."),
            ),
            says="Closes it.",
        ),
        Function(
            "known",
            Kind.GATE,
            ("user",),
            (Act("open", "login", (*USER, ("password", Unknown("password")))), ReturnStep("end")),
            predicate="known",
            closed_by=Act("shut", "logout", USER),
            principal=True,
        ),
        Function(
            "fine",
            Kind.RULE,
            ("user",),
            (
                Act("list", "list_orders", USER, name="orders"),
                Act(
                    "each",
                    "read_order",
                    (("id", Path("one", ("id",))),),
                    name="read",
                    each=Path("orders", ("ids",)),
                    element="one",
                ),
                ReturnStep("end"),
            ),
            says="The orders of {user} are fine.",
            predicate="fine",
            verdict="size(results.read) > 1",
        ),
        Function(
            "pair",
            Kind.GROUP,
            ("user", "n"),
            (
                Check("c1", "small", (("n", Local("n")),), "small", met="c2", unmet="c2"),
                Check("c2", "fine", USER, "fine", met="end", unmet="end"),
                ReturnStep("end", Every((Holds("small"), Holds("fine")))),
            ),
        ),
        Function(
            "small",
            Kind.RULE,
            ("n",),
            (ReturnStep("end"),),
            says="{n} is small.",
            predicate="small",
            remedy="Take less.",
        ),
    ),
    format=2,
    guarded=(Guarded("close", roles=("boss",), needed=1, expires_seconds=9),),
    actions={
        "list_orders": ActionFacts({"user": {"type": "string"}}, ("user",), ()),
        "read_order": ActionFacts({"id": {"type": "number"}}, ("id",), (), ("orders",)),
        "login": ActionFacts({"user": {}, "password": {}}, (), ("logins",)),
        "logout": ActionFacts({"user": {}}, (), ("logins",)),
        "note": ActionFacts({"user": {}, "code": {}}, (), ("notes",)),
        "close": ActionFacts({"user": {}, "n": {}}, ("user", "n")),
    },
)
BOOKS: dict[str, Handbook] = {
    "policy": load_handbook(_POLICY.read_text("utf-8")),
    "approved": APPROVED,
    "bank": load_desk("bank-desk").handbook,
}
WORLDS: dict[str, Mapping[str, Program]] = {
    "by hand": BY_HAND,
    "odd": {"odd": ODD},
    **{name: _compiled(book) for name, book in BOOKS.items()},
}
_WORDS = ("ann", "bob", "R1", "health")
_ANSWERS: tuple[Any, ...] = (
    {"balance": 120, "limit": 10, "user_id": "ann", "created_at": "2024-05-15T10:00:00",
     "cabin": "business", "passengers": ["a", "b"], "verified": True, "status": "open",
     "ids": [{"id": 7}, {"id": 8}]},
    {"balance": 1, "user_id": "bob", "created_at": "2024-05-01T10:00:00", "cabin": "economy"},
    True, False, None, "no", {},
)  # fmt: skip


class Walk:
    worlds = WORLDS

    def __init__(self, rng: random.Random, name: str, judge: Judge) -> None:
        self.rng, self.judge = rng, judge
        self.programs = self.worlds[name]
        self.machine = Machine(self.programs)
        self.now = self.machine.initial()
        self.events: list[Event] = []
        self.answers: list[Any] = []
        self.calls = 0
        self.values = {
            one: self.value(one)
            for program in self.programs.values()
            for function in program.functions.values()
            for one in function.parameters
        }
        self.automation = Automation(*(rng.random() < 0.4 for _ in range(8)))

    def value(self, name: str) -> JSON:
        return self.rng.choice((5, 100) if name in ("amount", "n") else _WORDS)

    def given(self, names: Any) -> dict[str, JSON]:
        return {
            str(one): self.values[one]
            if one in self.values and self.rng.random() < 0.9
            else self.value(one)
            for one in names
            if self.rng.random() < 0.9
        }

    def do(self, operation: Operation) -> None:
        at = float(len(self.events))
        outcome = self.machine.step(self.now, operation, at=at)
        self.take(outcome)
        if self.rng.random() < 0.5:
            self.take(self.machine.settle(self.now, self.automation, at=at, judge=self.judge))

    def take(self, outcome: Any) -> None:
        self.now = outcome.configuration
        self.events.extend(outcome.events)
        self.answers.append(outcome.answer)

    def walk(self, steps: int) -> None:
        for _ in range(steps):
            if self.rng.random() < 0.75:
                self.fitting(self.rng.choice(self.machine.fits(self.now)))
            else:
                self.do(self.anything())

    # --- what fits --------------------------------------------------------------------

    def fitting(self, shape: Mapping[str, Any]) -> None:
        match shape["operation"]:
            case "start":
                self.do(Start(shape["goal"], self.given(shape["arguments"])))
            case "call":
                self.do(Call(shape["function"], self.given(shape["missing"])))
            case "select_branch":
                self.do(SelectBranch(shape["option"]))
            case "domain_call":
                missing = shape.get("missing", ())
                self.tool(shape["action"], {**shape.get("arguments", {}), **self.given(missing)})
            case "ask_user":
                self.do(AssistantSaid("May I ask for " + ", ".join(shape["wants"]) + "?"))
                self.do(UserSaid(self.rng.choice(("yes", "my password is x", "no"))))
            case "emit_artifact":
                self.do(EmitArtifact(shape["name"], self.rng.choice(({"title": "a"}, '{"a": 1}'))))
            case "return":
                self.do(self.verdict(shape.get("holds")))
            case "complete":
                self.do(Complete("done"))
            case "fail" if self.rng.random() < 0.15:
                self.do(Fail(self.rng.choice(("no", "the balance of ann"))))

    def verdict(self, holds: bool | None) -> Return:
        cited = [f"#{one.seq}" for one in self.events if one.kind == "domain_result"]
        named = [*cited[-2:], "read_balance", "#1", "nothing"]
        evidence = tuple(self.rng.sample(named, self.rng.choice((0, 0, 0, 1, 2))))
        if holds is None and self.rng.random() < 0.1:
            return Return(None, evidence, undecided=True)
        return Return(self.rng.random() < 0.75 if holds is None else holds, evidence)

    def tool(self, action: str, arguments: dict[str, JSON]) -> None:
        self.calls += 1
        call_id, chance = f"c{self.calls}", self.rng.random()
        self.do(DomainCall(call_id, action, arguments, amended=chance > 0.97))
        if action in ("ask_user", "confirm_with_user"):
            said = self.rng.choice(("Yes, please.", "No.", "How much?"))
            number = self.now.next_seq
            self.do(UserSaid(said))
            self.do(
                DomainResult(
                    call_id, True, {"said": said, "answer": assent(said, ""), "message": number}
                )
            )
        elif chance < 0.05:
            self.do(Note("outcome_unknown", {"call_id": call_id, "action": action}))
        elif chance < 0.93:
            self.do(self.result(call_id))

    def result(self, call_id: str) -> DomainResult:
        ok = self.rng.random() < 0.85
        answer = self.rng.choice(_ANSWERS[:2] if self.rng.random() < 0.8 else _ANSWERS)
        return DomainResult(call_id, ok, answer, not ok and self.rng.random() < 0.3)

    # --- what may or may not ----------------------------------------------------------

    def anything(self) -> Operation:
        rng = self.rng
        waiting = rng.choice([*self.now.pending, "c1"])
        decided = rng.choice(("approve", "reject", "amend", "expire", "perhaps"))
        who = rng.choice((("Sue", "boss"), ("Al", "manager"), ("Sue", "supervisor"), ("", "")))
        names = rng.sample(sorted(self.values), 2)
        notes: tuple[tuple[str, dict[str, JSON]], ...] = (
            ("clock", {"now": "2024-05-15T15:00:00-05:00"}),
            ("clock", {}),
            ("outcome_unknown", {"call_id": waiting, "action": "pay"}),
            ("held_call", {"call_id": "h1", "action": "pay", "arguments": {}, "awaits": "root"}),
            ("held_call", {"call_id": "h1", "action": "pay", "arguments": {},
                           "awaits": "approval"}),
            ("not_offered", {"actions": ["pay", "transfer"]}),
            ("program_changed", {}),
        )  # fmt: skip
        operations: tuple[Operation, ...] = (
            Amend(self.given(names)),
            Amend({names[0]: "other"}),
            Start(rng.choice(list(self.programs)), self.given(names[:1])),
            self.verdict(None),
            Call(rng.choice((None, "nothing")), self.given(names)),
            SelectBranch(rng.choice(("then", "otherwise", "next", None))),
            Complete(),
            Fail("never mind"),
            BindEvidence(rng.randrange(len(self.events) + 1)),
            UserSaid(rng.choice(("hello", "my username is ann"))),
            AssistantSaid("The balance of ann covers 5."),
            Decision(decided, waiting, *who, self.given(names)),
            Note(*rng.choice(notes)),
            self.result(waiting),
            DomainCall(f"x{len(self.events)}", rng.choice(("transfer", "pay", "logout", "dance")),
                       self.given(names)),
            EmitArtifact("memo", "no title"),
        )  # fmt: skip
        return rng.choice(operations)
