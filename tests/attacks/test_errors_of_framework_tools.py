"""A framework turns what a tool raises into text for the model. That text is never an answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")

from agents import function_tool
from every_interface import reply_of
from framework_agents import FRAMEWORKS
from langchain_core.tools import StructuredTool, ToolException
from pydantic_ai import ModelRetry, Tool
from scripted_moves import Script, call

import sopilot
from sopilot.runner.conversations import Conversations

HANDBOOK = """
handbook: payouts
actions:
  account_status: {input: {user: string}, read_only: true}
  pay: {input: {user: string, amount: number}, irreversible: true, confirm: false}
predicates:
  frozen(user):
    says: The account of {user} is frozen.
    verify: account_status(user)
    verdict: result == 'frozen'
procedures:
  pay: {requires: [not: frozen(user)]}
"""
READ = call("account_status", user="ann")
PAY = call("pay", user="ann", amount=5)


class Bank:
    """The simulated system: who is frozen, and what was paid."""

    def __init__(self, folder: Path, view: str) -> None:
        self.frozen = {"ann"}
        self.paid: list[float] = []
        self.error: Exception | None = None
        self.refusal: Exception | None = None
        self.interruption: Exception | None = None
        path = folder / "payouts.yaml"
        path.write_text(HANDBOOK, "utf-8")
        self.conversations = Conversations.of(path, view=view)

    def account_status(self, user: str) -> str:
        """Read an account."""
        if self.error is not None:
            raise self.error
        return "frozen" if user in self.frozen else "open"

    def pay(self, user: str, amount: float) -> str:
        """Pay."""
        if self.refusal is not None:
            raise self.refusal
        self.paid.append(amount)
        if self.interruption is not None:
            raise self.interruption
        return "paid"


def told(context: object, error: Exception) -> str:
    return f"not frozen: {error}"


Make = Callable[[Callable[..., Any]], Any]
HANDLED: dict[str, tuple[str, type[Exception], Make]] = {
    "langchain: its text": (
        "langchain",
        ToolException,
        lambda function: StructuredTool.from_function(function, handle_tool_error=True),
    ),
    "langchain: another text": (
        "langchain",
        ToolException,
        lambda function: StructuredTool.from_function(function, handle_tool_error="open"),
    ),
    "openai_agents: by default": ("openai_agents", RuntimeError, function_tool),
    "openai_agents: another text": (
        "openai_agents",
        RuntimeError,
        lambda function: function_tool(function, failure_error_function=told),
    ),
    "pydantic_ai: a retry": ("pydantic_ai", ModelRetry, Tool),
}


EVERY_VIEW = pytest.mark.parametrize("view", ["guard", "guard-auto"])
EVERY_HANDLER = pytest.mark.parametrize(
    ("kind", "error", "make"), HANDLED.values(), ids=list(HANDLED)
)


@EVERY_VIEW
@EVERY_HANDLER
async def test_the_text_of_a_failed_read_proves_nothing(
    tmp_path: Path, view: str, kind: str, error: type[Exception], make: Make
) -> None:
    bank = Bank(tmp_path, view)
    bank.error = error("open")
    moves = [PAY] if view == "guard-auto" else [READ, PAY]
    tools = [make(bank.account_status), make(bank.pay)]
    agent = FRAMEWORKS[kind](bank.conversations, tools, reply_of(Script(moves)))
    await agent.say("Pay Ann 5.", "c-1")
    assert bank.paid == []
    bank.error = None
    bank.frozen.clear()
    await FRAMEWORKS[kind](bank.conversations, tools, reply_of(Script([READ, PAY]))).say(
        "Again.", "c-1"
    )
    assert bank.paid == [5]


@EVERY_VIEW
@EVERY_HANDLER
async def test_a_payment_that_ends_in_an_error_is_not_made_again(
    tmp_path: Path, view: str, kind: str, error: type[Exception], make: Make
) -> None:
    bank = Bank(tmp_path, view)
    bank.frozen.clear()
    bank.interruption = error("no answer within 10 s")
    tools = [make(bank.account_status), make(bank.pay)]
    script = Script([READ, PAY, PAY, READ, PAY])
    await FRAMEWORKS[kind](bank.conversations, tools, reply_of(script)).say("Pay.", "c-1")
    assert bank.paid == [5]
    assert "how it ended" in script.answers[-1]


@EVERY_HANDLER
async def test_a_payment_that_has_certainly_failed_can_be_made_again(
    tmp_path: Path, kind: str, error: type[Exception], make: Make
) -> None:
    bank = Bank(tmp_path, "guard")
    bank.frozen.clear()
    bank.refusal = sopilot.ToolFailed("no such account")
    tools = [make(bank.account_status), make(bank.pay)]
    for _ in range(2):
        agent = FRAMEWORKS[kind](bank.conversations, tools, reply_of(Script([READ, PAY])))
        with suppress(sopilot.ToolFailed):  # some frameworks end the run
            await agent.say("Pay.", "c-1")
        bank.refusal = None
    assert bank.paid == [5]
