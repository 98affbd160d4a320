"""A shop as an MCP server. It appends every refund to the file that its argument names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

DECLINED, BREAKS = 13, 14

server = MCPServer("shop")


@server.tool()
def find_order(order: str, parcel: int | None = 1, page: str | None = None) -> dict[str, str]:
    """Look up a parcel of an order; without a number, any of them."""
    delivered = order == "o-1" or (order == "o-3" and parcel is None)
    return {"state": "delivered" if delivered else "lost", "buyer": "anna"}


@server.tool()
def refund(order: str, amount: float, note: str | None = None) -> str:
    """Pay an order back."""
    if amount == DECLINED:
        raise ToolError("card declined")
    with Path(sys.argv[1]).open("a") as paid:
        paid.write(f"{order} {amount:g}\n")
    if amount == BREAKS:
        raise RuntimeError("the bank doesn't answer")
    return f"paid {amount:g}\nfor {order}"


@server.tool(name="opening-hours", annotations=ToolAnnotations(read_only_hint=True))
def opening_hours() -> str:
    """When the shop is open."""
    secret = [name for name in os.environ if name.startswith("SOPILOT_")]
    return " ".join([os.environ.get("SHOP_HOURS", "9 to 5"), *secret])


@server.tool()
def empty_till() -> str:
    """Take all the money."""
    with Path(sys.argv[1]).open("a") as paid:
        paid.write("everything\n")
    return "empty"


if __name__ == "__main__":
    server.run()
