"""What a verdict stands on."""

from __future__ import annotations

from vm_programs import PROGRAMS, program
from vm_runs import ARGUMENTS, Run, in_rule, logged_in

from sopilot.machine.automation import Automation
from sopilot.program.model import Act, Check, CompleteStep, FailStep, Function, Kind, ReturnStep
from sopilot.trace.events import BindEvidence, Call, Return, Start


def test_citations_by_number_call_and_name() -> None:
    run = in_rule()
    first = run.tool("read_balance", username="bob")
    second = run.tool("read_ledger")
    event = run.ok(Return(True, (f"#{first}", f"{second - 1}", "read_ledger", "#999", "x")))
    cited = event.events[0].payload["bound"]
    assert cited["evidence"] == [first, second]
    assert cited["unresolved"] == ["#999", "x"]
    assert cited["earlier"] == []


def test_only_a_fresh_success_of_the_same_call_is_taken_over() -> None:
    run = in_rule()
    stale = run.tool("read_balance", username="bob")
    run.ok(Return(True))
    run.ok(Call())
    run.tool("transfer", **ARGUMENTS)
    assert run.no(BindEvidence(stale)) == "stale-result"
    fresh = in_rule()
    seqs = [
        fresh.tool("read_balance", ok=ok, username=who)
        for ok, who in ((False, "bob"), (True, "eve"), (True, "bob"))
    ]
    fresh.ok(Return(True))
    fresh.ok(Call())
    assert fresh.no(BindEvidence(seqs[0])) == "stale-result"
    assert fresh.no(BindEvidence(seqs[1])) == "other-call"
    assert fresh.no(BindEvidence(1)) == "no-such-result"
    fresh.ok(BindEvidence(seqs[2]))
    assert fresh.place.endswith("overdraft@limit")


def test_citations_that_name_nothing_are_told_where_one_judges() -> None:
    run = Run(PROGRAMS)
    assert run.machine.unresolved(run.configuration, ["#1"]) == ()
    run = logged_in()
    assert run.machine.unresolved(run.configuration, ["#1"]) == ()  # nothing is judged here
    run.ok(Call())
    run.ok(Call())
    seq = run.tool("read_balance", {"balance": 120}, username="bob")
    cited = [str(seq), "the moon"]
    assert run.machine.unresolved(run.configuration, cited) == ("the moon",)
    assert run.machine.unresolved(run.configuration, []) == ()


def test_what_the_goal_action_answered_is_no_evidence_from_before_it() -> None:
    """Though a rule looks by the same action: what it says is how things were."""
    paid = Function("paid", Kind.RULE, (), (Act("look", "pay"), ReturnStep("judge")))
    steps = (
        Act("act", "pay", goal=True),
        Check("first", "paid", (), "paid", unmet="no"),
        CompleteStep("yes"),
        FailStep("no"),
    )
    run = Run({"go": program("go", Function("go", Kind.PROCESS, (), steps), paid)})
    run.ok(Start("go"))
    run.tool("look")
    seq = run.tool("pay")
    assert run.configuration.goal_seq == seq
    run.ok(Call())
    run.automate(Automation(bind_evidence=True))
    assert run.place == "go/paid@look"
    assert run.no(BindEvidence(seq)) == "stale-result"
