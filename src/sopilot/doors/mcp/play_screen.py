"""What a player is shown: everything that a model would be sent now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from sopilot.doors.mcp.playing import Play, PlayScore
from sopilot.language.diagnostics.plain_text import Heading, Lines
from sopilot.language.render.signatures import signature


async def screen(play: Play) -> dict[str, object]:
    player = play.player
    request = player.driver.request()
    return {
        "session": play.id,
        "task": player.world.task,
        "arm": player.driver.arm.name,
        "system": request.first.content,
        "messages": [asdict(message) for message in request.dialog],
        "slot": request.slot,
        "tools": [asdict(tool) for tool in request.tools],
        "ending": player.ending,
    }


def screen_lines(shown: dict[str, object]) -> Iterator[str]:
    yield f"session {shown['session']}"
    yield Heading("system")
    yield Lines(shown["system"])
    messages, tools = shown["messages"], shown["tools"]
    assert isinstance(messages, list)
    assert isinstance(tools, list)
    for message in messages:
        yield Heading(message["role"])
        made = ", ".join(one["name"] for one in message["tool_calls"])
        yield Lines(message["content"] or made)
    if shown["slot"]:
        yield Heading("slot")
        yield Lines(shown["slot"])
    yield Heading("tools")
    for tool in tools:
        yield signature(tool["name"], tool["parameters"])
        if tool["description"]:
            yield f"  {tool['description']}"


def score_lines(score: PlayScore) -> Iterator[str]:
    yield f"{score.task} under {score.arm}: {'passed' if score.passed else 'not passed'}"
    yield f"ended {score.ending} after {len(score.calls)} calls"
    for name, value in score.verdict.items():
        yield f"  {name}: {value}"
    for finding in score.findings:
        yield f"  {finding.severity} {finding.code} at event {finding.seq}"
