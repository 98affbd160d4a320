"""A secret stands in clear in nothing that is kept or shown, and the tool still gets it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from small_desks import AnsweringTools, programs_of
from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.driver import Driver
from sopilot.agent.result import Progress, audit_session
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.writer import write_handbook
from sopilot.machine.automation import Automation
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.secrets import SecretPlaces, Secrets, _kept_back
from sopilot.protocols import ToolCall, ToolResult, ToolSchema
from sopilot.records.loading import export_trace
from sopilot.records.store import Settings
from sopilot.session.opening import open_session, resume_session
from sopilot.session.orphans import waiting_in
from sopilot.session.questions import find_question
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Complete, Event, Fail, Operation, Start
from sopilot.trace.files import write_trace
from sopilot.trace.redaction import MASK
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named

BOOK = load_handbook("""
handbook: vault-desk
actions:
  login: {input: {user: string, code: {type: string, secret: true}}}
  open_box: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  known(user):
    says: The customer {user} is known.
    established_by: login(user, code=pass_phrase)
procedures:
  open_box: {requires: known(user)}
""")
PROGRAMS = programs_of(BOOK)
SECRET = "hunter2-swordfish"
SCHEMA = {"type": "object", "properties": {"user": {}, "code": {}}}


def doors(name: str, arguments: Mapping[str, Any]) -> ToolResult:
    if arguments.get("code") == SECRET + "!":
        return ToolResult(False, {"error": f"`{arguments['code']}` is wrong"})
    return ToolResult(True, {"ok": True})


def echo(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"ok": True, "echo": dict(arguments)}


SCHEMAS = [ToolSchema(name, "", SCHEMA) for name in ("login", "open_box")]


async def test_nothing_that_is_kept_or_shown_has_it() -> None:
    store, tools = MemoryStore(), AnsweringTools(doors, SCHEMAS)
    settings = Settings(automation=Automation(enter_calls=True, machine_verdicts=True))
    session = await open_session(store, PROGRAMS, tools=tools, settings=settings)
    told: list[Progress] = []
    user = ScriptedUser(f"I am ann, and the pass phrase is {SECRET}", {})
    view = view_named("pg")
    driver = Driver(session, Briefing(BOOK, PROGRAMS), view, user=user, watch=told.append)
    await driver.begin()
    await session.operate(Start("open_box", {"user": "ann"}))
    broken = ToolCall("x", "login", f'{{"user": "ann", "code": "{SECRET}')
    await driver.call(broken)
    wrong = {"user": "ann", "code": SECRET + "!"}
    await driver.call(ToolCall("y", "login", json.dumps(wrong)))
    right = {"user": "ann", "code": SECRET}
    answer = await driver.call(ToolCall("z", "login", json.dumps(right)))
    assert answer.ok
    assert tools.made[-1] == ("login", right)
    await driver.call(ToolCall("b", "open_box", json.dumps({"user": "ann"})))
    assert tools.made[-1] == ("open_box", {"user": "ann"})
    await session.operate(Fail(f"the phrase {SECRET} did not help"))
    report = await audit_session(session, BOOK, view)
    exports = [
        write_trace(await export_trace(store, session.id, payloads=kept)) for kept in (False, True)
    ]
    shown = [
        *exports,
        json.dumps(report.as_json()),
        repr(await session.shown_events()),
        repr(session.events),
        repr(told[2:]),
    ]
    for text in shown:
        assert SECRET not in text
    # What is not secret is shown.
    calls = [one for one in await session.shown_events() if one.kind == "domain_call"]
    assert [one.payload["arguments"]["user"] for one in calls] == ["ann"] * 3
    assert [one.payload["action"] for one in calls] == ["login", "login", "open_box"]
    # The vault has it: a session goes on after a restart.
    await session.release()
    later = await resume_session(store, session.id, tools=tools)
    assert set(later.secrets.values) == set(session.secrets.values) >= {SECRET, SECRET + "!"}
    whole = repr(await later.whole_events())
    assert SECRET in whole


async def test_what_is_kept_beside_the_trace_is_shown_but_for_secrets() -> None:
    session = await open_session(
        MemoryStore(), PROGRAMS, tools=AnsweringTools(doors), settings=Settings(private=True)
    )
    await session.operate(Start("open_box", {"user": "ann"}))
    await session.call_tool("login", {"user": "ann", "code": SECRET}, "z")
    shown = await session.shown_events()
    (call,) = [one for one in shown if one.kind == "domain_call"]
    assert call.payload["arguments"]["user"] == "ann"
    assert SECRET not in repr(shown)
    assert "ann" not in repr(session.events)


MANY_NAMES = load_handbook("""
handbook: box-desk
actions:
  login: {input: {user: string, password: {type: string, secret: true}}}
  send_code: {input: {user: string}}
  check_code: {input: {user: string, code: {type: string, secret: true}}}
  check_pin: {input: {user: string, pin: {type: integer, secret: true}}}
  tell: {input: {user: string, note: string}}
  open_box: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  known(user): {says: "known", established_by: "login(user, password)"}
  code_ok(user, number): {says: "ok", verify: "check_code(user, code=number)", verdict: result.ok}
  sent_ok(user):
    says: ok
    verify: {all: [send_code(user), "check_code(user, code=send_code.sms)"]}
    verdict: results.check_code.ok
  pin_ok(user, pin): {says: "pin ok", verify: "check_pin(user, pin)", verdict: result.ok}
  told(user, text): {says: "told", verify: "tell(user, note=text)", verdict: result.ok}
