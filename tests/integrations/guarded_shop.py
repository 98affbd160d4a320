"""Agents of three frameworks that call the tools of the refund shop by a script."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from every_interface import reply_of
from framework_agents import FrameworkAgent
from scripted_moves import Move, Script, call

from refund_shop import Shop
from sopilot.protocols import Message, ModelReply
from sopilot.runner.conversations import Conversations

LOGIN = call("login", customer="anna", password="sesame")
LOOK = call("find_order", customer="anna", order="o-1")
REFUND = call("refund", customer="anna", order="o-1", amount=50)


class WatchedShop(Shop):
    def __init__(self) -> None:
        super().__init__()
        self.shown: list[tuple[str, list[str]]] = []
        """The system prompt and the tools of every model call."""


def shop_agent(
    kind: type[FrameworkAgent],
    shop: WatchedShop,
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
    shop: WatchedShop,
    conversations: Conversations,
    conversation: str,
    moves: Sequence[Move],
) -> list[str]:
    """Play a script of calls in a conversation; return the answers that the model read."""
    script = Script(moves)
    await shop_agent(kind, shop, conversations, script).say("hello", conversation)
    return script.answers
