"""The guard judges what the tool receives, after whatever a framework does to the arguments."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")

from agents import FunctionTool, function_tool
from agents.tool_context import ToolContext
from langchain.agents import create_agent
from langchain_agent import ScriptedChat
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from pydantic import AfterValidator, BaseModel, Field, field_validator
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from scripted_moves import ENTER, Move, Script, call, say, start

from sopilot.agent.approvers import Operator, Vote
from sopilot.agent.driver import Driver
from sopilot.agent.loop import open_run
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.integrations.langchain import SopilotMiddleware
from sopilot.integrations.openai_agents import hooked_tools
from sopilot.integrations.pydantic_ai import SopilotCapability
from sopilot.machine.approvals import HeldCall
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ToolCall, ToolResult, ToolSchema
from sopilot.runner.conversation import ProcedureHook
from sopilot.runner.tools import as_tools
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS

HANDBOOK = """
handbook: payees
actions:
  read_list: {input: {}}
  pay:
    input: {payee: string, amount: {type: number, required: false}}
    irreversible: true
  wipe: {input: {}, offered: false}
predicates:
  listed(payee):
    says: The payee {payee} is on the list.
    verify: read_list()
    verdict: payee in result.names
  small(amount):
    says: The amount {amount} is small.
    verify: arguments
    verdict: amount == null || amount < 100
procedures:
  pay:
    requires: {all: [{not: listed(payee)}, small(amount)]}
"""

Tools = Mapping[str, Callable[..., str]]


class Books:
    """The simulated system: what was paid, to whom, and what it was wiped of."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, float]] = []
        self.wiped = False

    def read_list(self) -> str:
        """Reads the list."""
        return json.dumps({"names": ["mallory"]})

    def wipe(self) -> str:
        """Wipes it."""
        self.wiped = True
        return "wiped"

    def lowering(self) -> Tools:
        """The tool lower-cases its payee, and pays 500 where nobody says how much."""

        def pay(payee: Annotated[str, AfterValidator(str.lower)], amount: float = 500) -> str:
            """Pays."""
            self.paid.append((payee, amount))
            return "paid"

        return {"read_list": self.read_list, "pay": pay, "wipe": self.wipe}

    def renaming(self) -> Tools:
        """The tool takes whole euros, under another name."""

        def pay(payee: str, amount: Annotated[int | None, Field(alias="euros")] = None) -> str:
            """Pays."""
            self.paid.append((payee, amount or 0))
            return "paid"

        return {"read_list": self.read_list, "pay": pay, "wipe": self.wipe}


async def by_langchain(hook: ProcedureHook, script: Script, tools: Tools) -> None:
    agent: Any = create_agent(
        ScriptedChat(script=script),
        [StructuredTool.from_function(one, name=name) for name, one in tools.items()],
        middleware=[SopilotMiddleware(hook)],
    )
    await agent.ainvoke({"messages": [HumanMessage("Please.")]}, {"recursion_limit": 99})


async def by_openai(hook: ProcedureHook, script: Script, tools: Tools) -> None:
    own = [function_tool(one, name_override=name, strict_mode=False) for name, one in tools.items()]
    hooked = {one.name: one for one in hooked_tools(hook, own)}
    while (move := script.next(hook.slot())) is not None:
        tool, written = hooked[move.tool], json.dumps(dict(move.arguments))
        assert isinstance(tool, FunctionTool)
        context = ToolContext(
            context=None, tool_name=move.tool, tool_call_id="c", tool_arguments=written
        )
        script.answered(str(await tool.on_invoke_tool(context, written)))


async def by_pydantic_ai(hook: ProcedureHook, script: Script, tools: Tools) -> None:
    async def model(history: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        for part in history[-1].parts:
            if isinstance(part, ToolReturnPart):
                script.answered(str(part.content))
        move = script.next(hook.slot())
        if move is None:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(move.tool, dict(move.arguments))])

    agent = Agent(
        FunctionModel(model), tools=list(tools.values()), capabilities=[SopilotCapability(hook)]
    )
    await agent.run("Please.")


Drive = Callable[[ProcedureHook, Script, Tools], Awaitable[None]]
EVERY_FRAMEWORK = pytest.mark.parametrize("drive", [by_langchain, by_openai, by_pydantic_ai])


def driven(
    drive: Drive, tools: Tools, *moves: Move, operator: Operator | None = None, text: str = HANDBOOK
) -> tuple[Script, ProcedureHook]:
    handbook = load_handbook(text, "payees.yaml")
    programs = {goal: one.program for goal, one in compile_handbook(handbook).items()}
    script = Script(moves)

    async def run() -> ProcedureHook:
        hook = await ProcedureHook.open(
            MemoryStore(), Briefing(handbook, programs), VIEWS["pg"], operator=operator
        )
        await drive(hook, script, tools)
        await hook.close()
        return hook

    return script, asyncio.run(run())


def proven(payee: str, *act: Move, **amount: JSON) -> tuple[Move, ...]:
    checked = (ENTER, call("read_list"), say(False, "read_list"), ENTER, say(True))
    return (start("pay", payee=payee, **amount), *checked, *act)


def recorded(hook: ProcedureHook) -> list[Mapping[str, JSON]]:
    return [
        one.payload["arguments"]
        for one in hook.session.own_events
        if one.kind == "domain_call" and one.payload["action"] == "pay"
    ]


@EVERY_FRAMEWORK
def test_a_payee_that_validation_turns_into_another_is_not_paid(drive: Drive) -> None:
    books = Books()
    act = call("pay", payee="MALLORY", amount=5)
    script, _ = driven(drive, books.lowering(), *proven("MALLORY", act, amount=5))
    assert books.paid == []
    assert script.answers[-1].startswith("Not called: "), script.answers[-1]


