"""What comes up once in a thousand traces: read by hand, case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vm_programs import ERRAND, LOGGED_IN, TRANSFER, program
from vm_runs import ARGUMENTS, Run, decided, logged_in

from sopilot.language.diagnostics import Severity, UserMistake
from sopilot.language.handbook import CONFIRM, Path
from sopilot.language.program.model import (
    Act,
    ActionFacts,
    Ask,
    Branch,
    Check,
    Choose,
    CompleteStep,
    Do,
    FailStep,
    Function,
    Guarded,
    Holds,
    Kind,
    Literal,
    Local,
    Option,
    ReturnStep,
    Unknown,
)
from sopilot.runtime.audit import audit_trace
from sopilot.runtime.audit._acceptance import DEEPEST, Acceptance
from sopilot.runtime.audit._approvals import _asked_of_people, decided_by_people
from sopilot.runtime.audit._asked_for import _acts_here, _is_amended
from sopilot.runtime.audit._audit_state import AuditState, Contradiction
from sopilot.runtime.audit._auditing import judge_chain, read_events
from sopilot.runtime.audit._call_reading import _argument_problems, _Path, moment_of
from sopilot.runtime.audit._evidence import cite
from sopilot.runtime.audit._gate_reading import _other_ways, opens_gate
from sopilot.runtime.audit._learning import learn, learn_beside
from sopilot.runtime.audit._lifecycle import _not_given
from sopilot.runtime.audit._moving import _resolved
from sopilot.runtime.audit._observing import _was_said
from sopilot.runtime.audit._recipe_answers import LONGEST_LIST, asked_calls
from sopilot.runtime.audit._resolved_function import read_program
from sopilot.runtime.audit._session_calls import SessionCall
from sopilot.runtime.audit._standing import remaining_checks
from sopilot.runtime.audit._state import (
    FrameView,
    PendingCall,
    ProcessView,
    SeenResult,
    UnmetCheck,
)
from sopilot.runtime.audit._tipping_off import judge_told
from sopilot.runtime.trace import Head, genesis, seal_all
from sopilot.runtime.vm import (
    Call,
    Complete,
    DomainCall,
    DomainResult,
    Event,
    SelectBranch,
    Start,
)

REF = {"$ref": "00", "bytes": 5}
CODE = read_program("transfer", TRANSFER)


def event(kind: str = "domain_call", seq: int = 9, actor: str = "model", **payload: Any) -> Event:
    return Event(seq, float(seq), actor, kind, "p1", "", payload)


def at(label: str, values: dict[str, Any] | None = None, code: Any = CODE) -> ProcessView:
    given = dict(ARGUMENTS) if values is None else values
    frame = FrameView(code.entry, label, dict(given), None, 0, code.goal)
    return ProcessView("p1", code, [frame], given, dict(given))


def findings(run: Run, *more: Event, **options: Any) -> list[tuple[int, str, str]]:
    programs = {goal: one.program for goal, one in run.machine.programs.layouts.items()}
    found = audit_trace(programs, [*run.events, *more], **options).findings
    return [(one.seq, one.code, one.explanation) for one in found if one.code != "old-format"]


def accepted() -> Run:
    """At the goal's own call."""
    run = decided()
    run.ok(SelectBranch())
    return run


# --- ends -------------------------------------------------------------------------------


def ending(run: Run, kind: str, place: str, **payload: Any) -> Event:
    seq = len(run.events)
    return Event(seq, float(seq), "model", kind, "p1", place, payload)


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
    code = read_program("transfer", replace(TRANSFER, format=2))
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


# --- guarded calls ----------------------------------------------------------------------

PAY = Act("act", "pay", (("from", Local("user")), ("to", Local("user")), ("n", Literal(1))),
          goal=True)  # fmt: skip
