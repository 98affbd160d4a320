"""What comes up once in a thousand traces, at ends and of values: read by hand, case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from readings_at_hand import accepted, at, ending, findings
from vm_programs import ERRAND, TRANSFER, program
from vm_runs import ARGUMENTS, Run, logged_in

from sopilot.audit.calls import cite
from sopilot.audit.returns import _resolved, learn, learn_beside
from sopilot.audit.state import Contradiction, FrameView, ProcessView, SeenResult, read_program
from sopilot.program.model import (
    Check,
    CompleteStep,
    Function,
    Holds,
    Kind,
    Literal,
    Local,
    ReturnStep,
    Unknown,
)
from sopilot.trace.events import Call, Complete, DomainCall, Start

# --- ends -------------------------------------------------------------------------------


def test_a_completion_where_none_is_due() -> None:
    run = accepted()
    early = ending(run, "complete", "transfer@act", label="act", accepting=False,
                   unwound=["transfer"])  # fmt: skip
    said = "`transfer` was completed although its goal action never succeeded"
    assert findings(run, early) == [(early.seq, "completion-without-goal", said)]
    run.tool("transfer", True, **ARGUMENTS)
    assert run.place == "transfer@finish"
    assert findings(run, ended=False) == []
    run.ok(Complete("done"))
    assert findings(run) == []
    errand = Run({"errand": ERRAND})
    errand.ok(Start("errand", {"what": "x"}))
    early = ending(errand, "complete", "errand@pick", label="pick", accepting=False,
                   unwound=["errand"])  # fmt: skip
    said = "`errand` was completed although the program does not accept there"
    assert findings(errand, early) == [(early.seq, "completion-without-goal", said)]


def test_what_returns_where_nothing_was_called() -> None:
    run = accepted()
    back = ending(run, "return", "transfer@act", holds=True)
    said = "a return where nothing was called"
    assert findings(run, back, ended=False) == [(back.seq, "inconsistent-trace", said)]
    run = logged_in()
    run.ok(Call())
    back = ending(run, "return", "transfer/any_of_funds@check_1", holds=True)
    said = "a group returns before its end"
    assert findings(run, back, ended=False) == [(back.seq, "inconsistent-trace", said)]


@pytest.mark.parametrize(
    ("arguments", "then", "says"),
    [
        ({"amount": 100}, None, "values are amended that are none other"),
        ({"amount": None}, None, "values are amended that are none other"),
        ({"amount": 7}, "pays", "values are amended although the goal was carried out with others"),
        ({"amount": 7}, "calls", "values are amended while a call is not answered"),
    ],
)
def test_an_amendment_that_could_not_be(arguments: Any, then: str | None, says: str) -> None:
    run = accepted()
    if then == "pays":
        run.tool("transfer", True, **ARGUMENTS)
    elif then == "calls":
        run.ok(DomainCall("x", "transfer", ARGUMENTS))
    other = ending(run, "amend", run.place, arguments=arguments)
    assert findings(run, other, ended=False) == [(other.seq, "inconsistent-trace", says)]


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (999, "evidence is taken over that is not there"),
        ("login", "#4 does not answer the step"),
        ("failed", "#9 does not answer the step"),
    ],
)
def test_evidence_that_could_not_be_taken_over(result: Any, says: str) -> None:
    run = logged_in()
    run.ok(Call())
    run.ok(Call())
    run.tool("read_balance", "no", False, username="bob")
    numbers = {"login": 4, "failed": len(run.events) - 1}
    place = "transfer/any_of_funds/funds_cover@read"
    taken = numbers.get(result, result)
    over = ending(run, "reuse", place, label="read", result=taken, evidence=[taken])
    assert findings(run, over, ended=False)[-1] == (over.seq, "inconsistent-trace", says)


# --- what follows a wrong turn ----------------------------------------------------------


def test_nothing_more_is_said_of_a_process_that_is_lost() -> None:
    run = accepted()
    branch = next(one for one in run.events if one.kind == "select_branch")
    wrong = [
        one._replace(payload={**one.payload, "target": "refuse"}) if one is branch else one
        for one in run.events
    ]
    run.events[:] = wrong
    odd = ending(run, "emit_artifact", "nowhere", name="memo")
    (found,) = findings(run, odd, ended=False)
    assert found[:2] == (branch.seq, "wrong-branch")


# --- values and names -------------------------------------------------------------------

STEP = Check("c", "funds_cover", (("username", Local("username")), ("amount", Unknown("sum"))), "s")


@pytest.mark.parametrize(
    ("supplied", "known", "values", "learned"),
    [
        ({}, {}, {"username": "bob"}, {}),
        ({}, {"sum": 5}, {"username": "bob", "amount": 5}, {}),
        ({"amount": 5}, {}, {"username": "bob", "amount": 5}, {"sum": 5}),
        ({"sum": 5}, {}, {"username": "bob", "amount": 5}, {"sum": 5}),
        ({"amount": 5}, {"sum": 5}, {"username": "bob", "amount": 5}, {}),
        ({"amount": 6}, {"sum": 5}, {"username": "bob", "amount": 6}, {"sum": 6}),
        ({"username": "bob"}, {}, {"username": "bob"}, {}),
        ({"username": "eve"}, {}, None, {}),
    ],
)
def test_what_a_call_resolves_to(supplied: Any, known: Any, values: Any, learned: Any) -> None:
    code = read_program("transfer", replace(TRANSFER))
    process = at("money", {"username": "bob"}, code)
    process.known.update(known)
    told: dict[str, Any] = {}
    if values is None:
        with pytest.raises(Contradiction, match="`username` is known to be another value here"):
            _resolved(process, process.frames[0], STEP, dict(supplied), told)
        return
    assert _resolved(process, process.frames[0], STEP, dict(supplied), told) == values
    assert told == learned
    assert {name: process.known.get(name) for name in learned} == learned


def test_where_a_value_that_was_learned_goes() -> None:
    """As far up as callers passed the name on, and to the process where nobody did."""
    inner = Function("inner", Kind.RULE, ("a", "b"), (ReturnStep("end"),), predicate="inner")
    calls = Check("c", "inner", (("a", Local("x")), ("b", Literal(1))), "s")
    group = Function("group", Kind.GROUP, ("x",), (calls, ReturnStep("end", Holds("s"))))
    outer = Check("g", "group", (("x", Local("user")),), "g")
    go = Function("go", Kind.PROCESS, ("user",), (outer, CompleteStep("done")))
    code = read_program("go", program("go", go, group, inner))

    def stack() -> ProcessView:
        frames = [
            FrameView(code.functions[name], label, {}, None, depth, "")
            for depth, (name, label) in enumerate((("go", "g"), ("group", "c"), ("inner", "end")))
        ]
        return ProcessView("p1", code, frames, {}, {})

    process, told = stack(), {}
    learn(process, "a", 5, told)
    assert [frame.values for frame in process.frames] == [{"user": 5}, {"x": 5}, {"a": 5}]
    assert (process.known, told) == ({"user": 5}, {"a": 5})
    process = stack()
    learn(process, "b", 5, {})
    assert [frame.values for frame in process.frames] == [{}, {}, {"b": 5}]
    assert process.known == {}
    process = stack()
    learn(process, "other", 5, {})
    assert [frame.values for frame in process.frames] == [{}, {}, {"other": 5}]
    assert process.known == {"other": 5}
    process, told = stack(), {}
    learn_beside(process, process.frames[2], {"a": 5, "b": None}, told)
    assert (told, process.frames[2].values) == ({"a": 5}, {"a": 5})
    learn_beside(process, process.frames[2], {"a": 5}, told)
    for given, says in (({"a": 6}, "`a` is known to be another"), ({"z": 1}, "is called `z`")):
        with pytest.raises(Contradiction, match=says):
            learn_beside(process, process.frames[2], given, told)


def test_a_citation_by_name_is_the_latest_elsewhere_and_all_of_ones_own() -> None:
    process = at("act")
    for seq, opened in ((3, 1), (5, 1), (7, 0), (9, 0)):
        name = "look" if opened else "peek"
        process.results.append(SeenResult(seq, seq - 1, "c", name, {}, True, None, "p1", opened))
    cited = cite(process, process.frames[0], ["look", " peek "])
    assert (cited.evidence, cited.earlier, cited.exact) == ((5, 7, 9), (5,), ())
    assert cited.named == {"look": (5,), "peek": (7, 9)}
    assert cite(process, process.frames[0], ["#2", "#9"]).exact == (3, 9)
    assert cite(process, process.frames[0], ["#4x", "dance"]).unresolved == ("#4x", "dance")
