"""The guard over HTTP. The judge is the caller's own list of what it paid."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra `mcp`")

import httpx2
from guarded_shop import BOOK, LOGIN, LOOK, REFUND

from sopilot.integrations.decisions import decision_app
from sopilot.messages.errors import UserMistake

TOKEN = "a-token-of-the-test"
RESULTS: dict[str, Any] = {
    "login": {"customer": "anna"},
    "find_order": {"state": "delivered"},
    "refund": "paid",
}


class Agent:
    """An agent in another language: it asks before every call and reports the answer."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http
        self.paid: list[Any] = []

    async def post(self, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
        answer = await self.http.post(path, json=body)
        return answer.status_code, answer.json()

    async def before(self, id: str, call: Any, conversation: str = "c-1") -> dict[str, Any]:
        tool, arguments = call.tool, call.arguments
        own = {"conversation": conversation, "id": id, "tool": tool, "arguments": dict(arguments)}
        status, decided = await self.post("/before", **own)
        assert status == 200, decided
        return decided

    async def make(self, id: str, call: Any, conversation: str = "c-1") -> str:
        decided = await self.before(id, call, conversation)
        if decided["decision"] == "carry_out":
            if call.tool == "refund":
                self.paid.append(decided["arguments"])
            own = {"conversation": conversation, "id": id, "digest": decided["digest"]}
            status, _ = await self.post("/after", **own, ok=True, value=RESULTS[call.tool])
            assert status == 200
        decision: str = decided["decision"]
        return decision


@asynccontextmanager
async def served(folder: Path, **options: Any) -> AsyncIterator[Agent]:
    path = folder / "refunds.yaml"
    path.write_text(BOOK.replace("CONFIRM", "false"), "utf-8")
    transport = httpx2.ASGITransport(decision_app(path, token=TOKEN, **options))
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://guard", headers=headers
    ) as http:
        yield Agent(http)


async def test_a_call_is_carried_out_when_it_is_proven(tmp_path: Path) -> None:
    async with served(tmp_path) as agent:
        hasty = await agent.before("1", REFUND)
        assert hasty["decision"] == "missing"
        assert 'find_order(customer="anna", order="o-1")' in hasty["agenda"]
        assert await agent.make("2", LOGIN) == "carry_out"
        assert await agent.make("3", LOOK) == "carry_out"
        assert await agent.make("4", REFUND, conversation="c-2") == "missing"
        assert await agent.make("5", REFUND) == "carry_out"
        assert await agent.make("6", REFUND) == "refused"
    assert agent.paid == [dict(REFUND.arguments)]


async def test_requests_can_be_repeated_and_are_bound_to_their_call(tmp_path: Path) -> None:
    async with served(tmp_path) as agent:
        first = await agent.before("1", LOGIN)
        assert await agent.before("1", LOGIN) == first
        own = {"conversation": "c-1", "id": "1"}
        other = {**LOGIN.arguments, "customer": "bob"}
        assert (await agent.post("/before", **own, tool="login", arguments=other))[0] == 409
        assert (await agent.post("/after", **own, digest="0" * 64, ok=True))[0] == 409
        report = {**own, "digest": first["digest"], "ok": True, "value": {"customer": "anna"}}
        recorded = await agent.post("/after", **report)
        assert recorded[1]["recorded"]
        assert await agent.post("/after", **report) == recorded
        # What the agent reports of a call that it must not make is no evidence.
        missing = await agent.before("2", REFUND)
        assert missing["decision"] == "missing"
        own = {"conversation": "c-1", "id": "2", "digest": missing["digest"]}
        assert (await agent.post("/after", **own, ok=True, value="paid"))[0] == 409
        assert (await agent.post("/after", **{**report, "id": "9"}))[0] == 404


async def test_an_answer_that_never_comes_is_an_unknown_outcome(tmp_path: Path) -> None:
    async with served(tmp_path, answer_seconds=0.2) as agent:
        await agent.make("1", LOGIN)
        await agent.make("2", LOOK)
        decided = await agent.before("3", REFUND)  # and the agent dies
        own = {"conversation": "c-1", "id": "3", "digest": decided["digest"]}
        assert await agent.make("4", REFUND) != "carry_out"
        await asyncio.sleep(0.5)
        late = await agent.post("/after", **own, ok=True, value="paid")
        assert late[0] != 200 or not late[1]["recorded"]
        assert await agent.make("5", REFUND) != "carry_out"


async def test_strangers_and_nonsense_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as agent:
        answer = await agent.http.post("/before", headers={"authorization": "Bearer x"}, json={})
        assert answer.status_code == 401
        assert (await agent.post("/before", conversation="c-1"))[0] == 400
        assert (await agent.http.post("/before", content=b"[")).status_code == 400
        assert (await agent.http.post("/before", content=b"x" * 1_000_001)).status_code == 413
        described = (await agent.http.get("/openapi.json")).json()
        assert set(described["paths"]) == {"/before", "/after"}
    with pytest.raises(UserMistake, match="short-token"):
        decision_app(tmp_path / "refunds.yaml", token="short")
