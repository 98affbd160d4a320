"""An MCP server by hand: it prints what is no message, and `garbled` answers what no reader of
UTF-8 takes."""

from __future__ import annotations

import json
import sys
from typing import Any

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "garbled", "version": "1"},
}


def answer(method: str, params: Any) -> dict[str, Any] | None:
    if method == "initialize":
        return HELLO
    if method == "tools/call":
        print("a line for nobody", '{"id": 1}', sep="\n", flush=True)
        text = "\ud800" if params["name"] == "garbled" else "fine"
        return {"content": [{"type": "text", "text": text}]}
    return None


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked["method"], asked.get("params"))
        said = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
