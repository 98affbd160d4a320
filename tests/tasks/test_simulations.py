"""Simulators that outlive a process: in a file, or rebuilt from the trace."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from small_desks import AnsweringTools
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ToolResult
from sopilot.session.calls import call_key
from sopilot.tasks.examples.example import load_example
from sopilot.tasks.examples.simulator import Simulator
from sopilot.tasks.replay import SavedSimulation
from sopilot.tasks.task import NoTools, ReplayedTools, SimulationDiverged
from sopilot.trace.events import Event
from sopilot.views.step_answers import NOT_MADE

EXAMPLE = load_example("bank")
TASK = next(task for task in EXAMPLE.tasks if task.goal == "transfer")
LOGIN = {"username": TASK.inputs["username"], "password": TASK.inputs["password"]}


def simulator() -> Simulator:
    return EXAMPLE.make_tools(TASK)


async def test_what_was_done_is_there_in_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "simulators" / "one.json"
    first = SavedSimulation(simulator(), path)
    done = await first.call("login", LOGIN, key="k1")
    again = SavedSimulation(simulator(), path)
    assert again.simulator.state == first.simulator.state
    assert await again.recall("k1") == done
    assert await again.recall("k2") is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "simulated people have passwords too"


def test_a_simulator_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(UserMistake, match=r"one\.json"):
        SavedSimulation(simulator(), path)


def counting(ok: bool = True) -> AnsweringTools:
    """Tools that say which call it is, so that a repetition would show."""
    tools = AnsweringTools(lambda *_: ToolResult(ok, len(tools.made)))
    return tools


def names(tools: AnsweringTools) -> list[str]:
    return [name for name, _ in tools.made]


def trace(*called: str) -> list[Event]:
    events = []
    for number, name in enumerate(called):
        said = {"call_id": f"c{number}", "action": name, "arguments": {}}
        events.append(Event(2 * number, 0.0, "model", "domain_call", None, "", said))
        told = {"call_id": f"c{number}", "ok": True, "value": number + 1}
        events.append(Event(2 * number + 1, 0.0, "tool", "domain_result", None, "", told))
    return events


async def test_in_another_process_the_recorded_calls_are_made_again_and_only_once() -> None:
    tools = counting()
    simulation = ReplayedTools(tools)
    for _ in range(2):
        await simulation.catch_up("s", trace("read", "write"))
    assert names(tools) == ["read", "write"]
    key = call_key("s", "c1", "write", {})
    assert await simulation.recall(key) == ToolResult(True, 2)
    assert await simulation.call("write", {}, key=key) == ToolResult(True, 2)
    assert names(tools) == ["read", "write"]


async def test_what_the_user_said_is_no_work_of_the_tools() -> None:
    tools = counting()
    await ReplayedTools(tools).catch_up("s", trace("ask_user"))
    assert names(tools) == []


async def test_what_never_reached_a_tool_is_not_made_later() -> None:
    """The store had failed between the call's record and the call."""
    tools = counting()
    events = trace("read", "write")
    events[1].payload.update(ok=NOT_MADE.ok, value=NOT_MADE.value)  # type: ignore[attr-defined]
    await ReplayedTools(tools).catch_up("s", events)
    assert names(tools) == ["write"]


async def test_a_simulator_that_answers_otherwise_ends_the_run() -> None:
    with pytest.raises(SimulationDiverged, match="`read`"):
        await ReplayedTools(counting(ok=False)).catch_up("s", trace("read"))


async def test_where_nothing_can_be_called_a_call_fails() -> None:
    assert not (await NoTools().call("read", {}, key="k")).ok
