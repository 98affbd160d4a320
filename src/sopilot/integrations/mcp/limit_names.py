"""What `sopilot mcp --limit` takes, for its help, which needs no MCP library."""

from __future__ import annotations

LIMITS_HELP = (
    "One of: header-seconds (10), body-seconds (30), idle-seconds (300), drain-seconds (5), "
    "connections of an address (200), requests (100) and clients (500) of an owner, "
    "initializes a minute (600), sessions (200), sessions-of-one owner (50), "
    "upstreams connected to at once (400)."
)
