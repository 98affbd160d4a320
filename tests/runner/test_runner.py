"""A runner in a program: served, refused, approved, resumed, with plain functions as tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import sopilot
from sopilot.agent.approvers import RoleApprovers
from sopilot.messages.errors import ProgramChanged
from sopilot.stores.memory import MemoryStore

HANDBOOK = """
handbook: door
actions:
  look_up: {input: {name: string}}
  open_door: {input: {name: string}, irreversible: true, approval: host}
predicates:
  invited(name):
    says: "{name} is on the list."
    says_not: "{name} is not on the list."
    verify: look_up(name)
    verdict: result.invited
    remedy: Ask the host.
procedures:
  open_door: {requires: invited(name)}
"""
SCENARIOS = """
handbook: door
scenarios:
  a guest:
    goal: open_door
    inputs: {name: Ada}
    tools: {look_up: {invited: true}}
    approvals: [host]
    expect: executed
  a stranger:
    goal: open_door
    inputs: {name: Eve}
    tools: {look_up: {invited: false}}
    expect: {refused: invited}
"""
ADA = {"name": "Ada"}


class Door:
    """Synchronous and asynchronous methods side by side."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.keys: list[str] = []

    def look_up(self, name: str) -> dict[str, bool]:
        return {"invited": name != "Eve"}

    async def open_door(self, name: str, key: str) -> dict[str, bool]:
        self.opened.append(name)
        self.keys.append(key)
        return {"opened": True}

    def not_an_action(self) -> None:
        raise AssertionError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "door.yaml").write_text(HANDBOOK, encoding="utf-8")
    (tmp_path / "door.scenarios.yaml").write_text(SCENARIOS, encoding="utf-8")
    return tmp_path / "door.yaml"


def test_executed_with_somebody_who_approves(path: Path) -> None:
    runner, door = sopilot.load(path), Door()
    result = runner.run_sync("Open.", tools=door, inputs=ADA, approvers=("host",))
    assert result.executed
    assert result.audit.clean
    assert door.opened == ["Ada"]
    assert door.keys[0].startswith(result.session_id)
    assert list(runner.programs) == ["open_door"]


def test_refused_with_the_reason_and_the_remedy(path: Path) -> None:
    result = sopilot.load(path).run_sync("Open.", tools=Door(), inputs={"name": "Eve"})
    assert result.refused
    assert result.audit.clean
    (refusal,) = result.refusals
    assert refusal.sentence == "Eve is not on the list."
    assert refusal.remedy == "Ask the host."


def test_what_no_procedure_could_take_is_told_before_anything_runs(path: Path) -> None:
    with pytest.raises(sopilot.UserMistake, match="`name` must be of type string, not 7"):
        sopilot.load(path).run_sync("Open.", tools=Door(), inputs={"name": 7})


class Caller:
    """A model of somebody's own: looks up, and then says that it has."""

    name = "caller"

    def __init__(self, reply: Any) -> None:
        self._reply = reply

    async def complete(self, request: sopilot.ModelRequest) -> sopilot.ModelReply:
        answers = [one.content for one in request.messages if one.role == "tool"]
        if answers:
            return sopilot.ModelReply(answers[0])
        reply: sopilot.ModelReply = self._reply()
        return reply


def _asks_for(arguments: Any) -> Any:
    return lambda: sopilot.ModelReply("", (sopilot.ToolCall("1", "look_up", arguments),))


@pytest.mark.parametrize("arguments", [ADA, '{"name": "Ada"}', MappingProxyType(ADA)])
def test_a_model_gives_arguments_as_a_mapping_or_as_text(path: Path, arguments: Any) -> None:
    said: list[str] = []
    sopilot.load(path).run_sync(
        "Open.", tools=Door(), model=Caller(_asks_for(arguments)), user=said.append
    )
    assert said[0] == '#4 (ok): {"invited":true}'


