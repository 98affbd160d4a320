"""Conversations of a day: what clients of the gateways want, and what they were told.

A client sends every request to any host. Where an answer does not come, it looks at the frame
before it does anything again, as a model that is shown the frame would.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx2

from day_parts import Host

KINDS = {"reads": 4, "undelivered": 3, "much": 1, "small": 6, "hasty": 1, "given": 3,
         "rejected": 1, "left": 1, "vanishing": 2, "returning": 2}  # fmt: skip
"""How often each is met. The order's name begins with it."""
AMOUNTS = {"much": 900, "given": 200, "rejected": 200, "left": 200}
SMALL = 50
LARGEST = 500
ALONE = 100
STEP = "pg_program_step"
_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_ANSWER = re.compile(r"#(\d+) \(ok\): ")
_MOST_MOVES = 400
LONGEST_PAUSE = 4.0
"""Seconds between tries of a client that is not answered: who asks at once makes it worse."""


@dataclass
class Heard:
    """The answers that clients got: the day is judged by them."""

    answers: list[tuple[str, int, str, str]] = field(default_factory=list)
    """Session, number in its trace, tool, order."""
    finished: dict[str, str] = field(default_factory=dict)
    """Sessions that were told `Done: complete` or `Done: fail`."""
    conversations: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    failed_requests: int = 0
    longest_wait: float = 0.0
    misrouted: int = 0
    odd: Counter[str] = field(default_factory=Counter)
    """Words of the gateway that no client knows what to do with."""


