"""A client that is not ours: the MCP inspector's command line, one process a request.

Install it with `npm install @modelcontextprotocol/inspector@0.21.2`, and name the program
`mcp-inspector` in MCP_INSPECTOR or put it on the PATH.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from replayed_moves import Move, moves_of
from served import SOPILOT, free_port, odd_command, process
from test_mcp_sessions import audited
from test_play import whole_run

from sopilot.serve.clients import SESSION_HEADER
from sopilot.serve.content import SESSION_META

INSPECTOR = os.environ.get("MCP_INSPECTOR") or shutil.which("mcp-inspector")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(INSPECTOR is None, reason="no MCP inspector: see this file's docstring"),
]


async def inspect(url: str, session_id: str | None, *arguments: str) -> dict[str, Any]:
    assert INSPECTOR is not None
    header = ["--header", f"{SESSION_HEADER}: {session_id}"] if session_id else []
    running = await asyncio.create_subprocess_exec(
        INSPECTOR, "--cli", url, "--transport", "http", *arguments, *header,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await running.communicate()
    assert running.returncode == 0, err.decode()
    answer: dict[str, Any] = json.loads(out)
    return answer


async def make(url: str, session_id: str | None, move: Move) -> dict[str, Any]:
    given = json.loads(move.arguments)
    # As JSON, or the program takes a code of digits for a number.
    pairs = [f"{name}={json.dumps(value)}" for name, value in given.items()]
    tool_arguments = [word for pair in pairs for word in ("--tool-arg", pair)]
    return await inspect(
        url, session_id, "--method", "tools/call", "--tool-name", move.tool, *tool_arguments
    )


@pytest.mark.parametrize(
    ("task", "outcome"),
    [("transfer-wrong-password", "refused"), ("transfer-rent-share", "completed")],
)
def test_a_whole_session(task: str, outcome: str, tmp_path: Path) -> None:
    messages = whole_run(f"bank-desk/{task}", "pg").messages
    moves = [move for move in moves_of(messages) if move.tool]
    numbers = iter([m.content.split()[0] for m in messages if m.content.startswith("#")])
    renumbered: dict[str, str] = {}

    async def run() -> None:
        upstream, own = free_port(), free_port()
        command = odd_command("bank-desk", task, "--http", str(upstream))
        url = f"http://127.0.0.1:{own}/mcp"
        gateway = [
            *SOPILOT, "mcp", "bank-desk", "--http", f"127.0.0.1:{own}",
            "--upstream", f"odd=http://127.0.0.1:{upstream}/mcp",
        ]  # fmt: skip
        home = {"SOPILOT_HOME": str(tmp_path)}
        async with (
            process(command, f"http://127.0.0.1:{upstream}/"),
            process(gateway, f"http://127.0.0.1:{own}/", home),
        ):
            listed = await inspect(url, None, "--method", "tools/list")
            assert "wire_abroad" in {tool["name"] for tool in listed["tools"]}
            session_id: str | None = None
            for move in moves:
                # Other events stand between the results here, so they count otherwise.
                arguments = re.sub(
                    r"#\d+", lambda found: renumbered.get(found[0], found[0]), move.arguments
                )
                answer = await make(url, session_id, replace(move, arguments=arguments))
                session_id = answer["_meta"][SESSION_META]
                said = answer["content"][0]["text"]
                if said.startswith("#"):
                    renumbered[next(numbers)] = said.split()[0]
            prompts = await inspect(url, session_id, "--method", "prompts/list")
            assert "transfer" in {one["name"] for one in prompts["prompts"]}
            card = await inspect(
                url, session_id, "--method", "resources/read", "--uri", "sopilot://score-card"
            )
            assert json.loads(card["contents"][0]["text"])["findings"] == []
        assert session_id is not None
        assert await audited(tmp_path / "sessions.db", session_id) == (outcome, [])

    asyncio.run(run())