@pytest.mark.parametrize("arguments", [None, ["Ada"], {"name": {1, 2}}, {"name": b"Ada"}])
def test_arguments_that_are_no_json_are_told_at_once(path: Path, arguments: Any) -> None:
    with pytest.raises(sopilot.UserMistake) as told:
        sopilot.load(path).run_sync(
            "Open.", tools=Door(), model=Caller(_asks_for(arguments)), inputs=ADA
        )
    (one,) = told.value.diagnostics
    assert one.code == "bad-tool-call"
    assert str(one.place) == "ToolCall: arguments of `look_up`"
    assert one.help == "give a mapping of JSON values, or its JSON text"


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "Hello.",
        sopilot.ModelReply(None),  # type: ignore[arg-type]  # as it comes beside calls
        sopilot.ModelReply("", ("look_up",)),  # type: ignore[arg-type]  # a name alone
    ],
)
def test_what_is_no_reply_of_a_model_is_told_with_its_cure(path: Path, reply: Any) -> None:
    with pytest.raises(sopilot.UserMistake) as told:
        sopilot.load(path).run_sync("Open.", tools=Door(), model=Caller(lambda: reply), inputs=ADA)
    (one,) = told.value.diagnostics
    assert one.code == "bad-model-reply"
    assert str(one.place) == "the model `caller`"
    assert "ModelReply(text" in one.help


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_waiting_decided_and_resumed_by_another_desk(path: Path, decision: str) -> None:
    store = f"sqlite:{path.with_name('s.db')}"
    door = Door()
    held = sopilot.load(path, store=store).run_sync("Open.", tools=door, inputs=ADA)
    assert held.waiting
    assert held.held[0].action == "open_door"
    assert door.opened == []
    again = sopilot.load(path, store=store)
    again.decide_sync(held.session_id, decision, by="Grace", role="host")
    done = again.resume_sync(held, tools=door)
    assert done.executed is (decision == "approve")
    assert door.opened == (["Ada"] if done.executed else [])
    assert again.audit_sync(done).clean is done.audit.clean is True


def test_a_changed_handbook_is_not_resumed_in_silence(path: Path) -> None:
    store = f"sqlite:{path.with_name('s.db')}"
    held = sopilot.load(path, store=store).run_sync("Open.", tools=Door(), inputs=ADA)
    path.write_text(HANDBOOK.replace("is on the list", "is a guest"), encoding="utf-8")
    with pytest.raises(ProgramChanged):
        sopilot.load(path, store=store).resume_sync(held, tools=Door())


def test_the_long_form_has_the_session_at_hand(path: Path) -> None:
    async def main() -> tuple[str, list[str]]:
        seen: list[str] = []
        session = sopilot.load(path).session(
            "Open.",
            tools=Door(),
            user=lambda message: 'name: "Ada"' if "name" in message else None,
            operator=RoleApprovers(("host",)),
            watch=lambda progress: seen.append(progress.kind),
        )
        async with session as opened:
            result = await opened.run()
            assert result.executed
            assert result.session_id == opened.id
            return opened.id, seen

    session_id, seen = asyncio.run(main())
    assert session_id
    assert {"user", "assistant", "call", "step"} <= set(seen)


def test_a_model_of_ones_own_by_its_replies(path: Path) -> None:
    class Silent:
        name = "silent"

        async def complete(self, request: sopilot.ModelRequest) -> sopilot.ModelReply:
            assert request.messages[0].role == "system"
            return sopilot.ModelReply("I cannot help.")

    result = sopilot.load(path).run_sync("Open.", tools=Door(), model=Silent())
    assert result.ending is sopilot.Ending.ABANDONED


def test_its_scenarios_are_tasks(path: Path) -> None:
    runner = sopilot.load(path)
    assert [task.name for task in runner.tasks()] == ["a guest", "a stranger"]
    for task in runner.tasks():
        result = runner.run_task_sync(task)
        assert result.passed
        assert result.good
    assert runner.run_task_sync("a stranger", view="flat").refused


def test_a_bundled_desk_is_a_desk() -> None:
    result = sopilot.load("bank").run_task_sync("transfer-above-the-limit")
    assert result.refused
    assert result.passed


# --- tools --------------------------------------------------------------------------------


def look_up(name: str) -> object:
    return {"invited": True}


def open_door(name: str) -> None: ...


def mistakes(path: Path, tools: object) -> set[str]:
    with pytest.raises(sopilot.UserMistake) as found:
        sopilot.load(path).run_sync("Open.", tools=tools)
    return {one.code for one in found.value.diagnostics}


def test_tools_that_do_not_fit_the_handbook_are_told_at_once(path: Path) -> None:
    def open_dor(name: str) -> None: ...

    def open_door(guest: str) -> None: ...

    assert mistakes(path, [look_up, open_dor]) == {"missing-tool", "unknown-tool"}
    assert mistakes(path, {"look_up": look_up, "open_door": open_door}) == {"tool-signature"}
    assert mistakes(path, object()) == {"missing-tool"}


@dataclass
class Guest:
    since: date


class Table(Enum):
    WINDOW = "window"


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        (Decimal("19.90"), 19.9),
        (Decimal("0.1000000000000000000001"), "0.1000000000000000000001"),
        (Guest(date(2026, 1, 31)), {"since": "2026-01-31"}),
        (datetime(2026, 1, 31, 9, 30, tzinfo=UTC), "2026-01-31T09:30:00Z"),
        ([Table.WINDOW], ["window"]),
        ('{"table": 3}', {"table": 3}),
        ('{"table": 3, "table": 4}', '{"table": 3, "table": 4}'),
        (Path("menu"), "menu"),
    ],
)
def test_a_result_is_recorded_as_json(path: Path, value: object, recorded: object) -> None:
    def look_up(name: str) -> object:
        return value

    result = sopilot.load(path).run_sync("Open.", tools=[look_up, open_door], inputs=ADA)
    events = [sealed.event for sealed in result.events]
    assert next(e.payload["value"] for e in events if e.kind == "domain_result") == recorded


