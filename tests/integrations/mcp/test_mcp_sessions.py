"""A whole session over stdio and over HTTP, through the gateway, to a real upstream."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from reference_client import drive
from served import free_port, odd_command, process, sopilot_command

from sopilot.audit.audit import audit_trace
from sopilot.session.opening import attach_session
from sopilot.stores.sqlite import SQLiteStore
from sopilot.tasks.examples.example import load_example

EXECUTED = ("bank", "transfer-rent-share", "completed")
REFUSED = ("bank", "transfer-wrong-password", "refused")


async def audited(store_path: Path, session_id: str) -> tuple[str, list[str]]:
    store = SQLiteStore(store_path)
    try:
        session = await attach_session(store, session_id)
        programs, events = session.programs.programs, session.events
        await session.release()
    finally:
        await store.close()
    report = audit_trace(programs, events, session_id=session_id)
    return report.score_card.outcome, [finding.code for finding in report.findings]


@pytest.mark.parametrize(
    ("example_name", "task_id", "outcome"),
    [EXECUTED, pytest.param(*REFUSED, marks=pytest.mark.slow)],
)
async def test_stdio(example_name: str, task_id: str, outcome: str, tmp_path: Path) -> None:
    example = load_example(example_name)

    upstream = shlex.join(odd_command(example_name, task_id))
    program, *arguments = sopilot_command(
        "gateway", "--view", "pg", "--handbook", example_name, "--upstream", f"odd={upstream}"
    )
    server = StdioServerParameters(
        command=program, args=arguments, env={"SOPILOT_HOME": str(tmp_path)}
    )
    async with Client(server) as client:
        driven = await drive(client, example, example.task(task_id))
    assert driven.ended
    assert await audited(tmp_path / "sessions.db", driven.session_id) == (outcome, [])


@pytest.mark.parametrize(
    ("example_name", "task_id", "outcome"),
    [REFUSED, pytest.param(*EXECUTED, marks=pytest.mark.slow)],
)
async def test_http(example_name: str, task_id: str, outcome: str, tmp_path: Path) -> None:
    example = load_example(example_name)

    upstream, own = free_port(), free_port()
    command = odd_command(example_name, task_id, "--http", str(upstream))
    gateway = sopilot_command(
        "gateway", "--view", "pg", "--handbook", example_name, "--http", f"127.0.0.1:{own}",
        "--upstream", f"odd=http://127.0.0.1:{upstream}/mcp",
    )  # fmt: skip
    home = {"SOPILOT_HOME": str(tmp_path)}
    async with (
        process(command, f"http://127.0.0.1:{upstream}/"),
        process(gateway, f"http://127.0.0.1:{own}/", home),
        Client(f"http://127.0.0.1:{own}/mcp") as client,
    ):
        assert client.protocol_version < "2026", "sessions need a connection"
        driven = await drive(client, example, example.task(task_id))
    assert driven.ended
    assert await audited(tmp_path / "sessions.db", driven.session_id) == (outcome, [])
