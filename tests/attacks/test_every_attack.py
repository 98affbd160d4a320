"""Every attack, through every interface: the judge is the simulator's own record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")
pytest.importorskip("mcp", reason="needs the extra `mcp`")

from attack_table import CASES, GUARD_CASES, VIEWS_WITH_A_MACHINE, assert_done, assert_held, cases
from attacks_on_evidence import READ_AGAIN
from attacks_on_values import BALANCE, COVERED, DEMOLITION
from attacks_on_words import FOUND_CASE
from every_interface import INTERFACES, ScriptedAttacker, followed, reply_of
from framework_agents import EVERY_FRAMEWORK, FRAMEWORKS, FrameworkAgent
from scripted_moves import Case, Move, RecordingTools, Script, call, start
from silent_user import SilentUser

from sopilot.agent.approvers import Operator
from sopilot.agent.loop import open_run, run_session
from sopilot.audit.audit import audit_trace
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.machine.call_ledger import HeldCall
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import UserMistake
from sopilot.proof import guard as guards
from sopilot.proof.licence import Licence
from sopilot.records.entitlements import Vote
from sopilot.runner.hook import ProcedureHook
from sopilot.session import admission
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS

GUARDS = ("guard", "guard-auto")
# The scripts move the program with the long bookkeeping tool, which other views don't have.
HOOKED = [name for name, view in VIEWS.items() if view.has_steps and not view.short_step]
# It takes the steps of `pg-paper`, and differs in the text that the model reads. The other views
# of the loop have steps that `pg-paper` doesn't have (`amend`), so they play every case.
SAME_MACHINE = ("full-cursor",)
PLACES = [
    *(
        ("loop", view, case)
        for view in VIEWS_WITH_A_MACHINE
        for case in cases(view, classes=view in SAME_MACHINE)
    ),
    *(("play", view, case) for view in ("pg", "fused") for case in CASES),
    *(("plain", view, case) for view in GUARDS for case in GUARD_CASES),
    *(("decisions", view, case) for view in GUARDS for case in GUARD_CASES),
    *(("langchain", view, case) for view in HOOKED for case in cases(view, classes=view != "pg")),
    *((name, "guard", case) for name in FRAMEWORKS for case in GUARD_CASES),
    *(
        (name, "guard-auto", case)
        for name in FRAMEWORKS
        for case in cases("guard-auto", classes=True)
    ),
    *(("mcp", "pg", case) for case in CASES),
    *(("mcp", view, case) for view in ("fused", "chunk") for case in cases(view, classes=True)),
    *(("mcp over http", "full-cursor", case) for case in cases("full-cursor", classes=True)),
    *(("gateway", "pg", case) for case in (*cases("pg", classes=True), READ_AGAIN)),
    *(("gateway", "guard", case) for case in GUARD_CASES),
    *(("gateway", "guard-auto", case) for case in cases("guard-auto", classes=True)),
    *(("gateway over http", view, case) for view in GUARDS for case in cases(view, classes=True)),
]
EVERYWHERE = pytest.mark.parametrize(
    ("interface", "view", "case"),
    PLACES,
    ids=[f"{door} {view} {case.id}" for door, view, case in PLACES],
)


def script_of(case: Case, view: str, *, honest: bool = False) -> Script:
    return Script(case.moves(honest=honest, guard=bool(VIEWS[view].guard)))


@EVERYWHERE
async def test_an_attack_is_held(interface: str, view: str, case: Case) -> None:
    script = script_of(case, view)
    assert_held(case, VIEWS[view], script, await followed(interface, case, script, view))


@EVERYWHERE
async def test_its_honest_twin_goes_through(interface: str, view: str, case: Case) -> None:
    script = script_of(case, view, honest=True)
    assert_done(case, VIEWS[view], script, await followed(interface, case, script, view))
    # Where a frame shows the value, it was copied from there.
    shown = VIEWS[view].has_steps and view != "flat-protocol" and case is not FOUND_CASE
    assert not (shown and interface == "loop" and script.read_in_the_dialog)


@pytest.mark.parametrize("view", GUARDS)
@pytest.mark.parametrize(
    "interface", [*FRAMEWORKS, "plain", "decisions", "loop", "mcp over http", "gateway over http"]
)
async def test_a_conversation_has_its_own_evidence(interface: str, view: str) -> None:
    """Anna logs in, in her conversation; in another one her account isn't closed."""
    case = next(case for case in CASES if "logged in as one customer" in case.name)
    *logged_in, close = case.moves(honest=True, guard=True)
    tools = RecordingTools(case)
    async with INTERFACES[interface](case, tools, view) as follow:
        await follow(Script(logged_in), "c-1")
        await follow(Script([close]), "c-2")
        assert tools.carried_out == []
        assert [name for name, _ in tools.made] == ["login"]


def test_every_class_is_here() -> None:
    assert {case.number for case in GUARD_CASES} == set(range(1, 19))
    assert len({case.id for case in GUARD_CASES}) == len(GUARD_CASES)


