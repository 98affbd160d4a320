"""Questions to the user over MCP: the client asks in both protocol eras, or a person decides."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_servers import over_http, serving
from reference_client import texts
from served import sopilot_command

sys.path.insert(0, str(Path(__file__).parents[2] / "policies"))

from policy_desk import ALL, HANDBOOK, PROGRAMS, AirTools

from refund_shop import ONE_CHECK
from small_desks import programs_of
from sopilot.handbook.reader import load_handbook
from sopilot.integrations.mcp.options import HttpSettings
from sopilot.integrations.mcp.server import McpServer
from sopilot.integrations.mcp.sessions import Service, SessionPool
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.scenarios import ScriptedAnswer, SimulatedTools
from sopilot.tasks.task import Simulation
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named


def accepted(text: str) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"answer": text})


YES = accepted("yes")
QUESTION = 'Cancels R1. The refund takes 5 to 7 days.\ncancel (reservation_id: "R1")\nyes / no?'
CONFIRM = ("confirm_with_user", {"action": "cancel", "reservation_id": "R1"})
SCHEMAS = [
    ToolSchema(
        action.name,
        action.says,
        {"type": "object", "properties": {name: {} for name in action.input_names()}},
    )
    for action in HANDBOOK.actions.values()
]


class Described(AirTools):
    def schemas(self) -> list[ToolSchema]:
        return SCHEMAS


class User:
    """Answers every question alike, and remembers the questions."""

    def __init__(self, answer: types.ElicitResult) -> None:
        self.answer = answer
        self.questions: list[str] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.questions.append(params.message)
        assert params.requested_schema["properties"]["answer"]["enum"] == ["yes", "no"]
        return self.answer


def airline(tools: AirTools) -> McpServer:
    async def open_simulation() -> Simulation:
        return Simulation(tools)

    view = replace(view_named("pg"), automation=ALL)
    service = Service(Briefing(HANDBOOK, PROGRAMS), view, open_simulation)
    return McpServer(SessionPool(MemoryStore(), service))


async def cancel_booking(client: Client) -> list[str]:
    """Everything up to the irreversible call; the first line of every answer."""
    listed = {tool.name for tool in (await client.list_tools()).tools}
    assert {"ask_user", "confirm_with_user", "cancel"} <= listed
    start = {"reservation_id": "R1", "user_id": "ann", "reason": "change"}
    answers = []
    for name, arguments in (
        ("pg_program_step", {"operation": "start", "goal": "cancel", "arguments": start}),
        ("read_user", {"user_id": "ann"}),
        ("read_reservation", {"reservation_id": "R1"}),
        CONFIRM,
        ("cancel", {"reservation_id": "R1"}),
    ):
        result = await client.call_tool(name, arguments)
        assert isinstance(result, types.CallToolResult)
        answers.append(texts(result)[0])
    return answers


ASKING = """
handbook: bank
actions:
  pay: {input: {user: string}, irreversible: true}
predicates:
  objects(user): {says: The customer {user} objects., verify: user, question: Do you object?}
procedures:
  pay: {requires: {not: objects(user)}}
