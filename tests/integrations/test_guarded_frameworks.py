"""Agents of three frameworks under the guard views. The judge is the shop: what was paid."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agents import Runner
from every_interface import reply_of
from framework_agents import FRAMEWORKS, LangChainAgent, OpenAIAgentsAgent, PydanticAIAgent
from guarded_shop import LOGIN, LOOK, REFUND, WatchedShop, shop_agent
from guarded_shop import run as play
from langchain_core.tools import ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic_ai import DeferredToolRequests, DeferredToolResults, ModelRetry
from scripted_moves import Move, Script, call

import sopilot
from refund_shop import BOOK
from sopilot.audit.audit import audit_trace
from sopilot.runner.conversations import Conversations
from sopilot.stores.memory import MemoryStore

CONFIRM = '"Pay {amount} back?"'
PAID = ("anna", "o-1", 50.0)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return written(tmp_path)


def written(folder: Path, confirm: str = "false", text: str = BOOK) -> Path:
    path = folder / "refunds.yaml"
    path.write_text(text.replace("CONFIRM", confirm), "utf-8")
    return path


Run = Callable[[WatchedShop, Conversations, str, Sequence[Move]], Awaitable[list[str]]]


@pytest.fixture(params=list(FRAMEWORKS))
def run(request: pytest.FixtureRequest) -> Run:
    return partial(play, FRAMEWORKS[request.param])


async def test_an_unproven_call_is_answered_with_its_agenda_and_a_proven_one_is_made(
    book: Path, run: Run
) -> None:
    shop, conversations = WatchedShop(), Conversations.of(book)
    moves = [REFUND, LOGIN, LOOK, REFUND, REFUND, LOGIN, LOOK]
    answers = await run(shop, conversations, "c-1", moves)
    assert 'find_order(customer="anna", order="o-1")' in answers[0]
    assert "delivered" in answers[2]
    assert "#" not in answers[2]  # the tool's own result, unchanged
    assert answers[3] == "paid 50"
    assert "already" in answers[4]
    assert shop.paid == [PAID]
    assert {prompt for prompt, _ in shop.shown} == {""}
    assert {tuple(sorted(tools)) for _, tools in shop.shown} == {("find_order", "login", "refund")}
    async with conversations.using("c-1") as hook:
        programs, events = hook.session.programs.programs, hook.session.events
        report = audit_trace(programs, events, session_id=hook.session.id)
    assert report.score_card.outcome == "completed"
    # An agent without a protocol may log in and read again after the goal.
    assert "calls-after-goal" not in {finding.code for finding in report.findings}


RENAMED = BOOK.replace("find_order: {input", "look_up: {tool: find_order, input").replace(
    "verify: find_order", "verify: look_up"
)


async def test_an_agenda_names_the_tools_that_the_agent_has(tmp_path: Path, run: Run) -> None:
    shop, conversations = WatchedShop(), Conversations.of(written(tmp_path, text=RENAMED))
    answers = await run(shop, conversations, "c-1", [REFUND, LOGIN, LOOK, REFUND])
    assert 'find_order(customer="anna", order="o-1")' in answers[0]
    assert shop.paid == [PAID]


async def test_a_name_that_no_tool_of_the_agent_has_is_not_a_failed_read(tmp_path: Path) -> None:
    shop, conversations = WatchedShop(), Conversations.of(written(tmp_path, text=RENAMED))
    action = call("look_up", **LOOK.arguments)
    moves = [LOGIN, action, REFUND, LOOK, REFUND]
    answers = await play(LangChainAgent, shop, conversations, "c-1", moves)
    assert "call `find_order`" in answers[1]
    assert "First call `find_order(" in answers[2]
    assert shop.paid == [PAID]


async def test_a_login_that_has_certainly_failed_can_be_made_again(book: Path, run: Run) -> None:
    shop, conversations = WatchedShop(), Conversations.of(book)
    wrong = call("login", **{**LOGIN.arguments, "password": "guess"})
    with suppress(sopilot.ToolFailed):  # some frameworks end the run
        await run(shop, conversations, "c-1", [wrong, LOOK, REFUND])
    assert shop.paid == []
    await run(shop, conversations, "c-1", [LOGIN, LOOK, REFUND])
    assert shop.paid == [PAID]


APPROVAL = "false, approval: {roles: [boss]}"
THREAD = {"configurable": {"thread_id": "c-1"}}


class Pausing:
    """An agent whose refund waits for people, as its framework spells that."""

    def __init__(self, kind: Any, folder: Path, confirm: str, **options: Any) -> None:
        self.shop, self.store = WatchedShop(), MemoryStore()
        self.path = written(folder, confirm=confirm)
        self.conversations = Conversations.of(self.path, store=self.store)
        script = Script([LOGIN, LOOK, REFUND])
        self.own = shop_agent(kind, self.shop, self.conversations, script, pauses=True, **options)
        self.agent = self.own.agent

    async def approve(self) -> None:
        (session,) = await self.store.sessions()
        runner = sopilot.load(self.path, store=self.store)
        await runner.decide(session.id, by="Mia", role="boss")


@pytest.mark.parametrize("reply", ["yes", "no"])
async def test_langgraph_pauses_for_the_answer_to_the_question(tmp_path: Path, reply: str) -> None:
    desk = Pausing(LangChainAgent, tmp_path, CONFIRM, checkpointer=InMemorySaver())
    paused = await desk.agent.ainvoke({"messages": [("user", "hello")]}, THREAD)
    (pause,) = paused["__interrupt__"]
    assert pause.value["kind"] == "question"
    assert "50" in pause.value["text"]
    assert desk.shop.paid == []
    await desk.agent.ainvoke(Command(resume=reply), THREAD)
    assert desk.shop.paid == ([PAID] if reply == "yes" else [])


async def test_langgraph_pauses_for_an_approval(tmp_path: Path) -> None:
    desk = Pausing(LangChainAgent, tmp_path, APPROVAL, checkpointer=InMemorySaver())
    paused = await desk.agent.ainvoke({"messages": [("user", "hello")]}, THREAD)
    assert paused["__interrupt__"][0].value["kind"] == "approval"
    again = await desk.agent.ainvoke(Command(resume="go on"), THREAD)  # nobody has approved it
    assert again["__interrupt__"]
    assert desk.shop.paid == []
    await desk.approve()
    await desk.agent.ainvoke(Command(resume="go on"), THREAD)
    assert desk.shop.paid == [PAID]


@pytest.mark.parametrize("approved", [True, False])
async def test_pydantic_ai_defers_a_call_that_waits_for_the_user(
    tmp_path: Path, approved: bool
) -> None:
    output = [str, DeferredToolRequests]
    desk = Pausing(PydanticAIAgent, tmp_path, CONFIRM, output_type=output)
    paused = await desk.agent.run("hello", conversation_id="c-1")
    assert isinstance(paused.output, DeferredToolRequests)
    (call,) = paused.output.approvals
    assert desk.shop.paid == []
    results = DeferredToolResults(approvals={call.tool_call_id: approved})
    await desk.agent.run(message_history=paused.all_messages(), deferred_tool_results=results)
    assert desk.shop.paid == ([PAID] if approved else [])


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("confirm", [CONFIRM, APPROVAL], ids=["question", "approval"])
async def test_openai_agents_interrupts(tmp_path: Path, confirm: str, approved: bool) -> None:
    desk = Pausing(OpenAIAgentsAgent, tmp_path, confirm)
    await desk.own.say("hello", "c-1")
    (item,) = desk.own.result.interruptions
    assert desk.shop.paid == []
    state = desk.own.result.to_state()
    (state.approve if approved else state.reject)(item)
    await Runner.run(desk.agent, state, run_config=desk.own.config("c-1"))
    # The framework's word answers the question. It is not the boss's.
    assert desk.shop.paid == ([PAID] if approved and confirm == CONFIRM else [])
    if confirm == APPROVAL:
        await desk.approve()
        again = Conversations.of(desk.path, store=desk.store)
        await play(OpenAIAgentsAgent, desk.shop, again, "c-1", [REFUND])
        assert desk.shop.paid == [PAID]


class ReportingShop(WatchedShop):
    """Its tools report failures in the framework's own way; the first refund fails."""

    def __init__(self, error: type[Exception], *, pays: bool) -> None:
        super().__init__()
        self.error = error
        self.pays = pays

    def login(self, customer: str, password: str) -> dict[str, str]:
        if password != "sesame":
            raise self.error("wrong password, try again")
        return {"customer": customer}

    def refund(self, customer: str, order: str, amount: float) -> str:
        if self.error is Exception:
            return super().refund(customer, order, amount)
        error, self.error = self.error, Exception
        if self.pays:
            super().refund(customer, order, amount)
        raise error("card declined" if not self.pays else "the bank is slow, try again")