class Client:
    def __init__(
        self, http: httpx2.AsyncClient, hosts: list[Host], heard: Heard, kind: str, hour: float
    ) -> None:
        self._http, self._hosts, self._heard = http, hosts, heard
        self.kind, self._hour = kind, hour
        self.order = f"{kind}-{random.randbytes(6).hex()}"
        self.amount = AMOUNTS.get(kind, SMALL)
        self.session = ""
        self._state: bool | None = None
        self._started = False
        self._asked_at = 0.0
        self._number = 0

    # --- the wire -------------------------------------------------------------------

    async def _once(self, method: str, params: dict[str, Any], host: Host) -> Any:
        self._number += 1
        body = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        headers = {**_HEADERS}
        if self.session:
            # Coming back and going on are different headers; both name the session.
            name = "sopilot-session" if method == "initialize" else "mcp-session-id"
            headers[name] = self.session
        try:
            answer = await self._http.post(host.url, json=body, headers=headers)
        except httpx2.HTTPError:
            return None
        if answer.status_code != 200:
            return None
        if method == "initialize":
            self.session = answer.headers["mcp-session-id"]
        # The answer alone, or as the last event of a stream.
        lines = (line.removeprefix("data: ") for line in answer.text.splitlines())
        line = next((line for line in lines if line.startswith("{")), "")
        return json.loads(line).get("result") if line else None

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        """Until some host answers: for what may be asked twice."""
        begun, pause = time.monotonic(), 0.2
        while True:
            result = await self._once(method, params, random.choice(self._hosts))
            if result is not None:
                self._heard.longest_wait = max(self._heard.longest_wait, time.monotonic() - begun)
                return result
            self._heard.failed_requests += 1
            await asyncio.sleep(random.uniform(0.5, 1.5) * pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _call(self, name: str, arguments: dict[str, Any]) -> tuple[str, str]:
        """The answer and the frame after it; an empty answer where none came."""
        host = random.choice(self._hosts)
        since = time.monotonic()
        if name == "refund":
            host.refunding.append(since)
        try:
            result = await self._once("tools/call", {"name": name, "arguments": arguments}, host)
        finally:
            if name == "refund":
                host.refunding.remove(since)
        if result is None:
            self._heard.failed_requests += 1
            return "", await self.frame()
        self._heard.misrouted += result["_meta"].get("sopilot/session") != self.session
        texts = [block["text"] for block in result["content"] if block["type"] == "text"]
        answer = _ANSWER.match(texts[0])
        if answer is not None:
            self._heard.answers.append((self.session, int(answer[1]), name, self.order))
            if name == "find_order":
                self._state = '"delivered"' in texts[0]
        return texts[0], texts[1] if len(texts) > 1 else await self.frame()

    async def frame(self) -> str:
        resource = await self._ask("resources/read", {"uri": "sopilot://frame"})
        return str(resource["contents"][0]["text"])

    async def _begin(self) -> None:
        about = {"protocolVersion": "2025-06-18", "capabilities": {},
                 "clientInfo": {"name": "day", "version": "1"}}  # fmt: skip
        await self._ask("initialize", about)

    # --- the conversation -----------------------------------------------------------

    async def converse(self) -> None:
        self._heard.conversations[self.kind] += 1
        ending = "given up"
        try:
            await self._begin()
            if self.kind == "reads":
                for _ in range(random.randint(1, 5)):
                    await self._think()
                    await self._call("find_order", {"order": self.order})
                ending = "read"
            else:
                ending = await self._refund()
        finally:
            self._heard.endings[f"{self.kind}: {ending}"] += 1

    async def _think(self, least: float = 0.2, most: float = 1.5) -> None:
        await asyncio.sleep(random.uniform(least, most))

    async def _refund(self) -> str:
        if self.kind == "hasty":
            await self._call("refund", {"order": self.order, "amount": self.amount})
        leaves = random.randint(1, 6) if self.kind in ("vanishing", "returning") else 0
        slot = await self.frame()
        for move in range(1, _MOST_MOVES):
            await self._think()
            if move == leaves and self.kind == "vanishing":
                return await self._vanished(slot)
            if move == leaves:
                await asyncio.sleep(self._hour * random.uniform(0.2, 0.6))
                await self._begin()  # a client that was started again, by the session's id
                slot = await self.frame()
            text, slot = await self._move(slot)
            if text.startswith("Done: "):
                ended = text[6:].split(".")[0]
                if ended in ("complete", "fail"):
                    self._heard.finished[self.session] = ended
            if self._started and slot.startswith("No process is running"):
                return self._heard.finished.get(self.session, "ended, without being told")
        return "given up"

    async def _vanished(self, slot: str) -> str:
        """Disconnect, in the middle of the refund if it comes next."""
        if "call `refund`" in slot:
            try:
                await asyncio.wait_for(self._move(slot), 0.2)
            except TimeoutError:
                return "vanished in the middle of a refund"
        return "vanished"

    async def _move(self, slot: str) -> tuple[str, str]:
        now = next((line for line in slot.splitlines() if line.startswith("Now: ")), slot)
        if slot.startswith("No process is running"):
            arguments = {"order": self.order, "amount": self.amount}
            return await self._call(
                STEP, {"operation": "start", "goal": "refund", "arguments": arguments}
            )
        self._started = True
        if "call `find_order`" in now or (
            self._state is None and slot.startswith("rule delivered")
        ):
            return await self._call("find_order", {"order": self.order})
        if "return" in now:
            holds = self._state if slot.startswith("rule delivered") else self.amount <= LARGEST
            return await self._call(STEP, {"operation": "return", "holds": holds})
        if "call `refund`" in now:
            return await self._pay(slot)
        if "complete" in now:
            return await self._call(STEP, {"operation": "complete", "summary": "It was paid back."})
        if "fail" in now:
            return await self._fail("It cannot be paid back.")
        self._heard.odd[f"frame: {now[:120]}"] += 1
        await self._think(2, 4)
        return "", await self.frame()

    async def _fail(self, reason: str) -> tuple[str, str]:
        return await self._call(STEP, {"operation": "fail", "reason": reason})

    async def _pay(self, slot: str) -> tuple[str, str]:
        text, slot = await self._call("refund", {"order": self.order, "amount": self.amount})
        if "rejected" in text or "expired" in text:
            return await self._fail("Nobody has approved it.")
        if "is waiting for approval" in text and self.kind == "left":
            self._asked_at = self._asked_at or time.monotonic()
            if time.monotonic() - self._asked_at > 0.8 * self._hour:
                return await self._fail("Nobody has decided.")
        if "is waiting for approval" in text or "outcome" in text.lower() or "twice" in text:
            await asyncio.sleep(self._hour * random.uniform(0.05, 0.2))
            return text, await self.frame()
        # Not now, and known as that; or it was settled by people a moment ago, and stands behind.
        if text.startswith("Not done: ") or " failed: " in text or "stands at refund@done" in text:
            await self._think(1, 3)
        elif text and not _ANSWER.match(text):
            self._heard.odd[re.sub(r"[0-9a-f]{12,}|call_\d+", "…", text)[:160]] += 1
            await self._think(1, 3)
        return text, slot
