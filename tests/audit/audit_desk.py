"""A run of programs that a person can read, move by move, and the audit of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from small_desks import programs_of
from sopilot.audit.audit import audit_trace
from sopilot.audit.report import Report
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.machine.machine import Machine
from sopilot.program.model import Program
from sopilot.trace.events import (
    Call,
    Decision,
    DomainCall,
    DomainResult,
    Event,
    Operation,
    Return,
    Start,
)

HANDBOOK = """
handbook: desk
actions:
  login: {input: {user: string, password: string}}
  read_balance: {input: {user: string}, requires: logged_in(user)}
  pay:
    input: {user: string, amount: number}
    irreversible: true
    approval: {roles: [boss, auditor], needed: 2, expires: 1h}
predicates:
  logged_in(user):
    says: The user {user} is logged in.
    established_by: login(user, password)
    remedy: Log in with the right password.
  funds(user, amount):
    says: The balance of {user} is at least {amount}.
    verify: read_balance(user)
    verdict: result.balance >= amount
    remedy: Pay in what is missing.
procedures:
  pay:
    says: Pays a bill.
    requires: {in_order: [logged_in(user), funds(user, amount)]}
"""
BOOK = load_handbook(HANDBOOK)


PROGRAMS = programs_of(HANDBOOK)


class Desk:
    def __init__(self, programs: Mapping[str, Program] = PROGRAMS) -> None:
        self.programs = programs
        self.machine = Machine(programs)
        self.configuration = self.machine.initial()
        self.events: list[Event] = []
        self.calls = 0

    def do(self, *operations: Operation, actor: str | None = None) -> Self:
        for operation in operations:
            at = float(len(self.events))
            outcome = self.machine.step(self.configuration, operation, at=at, actor=actor)
            self.events.extend(outcome.events)
            self.configuration = outcome.configuration
        return self

    def tool(
        self,
        action: str,
        arguments: dict[str, Any],
        value: Any,
        *,
        ok: bool = True,
        actor: str | None = None,
    ) -> Self:
        self.calls += 1
        name = f"c{self.calls}"
        self.do(DomainCall(name, action, arguments), actor=actor)
        return self.do(DomainResult(name, ok, value))

    def log_in(self) -> Self:
        self.do(Start("pay", {"user": "ann", "amount": 5}), Call())
        return self.tool("login", {"user": "ann", "password": "x"}, True).do(Return(True))

    def check_funds(self, balance: int = 10, *, holds: bool = True) -> Self:
        return (
            self.do(Call())
            .tool("read_balance", {"user": "ann"}, {"balance": balance})
            .do(Return(holds))
        )

    def approve(self) -> Self:
        name = f"c{self.calls + 1}"
        return self.do(
            Decision("approve", name, "ida", "boss"), Decision("approve", name, "joe", "auditor")
        )

    def pay(self) -> Self:
        return self.tool("pay", {"user": "ann", "amount": 5}, {"done": True})

    def report(self, **options: Any) -> Report:
        return audit_trace(self.programs, self.events, **{"judge": judge, **options})


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]
