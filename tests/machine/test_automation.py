"""Transitions the machine takes by itself, each on a stated ground."""

from __future__ import annotations

from collections.abc import Mapping

from vm_programs import PROGRAMS
from vm_runs import ARGUMENTS, Run, decided, logged_in

from sopilot.machine.automation import Automation
from sopilot.machine.replay import replay
from sopilot.machine.state import Status
from sopilot.messages.errors import UserMistake
from sopilot.trace.events import Call, Return, Start
from sopilot.values.json import JSON

EVERYTHING = Automation(True, True, True, True, True, True, True)


def enough(expression: str, variables: Mapping[str, JSON]) -> bool | None:
    assert expression == "result.balance >= amount"
    assert variables["largest"] == 500
    assert variables["results"]["read_balance"] == variables["result"]
    return bool(variables["result"]["balance"] >= variables["amount"])


def test_nothing_is_automatic_by_default() -> None:
    run = decided()
    assert run.automate(Automation()).events == ()
    assert run.place == "transfer@decide"


def test_everything_that_needs_no_judgement() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", ARGUMENTS))
    run.automate(EVERYTHING, enough)
    assert run.place == "transfer/logged_in@ask"
    login = run.tool("login", username="bob", password="x")
    run.automate(EVERYTHING, enough)
    assert run.place == "transfer/any_of_funds/funds_cover@read"
    gate = next(event for event in run.events if event.kind == "return")
    assert gate.payload["bound"]["evidence"] == [login]
    assert gate.payload["ground"] == "`login` succeeded"
    balance = run.tool("read_balance", {"balance": 120}, username="bob")
    outcome = run.automate(EVERYTHING, enough)
    assert run.place == "transfer/any_of_funds/overdraft@limit"
    assert all(event.actor == "machine" and event.payload["ground"] for event in outcome.events)
    borrowed = outcome.events[-1]
    assert (borrowed.kind, borrowed.payload["result"]) == ("reuse", balance)
    limit = run.tool("read_limit", 10, username="bob")
    assert run.automate(EVERYTHING, enough).events == ()
    judged = run.ok(Return(False)).events[0]
    assert judged.payload["bound"]["evidence"] == [balance, limit]
    assert judged.payload["bound"]["earlier"] == [balance]
    run.automate(EVERYTHING, enough)
    assert run.place == "transfer@act"
    run.tool("transfer", **ARGUMENTS)
    run.automate(EVERYTHING, enough)
    assert run.configuration.processes["p1"].status is Status.COMPLETED
    assert replay(PROGRAMS, run.events) == run.configuration


def test_the_machine_refuses_where_the_program_does() -> None:
    run = decided(funds=False)
    run.automate(Automation(take_branches=True, fail=True))
    assert run.configuration.processes["p1"].status is Status.FAILED
    assert run.events[-1].payload["reason"] == "Refuse."


def test_a_judge_that_cannot_say_leaves_the_verdict_to_the_executor() -> None:
    def silent(expression: str, variables: Mapping[str, JSON]) -> bool | None:
        return None

    def broken(expression: str, variables: Mapping[str, JSON]) -> bool | None:
        raise UserMistake("no such field")

    for judge in (silent, broken, None):
        run = logged_in()
        run.ok(Call())
        run.ok(Call())
        run.tool("read_balance", {}, username="bob")
        assert run.automate(Automation(machine_verdicts=True), judge).events == ()
        assert run.place.endswith("funds_cover@done")


def test_calls_with_open_values_are_left_to_the_executor() -> None:
    run = Run(PROGRAMS)
    run.ok(Start("transfer", {"amount": 3}))
    assert run.automate(Automation(enter_calls=True)).events == ()
