"""Row 12: once a call was sent, nobody is told that it was not done.

The store fails when the tool has answered. The judge is the bank: is the account closed?
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from gateway_scenes import call
from mcp.client import Client
from mcp_servers import RecordingMeter
from reference_client import CLOSING, prove
from served import gateway

from sopilot.integrations.mcp.server import McpServer
from sopilot.messages.errors import StoreUnavailable
from sopilot.stores.memory import MemoryStore

DEPLOY = Path(__file__).parents[3] / "deploy"


class DownStore(MemoryStore):
    """``down``: nothing about this action is written any more."""

    down = ""

    async def append(self, lease: Any, batch: Any, **given: Any) -> Any:
        for one in batch.events:
            if one.event.kind == "domain_result" and one.event.payload["action"] == self.down:
                raise StoreUnavailable("connection refused")
        return await super().append(lease, batch, **given)


async def test_through_the_gateway(caplog: pytest.LogCaptureFixture) -> None:
    store = DownStore()
    meter = RecordingMeter()
    server: McpServer
    async with (
        gateway("bank", "close-empty", store=store, told=[]) as server,
        Client(server.protocol) as client,
    ):
        server._meter = meter
        session_id = await prove(client, store)
        store.down = CLOSING.goal
        with caplog.at_level(logging.INFO, logger="sopilot"):
            result = await call(client, CLOSING.goal, **CLOSING.arguments)
        said = " ".join(getattr(one, "text", "") for one in result.content)
        store.down = ""
        assert result.is_error
        assert "Outcome unknown" in said
        assert "ot done" not in said
        assert "ry again" not in said
        assert meter.counted["calls unknown"] == 1
        warned = [one for one in caplog.records if one.levelno == logging.WARNING]
        assert any(getattr(one, "fields", {}).get("outcome") == "unknown" for one in warned)
        assert f"unknown outcome: sopilot approvals list {session_id}" in caplog.text
        await client.list_tools()
        await call(client, "read_ledger")
        events = [one.event for one in await store.events(session_id)]
        ended = [one for one in events if one.kind == "domain_result"]
        assert any(one.payload["action"] == CLOSING.goal and one.payload["ok"] for one in ended)


def test_the_alert_counts_it_while_the_store_is_down() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text("utf-8"))
    (expr,) = (
        one["expr"]
        for one in rules["groups"][0]["rules"]
        if one["alert"] == "SopilotUnknownOutcome"
    )
    assert 'sopilot_calls_total{outcome="unknown"}' in expr