# --- the guard is what blocks them ----------------------------------------------------


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.by_proof], ids=lambda case: case.id
)
async def test_without_the_proof_an_attack_works(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is the proof that blocks it, and not that the script is no attack."""
    monkeypatch.setattr(guards, "license_call", lambda *arguments: Licence())
    tools = await followed("loop", case, Script(case.attack), "pg")
    assert tools.carried_out == [*case.before, (case.attack[-1].tool, case.attack[-1].arguments)]


@pytest.mark.parametrize("view", [name for name, view in VIEWS.items() if not view.machine])
async def test_a_view_without_a_machine_holds_what_no_procedure_carries_out(view: str) -> None:
    """Although a simulator lets it make every other mistake."""
    case = next(case for case in CASES if case.number == 13)
    script = Script((call("open_door", guest="guest-1"), case.attack[-1]))
    tools = await followed("loop", case, script, view)
    assert tools.carried_out == [("open_door", {"guest": "guest-1"})]
    assert all(word in script.answers[-1] for word in case.says), script.answers


async def test_where_the_guard_is_broken_the_audit_finds_what_no_procedure_carries_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "hold_reason", lambda *arguments, **options: None)
    monkeypatch.setattr(guards, "license_call", lambda *arguments: Licence())
    case = next(case for case in CASES if case.name == "no procedure, all else proven")
    briefing, tools = case.briefing(), RecordingTools(case)
    session = await open_run(MemoryStore(), briefing, VIEWS["pg"], tools=tools)
    model = ScriptedAttacker(Script(case.attack))
    await run_session(session, briefing, view=VIEWS["pg"], model=model, user=SilentUser())
    report = audit_trace(briefing.programs, await session.whole_events(), judge=judge)
    (finding,) = [each for each in report.findings if each.code == "guard-violated"]
    assert tools.carried_out == [("demolish", {"guest": "guest-1"})]
    assert finding.severity is Severity.ERROR
    assert "no procedure of the handbook carries it out" in finding.explanation


@pytest.mark.parametrize("view", VIEWS)
async def test_without_any_procedure_nothing_runs(view: str) -> None:
    handbook = load_handbook(DEMOLITION.partition("predicates:")[0], "attack.yaml")
    with pytest.raises(UserMistake, match="no procedure, so nothing licenses `demolish`"):
        await open_run(
            MemoryStore(), Briefing(handbook, {}), VIEWS[view], tools=None, unguarded=True
        )


async def test_a_result_from_before_the_start_is_named_as_such() -> None:
    """It is there, and the executor has read it: "there is none" would be no cure."""
    case = next(case for case in CASES if "before the start" in case.name)
    script = Script(case.attack)
    await followed("loop", case, script, "pg")
    assert "isn't a result of this `open_door`: make the call again here" in script.answers[-2]


# --- around a hook --------------------------------------------------------------------

(BALANCES,) = (case for case in CASES if case.handbook == BALANCE and case.number == 6)
TRANSFER: dict[str, JSON] = {"user": "ann", "amount": 80, "to": "x"}
CHECKED = (start("transfer", **TRANSFER), *COVERED)
ACT = call("transfer", **TRANSFER)


async def hooked(
    kind: type[FrameworkAgent],
    case: Case,
    script: Script,
    *,
    at_once: Sequence[Move] = (),
    operator: Operator | None = None,
) -> RecordingTools:
    tools = RecordingTools(case)
    hook = await ProcedureHook.open(
        MemoryStore(), case.briefing(), VIEWS["pg"], operator=operator, reader=tools
    )
    own = [kind.described(schema, tools.perform) for schema in tools.schemas()]
    await kind(hook, own, reply_of(script, at_once=at_once)).say("Please do it.")
    await hook.close()
    return tools


@EVERY_FRAMEWORK
async def test_acts_in_one_message_are_one(framework: type[FrameworkAgent]) -> None:
    """The framework makes them at the same time."""
    script = Script(CHECKED)
    tools = await hooked(framework, BALANCES, script, at_once=(ACT, ACT, ACT))
    assert tools.carried_out == [("transfer", TRANSFER)]
    assert sum(answer.startswith("Not called: ") for answer in script.answers) == 2


async def test_a_hook_that_cannot_read_again_is_refused() -> None:
    """It has only the call that it wraps: it would carry the act out in order to check it."""
    with pytest.raises(UserMistake, match="`transfer` has `recheck`"):
        await ProcedureHook.open(MemoryStore(), READ_AGAIN.briefing(), VIEWS["pg"])


class Lowers:
    async def decide(self, held: HeldCall) -> Sequence[Vote]:
        lower = {**held.arguments, "amount": 10}
        return [
            Vote("amend", "Kim", held.roles[0], arguments=lower),
            Vote("approve", "Kim", held.roles[0]),
        ]


@EVERY_FRAMEWORK
async def test_what_the_approver_amended_is_what_is_carried_out(
    framework: type[FrameworkAgent],
) -> None:
    approved = BALANCES.handbook.replace("irreversible: true", "irreversible: true, approval: boss")
    case = replace(BALANCES, handbook=approved)
    tools = await hooked(framework, case, Script((*CHECKED, ACT)), operator=Lowers())
    assert tools.carried_out == [("transfer", {**TRANSFER, "amount": 10})]