PAYING = replace(
    program("go", Function("go", Kind.PROCESS, ("user",), (PAY, CompleteStep("done")))),
    format=2,
    guarded=(Guarded("pay", when="n > 0", roles=("boss",), needed=1),),
    actions={"pay": ActionFacts({"from": {"type": "string"}}, ("from",), None)},
)
PAYS = read_program("go", PAYING)


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ({"from": "a", "to": "a", "n": 1}, []),
        ({"from": "a", "to": "b", "n": 1}, ["two inputs are `user`, and they differ"]),
        ({"from": "a", "to": "a"}, ["`n` is not what the handbook fixes it to"]),
        ({"from": "a", "to": "a", "n": 2}, ["`n` is not what the handbook fixes it to"]),
        ({"to": "a", "n": 1}, ["`from` is not given"]),
        ({"from": None, "n": 1},
         ["`from` is not given", "`from` is of another type than its input"]),
        ({"from": 5, "n": 1}, ["`from` is of another type than its input"]),
        ({"from": "a", "n": 1, "x": 1}, ["`x` is no input of it"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_arguments(arguments: Any, problems: list[str]) -> None:
    assert list(_argument_problems(AuditState({"go": PAYS}), PAY, arguments)) == problems


def test_a_call_as_people_amended_it() -> None:
    run, process = AuditState({"go": PAYS}), at("act", {"user": "a"}, PAYS)
    given = {"from": "b", "to": "b", "n": 1}
    call = PendingCall(9, "pay", given, "p1", 0, "")
    frame = process.frames[0]
    assert _is_amended(run, event(), frame, call) is False
    run.decisions = {"c": [event("decision", decision="amend", arguments=given)]}
    assert _is_amended(run, event(), frame, call) is True
    assert _is_amended(run, event(), frame, replace(call, action="look")) is False
    differ = replace(call, arguments={**given, "to": "c"})
    run.decisions["c"] += [event("decision", decision="amend", arguments=dict(differ.arguments))]
    assert _is_amended(run, event(), frame, differ) is False
    run.decisions = {"c": [event("decision", decision="approve", arguments=given)]}
    assert _is_amended(run, event(), frame, call) is False
    frame.cursor = "done"
    assert _is_amended(run, event(), frame, call) is False


def test_whether_people_are_asked_at_all() -> None:
    def judge(expression: str, variables: Any) -> bool | None:
        if variables["n"] == 3:
            raise UserMistake("no such thing")
        return {0: False, 1: True}.get(variables["n"])

    run, process = AuditState({"go": PAYS}, judge), at("act", {"user": "a"}, PAYS)
    guarded = PAYS.guarded["pay"]

    def asked(number: int, **changed: Any) -> bool:
        call = PendingCall(9, "pay", {"n": number}, "p1", 0, "")
        return _asked_of_people(run, call, changed.get("process", process),
                                changed.get("guarded", guarded))  # fmt: skip

    assert [asked(number) for number in (0, 1, 2, 3)] == [False, True, True, True]
    assert asked(0, process=None) is True
    assert asked(0, guarded=replace(guarded, when=None)) is True
    run.judge = None
    assert asked(0) is True


@pytest.mark.parametrize(
    ("decisions", "needed", "enough"),
    [
        ([], 1, False),
        ([("approve", "ann", "boss")], 1, True),
        ([("approve", "ann", "boss")], 0, True),
        ([("approve", "ann", "clerk")], 1, False),
        ([("approve", "", "boss")], 1, False),
        ([("approve", "ann", "boss")], 2, False),
        ([("approve", "ann", "boss"), ("approve", "Ann", "boss")], 2, False),
        ([("approve", "ann", "boss"), ("approve", "bo", "boss")], 2, True),
        ([("approve", "ann", "boss"), ("reject", "bo", "boss")], 1, False),
        ([("approve", "ann", "boss"), ("expire", "", "")], 1, False),
        ([("approve", "ann", "boss"), ("amend", "bo", "boss")], 1, True),
        ([("approve", "ann", "boss"), ("amend", "bo", "boss")], 2, False),
    ],
)
def test_who_let_a_call_through(decisions: list[Any], needed: int, enough: bool) -> None:
    run = AuditState({"go": PAYS})
    run.decisions["c"] = [
        event("decision", seq, decision=word, by=by, role=role)
        for seq, (word, by, role) in enumerate(decisions)
    ]
    guarded = replace(PAYS.guarded["pay"], needed=needed)
    assert decided_by_people(run, event(call_id="c"), guarded) is enough
    assert decided_by_people(run, event(call_id="x"), guarded) is False


def test_roles_that_nobody_named_are_an_operators() -> None:
    run = AuditState({"go": PAYS})
    run.decisions["c"] = [event("decision", decision="approve", by="ann", role="operator")]
    nobody = replace(PAYS.guarded["pay"], roles=(), needed=0)
    assert decided_by_people(run, event(call_id="c"), nobody) is True
    late = replace(nobody, expires_seconds=5)
    assert decided_by_people(run, event(seq=14, call_id="c"), late) is True
    assert decided_by_people(run, event(seq=15, call_id="c"), late) is False
    run.held["c"] = 2.0
    assert decided_by_people(run, event(seq=7, call_id="c"), late) is True
    assert decided_by_people(run, event(seq=8, call_id="c"), late) is False


# --- gates ------------------------------------------------------------------------------


def gate(name: str, *parameters: str, principal: bool = True) -> Function:
    terms = tuple((one, Local(one)) for one in parameters)
    act = Act("open", f"open_{name}", (*terms, ("password", Unknown("password"))))
    steps = (act, ReturnStep("end"))
    return Function(name, Kind.GATE, parameters, steps, predicate=name, principal=principal)


def test_the_other_ways_to_be_known() -> None:
    gates = [gate("a", "user"), gate("b", "user"), gate("c", "user", "bank"),
             gate("d", "user", principal=False)]  # fmt: skip
    go = Function("go", Kind.PROCESS, ("user",), (CompleteStep("done"),))
    code = read_program("go", program("go", go, *gates))
    moment = moment_of(AuditState({"go": code}), at("done", {}, code), {})
    ways = {
        name: [act.action for act in _other_ways(moment, code.functions[name])] for name in "abc"
    }
    assert ways == {"a": ["open_b"], "b": ["open_a"], "c": []}
    act = code.functions["a"].acts[0]
    right = {"user": "ann", "password": "x"}
    for arguments, opens in (
        (right, True), ({**right, "user": "bob"}, False), ({"user": "ann"}, False),
        ({**right, "more": 1}, False),
    ):  # fmt: skip
        call = SessionCall(1, "open_a", arguments)
        assert opens_gate(act, {"user": "ann"}, call) is opens
    assert opens_gate(act, {"user": "ann"}, SessionCall(1, "open_b", right)) is False


# --- calls that a recipe asks for -------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "asked"),
    [
        ([{"id": 1}, {"id": 2}], [{"id": 1}, {"id": 2}]),
        ([], []),
        ([{"id": 1}] * LONGEST_LIST, [{"id": 1}] * LONGEST_LIST),
        ([{"id": 1}] * (LONGEST_LIST + 1), "`found.ids` has more than 1000 elements"),
        ([{"id": None}], "there is nothing at `one.id` in what was answered"),
        ([{}], "there is nothing at `one.id` in what was answered"),
        ({"id": 1}, "`found.ids` is no list in what was answered"),
        (None, "`found.ids` is no list in what was answered"),
    ],
)
def test_one_call_for_each(listed: Any, asked: Any) -> None:
    act = Act("each", "read", (("id", Path("one", ("id",))),), each=Path("found", ("ids",)),
              element="one")  # fmt: skip
    moment = moment_of(AuditState({"transfer": CODE}), at("act"), {})
    found = asked_calls(moment, CODE.functions["overdraft"], act, {}, {"found": {"ids": listed}})
    assert (found if isinstance(found, list) else found.why) == asked


# --- where the program stands -----------------------------------------------------------


def test_what_is_asked_for_behind_questions() -> None:
    steps = (Ask("a", ("x",)), Ask("b", ("y",)), Act("c", "look"), CompleteStep("done"))
    go = Function("go", Kind.PROCESS, (), steps)
    frame = at("a", {}, read_program("go", program("go", go))).frames[0]
    assert [act.action for act in _acts_here(frame)] == ["look"]
    frame.cursor = "done"
    assert _acts_here(frame) == ()
    circle = Function("go", Kind.PROCESS, (), (Ask("a", ("x",), next="a"), CompleteStep("done")))
    frame = at("a", {}, read_program("go", program("go", circle))).frames[0]
    assert _acts_here(frame) == ()


CHECK = Check("c", "logged_in", (("username", Local("u")),), "s", unmet="no")


def test_the_checks_that_are_left_behind_other_steps() -> None:
    steps = (
        Ask("a", ("x",)), Do("d", "Look.", ("search",)),
        Choose("o", "?", (Option("one", "c"), Option("two", "no"))),
        CHECK, CompleteStep("yes"), FailStep("no"),
    )  # fmt: skip
    code = read_program("go", program("go", Function("go", Kind.PROCESS, ("u",), steps), LOGGED_IN))
    for label in ("a", "d", "o", "c"):
        assert [one.predicate for one in remaining_checks(at(label, {"u": 1}, code))] == [
            "logged_in"
        ]
    assert remaining_checks(at("yes", {"u": 1}, code)) == []


def test_what_is_under_way_is_forgotten_where_it_is_asked_from_its_beginning() -> None:
    steps = (CHECK, CompleteStep("yes"), FailStep("no"))
    code = read_program("go", program("go", Function("go", Kind.PROCESS, ("u",), steps), LOGGED_IN))
    found = Acceptance(code, lambda *_: None)
    assert found.from_step(code.entry, "c", {}, (), inner=True, entered=True) is True
    assert found.from_step(code.entry, "c", {}, (), inner=False, entered=True) is False
    assert found.from_step(code.entry, "c", {}, ()) is None
    assert found.from_step(code.entry, "c", {}, (), inner=True, entered=True) is True


def test_what_can_be_reached_by_choosing() -> None:
    pay = Act("act", "pay", goal=True)
    ways = Choose("o", "?", (Option("one", "no"), Option("two", "act")))
    steps = (ways, pay, CompleteStep("done"), FailStep("no"))
    code = read_program("go", program("go", Function("go", Kind.PROCESS, (), steps)))
    assert Acceptance(code, lambda *_: None, "act").from_step(code.entry, "o", {}, ()) is True
    shut = replace(ways, options=(Option("one", "no"), Option("two", "no")))
    code = read_program("go", program("go", Function("go", Kind.PROCESS, (), (shut, *steps[1:]))))
    found = Acceptance(code, lambda *_: None, "act")
    assert found.from_step(code.entry, "o", {}, ()) is False
    assert found.from_step(code.entry, "nowhere", {}, ()) is False


@pytest.mark.parametrize(
    ("inner", "own", "reached"),
    [(True, True, True), (False, True, False), (True, False, False), (None, True, False),
     (True, None, False)],
)  # fmt: skip
def test_a_rule_that_branches(inner: bool | None, own: bool | None, reached: bool) -> None:
    """It judges its own calls where the other says yes, and is false where that says no."""
    asks = Check("a", "logged_in", (("username", Local("u")),), "a", met="judge", unmet="judge")
    fork = Branch("judge", Holds("a"), "own", "no")
    rule = Function(
        "rule", Kind.RULE, ("u",),
        (asks, fork, ReturnStep("own"), ReturnStep("no", Holds("a"))), predicate="rule",
    )  # fmt: skip
    check = Check("c", "rule", (("u", Local("u")),), "s", unmet="no")
    go = Function(
        "go", Kind.PROCESS, ("u",),
        (check, Act("act", "pay", goal=True), CompleteStep("done"), FailStep("no")),
    )  # fmt: skip
    code = read_program("go", program("go", go, rule, LOGGED_IN))
    told = {"rule": own, "logged_in": inner}
    found = Acceptance(code, lambda step, callee, chain: told[callee.function.name], "act")
    assert found.from_step(code.entry, "c", {}, ()) is reached


def test_groups_within_groups_end_somewhere() -> None:
    again = Check("c", "group", (), "s")
    group = Function("group", Kind.GROUP, (), (again, ReturnStep("end", Holds("s"))))
    go = Function(
        "go",
        Kind.PROCESS,
        (),
        (
            again,
            CompleteStep("done"),
        ),
    )
    code = read_program("go", program("go", go, group))
    found = Acceptance(code, lambda *_: None)
    assert found.result_of(again, code.entry, ((),) * DEEPEST) is None
    deep: list[int] = []
    rule = Function("leaf", Kind.RULE, (), (ReturnStep("end"),), predicate="leaf")
    last = replace(group, steps=(replace(again, function="leaf"), group.steps[1]))
    code = read_program("go", program("go", go, last, rule))
    found = Acceptance(code, lambda step, callee, chain: bool(deep.append(len(chain))) or True)
    assert found.result_of(again, code.entry, ((),) * (DEEPEST - 1)) is True
    assert found.result_of(again, code.entry, ((),) * DEEPEST) is None
    assert deep == [DEEPEST + 1]


# --- words ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "heard", "severity"),
    [
        ("the account of ann is frozen", "", Severity.WARNING),
        ("The Account of ann  is FROZEN. Please wait.", "", Severity.WARNING),
        ("it is open: the account of ann is open", "", Severity.WARNING),
        ("please call us", "", None),
        ("please call us at 5551", "", Severity.NOTE),
        ("please call us at 5551", "my number is 5551", None),
        ("please call us at 55510", "", None),
        ("no, 42 and ann and call", "", None),
        ("it says shut", "", Severity.NOTE),
        ("it says odd", "", None),
        ("ann-1 it is", "", None),
    ],
)
def test_what_the_customer_was_told(said: str, heard: str, severity: Severity | None) -> None:
    run, process = AuditState({"transfer": CODE}), at("act")
    run.processes["p1"] = process
    answer = {"status": "shut", "how": "odd", "phone": 5551, "n": 42, "who": "ann-1", "ok": True}
    run.results[4] = SeenResult(4, 3, "c", "look", {"user": "ann-1"}, True, answer, "p1", 0)
    process.unmet.append(
        UnmetCheck("frozen", "frozen", "The account of ann is open.",
                   "The account of ann is frozen.", "", "Please call us.", True, (4,), 6)
    )  # fmt: skip
    process.unmet.append(replace(process.unmet[0], tells=""))
    events = [
        event("user_said", 2, "user", text=heard),
        event("assistant_said", 4, text=said),
        event("note", 8, text=said),
        event("assistant_said", 9, text=said),
    ]
    judge_told(run, events)
    assert [(one.seq, one.code, one.severity) for one in run.findings] == (
        [] if severity is None else [(9, "tipped-off", severity)]
    )
    for one in run.findings:
        what = "the sentence" if severity is Severity.WARNING else "what the verifier answered"
        assert one.explanation == (
            f"the customer was told {what} about `frozen`, and may hear only: Please call us."
        )
        assert (one.process, one.predicate, one.sentence) == (
            "p1", "frozen", "The account of ann is open.",
        )  # fmt: skip


