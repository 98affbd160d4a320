"""`sopilot new` writes a handbook for tools that exist: it compiles, and has every schema."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from click.testing import CliRunner

from sopilot.cli.main import sopilot
from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook
from sopilot.runner.functions import check
from warm import warm_python

SHOP = Path(__file__).parent / "mcp" / "shop_upstream.py"
FUNCTIONS = '''
from datetime import date

def find_order(order: str, day: date | None = None) -> dict:
    """Look an order up."""

async def refund(order: str, amount: float, tags: list[str] = ()) -> str:
    """Pay back."""

def _private() -> None: ...
'''
OPENAPI = {
    "openapi": "3.1.0",
    "paths": {
        "/orders/{id}": {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
            ],
            "get": {"operationId": "getOrder"},
            "delete": {"summary": "Remove it."},
        },
        "/pay": {
            "post": {
                "operationId": "pay-now",
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/Pay"}}}
                },
            }
        },
    },
    "components": {
        "Pay": {
            "type": "object",
            "required": ["amount"],
            "properties": {"amount": {"type": ["number", "null"]}, "note": {"type": "string"}},
        }
    },
}


def written(folder: Path, *options: str) -> Handbook:
    made = CliRunner().invoke(
        sopilot, ["new", "first", "--in", str(folder), *options], catch_exceptions=False
    )
    assert made.exit_code == 0, made.output
    assert [each.code for each in check(folder / "first.yaml")] == []
    return load_handbook((folder / "first.yaml").read_text("utf-8"), "first.yaml")


def inputs(handbook: Handbook, action: str) -> list[tuple[str, str, bool]]:
    return [(each.name, each.type, each.required) for each in handbook.actions[action].inputs]


def test_for_the_functions_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(FUNCTIONS)
    handbook = written(tmp_path, "--tools", str(tmp_path / "tools.py"))
    assert set(handbook.procedures) == {"find_order", "refund"}
    assert inputs(handbook, "find_order") == [("order", "string", True), ("day", "string", False)]
    assert inputs(handbook, "refund") == [
        ("order", "string", True),
        ("amount", "number", True),
        ("tags", "array", False),
    ]


def test_for_an_openapi_document(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(OPENAPI))
    handbook = written(tmp_path, "--tools", str(tmp_path / "api.json"))
    assert set(handbook.procedures) == {"delete_orders_id", "pay_now"}
    assert handbook.actions["getOrder"].read_only
    assert handbook.actions["pay_now"].tool == "pay-now"
    assert inputs(handbook, "pay_now") == [("amount", "number", True), ("note", "string", False)]
    assert inputs(handbook, "delete_orders_id") == [("id", "string", True)]


def test_for_mcp_servers_with_one_tool_in_common(tmp_path: Path) -> None:
    python, *options = warm_python()
    server = {"command": python, "args": [*options, str(SHOP), str(tmp_path / "paid")]}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"a": server, "b": server}}))
    handbook = written(tmp_path, "--upstream", str(tmp_path / "servers.json"))
    assert handbook.actions["a_refund"].tool == "a:refund"
    assert handbook.actions["b_opening_hours"].read_only
    assert handbook.actions["b_opening_hours"].tool == "b:opening-hours"
    # The gateway takes it as it is.
    command = [python, *options, "-m", "sopilot.cli.main", "gateway"]
    options = ["--handbook", str(tmp_path / "first.yaml"), str(tmp_path / "servers.json")]
    started = subprocess.run(
        [*command, *options, "--store", f"sqlite:{tmp_path}/sessions.db"],
        capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    assert started.returncode == 0, started.stderr.decode()
