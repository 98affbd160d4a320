"""A small desk for sessions: a handbook, its programs, counting tools and a clock by hand."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.machine.machine import Machine
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.state import Configuration
from sopilot.program.model import (
    Act,
    Branch,
    Check,
    CompleteStep,
    FailStep,
    Kind,
    Program,
    ReturnStep,
)
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.session.session import Session
from sopilot.trace.events import Call, Operation, SelectBranch, Start
from sopilot.trace.events import Complete as CompleteOperation
from sopilot.trace.events import Fail as FailOperation
from sopilot.trace.events import Return as ReturnOperation
from sopilot.values.json import JSON

HANDBOOK = """
handbook: counter
parameters: {limit: 500}
actions:
  login: {input: {username: string, password: string}}
  read_balance: {input: {username: string}, requires: logged_in(username)}
  find_account: {input: {username: string}}
  transfer:
    input: {username: string, to: string, amount: integer}
    irreversible: true
  wire:
    input: {username: string, amount: integer}
    irreversible: true
    approval: {roles: [supervisor, auditor, officer], needed: 2, expires: 1h}
  refund:
    input: {username: string, amount: integer}
    approval: supervisor
  rename: {input: {username: string, name: string}}
predicates:
  logged_in(username):
    says: The customer {username} is logged in.
    established_by: login(username, password)
  funds_cover(username, amount):
    says: The balance of {username} is at least {amount}.
    verify: read_balance(username)
    verdict: result.balance >= amount
  small(amount):
    says: The amount is at most {limit}.
    verify: arguments
    verdict: amount <= limit
  known(username):
    says: The account {username} exists.
    verify: find_account(username)
    verdict: result.done == 'find_account'
procedures:
  transfer:
    requires:
      all:
        - in_order: [logged_in(username), funds_cover(username, amount)]
        - known(to)
        - any: [small(amount), {first: [logged_in(username), known(username)]}]
  wire:
    requires: {all: [small(amount), known(username)]}
  refund:
    requires: known(username)
  rename:
    requires: known(username)
"""


def counter_programs(text: str = HANDBOOK) -> dict[str, Program]:
    handbook = load_handbook(text, "counter.yaml")
    return {goal: compiled.program for goal, compiled in compile_handbook(handbook).items()}


COUNTER = ProgramSet(counter_programs())


class HandClock:
    def __init__(self, now: float = 1000.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds


class CountingTools:
    """Answers everything, and counts what was really carried out per key."""

    def __init__(self, *, balance: int = 1000) -> None:
        self.balance = balance
        self.calls: list[tuple[str, Mapping[str, JSON], str]] = []
        self.failing: set[str] = set()
        self.refusing: set[str] = set()

    def schemas(self) -> Sequence[ToolSchema]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        self.calls.append((name, dict(arguments), key))
        if name in self.failing:
            raise ConnectionError("connection reset")
        if name in self.refusing:
            return ToolResult(False, {"error": "no"})
        if name == "read_balance":
            return ToolResult(True, {"balance": self.balance})
        return ToolResult(True, {"done": name})

    def made(self, name: str) -> int:
        return sum(1 for called, _, _ in self.calls if called == name)


ERRANDS: dict[str, dict[str, JSON]] = {
    "transfer": {"username": "una", "to": "bob", "amount": 100},
    "wire": {"username": "una", "amount": 100},
    "refund": {"username": "una", "amount": 50},
    "rename": {"username": "una", "name": "Anna"},
}
Move = Operation | tuple[str, dict[str, JSON]]


def next_move(machine: Machine, configuration: Configuration) -> Move | None:
    """The next move of a conforming executor; ``None`` when no process runs."""
    here = machine.position(configuration)
    if here is None:
        return None
    step = here.step
    if isinstance(step, Check):
        return Call()
    if isinstance(step, Branch):
        return SelectBranch()
    if isinstance(step, ReturnStep):
        group = here.layout.function.kind is Kind.GROUP
        return ReturnOperation() if group else ReturnOperation(True)
    if isinstance(step, CompleteStep):
        return CompleteOperation("done")
    if isinstance(step, FailStep):
        return FailOperation("refused")
    if isinstance(step, Act):
        shape = machine.fits(configuration)[0]
        arguments = dict(shape["arguments"])
        arguments.update(dict.fromkeys(shape.get("missing", ()), "secret"))
        return step.action, arguments
    return SelectBranch("next")


async def walk(session: Session, goal: str, *, stop_at_action: str = "", limit: int = 200) -> None:
    """Start ``goal`` and follow the program to its end, or to the call of ``stop_at_action``."""
    await session.operate(Start(goal, ERRANDS[goal]))
    await go_on(session, stop_at_action=stop_at_action, limit=limit)


async def go_on(session: Session, *, stop_at_action: str = "", limit: int = 200) -> None:
    for number in range(limit):
        move = next_move(session.machine, session.configuration)
        if move is None:
            return
        if isinstance(move, tuple):
            if move[0] == stop_at_action:
                return
            await session.call_tool(move[0], move[1], f"c{number}")
        else:
            await session.operate(move)


async def wander(session: Session, source: random.Random, steps: int) -> None:
    """A mix of conforming moves, talk and nonsense."""
    goals = list(ERRANDS)
    for _ in range(steps):
        move = next_move(session.machine, session.configuration)
        draw = source.random()
        if move is None or draw < 0.08:
            goal = source.choice(goals)
            await session.operate(Start(goal, ERRANDS[goal]))
        elif draw < 0.14:
            await session.user_said("please hurry")
        elif draw < 0.20:
            await session.operate(CompleteOperation("claimed"))
        elif draw < 0.26:
            goal = source.choice(goals)
            await session.call_tool(goal, ERRANDS[goal], "x")
        elif draw < 0.30:
            await session.operate(FailOperation("no"))
        elif isinstance(move, tuple):
            await session.call_tool(move[0], move[1], "c")
        else:
            await session.operate(move)