def test_what_may_be_said_is_told_to_nobody() -> None:
    """Its own words are no tip-off, even where the sentence stands in them."""
    run, process = AuditState({"transfer": CODE}), at("act")
    run.processes["p1"] = process
    process.unmet.append(
        UnmetCheck("p", "p", "Please wait.", "Please wait", "", "Please wait. Thanks", False, (), 3)
    )
    judge_told(run, [event("assistant_said", 4, text="please wait. thanks")])
    assert run.findings == []


@pytest.mark.parametrize(
    ("value", "was_said"),
    [
        ({"message": 5, "said": "Yes.", "answer": "yes"}, True),
        ({"message": 5, "said": "Yes.", "answer": "no"}, False),
        ({"message": 5, "said": "yes!", "answer": "yes"}, False),
        ({"message": 6, "said": "Yes.", "answer": "yes"}, False),
        ({"message": 2, "said": "Yes.", "answer": "yes"}, False),
        ({"message": 5, "said": REF, "answer": "yes"}, True),
        ({"message": 6, "said": REF, "answer": "yes"}, True),
        ({"message": 2, "said": REF, "answer": "yes"}, False),
        ({"said": "Yes.", "answer": "yes"}, False),
        ("no object", True),
    ],
)
def test_whether_the_user_said_so(value: Any, was_said: bool) -> None:
    run = AuditState({"transfer": CODE})
    run.user_messages = {2: "Yes.", 5: "Yes.", 6: "Yes.", 11: "Yes."}
    told = event("domain_result", 9, "runtime", ok=True, value=value)
    assert _was_said(run, 3, told) is was_said
    failed = event("domain_result", 9, "runtime", ok=False, value=value)
    assert _was_said(run, 3, failed) is True
    if isinstance(value, dict) and value.get("message") == 5:
        assert _was_said(run, 3, told) is False  # a message answers one question


