"""A shop behind a handbook, and agents of three frameworks that call its tools by a script."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from every_interface import reply_of
from framework_agents import FrameworkAgent
from scripted_moves import Move, Script, call

from sopilot.protocols import Message, ModelReply
from sopilot.runner.conversations import Conversations

BOOK = """
handbook: refunds
actions:
  login: {input: {customer: string, password: {type: string, secret: true}}}
  find_order: {input: {customer: string, order: string}, read_only: true,
               requires: logged_in(customer)}
  refund: {input: {customer: string, order: string, amount: number}, irreversible: true,
           confirm: CONFIRM}
predicates:
  logged_in(customer):
    says: The customer {customer} has logged in.
    established_by: login(customer, password)
  delivered(customer, order):
    says: The order {order} was delivered.
    verify: find_order(customer, order)
    verdict: result.state == 'delivered'
procedures:
  refund: {requires: delivered(customer, order)}
"""

LOGIN = call("login", customer="anna", password="sesame")
LOOK = call("find_order", customer="anna", order="o-1")
REFUND = call("refund", customer="anna", order="o-1", amount=50)


@dataclass
class Shop:
    """``paid`` is the truth that the tests judge by."""

    paid: list[tuple[str, str, float]] = field(default_factory=list)
    reads: int = 0
    shown: list[tuple[str, list[str]]] = field(default_factory=list)
    """The system prompt and the tools of every model call."""

    def functions(self) -> list[Callable[..., Any]]:
        async def login(customer: str, password: str) -> dict[str, str]:
            """Log a customer in."""
            if password != "sesame":
                raise ValueError("wrong password")
            return {"customer": customer}

        async def find_order(customer: str, order: str) -> dict[str, str]:
            """Look an order up."""
            self.reads += 1
            return {"state": "delivered" if order == "o-1" else "lost"}

        async def refund(customer: str, order: str, amount: float) -> str:
            """Pay an order back."""
            self.paid.append((customer, order, amount))
            return f"paid {amount:g} to {customer}"

        return [login, find_order, refund]


def shop_agent(
    kind: type[FrameworkAgent],
    shop: Shop,
    conversations: Conversations,
    script: Script,
    **options: Any,
) -> Any:
    play = reply_of(script)

    async def reply(dialog: Collection[Message], slot: str, names: Collection[str]) -> ModelReply:
        system = "".join(message.content for message in dialog if message.role == "system")
        shop.shown.append((system + slot, list(names)))
        answer: ModelReply = await play(dialog, slot, names)
        return answer

    tools = [kind.tool(function, function.__name__) for function in shop.functions()]
    return kind(conversations, tools, reply, **options)


async def run(
    kind: type[FrameworkAgent],
    shop: Shop,
    conversations: Conversations,
    conversation: str,
    moves: Sequence[Move],
) -> list[str]:
    """Play a script of calls in a conversation; return the answers that the model read."""
    script = Script(moves)
    await shop_agent(kind, shop, conversations, script).say("hello", conversation)
    return script.answers
