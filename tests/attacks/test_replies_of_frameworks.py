"""A pause of a framework carries a reply by its place alone: it answers what was shown there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")

from agents import RunConfig
from agents import Runner as OpenAIRunner
from every_interface import reply_of
from framework_agents import FRAMEWORKS, LangChainAgent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic_ai import DeferredToolRequests, DeferredToolResults
from scripted_moves import Script, call

import sopilot
from sopilot.integrations.openai_agents import hooked_config
from sopilot.runner.conversations import Conversations

HANDBOOK = """
handbook: parcels
actions:
  refund: {input: {order: string, amount: number}, irreversible: true, confirm: "You get {amount}."}
  write: {input: {text: string}}
predicates:
  opened(order, reason):
    says: The customer has opened the parcel {order}.
    verify: user
    question: Did you open the parcel {order}, {reason}?
procedures:
  refund: {inputs: {reason: string}, requires: "opened(order, reason)"}
"""
REFUND = call("refund", order="o-1", amount=50)


class Till:
    """The simulated system: what was paid."""

    def __init__(self, folder: Path) -> None:
        self.paid: list[float] = []
        path = folder / "parcels.yaml"
        path.write_text(HANDBOOK, "utf-8")
        self.conversations = Conversations.of(path)
        self.talk = sopilot.conversation("c-1")
        self.talk.tell(reason="broken")

    def agent(self, name: str, *moves: Any, **options: Any) -> Any:
        def refund(order: str, amount: float) -> str:
            """Pays."""
            self.paid.append(amount)
            return "paid"

        def write(text: str) -> str:
            """Changes anything."""
            return "written"

        kind = FRAMEWORKS[name]
        tools = [kind.tool(function, function.__name__) for function in (refund, write)]
        reply = reply_of(Script(moves))
        return kind(self.conversations, tools, reply, pauses=True, **options)


def in_langgraph(till: Till, *moves: Any, blocking: bool) -> Callable[..., Sequence[str]]:
    """Say something, or resume with a reply; return what the user is shown then."""
    agent: LangChainAgent = till.agent("langchain", *moves, checkpointer=InMemorySaver())

    def run(value: Any) -> Sequence[str]:
        config = {"configurable": {"thread_id": "c-1"}}
        with till.talk:
            if blocking:
                state = agent.agent.invoke(value, config)
            else:
                state = asyncio.run(agent.agent.ainvoke(value, config))
        return [item.value["text"] for item in state.get("__interrupt__", ())]

    return run


HELLO = {"messages": [("user", "hello")]}


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize(("last", "paid"), [("yes", [50]), ("no", []), ("hm", [])])
def test_a_yes_to_one_question_answers_no_other(
    tmp_path: Path, blocking: bool, last: str, paid: list[float]
) -> None:
    """LangGraph plays a call again from its start, and repeats the replies in their order."""
    till = Till(tmp_path)
    run = in_langgraph(till, REFUND, blocking=blocking)
    assert run(HELLO) == ["Did you open the parcel o-1, broken?"]
    assert "You get 50" in run(Command(resume="yes"))[0]
    run(Command(resume=last))
    assert till.paid == paid


def test_a_reply_does_not_answer_what_changed_since_it_was_shown(tmp_path: Path) -> None:
    till = Till(tmp_path)
    run = in_langgraph(till, REFUND, blocking=False)
    run(HELLO)
    till.talk.tell(reason="used")
    assert run(Command(resume="yes")) == ["Did you open the parcel o-1, used?"]
    assert run(Command(resume="no")) == []
    assert till.paid == []


async def test_an_approved_interruption_answers_what_it_was_for(tmp_path: Path) -> None:
    till = Till(tmp_path)
    agent = till.agent("openai_agents", REFUND)
    config = hooked_config(till.conversations, RunConfig(tracing_disabled=True))
    async with till.talk:
        result = await OpenAIRunner.run(agent.agent, "hello", run_config=config)
        (item,) = result.interruptions
        till.talk.tell(reason="used")
        state = result.to_state()
        state.approve(item)
        await OpenAIRunner.run(agent.agent, state, run_config=config)
        async with till.conversations.using() as hook:
            said = [each.payload["text"] for each in hook.session.own_events
                    if each.kind == "user_said"]  # fmt: skip
    assert said == []
    assert till.paid == []


async def test_an_approved_deferred_call_answers_what_it_was_for(tmp_path: Path) -> None:
    till = Till(tmp_path)
    agent = till.agent("pydantic_ai", REFUND, output_type=[str, DeferredToolRequests])
    async with till.talk:
        first = await agent.agent.run("hello", conversation_id="c-1")
        (asked,) = first.output.approvals
        assert first.output.metadata[asked.tool_call_id]["text"].endswith("broken?")
        till.talk.tell(reason="used")
        results = DeferredToolResults(approvals={asked.tool_call_id: True})
        again = await agent.agent.run(
            message_history=first.all_messages(),
            deferred_tool_results=results,
            conversation_id="c-1",
        )
        assert again.output.metadata[asked.tool_call_id]["text"].endswith("used?")
    assert till.paid == []