@pytest.mark.parametrize("pays", [True, False])
@pytest.mark.parametrize("name", ["pydantic_ai", "langchain"])
async def test_an_error_that_a_tool_reports_may_follow_the_payment(
    tmp_path: Path, name: str, pays: bool
) -> None:
    condition = """irreversible: true, not_done: "result.contains('declined')","""
    text = BOOK.replace("irreversible: true,", condition)
    error = ModelRetry if name == "pydantic_ai" else ToolException
    shop, kind = ReportingShop(error, pays=pays), FRAMEWORKS[name]
    conversations = Conversations.of(written(tmp_path, text=text))
    wrong = call("login", **{**LOGIN.arguments, "password": "guess"})
    script = Script([wrong, LOGIN, LOOK, REFUND, LOOK, REFUND, REFUND])
    tools = [kind.tool(function, function.__name__) for function in shop.functions()]
    for tool in tools if name == "langchain" else ():
        tool.handle_tool_error = True
    await kind(conversations, tools, reply_of(script)).say("hello", "c-1")
    assert shop.paid == [PAID]
    assert ("may have been carried out" in script.answers[3]) is pays
    assert ("must first record how it ended" in script.answers[5]) is pays
    async with conversations.using("c-1") as hook:
        assert len(hook.session.unknown_outcomes) == pays