""".replace("The customer {user} objects.", '"The customer {user} objects."')


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_of_a_process_is_asked(mode: Any, tmp_path: Path) -> None:
    book = tmp_path / "bank.yaml"
    book.write_text(ASKING)
    program, *arguments = sopilot_command("serve", str(book), "--store", f"sqlite:{tmp_path}/s.db")
    process = stdio_client(StdioServerParameters(command=program, args=arguments))
    user = User(accepted("no"))
    async with Client(process, elicitation_callback=user, mode=mode) as client:
        start = {"operation": "start", "goal": "pay", "arguments": {"user": "ann"}}
        await client.call_tool("pg_program_step", start)
        result = await client.call_tool("ask_user", {"question": "objects", "user": "ann"})
    assert user.questions == ["Do you object?"]
    assert '"said":"no"' in texts(result)[0]


@pytest.mark.parametrize(
    ("mode", "answer", "asked", "said", "made"),
    [
        ("legacy", YES, 1, "", 1),
        ("2026-07-28", YES, 1, "", 1),
        # A client that offers more than yes and no is asked again.
        ("auto", accepted("Yes, R2 please."), 3, "", 0),
        ("auto", accepted("ok is this from savings"), 3, "", 0),
        ("auto", types.ElicitResult(action="decline"), 1, "the user did not answer", 0),
    ],
)
async def test_only_a_user_who_says_yes_has_cancelled(
    mode: Any, answer: types.ElicitResult, asked: int, said: str, made: int
) -> None:
    tools, user = Described(), User(answer)
    server = airline(tools)
    async with Client(server.protocol, elicitation_callback=user, mode=mode) as client:
        answers = await cancel_booking(client)
    await server.close()
    assert tools.made("cancel") == [{"reservation_id": "R1"}] * made
    assert user.questions == [QUESTION, *user.questions[1:]]
    assert len(user.questions) == asked
    assert said in answers[-2]


@pytest.mark.parametrize("stateless", [False, True])
async def test_a_client_that_cannot_be_asked_waits_for_a_person(stateless: bool) -> None:
    tools, user = Described(), User(YES)
    server = airline(tools)
    callback = user if stateless else None
    async with (
        serving(server, HttpSettings(port=0, stateless=stateless)) as at,
        Client(at.url, elicitation_callback=callback) as client,
    ):
        answers = await cancel_booking(client)
    await server.close()
    assert tools.made("cancel") == []
    assert user.questions == []
    assert "waiting: " in answers[-2]
    assert "`sopilot approvals" in answers[-2]


async def answer_once(client: Client, call: tuple[str, dict[str, Any]], *others: Any) -> None:
    """Another call, other arguments, or the same state again answer nothing."""
    round_ = await client.session.call_tool(*call, allow_input_required=True)
    assert isinstance(round_, types.InputRequiredResult)
    (key,) = round_.input_requests or {}
    again: dict[str, Any] = {
        "input_responses": {key: YES},
        "request_state": round_.request_state,
        "allow_input_required": True,
    }
    for other in others:
        with pytest.raises(MCPError, match="requestState"):
            await client.session.call_tool(*other, **again)
    result = await client.session.call_tool(*call, **again)
    assert isinstance(result, types.CallToolResult)
    assert not result.is_error
    with pytest.raises(MCPError, match="requestState"):
        await client.session.call_tool(*call, **again)


async def test_a_round_is_answered_once_by_its_own_call() -> None:
    server = airline(Described())
    async with Client(server.protocol, elicitation_callback=User(YES)) as client:
        start = {"reservation_id": "R1", "user_id": "ann", "reason": "change"}
        step = {"operation": "start", "goal": "cancel", "arguments": start}
        await client.call_tool("pg_program_step", step)
        name, arguments = CONFIRM
        another = (name, {**arguments, "reservation_id": "R2"})
        await answer_once(client, CONFIRM, ("cancel", arguments), another)
    await server.close()


def guarding() -> tuple[McpServer, SimulatedTools]:
    handbook = load_handbook(ONE_CHECK.replace("confirm: false", 'confirm: "Pay {amount}."'))
    programs = programs_of(handbook)
    delivered = ScriptedAnswer(ToolResult(True, {"state": "delivered"}))
    tools = SimulatedTools(handbook.actions, {"find_order": (delivered,)})

    async def open_simulation() -> Simulation:
        return Simulation(tools)

    service = Service(Briefing(handbook, programs), view_named("guard"), open_simulation)
    return McpServer(SessionPool(MemoryStore(), service)), tools


async def test_a_round_of_a_guarded_call_is_answered_once_by_the_same_call() -> None:
    """Under a guard view the call itself asks, so a round must not pay another amount."""
    server, tools = guarding()
    look, refund = {"order": "o-1"}, {"order": "o-1", "amount": 5.0}
    async with Client(server.protocol, elicitation_callback=User(YES)) as client:
        await client.call_tool("find_order", look)
        dearer = ("refund", {**refund, "amount": 500.0})
        await answer_once(client, ("refund", refund), ("find_order", look), dearer)
    await server.close()
    assert [call.arguments for call in tools.made if call.action == "refund"] == [refund]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("cancels", [True, False])
async def test_a_question_that_was_given_up_is_put_again(mode: Any, cancels: bool) -> None:
    """The client gives its call up while its user is asked, or loses sight of it: the next answer
    counts, and the one to the first question is no answer any more."""
    server, tools = guarding()
    questions: list[str] = []
    late = asyncio.Event()

    async def user(context: Any, params: Any) -> types.ElicitResult:
        questions.append(params.message)
        if len(questions) == 1:
            await late.wait()
        return YES

    refund = {"order": "o-1", "amount": 5.0}
    async with Client(server.protocol, elicitation_callback=user, mode=mode) as client:
        await client.call_tool("find_order", {"order": "o-1"})
        first = asyncio.create_task(client.call_tool("refund", refund))
        while not questions:
            await asyncio.sleep(0.01)
        if cancels:
            first.cancel()
            await asyncio.wait({first})
        second = await client.call_tool("refund", refund)
        late.set()
        await asyncio.wait({first}, timeout=5)
        assert isinstance(second, types.CallToolResult)
        assert not second.is_error
    await server.close()
    assert len(questions) == 2
    assert [call.arguments for call in tools.made if call.action == "refund"] == [refund]


async def test_a_client_of_a_guard_hears_nothing_of_tools_that_it_cannot_see() -> None:
    """The tool that asks the user is the guard's own."""
    server, _ = guarding()
    heard: list[str] = []

    async def hear(message: object) -> None:
        heard.append(type(message).__name__)

    async with over_http(server, hear) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"find_order", "refund"}
        await client.call_tool("find_order", {"order": "o-1"})
        await asyncio.sleep(0.3)
    assert heard == []
