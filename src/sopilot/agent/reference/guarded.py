"""The reference executor under the view `guard`: it only reacts to the guard's answers.

It calls the tool that the user wants. If the answer lists calls, it makes them and calls the tool
again. It knows nothing of the handbook but what those answers say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sopilot.agent.reference.judging import CannotJudge, PredicateJudge, Seen
from sopilot.agent.reference.reading import GOAL, Exchange, Facts
from sopilot.agent.reference.replies import Replies
from sopilot.agent.toolbox import END_SESSION
from sopilot.protocols import ModelReply, ToolCall, ToolSchema, inputs_of, required_of
from sopilot.values.json import JSON
from sopilot.views.guard_answers import JUDGE_TOOL, blocked_call, shown_answers

_NAME = re.compile(r"(?:, )?(\w+)=")
_UNKNOWN = "…"


class Listed(NamedTuple):
    """A call that an answer lists. ``open`` are the arguments that only the user has."""

    name: str
    arguments: Mapping[str, JSON]
    open: tuple[str, ...]


class GuardedExecutor:
    def __init__(
        self,
        facts: Facts,
        judge: PredicateJudge,
        tools: Mapping[str, ToolSchema],
        goals: Sequence[str],
    ) -> None:
        self._facts = facts
        self._goals = goals
        self._judge = judge
        self._tools = tools
        self._replies = Replies(facts)

    def reply(self) -> ModelReply:
        goals = [name for name in self._goals if name in self._tools]
        goal = self._facts.wants or (goals[0] if len(goals) == 1 else None)
        if goal is None:
            return self._replies.ask([GOAL])
        if goal not in self._tools:
            return self._end("refused", f"there is no tool for `{goal}`")
        attempts = [
            index for index, exchange in enumerate(self._facts.exchanges) if exchange.name == goal
        ]
        if not attempts:
            return self._attempt(goal)
        latest = self._facts.exchanges[attempts[-1]]
        if latest.succeeded:
            return self._end("executed", "done as requested")
        listed = listed_calls(latest.answer)
        if not listed:
            return self._end("refused", latest.answer)
        since = self._facts.exchanges[attempts[-1] + 1 :]
        calls: list[ToolCall] = []
        for call in listed:
            reply = self._make(call, since)
            if reply is None:
                continue
            if not reply.tool_calls or reply.tool_calls[0].name == END_SESSION:
                # The user must be asked, or can't help; what can be called is called before.
                return ModelReply("", tuple(calls)) if calls else reply
            calls += reply.tool_calls
        if calls:
            return ModelReply("", tuple(calls))
        if not since:
            return self._end("refused", latest.answer)
        return self._attempt(goal)

    def _attempt(self, goal: str) -> ModelReply:
        schema = self._tools[goal]
        values = {name: self._facts.values.get(name) for name in inputs_of(schema)}
        missing = [name for name in required_of(schema) if values[name] is None]
        unasked = [name for name in missing if not self._facts.questions[name]]
        if unasked:
            return self._replies.ask(unasked)
        if missing:
            return self._end("refused", f"the user can't give {', '.join(missing)}")
        known = {name: value for name, value in values.items() if value is not None}
        return self._replies.tool(goal, known)

    def _make(self, call: Listed, since: Sequence[Exchange]) -> ModelReply | None:
        """The next thing to do about a listed call; ``None`` where it is done."""
        wanted = call.arguments
        if call.name == JUDGE_TOOL:
            wanted = {"check": wanted["check"]}
        if any(
            exchange.name == call.name and wanted.items() <= exchange.arguments.items()
            for exchange in since
        ):
            return None
        if call.name == JUDGE_TOOL:
            return self._judged(call)
        values = {name: self._facts.values.get(name) for name in call.open}
        missing = [name for name, value in values.items() if value is None]
        unasked = [name for name in missing if not self._facts.questions[name]]
        if unasked:
            return self._replies.ask(unasked)
        if missing or call.name not in self._tools:
            return self._end("refused", f"`{call.name}` can't be called")
        return self._replies.tool(call.name, {**call.arguments, **values})

    def _judged(self, call: Listed) -> ModelReply:
        check, values = str(call.arguments["check"]), dict(call.arguments)
        del values["check"]
        try:
            holds = self._judge(check, values, [*self._facts.seen, *self._shown()])
        except CannotJudge:
            return self._end("refused", f"`{check}` can't be judged")
        return self._replies.tool(JUDGE_TOOL, {"check": check, "holds": holds})

    def _shown(self) -> list[Seen]:
        """The answers to calls that the guard made by itself."""
        return [
            Seen(int(number), call.name, call.arguments, ok == "ok", json.loads(value))
            for exchange in self._facts.exchanges
            for spelled, number, ok, value in shown_answers(exchange.answer)
            for call in [read_call(spelled)]
        ]

    def _end(self, outcome: str, reason: str) -> ModelReply:
        message = "It is done." if outcome == "executed" else f"I can't do this: {reason}"
        return self._replies.tool(END_SESSION, {"outcome": outcome, "reason": reason}, message)


def listed_calls(answer: str) -> list[Listed]:
    """The calls that an answer of the guard asks for, in order; none where it refuses. A judgement
    has the values of its check, which the answer names before the tool."""
    listed: list[Listed] = []
    for call in map(read_call, blocked_call(answer)):
        if call.name == JUDGE_TOOL:
            check = listed.pop()
            call = Listed(JUDGE_TOOL, {**check.arguments, "check": check.name}, ())
        listed.append(call)
    return listed


def read_call(spelled: str) -> Listed:
    """A call as the guard spells it: `find_order(order="A-7", code=…)`."""
    name, _, rest = spelled.partition("(")
    arguments: dict[str, JSON] = {}
    unknown: list[str] = []
    position = 0
    while match := _NAME.match(rest, position):
        position = match.end()
        if rest.startswith(_UNKNOWN, position):
            unknown.append(match[1])
            position += len(_UNKNOWN)
        else:
            arguments[match[1]], position = json.JSONDecoder().raw_decode(rest, position)
    return Listed(name, arguments, tuple(unknown))
