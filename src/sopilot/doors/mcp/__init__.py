"""Handbooks for agents that exist already.

Owns the MCP server, the gateway in front of other MCP servers with its pinned
tool lists, the HTTP gatekeeper, and tasks that are played move by move. May
import every room below it. What needs the MCP library is imported by name, so
that playing needs none: ``sopilot.doors.mcp.mcp_server``, ``sopilot.doors.mcp._http``.
"""

from sopilot.desks.tasks import World
from sopilot.doors.mcp._tasks import playable_task
from sopilot.doors.mcp.hub import Hub, Seat, Service
from sopilot.doors.mcp.player import PlayedTurn, Player
from sopilot.doors.mcp.playing import PlayScore, resume_play, start_play

__all__ = [
    "Hub",
    "PlayScore",
    "PlayedTurn",
    "Player",
    "Seat",
    "Service",
    "World",
    "playable_task",
    "resume_play",
    "start_play",
]