def test_what_a_failing_tool_says(path: Path) -> None:
    def failing(name: str) -> object:
        raise sopilot.ToolFailed("the list is not here")

    def broken(name: str) -> object:
        raise ZeroDivisionError

    values: list[Mapping[str, Any]] = []
    for one in (failing, broken):
        tools = {"look_up": one, "open_door": look_up}
        result = sopilot.load(path).run_sync("Open.", tools=tools, inputs=ADA)
        events = [sealed.event for sealed in result.events]
        values += [e.payload for e in events if e.kind == "domain_result"][:1]
        assert not result.executed
    assert [value["ok"] for value in values] == [False, False]
    assert "the list is not here" in str(values[0]["value"])
    assert "ZeroDivisionError" in str(values[1]["value"])


def test_a_guarded_tool_that_breaks_off_is_not_called_again(path: Path) -> None:
    made: list[str] = []

    def open_door(name: str) -> object:
        made.append(name)
        raise ZeroDivisionError

    runner = sopilot.load(path)
    tools = [look_up, open_door]
    result = runner.run_sync("Open.", tools=tools, inputs=ADA, approvers=("host",))
    assert result.waiting
    assert "the outcome of call" in result.reason or "may have been" in result.reason
    assert runner.resume_sync(result, tools=tools).waiting
    assert made == ["Ada"]


# --- without a runner -------------------------------------------------------------------------