def test_questions_of_other_programs_are_put_anew() -> None:
    run = Run({"errand": ERRAND})
    run.ok(Start("errand", {"what": "x"}))
    run.ok(DomainCall("c1", CONFIRM, {"action": "pay"}))
    run.ok(DomainResult("c1", True, {"said": "yes"}))
    run.ok(DomainCall("c2", "search"))
    run.ok(DomainResult("c2", True, 1))
    last = ending(run, "note", run.place, name="program_changed", details={})
    codes = {"errand": read_program("errand", ERRAND)}
    read = read_events(codes, [*run.events, last], changes={last.seq: codes})
    assert [one.action for one in read.session_calls] == ["search"]
    read = read_events(codes, [*run.events, last])
    assert [one.action for one in read.session_calls] == [CONFIRM, "search"]


def test_what_the_user_said_is_kept_as_it_was_said() -> None:
    run = Run({"errand": ERRAND})
    run.ok(Start("errand", {"what": "x"}))
    said = [ending(run, "user_said", run.place, text=text, moved=None) for text in ("Hi", REF)]
    said[1] = said[1]._replace(seq=2)
    codes = {"errand": read_program("errand", ERRAND)}
    assert read_events(codes, [*run.events, *said]).user_messages == {1: "Hi", 2: None}