procedures:
  open_box:
    inputs: {token: string}
    requires: {in_order: [known(user), "code_ok(user, token)", "told(user, token)"]}
  by_pin: {action: open_box, inputs: {figure: integer}, requires: "pin_ok(user, figure)"}
  by_sms: {action: open_box, requires: sent_ok(user)}
""")


def test_a_secret_is_followed_through_every_name_that_it_goes_by() -> None:
    """A procedure's own input reaches it through a predicate's parameter; an answer's field does;
    and what reaches it there goes on under other names."""
    (found,) = {program.secrets for program in programs_of(MANY_NAMES).values()}
    assert found == (
        "code", "figure", "note", "number", "password", "pin", "sms", "text", "token",
    )  # fmt: skip


async def _kept(*moves: Operation | tuple[str, dict[str, Any]] | str) -> tuple[Session, list[str]]:
    """What is kept and shown of a session with these moves: calls, operations, the assistant's
    words."""
    store = MemoryStore()
    programs = programs_of(MANY_NAMES)
    session = await open_session(store, programs, tools=AnsweringTools(echo))
    for number, move in enumerate(moves):
        if isinstance(move, str):
            await session.assistant_said(move)
        elif isinstance(move, tuple):
            await session.call_tool(*move, call_id=f"c{number}")
        else:
            await session.operate(move)
    exports = [
        write_trace(await export_trace(store, session.id, payloads=kept)) for kept in (False, True)
    ]
    return session, [*exports, repr(session.events), repr(await session.shown_events())]


BEGIN = Start("open_box", {"user": "ann", "token": "zzz"})
LOGIN = ("login", {"user": "ann", "password": SECRET})


@pytest.mark.parametrize(
    ("secret", "moves"),
    [
        pytest.param(SECRET, [Start("open_box", {"user": "ann", "token": SECRET})], id="input"),
        pytest.param("918273", [Start("by_pin", {"user": "ann", "figure": 918273})], id="number"),
        pytest.param(
            "918273",
            [
                ("check_pin", {"user": "ann", "pin": 918273.0}),
                ("tell", {"note": "", "user": 918273}),
            ],
            id="number-elsewhere",
        ),
        pytest.param(SECRET, [BEGIN, f"I log you in with {SECRET}.", LOGIN], id="said-before"),
        pytest.param(SECRET, [BEGIN, Fail(f"{SECRET} is wrong"), BEGIN, LOGIN], id="reason-before"),
        pytest.param(SECRET, [Complete(f"with {SECRET}"), BEGIN, LOGIN], id="summary-before"),
        pytest.param(SECRET, [BEGIN, ("login", {"user": "a", "pasword": SECRET})], id="misspelled"),
        pytest.param(SECRET, [BEGIN, ("open_box", {"user": "a", "pw": SECRET})], id="held"),
        pytest.param(SECRET, [BEGIN, ("no_tool", {"pw": SECRET})], id="nobodys-tool"),
        pytest.param(
            SECRET, [Start("open_box", {"user": "ann", "passwd": SECRET})], id="start-misspelled"
        ),
        pytest.param(
            SECRET,
            [BEGIN, ("login", {"user": "ann", "password": {"a": [SECRET]}}), Fail(f"no {SECRET}")],
            id="nested",
        ),
        pytest.param(
            SECRET, [BEGIN, LOGIN, ("tell", {"user": {SECRET: 1}, "note": "x"})], id="key"
        ),
        pytest.param(
            SECRET,
            [
                BEGIN,
                ("login", {"user": "a", "password": f'"q {SECRET}'}),
                json.dumps(f'"q {SECRET}'),
            ],
            id="escaped",
        ),
    ],
)
def test_no_way_leads_it_into_what_is_kept_or_shown(secret: str, moves: list[Any]) -> None:
    texts = asyncio.run(_kept(*moves))[1]
    assert texts
    for text in texts:
        assert secret not in text


@pytest.mark.parametrize("given", [{"password": [SECRET]}, {"pasword": SECRET}, {"password": 7e9}])
def test_what_was_passed_in_a_call_that_was_never_made_is_one(given: dict[str, Any]) -> None:
    """It did not fit its tool, and the model may say it in words of its own."""
    programs = programs_of(MANY_NAMES)
    details = {"tool": "login", "arguments": json.dumps({"user": "ann", **given}), "problem": "no"}
    payload = {"name": "malformed_call", "details": details}
    event = Event(3, 0.0, "runtime", "note", None, "", payload)
    found = SecretPlaces(ProgramSet(programs)).values_in(event)
    assert ("7000000000" if 7e9 in given.values() else SECRET) in found
    assert "ann" not in found


ELSEWHERE = {"user": "ann", "colour": "red"}
"""`paint` declares it."""
TWO_TOOLS = programs_of("""
handbook: box-desk
actions:
  login: {input: {user: string, password: {type: string, secret: true}}}
  paint: {input: {user: string, colour: string}}
  open_box: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  known(user): {says: known, established_by: "login(user, password)"}
  painted(user, colour): {says: "ok", verify: "paint(user, colour)", verdict: result.ok}