@EVERY_FRAMEWORK
def test_what_is_proven_paid_and_recorded_is_one(drive: Drive) -> None:
    books = Books()
    act = call("pay", payee="BOB", amount="5")
    script, hook = driven(drive, books.lowering(), *proven("bob", act, amount=5))
    assert books.paid == [("bob", 5)], script.answers
    assert recorded(hook) == [{"payee": "bob", "amount": 5}]


@EVERY_FRAMEWORK
def test_a_default_of_the_tool_is_judged(drive: Drive) -> None:
    books = Books()
    script, _ = driven(drive, books.lowering(), *proven("bob", call("pay", payee="bob")))
    assert books.paid == []
    assert script.answers[-1].startswith("Not called: "), script.answers[-1]


@EVERY_FRAMEWORK
def test_an_alias_carries_nothing_past_the_guard(drive: Drive) -> None:
    books = Books()
    act = call("pay", payee="bob", euros=5000)
    script, _ = driven(drive, books.renaming(), *proven("bob", act))
    assert all(amount < 100 for _, amount in books.paid), script.answers


@EVERY_FRAMEWORK
def test_what_is_not_offered_is_not_called(drive: Drive) -> None:
    books = Books()
    script, _ = driven(drive, books.lowering(), call("wipe"))
    assert not books.wiped
    assert "there is no tool `wipe`" in script.answers[-1]


class Amends:
    async def decide(self, held: HeldCall) -> list[Vote]:
        other = {**held.arguments, "payee": "MALLORY"}
        return [
            Vote("amend", "Kim", held.roles[0], arguments=other),
            Vote("approve", "Kim", held.roles[0]),
        ]


@EVERY_FRAMEWORK
def test_what_people_amend_reaches_the_tool_as_they_wrote_it_or_not_at_all(drive: Drive) -> None:
    books = Books()
    act = call("pay", payee="bob", amount=5)
    text = HANDBOOK.replace("irreversible: true", "irreversible: true\n    approval: boss")
    driven(drive, books.lowering(), *proven("bob", act, amount=5), operator=Amends(), text=text)
    assert ("mallory", 5) not in books.paid


class Lowered(BaseModel):
    payee: str
    amount: float = 5

    @field_validator("payee")
    @classmethod
    def lower(cls, value: str) -> str:
        return value.lower()


@pytest.mark.parametrize("payee", ["MALLORY", "BOB"])
def test_a_validator_of_a_schema_is_seen(payee: str) -> None:
    books = Books()
    tools = books.lowering()

    def pay(payee: str, amount: float) -> str:
        books.paid.append((payee, amount))
        return "paid"

    async def drive(hook: ProcedureHook, script: Script, tools: Tools) -> None:
        own = [StructuredTool.from_function(one, name=name) for name, one in tools.items()]
        own[1] = StructuredTool.from_function(pay, description="Pays.", args_schema=Lowered)
        agent: Any = create_agent(
            ScriptedChat(script=script), own, middleware=[SopilotMiddleware(hook)]
        )
        await agent.ainvoke({"messages": [HumanMessage("Please.")]}, {"recursion_limit": 99})

    act = call("pay", payee=payee, amount=5)
    driven(drive, tools, *proven(payee.lower() if payee == "BOB" else payee, act, amount=5))
    assert books.paid == ([("bob", 5)] if payee == "BOB" else [])


def test_a_plain_function_has_no_default_that_nobody_judges() -> None:
    actions = load_handbook(HANDBOOK, "payees.yaml").actions

    def read_list() -> str:
        return ""

    def pay(payee: str, amount: float = 500) -> str:
        return ""

    with pytest.raises(UserMistake, match="`amount` of `pay` may be left out, and is 500 then"):
        as_tools([read_list, pay], actions)


class Upstream:
    """A server whose tool says that it pays 500 where nobody says how much."""

    def __init__(self) -> None:
        self.paid: list[Mapping[str, JSON]] = []

    def schemas(self) -> Sequence[ToolSchema]:
        own = {"payee": {"type": "string"}, "amount": {"type": "number", "default": 500}}
        return (
            ToolSchema("read_list", "", {"type": "object", "properties": {}}),
            ToolSchema("pay", "", {"type": "object", "properties": own, "required": ["payee"]}),
        )

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        if name == "pay":
            self.paid.append({"amount": 500, **arguments})
        return ToolResult(True, {"names": ["mallory"]})


@pytest.mark.parametrize("amount", [None, 5, "5"])
def test_a_default_in_the_schema_of_an_upstream_is_judged(amount: JSON) -> None:
    handbook = load_handbook(HANDBOOK, "payees.yaml")
    programs = {goal: one.program for goal, one in compile_handbook(handbook).items()}
    briefing, tools = Briefing(handbook, programs), Upstream()
    known = {} if amount is None else {"amount": amount}
    started = {} if amount is None else {"amount": 5}
    moves = proven("bob", call("pay", payee="bob", **known), **started)

    async def run() -> None:
        session = await open_run(MemoryStore(), briefing, VIEWS["pg"], tools=tools)
        driver = Driver(session, briefing, VIEWS["pg"])
        for number, move in enumerate(moves):
            await driver.call(ToolCall(f"c{number}", move.tool, json.dumps(dict(move.arguments))))

    asyncio.run(run())
    assert tools.paid == ([{"payee": "bob", "amount": 5}] if amount == 5 else [])
