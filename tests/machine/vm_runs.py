"""A run that keeps its whole history, for tests that look back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vm_programs import PROGRAMS

from sopilot.machine.automation import Automation
from sopilot.machine.layout import Limits
from sopilot.machine.machine import Machine, Outcome
from sopilot.machine.state import Configuration
from sopilot.program.model import Program
from sopilot.trace.chain import SealedEvent, decode_line, encode_line
from sopilot.trace.events import (
    Call,
    DomainCall,
    DomainResult,
    Event,
    Operation,
    Return,
    Start,
    UserSaid,
)
from sopilot.values.json import JSON, Judge


def lines_of(events: Iterable[SealedEvent]) -> str:
    return "".join(encode_line(sealed) + "\n" for sealed in events)


def read_lines(text: str) -> list[SealedEvent]:
    # Only line feeds end a line: `splitlines` would cut at signs inside strings.
    return [decode_line(line) for line in text.split("\n") if line.strip()]


class Run:
    """Steps a machine and keeps every event."""

    def __init__(self, programs: Mapping[str, Program], limits: Limits | None = None) -> None:
        self.machine = Machine(programs, limits=limits)
        self.configuration: Configuration = self.machine.initial()
        self.events: list[Event] = []
        self._calls = 0

    def do(self, operation: Operation) -> Outcome:
        outcome = self.machine.step(self.configuration, operation, at=float(len(self.events)))
        return self._take(outcome)

    def ok(self, operation: Operation) -> Outcome:
        outcome = self.do(operation)
        assert outcome.accepted, outcome.events
        return outcome

    def no(self, operation: Operation) -> str:
        """The code of the rejection."""
        outcome = self.do(operation)
        assert not outcome.accepted, outcome.events
        return str(outcome.refusal["code"])

    def tool(self, action: str, value: JSON = None, ok: bool = True, **arguments: JSON) -> int:
        """A domain call with its result; the seq of the result."""
        self._calls += 1
        call_id = f"c{self._calls}"
        self.ok(DomainCall(call_id, action, arguments))
        outcome = self.ok(DomainResult(call_id, ok, value))
        return outcome.events[0].seq

    def automate(self, automation: Automation, judge: Judge | None = None) -> Outcome:
        return self._take(
            self.machine.automate(
                self.configuration, automation, at=float(len(self.events)), judge=judge
            )
        )

    def _take(self, outcome: Outcome) -> Outcome:
        self.configuration = outcome.configuration
        self.events.extend(outcome.events)
        return outcome

    @property
    def place(self) -> str:
        frame = self.configuration.frame
        return frame.place if frame is not None else ""

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


# --- walks through the bank desk ------------------------------------------------------

ARGUMENTS: dict[str, JSON] = {"username": "bob", "amount": 100, "to": "eve"}


def logged_in() -> Run:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", ARGUMENTS))
    run.ok(Call("logged_in"))
    run.ok(UserSaid("it is hunter2"))
    run.tool("login", True, username="bob", password="hunter2")
    run.ok(Return(True))
    return run


def in_rule() -> Run:
    """In the first rule of the group, before its verifier is called."""
    run = logged_in()
    run.ok(Call())
    run.ok(Call())
    return run


def decided(funds: bool = True, over: bool = False) -> Run:
    run = in_rule()
    run.tool("read_balance", {"balance": 120}, username="bob")
    run.ok(Return(funds))
    run.ok(Call())
    run.tool("read_balance", {"balance": 120}, username="bob")
    run.tool("read_limit", 10, username="bob")
    run.ok(Return(over))
    run.ok(Return())
    return run