procedures:
  open_box: {inputs: {shade: string}, requires: [known(user), "painted(user, shade)"]}
""")


@pytest.mark.parametrize(
    ("kind", "call", "strange"),
    [
        ("start", {"goal": "open_box"}, True),
        ("domain_call", {"action": "open_box"}, True),
        ("domain_call", {"action": "login"}, True),
        ("domain_call", {"action": "paint"}, False),
        ("note", {"action": "open_box"}, True),
        ("note", {"action": "paint"}, False),
        ("note", {}, False),
        ("call", {"function": "known"}, False),
    ],
)
@pytest.mark.parametrize("refused", [False, True])
def test_an_argument_of_another_call_is_none_of_this_one(
    kind: str, call: dict[str, Any], strange: bool, refused: bool
) -> None:
    """It is never shown. It counts as a secret where the call lacks the secret that it should
    have had."""
    payload = {**call, "arguments": ELSEWHERE}
    if kind == "note":
        payload = {"name": "held_call", "details": payload}
    if refused:
        payload, kind = {"operation": {"operation": kind, **payload}}, "rejected"
    places = SecretPlaces(ProgramSet(TWO_TOOLS))
    event = Event(3, 0.0, "model", kind, None, "", payload)
    assert places.strange_in(event) == ({"colour"} if strange else set())
    assert ("colour" in places.kept_back_in(event)) is strange
    assert places.values_in(event) == ({"red"} if call == {"action": "login"} else set())


def test_words_and_strange_names_are_whole_for_the_session_itself() -> None:
    moves = (BEGIN, f"I log you in with {SECRET}.", ("login", {"user": "ann", "pasword": SECRET}))
    session, _ = asyncio.run(_kept(*moves))
    assert SECRET in repr(asyncio.run(session.whole_events()))
    assert SECRET in session.secrets.values  # the call lacked a secret: this must be it
    # Whoever runs the session reads its words without asking the store.
    assert list(session.own_events) == asyncio.run(session.whole_events())


HELD = load_handbook("""
handbook: pay-desk
actions:
  pay:
    input: {user: string, pin: {type: string, secret: true}, amount: number}
    irreversible: true
    confirm: false
    approval: {roles: [manager]}
procedures:
  pay: {}