@pytest.mark.parametrize(
    ("format_", "done", "went"),
    [
        (2, {"user": "ann"}, True), (2, {"user": "bob"}, False), (2, {}, False),
        (1, {"user": "bob"}, True), (1, {}, True),
    ],
)  # fmt: skip
def test_what_the_process_went_past(format_: int, done: Any, went: bool) -> None:
    """Programs of the first format say nothing of the values that a step was done with."""
    note = Act("note", "note", (("user", Local("user")), ("x", Path("a", ()))))
    steps = (note, Act("act", "pay", goal=True), CompleteStep("done"))
    go = replace(program("go", Function("go", Kind.PROCESS, ("user",), steps)), format=format_)
    code = read_program("go", go)
    process = at("act", {"user": "ann"}, code)
    path = _Path(moment_of(AuditState({"go": code}), process, {}), {"user": "ann"})
    assert path.done(code.entry, note, ()) is False
    process.done.append(("go", "note", done))
    assert path.done(code.entry, note, ()) is went
    assert path.done(code.entry, replace(note, label="other"), ()) is False


@pytest.mark.parametrize(
    ("spoken", "step", "missing"),
    [
        ([("your username?", "no")], Ask("a", ("username",)), ["username"]),
        ([("your username?", "my username is x")], Ask("a", ("username",)), []),
        ([("your name?", "no")], Ask("a", ("username",)), []),
        ([(None, "no")], Ask("a", ("username",)), []),
        ([("your username?", "no")], Check("c", "f", (("x", Local("username")),), "s"),
         ["username"]),
        ([("your username?", "no")], Act("c", "f", (("x", Unknown("username")),)), ["username"]),
        ([("your username?", "no")], Act("c", "f", (("x", Literal("username")),)), []),
        ([("your username?", "no")], CompleteStep("done"), []),
        ([("the amount?", "no")], Ask("a", ("amount",)), []),
    ],
)  # fmt: skip
def test_what_the_user_was_asked_for_and_did_not_say(
    spoken: list[Any], step: Any, missing: list[str]
) -> None:
    process = at("act", {"amount": 5})
    process.unanswered = spoken
    assert _not_given(process, process.frames[0], step) == missing


def test_a_chain_that_was_cut_off() -> None:
    sealed = seal_all(decided().events, genesis("s"))
    head = Head("s", len(sealed) - 1, sealed[-1].hash)
    assert judge_chain(sealed, "s", head) == (None, True)
    broken, whole = judge_chain(sealed[:-1], "s", head)
    assert whole is False
    assert broken is not None
    assert (broken.seq, broken.explanation) == (
        len(sealed) - 1,
        f"the chain breaks at index {len(sealed) - 1}: events behind the last one are missing",
    )
