"""The shop behind the gateways of `day_in_an_hour.py`: an MCP server that keeps a ledger.

    python benchmarks/day_upstream.py PORT LEDGER

Whatever is asked for is done, as often as it is asked for: a line of the ledger for each, written
before the answer. Nothing here knows of proofs, approvals or sessions; a call brings the key by
which people ask for it later.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server

from mcp_processes import serve_http

KEY = "sopilot/key"
_ORDER = {"order": {"type": "string"}}
_TOOLS = {"find_order": _ORDER, "refund": {**_ORDER, "amount": {"type": "integer"}}}
SECONDS_OF_A_REFUND = 0.4


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(
                name=name,
                input_schema={"type": "object", "properties": fields, "required": [*fields]},
            )
            for name, fields in _TOOLS.items()
        ]
    )


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = params.arguments or {}
    order = str(arguments.get("order", ""))
    if params.name == "find_order":
        state = "on its way" if order.startswith("undelivered") else "delivered"
        return types.CallToolResult(content=[], structured_content={"state": state})
    entry = {"at": time.time(), "order": order, "amount": arguments.get("amount"),
             "key": (params.meta or {}).get(KEY)}  # fmt: skip
    with Path(sys.argv[2]).open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps(entry) + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())
    await asyncio.sleep(SECONDS_OF_A_REFUND)  # done, but nobody has been told yet
    return types.CallToolResult(content=[], structured_content={"refunded": True})


async def main() -> None:
    server: Server[Any] = Server("shop", on_list_tools=list_tools, on_call_tool=call_tool)
    await serve_http(server, int(sys.argv[1]))


if __name__ == "__main__":
    asyncio.run(main())
