"""`sopilot serve` as it is started: gateway and upstream are programs of their own, and what was
carried out is what the upstream wrote down."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import over_mcp
from attack_table import NOT_MADE, cases
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from scripted_moves import Case, Move, Script

from warm import warm_python

(COPIED,) = (case for case in cases("pg", classes=True) if case.number == 12)


def by_command(case: Case, moves: Sequence[Move], folder: Path) -> tuple[Script, object]:
    """The script as it was answered, and the guarded calls on the upstream's record."""
    handbook, record = folder / "handbook.yaml", folder / "record.json"
    handbook.write_text(case.handbook)
    record.write_text("[]")
    program, *words = warm_python()
    upstream = shlex.join([program, *words, over_mcp.__file__, case.id, str(record)])
    server = StdioServerParameters(
        command=program,
        args=[
            *words,
            *("-m", "sopilot.cli.main", "gateway", "--view", "pg", "--handbook", str(handbook)),
            *("--upstream", f"other={upstream}", "--view", "pg"),
        ],
        env={"SOPILOT_HOME": str(folder)},
    )
    script = Script(moves)

    async def run() -> None:
        async with Client(server) as client:
            await over_mcp.send(client, script)

    asyncio.run(run())
    return script, json.loads(record.read_text())


def test_an_attack_is_held(tmp_path: Path) -> None:
    script, record = by_command(COPIED, COPIED.attack, tmp_path)
    assert record == [list(one) for one in COPIED.before]
    assert script.answers[-1].startswith(NOT_MADE)
    assert all(word in script.answers[-1] for word in COPIED.says)


def test_its_honest_twin_goes_through(tmp_path: Path) -> None:
    script, record = by_command(COPIED, COPIED.twin, tmp_path)
    assert record == [list(one) for one in COPIED.done]
    assert "(ok): " in script.answers[-1]
