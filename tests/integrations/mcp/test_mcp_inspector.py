"""A client that is not ours: the MCP inspector's command line, one process a request.

MCP_INSPECTOR names the program `mcp-inspector`; else it is found on the PATH, or installed
once with npm into the user's cache.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from looped import looped
from reference_client import audited
from replayed_moves import Move, Renumbered, moves_of
from served import free_port, odd_command, process, sopilot_command

from sopilot.integrations.mcp.client_call import SESSION_HEADER
from sopilot.integrations.mcp.content import SESSION_META

PACKAGE = "@modelcontextprotocol/inspector@0.21.2"


@pytest.fixture(scope="module")
def inspector() -> str:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node is not installed")
    found = os.environ.get("MCP_INSPECTOR") or shutil.which("mcp-inspector")
    if found is not None:
        return found
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sopilot"
    folder = cache / PACKAGE.rpartition("/")[2]
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=cache))
        command = ["npm", "install", "--silent", "--no-audit", "--prefix", str(beside), PACKAGE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(beside)
            pytest.skip(f"npm cannot install {PACKAGE}: {done.stderr.strip()[:200]}")
        with suppress(OSError):  # somebody else was quicker
            beside.rename(folder)
    return str(folder / "node_modules" / ".bin" / "mcp-inspector")


@dataclass(frozen=True)
class Inspector:
    program: str
    url: str

    async def ask(self, session_id: str | None, *arguments: str) -> dict[str, Any]:
        header = ["--header", f"{SESSION_HEADER}: {session_id}"] if session_id else []
        running = await asyncio.create_subprocess_exec(
            self.program, "--cli", self.url, "--transport", "http", *arguments, *header,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await running.communicate()
        assert running.returncode == 0, err.decode()
        answer: dict[str, Any] = json.loads(out)
        return answer

    async def make(self, session_id: str | None, move: Move) -> dict[str, Any]:
        given = json.loads(move.arguments)
        # As JSON, or the program takes a code of digits for a number.
        pairs = [f"{name}={json.dumps(value)}" for name, value in given.items()]
        words = [word for pair in pairs for word in ("--tool-arg", pair)]
        return await self.ask(
            session_id, "--method", "tools/call", "--tool-name", move.tool, *words
        )


@pytest.mark.parametrize(
    ("task", "outcome"),
    [
        ("transfer-wrong-password", "refused"),
        pytest.param("transfer-rent-share", "completed", marks=pytest.mark.slow),
    ],
)
async def test_a_whole_session(task: str, outcome: str, inspector: str, tmp_path: Path) -> None:
    messages = looped(f"bank/{task}", "pg").result.messages
    moves = [move for move in moves_of(messages) if move.tool]
    renumbered = Renumbered()

    upstream, own = free_port(), free_port()
    command = odd_command("bank", task, "--http", str(upstream))
    client = Inspector(inspector, f"http://127.0.0.1:{own}/mcp")
    gateway = sopilot_command(
        "gateway", "--view", "pg", "--handbook", "bank", "--http", f"127.0.0.1:{own}",
        "--upstream", f"odd=http://127.0.0.1:{upstream}/mcp",
    )  # fmt: skip
    home = {"SOPILOT_HOME": str(tmp_path)}
    async with (
        process(command, f"http://127.0.0.1:{upstream}/"),
        process(gateway, f"http://127.0.0.1:{own}/", home),
    ):
        listed = await client.ask(None, "--method", "tools/list")
        assert "wire_abroad" in {tool["name"] for tool in listed["tools"]}
        session_id: str | None = None
        for move in moves:
            arguments = renumbered.arguments(move)
            answer = await client.make(session_id, replace(move, arguments=arguments))
            session_id = answer["_meta"][SESSION_META]
            renumbered.answered(move, answer["content"][0]["text"])
        prompts = await client.ask(session_id, "--method", "prompts/list")
        assert "transfer" in {one["name"] for one in prompts["prompts"]}
        card = await client.ask(
            session_id, "--method", "resources/read", "--uri", "sopilot://score-card"
        )
        assert json.loads(card["contents"][0]["text"])["findings"] == []
    assert session_id is not None
    assert await audited(tmp_path / "sessions.db", session_id) == (outcome, [])