@pytest.mark.parametrize("kind", [LangChainAgent, OpenAIAgentsAgent])
async def test_a_block_is_one_conversation(book: Path, kind: Any) -> None:
    """Bob's run inside Anna's block would use her login."""
    shop, conversations = WatchedShop(), Conversations.of(book)
    async with sopilot.conversation("anna"):
        await play(kind, shop, conversations, "thread-1", [LOGIN, LOOK])
        with pytest.raises(sopilot.UserMistake, match="not `thread-2`"):
            await play(kind, shop, conversations, "thread-2", [REFUND])
    assert shop.paid == []


async def test_fifty_conversations_at_once_are_not_mixed(book: Path, run: Run) -> None:
    """Half of the customers log in themselves; the others rely on somebody else's login."""
    shop, conversations = WatchedShop(), Conversations.of(book)

    async def serve(number: int) -> None:
        own = {"customer": f"customer-{number}", "order": "o-1"}
        login = [call("login", customer=own["customer"], password="sesame")]
        script = [call("find_order", **own), call("refund", **own, amount=number)]
        await run(shop, conversations, f"c-{number}", [*(login if number % 2 else []), *script])

    await asyncio.gather(*(serve(number) for number in range(50)))
    assert sorted(shop.paid) == sorted(
        (f"customer-{number}", "o-1", float(number)) for number in range(1, 50, 2)
    )


Sabotage = Callable[[WatchedShop, Conversations, dict[str, Any]], Awaitable[None]]


async def change_the_arguments(
    shop: WatchedShop, hooks: Conversations, arguments: dict[str, Any]
) -> None:
    arguments.update(order="o-2", amount=5000)


async def log_somebody_else_in(
    shop: WatchedShop, hooks: Conversations, arguments: dict[str, Any]
) -> None:
    async with hooks.using("c-1") as hook:

        async def opened(_: object) -> object:
            return {"customer": "bob"}

        await hook.tool_call("login", {"customer": "bob", "password": "x"}, "meanwhile", opened)


@pytest.mark.parametrize(
    ("sabotage", "paid"),
    [
        (change_the_arguments, [PAID]),  # the call that was decided, never the other one
        (log_somebody_else_in, []),
    ],
)
async def test_what_changes_between_decision_and_dispatch_is_not_carried_out(
    tmp_path: Path, run: Run, sabotage: Sabotage, paid: list[tuple[str, str, float]]
) -> None:
    """The runtime asks the user last: everything else is proven when the sabotage comes. Evidence
    that changes meanwhile: `tests/attacks/test_between_decision_and_dispatch.py`."""
    shop, conversations = WatchedShop(), Conversations.of(written(tmp_path, confirm=CONFIRM))
    arguments = dict(REFUND.arguments)

    async def ask(question: str) -> str:
        await sabotage(shop, conversations, arguments)
        return "yes"

    async with sopilot.conversation("c-1", user=ask):
        await run(shop, conversations, "c-1", [LOGIN, LOOK, Move("refund", arguments)])
    assert shop.paid == paid


MISSPELT = BOOK.replace("refund:", "refnd:")


@pytest.mark.parametrize("kind", FRAMEWORKS.values(), ids=FRAMEWORKS)
async def test_a_guarded_action_without_a_tool_is_an_error(tmp_path: Path, kind: Any) -> None:
    shop, script = WatchedShop(), Script([REFUND])
    book = written(tmp_path, text=MISSPELT)
    agent = shop_agent(kind, shop, Conversations.of(book), script)
    with pytest.raises(sopilot.UserMistake, match=r"guards `refnd`.*\n?.*`refund`"):
        await agent.say("Please do it.", "c-1")
    assert shop.paid == []
    book.write_text(
        book.read_text("utf-8").replace("refnd: {input", "refnd: {offered: false, input")
    )
    await shop_agent(kind, shop, Conversations.of(book), Script([LOOK])).say("Do it.", "c-1")
