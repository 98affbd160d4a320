"""What a program did on an earlier connection was not done on this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from attack_desk import desk_over

from small_desks import AnsweringTools
from sopilot.program.codec import program_from_yaml
from sopilot.protocols import ToolResult, UpstreamConnection
from sopilot.values.json import JSON

RESERVED = """
sopilot_program: 1
entry: pay
guarded: [{action: pay}]
types: {user: string}
actions:
  reserve: {input: {user: string}, changes: []}
  pay: {input: {user: string}, required: [user]}
functions:
  pay:
    kind: process
    parameters: [user]
    steps:
      - {step: first, act: reserve, with: {user: $user}}
      - {step: act, act: pay, with: {user: $user}, goal: true}
      - {step: done, complete: Done.}
"""


class ConnectedDesk(AnsweringTools):
    """One server, which keeps reservations for each connection."""

    connection = "first"

    async def connections(self, name: str) -> Sequence[UpstreamConnection]:
        return [UpstreamConnection("shop", self.connection, ("reserve", "pay"))]

    async def call_on(
        self, connection: str, name: str, arguments: Mapping[str, JSON], *, key: str
    ) -> ToolResult:
        assert connection == self.connection
        return await self.call(name, arguments, key=key)


@pytest.mark.parametrize("lost", [False, True])
async def test_a_step_counts_on_its_own_connection_alone(lost: bool) -> None:
    tools = ConnectedDesk(lambda name, given: {})
    desk = await desk_over({"pay": program_from_yaml(RESERVED)}, tools)
    await desk.start("pay", user="u")
    await desk.call("reserve", user="u")
    if lost:
        tools.connection = "second"
        await desk.held("pay", "`pay@first` was not done", user="u")
    else:
        await desk.done("pay", user="u")
    assert len(tools.given("pay")) == (not lost)
