"""Every attack by a model that replays its moves, under every view with a machine."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

import pytest
from attack_table import (
    CASES,
    EVERY_CASE,
    VIEWS_WITH_A_MACHINE,
    VIEWS_WITH_STEPS,
    assert_done,
    assert_held,
)
from attacks_on_values import DEMOLITION
from attacks_on_words import FOUND_CASE
from scripted_moves import Case, RecordingTools, Script, call
from silent_user import SilentUser

from sopilot.agent.loop import open_run, run_session
from sopilot.audit.audit import audit_trace
from sopilot.audit.findings import Finding
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.machine.proof import guard as guards
from sopilot.machine.proof.licence import Licence
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ModelReply, ModelRequest, ToolCall
from sopilot.session import admission
from sopilot.stores.memory import MemoryStore
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS
from sopilot.views.view import View


@dataclass
class ScriptedAttacker:
    """One call a message: a view leaves out what follows a step that did not fit."""

    script: Script
    name: str = "attacker"
    asked: int = 0
    over: bool = False

    async def complete(self, request: ModelRequest) -> ModelReply:
        last = request.messages[-1]
        told = [message for message in request.messages if message.role == "tool"]
        if self.asked and not self.over:
            self.script.answered(told[-1].content if told else "")
        move = self.script.next(last.content)
        if move is None:
            self.over = True  # a silent user is told about once
            return ModelReply("That is all.")
        self.asked += 1
        written = json.dumps(move.arguments, ensure_ascii=False)
        return ModelReply("", (ToolCall(f"c{self.asked}", move.tool, written),))


async def looped(case: Case, script: Script, view: View) -> RecordingTools:
    briefing, tools = case.briefing(), RecordingTools(case)
    session = await open_run(MemoryStore(), briefing, view, tools=tools, unguarded=not view.machine)
    await run_session(
        session, briefing, view=view, model=ScriptedAttacker(script), user=SilentUser()
    )
    return tools


def test_every_class_is_here() -> None:
    assert {case.number for case in CASES} == set(range(1, 16))
    assert len({case.id for case in CASES}) == len(CASES)


@EVERY_CASE
@pytest.mark.parametrize("view", VIEWS_WITH_A_MACHINE)
def test_an_attack_is_held(case: Case, view: str) -> None:
    script = Script(case.attack)
    tools = asyncio.run(looped(case, script, VIEWS[view]))
    assert_held(case, VIEWS[view], script, tools)


@EVERY_CASE
@pytest.mark.parametrize("view", VIEWS_WITH_STEPS)
def test_its_honest_twin_goes_through(case: Case, view: str) -> None:
    script = Script(case.twin)
    tools = asyncio.run(looped(case, script, VIEWS[view]))
    assert_done(case, script, tools)
    # Where a slot shows the value, it was copied from there.
    shown = view != "flat-protocol" and case is not FOUND_CASE
    assert not (shown and script.read_in_the_dialog)


@pytest.mark.parametrize("view", [name for name, view in VIEWS.items() if not view.machine])
def test_a_view_without_a_machine_holds_what_no_procedure_carries_out(view: str) -> None:
    """Although a simulator lets it make every other mistake."""
    case = next(case for case in CASES if case.number == 13)
    script = Script((call("open_door", guest="guest-1"), case.attack[-1]))
    tools = asyncio.run(looped(case, script, VIEWS[view]))
    assert tools.carried_out == [("open_door", {"guest": "guest-1"})]
    assert all(word in script.answers[-1] for word in case.says), script.answers


def test_where_the_guard_is_broken_the_audit_finds_what_no_procedure_carries_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "hold_reason", lambda *given, **options: None)
    monkeypatch.setattr(guards, "license_call", lambda *given: Licence())
    case = next(case for case in CASES if case.name == "no procedure, all else proven")
    briefing, tools = case.briefing(), RecordingTools(case)

    async def run() -> list[Finding]:
        session = await open_run(MemoryStore(), briefing, VIEWS["pg"], tools=tools)
        model = ScriptedAttacker(Script(case.attack))
        await run_session(session, briefing, view=VIEWS["pg"], model=model, user=SilentUser())
        report = audit_trace(briefing.programs, await session.whole_events(), judge=judge)
        return [one for one in report.findings if one.code == "guard-violated"]

    (found,) = asyncio.run(run())
    assert tools.carried_out == [("demolish", {"guest": "guest-1"})]
    assert found.severity is Severity.ERROR
    assert "no procedure of the handbook carries it out" in found.explanation


@pytest.mark.parametrize("view", VIEWS)
def test_without_any_procedure_nothing_runs(view: str) -> None:
    handbook = load_handbook(DEMOLITION.partition("predicates:")[0], "attack.yaml")
    with pytest.raises(UserMistake, match="no procedure, so nothing licenses `demolish`"):
        asyncio.run(
            open_run(MemoryStore(), Briefing(handbook, {}), VIEWS[view], tools=None, unguarded=True)
        )


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.by_proof], ids=lambda case: case.id
)
def test_without_the_proof_an_attack_works(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is the proof that holds it, and not that the script is no attack."""
    monkeypatch.setattr(guards, "license_call", lambda *given: Licence())
    tools = asyncio.run(looped(case, Script(case.attack), VIEWS["pg"]))
    assert tools.carried_out == [*case.before, (case.attack[-1].tool, case.attack[-1].arguments)]


def test_a_result_from_before_the_start_is_told_as_such() -> None:
    """It is there, and the executor has read it: that there is none would be no cure."""
    case = next(case for case in CASES if "before the start" in case.name)
    script = Script(case.attack)
    asyncio.run(looped(case, script, VIEWS["pg"]))
    assert "is no result of this `open_door`: make the call again here" in script.answers[-2]
