"""The executor under a machine: it does what the frame or the state asks for, step by step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sopilot.runtime.agent.reference._goals import wanted_goal
from sopilot.runtime.agent.reference._judging import CannotJudge, PredicateJudge, Seen
from sopilot.runtime.agent.reference._machine_misbehaviour import MachineMisbehaviour
from sopilot.runtime.agent.reference._misbehaviour import Temptation
from sopilot.runtime.agent.reference._moves import Move
from sopilot.runtime.agent.reference._recipes import gather, is_linked, known_or
from sopilot.runtime.agent.reference._values import Resolved, call_arguments, resolve, whole
from sopilot.runtime.agent.reference.facts import GOAL, Facts
from sopilot.runtime.agent.reference.replies import Replies, not_offered
from sopilot.runtime.session.protocols import JSON, ModelReply, ToolCall, ToolSchema, inputs_of
from sopilot.runtime.vm import agree

_TRUTHS = {True: "true", False: "false"}


class MachineExecutor:
    def __init__(
        self,
        facts: Facts,
        move: Move,
        judge: PredicateJudge,
        temptation: Temptation,
        tools: Mapping[str, ToolSchema],
    ) -> None:
        self._facts = facts
        self._move = move
        self._judge = judge
        self._tools = tools
        self._replies = Replies(facts)
        self._misbehaviour = MachineMisbehaviour(facts, move, temptation, tools, self._replies)

    def reply(self) -> ModelReply:
        move, facts = self._move, self._facts
        if move.kind == "start":
            return self._start()
        current = facts.open[-1] if facts.open else None
        if facts.wants is not None and current is not None and facts.wants != current:
            if facts.wants in facts.ended:
                return self._replies.say(f"I leave {current} as it is. That is all.")
            return self._start_goal(facts.wants)
        wrong = self._misbehaviour.now(self._call)
        if wrong is not None:
            return wrong
        match move.kind:
            case "call":
                return self._call()
            case "tool":
                return self._tool()
            case "goal":
                return self._goal()
            case "judge":
                return self._return(self._evidence())
            case "return":
                return self._replies.step("return")
            case "branch":
                return self._replies.step("select_branch")
            case "choose":
                return self._choose()
            case "emit":
                return self._emit()
            case "complete":
                return self._replies.step("complete", "It is done.", summary="done as requested")
            case "fail":
                return self._replies.refuse(facts.judged or ", ".join(move.unmet) or move.function)
            case _:
                return self._replies.step("select_branch", option="next")

    # --- the goal -------------------------------------------------------------------

    def _start(self) -> ModelReply:
        goal = wanted_goal(self._facts, self._move.goals)
        return self._replies.ask([GOAL]) if goal is None else self._start_goal(goal)

    def _start_goal(self, goal: str) -> ModelReply:
        # Surplus values are harmless where the parameters are not shown.
        names = self._move.goals.get(goal) or self._tool_inputs(goal)
        known = {name: self._facts.values.get(name) for name in names}
        given = _given(known)
        why = self._rejected("start", goal=goal, arguments=given)
        if why:
            return self._replies.say(f"I cannot do this: {why}.")
        started = self._replies.step_call("start", goal=goal, arguments=given)
        first = self._move.ahead.get(f"start {goal}")
        if first is None:
            return ModelReply("", (started,))
        missing = call_arguments(first.arguments, {}, self._facts, users_own=True).missing
        unknown = [name for name in names if known[name] is None]
        wanted = list(dict.fromkeys([*unknown, *missing]))
        if not wanted:
            return self._with_next([started], f"start {goal}", users_own=True)
        if not any(self._facts.asked[name] for name in wanted):
            return self._replies.ask(wanted)
        return ModelReply("", (started,))

    def _tool_inputs(self, goal: str) -> Sequence[str]:
        tool = self._tools.get(goal)
        return list(inputs_of(tool)) if tool is not None else []

    def _goal(self) -> ModelReply:
        if self._move.name not in self._tools:
            return self._replies.give_up(not_offered(self._move.name))
        if self._facts.refused:
            return self._replies.give_up(self._facts.refused.rstrip("."))
        resolved = self._resolved()
        if resolved.missing and not all(map(self._facts.is_unavailable, resolved.missing)):
            return self._replies.ask(resolved.missing)
        failed = self._failed_here(resolved)
        if failed is not None:
            return self._replies.give_up(f"{failed.action} failed (#{failed.seq})")
        return self._replies.tool(self._move.name, resolved.values)

    # --- checks ---------------------------------------------------------------------

    def _call(self) -> ModelReply:
        resolved = self._resolved()
        missing = [name for name in resolved.missing if not self._facts.is_unavailable(name)]
        if missing:
            return self._replies.ask(missing)
        step: dict[str, Any] = {
            "function": self._move.name,
            "arguments": dict(resolved.found_out),
        }
        why = self._rejected("call", **step)
        if why:
            return self._replies.give_up(why)
        return self._replies.step("call", **step)

    def _rejected(self, operation: str, **fields: JSON) -> str:
        """Why this very step did not fit just now: it would not fit a second time either."""
        if self._facts.rejected is None:
            return ""
        given, why = self._facts.rejected
        wanted = json.loads(self._replies.step_call(operation, **fields).arguments)
        return why if given == wanted else ""

    def _tool(self) -> ModelReply:
        if any(is_linked(recipe) for recipe in self._move.recipes):
            return self._linked()
        resolved = self._resolved()
        missing = [name for name in resolved.missing if not self._facts.is_unavailable(name)]
        if missing:
            return self._replies.ask(missing)
        if resolved.missing or self._facts.refused:
            return self._otherwise()
        if self._failed_here(resolved) is not None:
            return self._otherwise()
        return self._replies.tool(self._move.name, resolved.values)

    def _linked(self) -> ModelReply:
        """The next call of a recipe whose calls look into earlier answers."""
        facts = self._facts
        value = known_or(self._move.known, facts.value)
        for recipe in self._move.recipes:
            found = gather(recipe, value, self._here())
            if found.missing is None:
                if found.whole:
                    break
                continue
            missing = [name for name in found.missing.open if not facts.is_unavailable(name)]
            if missing:
                return self._replies.ask(missing)
            if found.missing.open or found.missing.act.action not in self._tools or facts.refused:
                continue
            return self._replies.tool(found.missing.act.action, found.missing.arguments)
        return self._return(self._evidence())

    def _otherwise(self) -> ModelReply:
        """The call at the cursor leads nowhere: another recipe, else judge by what there is."""
        for recipe in self._move.recipes[1:]:
            for act in recipe:
                resolved = call_arguments(act.arguments, self._move.known, self._facts)
                tried = any(_same(one, act.action, resolved) for one in self._here())
                if act.action in self._tools and not resolved.missing and not tried:
                    return self._replies.tool(act.action, resolved.values)
        return self._return(self._evidence())

    def _return(self, evidence: Sequence[Seen]) -> ModelReply:
        known = {name: whole(value, self._facts) for name, value in self._move.known.items()}
        try:
            holds = self._judge(self._move.function, known, evidence)
        except CannotJudge as error:
            return self._replies.refuse(f"{self._move.function} cannot be verified ({error})")
        cited = [f"#{one.seq}" for one in evidence]
        returned = self._replies.step_call("return", holds=holds, evidence=cited)
        return self._with_next([returned], _TRUTHS[holds])

    def _with_next(
        self, calls: list[ToolCall], edge: str, *, users_own: bool = False
    ) -> ModelReply:
        """What was decided and what it leads to, as far as the slot looks ahead."""
        judged = self._move.function
        ahead = self._move.ahead.get(edge)
        while ahead is not None:
            wrong = self._misbehaviour.ahead(ahead, edge)
            if wrong is not None:
                return ModelReply(wrong.content, (*calls, *wrong.tool_calls))
            if ahead.kind != "judge":
                break
            judged = ahead.name
            given = call_arguments(ahead.arguments, {}, self._facts, users_own=users_own)
            evidence = [one for one in self._facts.seen if one.seq in ahead.evidence]
            try:
                holds = self._judge(judged, given.values, evidence)
            except CannotJudge:
                return ModelReply("", tuple(calls))
            cited = [f"#{one.seq}" for one in evidence]
            # Given in advance, so it says what it is about.
            calls.append(
                self._replies.step_call("return", function=judged, holds=holds, evidence=cited)
            )
            edge = f"{ahead.number} {_TRUTHS[holds]}"
            ahead = self._move.ahead.get(edge)
        if ahead is not None and ahead.kind == "fail":
            refusal = self._replies.refuse(judged)
            return ModelReply(refusal.content, (*calls, *refusal.tool_calls))
        if ahead is not None and ahead.kind in ("tool", "goal") and ahead.name in self._tools:
            own = users_own or ahead.kind == "goal"
            given = call_arguments(ahead.arguments, {}, self._facts, users_own=own)
            if not given.missing:
                calls.append(self._replies.call(ahead.name, given.values))
        return ModelReply("", tuple(calls))

    def _evidence(self) -> Sequence[Seen]:
        """The results that speak for the present rule, oldest first."""
        facts, move = self._facts, self._move
        if move.gathered is not None:
            verifiers = {act.action for recipe in move.recipes for act in recipe}
            return [one for one in self._here() if one.action in verifiers] or self._here()
        asked_for = [
            (act.action, call_arguments(act.arguments, move.known, facts))
            for recipe in move.recipes
            for act in recipe
        ]
        fitting = [
            one for one in facts.here if any(_same(one, a, resolved) for a, resolved in asked_for)
        ]
        if fitting:
            return fitting
        latest: dict[str, Seen] = {}
        for one in facts.seen:
            if any(_same(one, action, resolved) for action, resolved in asked_for):
                latest[one.action] = one
        return list(latest.values())

    def _here(self) -> Sequence[Seen]:
        """What was called in the present frame: as the slot tells it, else by the messages."""
        gathered = self._move.gathered
        if gathered is None:
            return self._facts.here
        return [one for one in self._facts.seen if one.seq in gathered]

    def _resolved(self) -> Resolved:
        return resolve(self._move, self._facts)

    def _failed_here(self, resolved: Resolved) -> Seen | None:
        for one in reversed(self._here()):
            if not one.ok and _same(one, self._move.name, resolved):
                return one
        return None

    # --- choices and artifacts ------------------------------------------------------

    def _choose(self) -> ModelReply:
        """The option that the user or a tool named under the step's label."""
        option = self._facts.value(self._move.name)
        if option not in self._move.options:
            return self._replies.refuse(f"nothing says which way to go at {self._move.name}")
        return self._replies.step("select_branch", option=option)

    def _emit(self) -> ModelReply:
        """What a tool returned last under the artifact's name."""
        name = self._move.name
        made = [one.value for one in self._facts.seen if one.ok and isinstance(one.value, dict)]
        content = next((value[name] for value in reversed(made) if name in value), None)
        if content is None:
            return self._replies.refuse(f"no tool made the artifact {name}")
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return ModelReply("", (self._replies.step_call("emit_artifact", name=name, content=text),))


def _same(one: Seen, action: str, resolved: Resolved) -> bool:
    return one.action == action and all(
        name in one.arguments and agree(value, one.arguments[name])
        for name, value in resolved.values.items()
    )


def _given(values: Mapping[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in values.items() if value is not None}