""")


async def test_who_decides_on_a_call_is_shown_none_of_its_secrets() -> None:
    store, arguments = MemoryStore(), {"user": "ann", "pin": SECRET, "amount": 5}
    session = await open_session(store, programs_of(HELD), tools=AnsweringTools(echo))
    await session.operate(Start("pay", arguments))
    assert (await session.call_tool("pay", arguments, "c1")).held is not None
    assert session.held_calls[0].arguments["pin"] == SECRET
    # What was left for whoever runs the session is shown as well.
    left = {"decision": "amend", "call_id": "c1", "arguments": arguments, "reason": SECRET}
    await store.queue_decision(session.id, left, at=0.0)
    await store.queue_decision(session.id, {**left, "call_id": "another"}, at=0.0)
    waiting = await waiting_in(store, session.id)
    assert waiting.held[0].arguments == {"user": "ann", "pin": "•••", "amount": 5}
    about_it, about_nothing = waiting.left
    assert isinstance(about_it, Mapping)
    assert about_it["arguments"] == {"user": "ann", "pin": "•••", "amount": 5}
    assert isinstance(about_nothing, Mapping)
    assert about_nothing["arguments"] == dict.fromkeys(arguments, "•••")
    assert SECRET not in repr(waiting)


async def test_a_decision_about_a_call_without_secrets_is_shown_as_it_is() -> None:
    store = MemoryStore()
    book = load_handbook(write_handbook(HELD).replace("secret: true", "secret: false"))
    session = await open_session(store, programs_of(book), tools=AnsweringTools(echo))
    left = {"decision": "approve", "call_id": "c1", "by": "Bo", "reason": "it was pin 7"}
    await store.queue_decision(session.id, left, at=0.0)
    assert (await waiting_in(store, session.id)).left == (left,)


def test_a_line_that_names_a_secret_is_masked_behind_its_name() -> None:
    secrets = Secrets(ProgramSet(programs_of(HELD)), ())
    shown = secrets.masked("user: ann\npin: 1234\npin=99\npin:\namount: 5")
    assert shown == "user: ann\npin: •••\npin=•••\npin:\namount: 5"


def test_a_question_to_the_user_shows_none() -> None:
    text = "Pays {amount} with {pin}."
    book = load_handbook(
        f"""
handbook: pay-desk
actions:
  pay:
    input: {{user: string, pin: {{type: string, secret: true}}, amount: number}}
    confirm: "{text}"
procedures:
  pay: {{}}
"""
    )
    programs = list(programs_of(book).values())
    arguments = {"action": "pay", "user": "ann", "pin": SECRET, "amount": 5}
    asked = find_question(programs, "confirm_with_user", arguments)
    assert asked is not None
    assert asked.text == 'Pays 5 with •••.\npay (user: "ann", pin: •••, amount: 5)\nyes / no?'


async def test_what_was_sealed_before_anybody_knew_is_masked_where_it_is_shown() -> None:
    """A tool tells the phrase in a sentence; only later somebody passes it as the secret."""

    def talking(name: str, arguments: Mapping[str, Any]) -> ToolResult:
        if name == "open_box":
            return ToolResult(False, {"error": f"locked; the note says {SECRET}"})
        return doors(name, arguments)

    book = load_handbook(write_handbook(BOOK).replace("irreversible: true", "read_only: true"))
    store, tools = MemoryStore(), AnsweringTools(talking, SCHEMAS)
    session = await open_session(store, programs_of(book), tools=tools)
    await session.operate(Start("open_box", {"user": "ann"}))
    await session.call_tool("open_box", {"user": "ann"}, "c1")
    assert SECRET in repr(session.events)  # sealed: what the chain is over stays
    await session.call_tool("login", {"user": "ann", "code": SECRET}, "c2")
    report = await audit_session(session, book, view_named("pg"))
    assert SECRET not in json.dumps(report.as_json())
    assert SECRET not in repr(await session.shown_events())
    await session.release()
    later = await resume_session(store, session.id, tools=tools)
    assert SECRET not in repr(await later.shown_events())


def test_what_is_secret_stays_a_reference_and_what_is_not_there_is_none() -> None:
    whole = {"pin": "1", "n": 2, "in": [{"pin": "3"}, {"pin": None}], "odd": [{"pin": "4"}]}
    kept = {"pin": {"$ref": "a"}, "n": 9, "in": [{"pin": {"$ref": "b"}}, {}], "odd": []}
    assert _kept_back(whole, kept, frozenset({"pin"})) == {
        "pin": {"$ref": "a"}, "n": 2, "in": [{"pin": {"$ref": "b"}}, {"pin": None}],
        "odd": [{"pin": MASK}],
    }  # fmt: skip
    assert _kept_back(whole, {"$ref": "c"}, frozenset({"pin"}))["pin"] == MASK