def test_compile_check_and_audit(path: Path) -> None:
    assert list(sopilot.compile(path)) == ["open_door"]
    assert sopilot.check(path) == []
    wrong = path.with_name("wrong.yaml")
    wrong.write_text(HANDBOOK.replace("verify: look_up", "verify: look_it_up"), encoding="utf-8")
    assert {one.code for one in sopilot.check(wrong)} == {"unknown-action"}
    call = {"id": "1", "type": "function"}
    messages = [
        {"role": "user", "content": "Open."},
        {
            "role": "assistant",
            "tool_calls": [
                {**call, "function": {"name": "open_door", "arguments": '{"name": "Ada"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": '{"opened": true}'},
    ]
    report = sopilot.audit_trace(messages, handbook=path)
    assert not report.clean
    assert "open_door" in str(report.as_json())


class Scripted:
    """A model that says these."""

    name = "scripted"

    def __init__(self, *replies: str | tuple[str, dict[str, Any]]) -> None:
        self.replies = list(replies)

    async def complete(self, request: sopilot.ModelRequest) -> sopilot.ModelReply:
        reply = self.replies.pop(0)
        if isinstance(reply, str):
            return sopilot.ModelReply(reply)
        name, arguments = reply
        return sopilot.ModelReply("", (sopilot.ToolCall("", name, json.dumps(arguments)),))


async def test_a_run_waits_for_the_next_message_and_goes_on_in_another_process(
    tmp_path: Path,
) -> None:
    text = HANDBOOK.replace("approval: host", 'confirm: "The door opens for {name}."')
    (tmp_path / "door.yaml").write_text(text, "utf-8")
    door = Door()

    async def goes_on(session: str | None, message: str, *replies: Any) -> sopilot.Result:
        runner = sopilot.load(tmp_path / "door.yaml", store=f"sqlite:{tmp_path}/s.db")
        model = Scripted(*replies)
        if session is None:
            result = await runner.run(
                message, tools=door, model=model, view="guard", wait_for_user=True
            )
        else:
            result = await runner.resume(session, tools=door, model=model, message=message)
        # A question that is open has no answer on record yet.
        codes = {finding.code for finding in (await runner.audit(result)).findings}
        assert codes <= ({"unknown-outcome"} if not door.opened else set())
        await runner.close()
        return result

    opens = ("open_door", ADA)
    asked = await goes_on(None, "Let me in.", "Who are you?")
    assert (asked.waiting, asked.reason) == (True, "Who are you?")
    shown = await goes_on(asked.session_id, "Ada.", ("look_up", ADA), opens)
    assert shown.waiting
    assert "The door opens for Ada." in shown.reason
    assert door.opened == []
    again = await goes_on(asked.session_id, "Who wants to know?")
    assert again.waiting  # that was no answer: the question is put once more
    assert door.opened == []
    done = await goes_on(asked.session_id, "yes", opens, "Come in. Anything else?")
    assert done.waiting
    assert door.opened == ["Ada"]


@pytest.mark.parametrize("waits", [True, False])
async def test_nobody_says_yes_in_the_place_of_a_user(tmp_path: Path, waits: bool) -> None:
    """The application resumes after an approval, say, or a restart."""
    text = HANDBOOK.replace("approval: host", 'confirm: "The door opens for {name}."')
    (tmp_path / "door.yaml").write_text(text, "utf-8")
    door, runner = Door(), sopilot.load(tmp_path / "door.yaml", store=MemoryStore())
    model = Scripted(("look_up", ADA), ("open_door", ADA))
    asked = await runner.run(
        "Ada.", inputs=ADA, tools=door, model=model, view="guard", wait_for_user=waits
    )
    resumed = await runner.resume(asked, tools=door, model=Scripted(("open_door", ADA)))
    assert (resumed.waiting, resumed.reason) == (True, asked.reason)
    assert door.opened == []
    said = Scripted(("open_door", ADA), "Come in.")
    await runner.resume(asked, tools=door, model=said, message="yes")
    assert door.opened == ["Ada"]


async def test_a_message_from_before_a_question_does_not_answer_it(tmp_path: Path) -> None:
    """The application passes on what the user wrote while the run was interrupted."""
    text = HANDBOOK.replace("approval: host", 'confirm: "The door opens for {name}."')
    (tmp_path / "door.yaml").write_text(text, "utf-8")
    door, runner = Door(), sopilot.load(tmp_path / "door.yaml", store=MemoryStore())
    opens = ("open_door", ADA)
    stopped = await runner.run(
        "Let me in.", tools=door, model=Scripted(("look_up", ADA)), view="guard",
        wait_for_user=True, budgets=sopilot.Budgets(agent_turns=1),
    )  # fmt: skip
    asked = await runner.resume(stopped, tools=door, model=Scripted(opens), message="yes")
    assert asked.waiting
    assert "The door opens for Ada." in asked.reason
    assert door.opened == []
    await runner.resume(asked, tools=door, model=Scripted(opens, "Come in."), message="yes")
    assert door.opened == ["Ada"]


ACCOUNTS = """
handbook: accounts
actions:
  login: {input: {user: string, pin: {type: string, secret: true}}}
  close: {input: {user: string}, irreversible: true, confirm: "Close {user}?"}
predicates:
  logged_in(user): {says: "{user} is logged in.", established_by: "login(user, pin)"}
procedures:
  close: {requires: logged_in(user)}
"""


@pytest.mark.parametrize(
    "hides",
    [("login", {"user": "acc-900", "pin": "acc-900"}), ("lookup", {"x": "acc-900"})],
    ids=["as a secret", "in a tool that there isn't"],
)
async def test_a_question_shows_the_user_what_a_model_tries_to_hide(
    tmp_path: Path, hides: tuple[str, dict[str, Any]]
) -> None:
    (tmp_path / "book.yaml").write_text(ACCOUNTS, "utf-8")
    closed: list[str] = []

    def login(user: str, pin: str) -> bool:
        if pin != "1234":
            raise sopilot.ToolFailed("wrong pin")
        return True

    tools = {"login": login, "close": lambda user: closed.append(user)}
    runner = sopilot.load(tmp_path / "book.yaml", store=MemoryStore())
    close = ("close", {"user": "acc-900"})
    model = Scripted(hides, ("login", {"user": "acc-900", "pin": "1234"}), close)
    asked = await runner.run("Hi.", tools=tools, model=model, view="guard", wait_for_user=True)
    assert "acc-900" in asked.reason
    done = await runner.resume(asked, tools=tools, model=Scripted(close, "Bye."), message="yes")
    assert closed == ["acc-900"]
    assert [finding.code for finding in (await runner.audit(done)).findings] == []


ROADS = """
handbook: roads
actions:
  read_leg: {input: {leg: string}, read_only: true}
  drive:
    input: {legs: {type: array, schema: {type: array, items: {type: string}}}}
    irreversible: true
    confirm: false
predicates:
  paved(legs):
    says: All legs are paved.
    verify: {call: read_leg(leg), for_each: legs as leg, name: each}
    verdict: results.each.all(item, item.paved)
procedures:
  drive: {requires: paved(legs)}
"""


@pytest.mark.parametrize("view", ["pg", "fused", "flat-state", "guard"])
async def test_of_an_empty_list_there_is_nothing_to_read(tmp_path: Path, view: str) -> None:
    path = tmp_path / "roads.yaml"
    path.write_text(ROADS, "utf-8")

    def read_leg(leg: str) -> dict[str, bool]:
        return {"paved": True}

    def drive(legs: list[str]) -> dict[str, bool]:
        return {"ok": True}

    result = await sopilot.load(path).run(
        "go", tools=[read_leg, drive], inputs={"legs": []}, goal="drive", view=view
    )
    assert result.executed
    assert result.audit.findings == ()
