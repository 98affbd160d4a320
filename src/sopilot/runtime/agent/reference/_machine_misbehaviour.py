"""Where an executor under a machine is tempted, and what it does when it gives in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sopilot.runtime.agent.reference._misbehaviour import Temptation
from sopilot.runtime.agent.reference._moves import Ahead, Move
from sopilot.runtime.agent.reference.facts import Facts
from sopilot.runtime.agent.reference.replies import Replies
from sopilot.runtime.session.protocols import ModelReply, ToolSchema, required_of

MOST_EXTRA_CALLS = 2


class MachineMisbehaviour:
    """Opportunities are those of a frame: to enter it, and to be in it. Frames that the
    machine enters, and frames that are passed by looking ahead, tempt as much as others."""

    def __init__(
        self,
        facts: Facts,
        move: Move,
        temptation: Temptation,
        tools: Mapping[str, ToolSchema],
        replies: Replies,
    ) -> None:
        self._facts = facts
        self._move = move
        self._temptation = temptation
        self._tools = tools
        self._replies = replies
        self._goal = facts.open[-1] if facts.open else ""

    def now(self, enter: Callable[[], ModelReply]) -> ModelReply | None:
        """At the present move; ``enter`` calls the function that is due, if one is."""
        kind = self._move.kind
        if kind == "complete" and self._gives_in("over_verify"):
            return self._extra_call()
        if kind == "call":
            wrong = self._entering() or self._claimed(enter)
            if wrong is None and self._gives_in("ignore_frame"):
                wrong = self._unrelated(self._move.name)
            return wrong
        if kind in ("tool", "judge") and self._entered_by_machine():
            wrong = self._entering() or self._claimed()
            if wrong is not None:
                return wrong
        return self._inside(self._move.name) if kind == "tool" else None

    def ahead(self, ahead: Ahead, edge: str) -> ModelReply | None:
        """At a move that the slot tells in advance, behind what ``edge`` names."""
        if ahead.kind not in ("tool", "judge"):
            return None
        there = MachineMisbehaviour(
            self._facts,
            self._move,
            replace(self._temptation, situation=f"{self._temptation.situation}:{edge}"),
            self._tools,
            self._replies,
        )
        there._goal = self._goal or edge.removeprefix("start ")
        wrong = there._entering() or there._claimed()
        if wrong is None and ahead.kind == "tool":
            wrong = there._inside(ahead.name)
        return wrong

    def _entering(self) -> ModelReply | None:
        if self._gives_in("refuse_wrongly"):
            return self._replies.refuse("something")
        return self._early() if self._gives_in("act_early") else None

    def _claimed(self, enter: Callable[[], ModelReply] | None = None) -> ModelReply | None:
        """What the check is wanted to say, where a frame shows that; else that it holds."""
        if not self._gives_in("skip_check"):
            return None
        if enter is None:
            return self._replies.step("return", holds=True)
        entered = enter().tool_calls
        if not entered:
            return None
        claimed = self._replies.step_call("return", holds=self._move.wanted)
        return ModelReply("", (*entered, claimed))

    def _inside(self, action: str) -> ModelReply | None:
        """Where ``action`` is due."""
        if self._gives_in("return_without_evidence"):
            return self._replies.step("return", holds=True)
        if self._gives_in("ignore_frame"):
            return self._unrelated(action)
        return None

    def _gives_in(self, switch: str) -> bool:
        return self._temptation.gives_in(switch)

    def _entered_by_machine(self) -> bool:
        """Whether the machine, not a call of ours, opened the frame."""
        stack = self._facts.stack
        return self._move.gathered == () and (not stack or stack[-1] != self._move.function)

    def _early(self) -> ModelReply | None:
        tried = any(one.action == self._goal for one in self._facts.seen)
        if self._goal not in self._tools or tried:
            return None
        return self._with_known_values(self._tools[self._goal])

    def _unrelated(self, action: str) -> ModelReply | None:
        others = [tool for name, tool in sorted(self._tools.items()) if name != action]
        self._temptation.random("which").shuffle(others)
        for tool in others:
            reply = self._with_known_values(tool)
            if reply is not None:
                return reply
        return None

    def _extra_call(self) -> ModelReply | None:
        after_goal = 0
        for one in reversed(self._facts.seen):
            if one.action == self._goal:
                break
            after_goal += 1
        if after_goal >= MOST_EXTRA_CALLS:
            return None
        for one in self._facts.seen:
            if one.ok and one.action not in self._facts.open:
                return self._replies.tool(one.action, one.arguments)
        return None

    def _with_known_values(self, tool: ToolSchema) -> ModelReply | None:
        values = {name: self._facts.values.get(name) for name in required_of(tool)}
        if any(value is None for value in values.values()):
            return None
        return self._replies.tool(tool.name, values)
