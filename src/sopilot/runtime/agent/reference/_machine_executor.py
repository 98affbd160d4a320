"""The executor under a machine: it does what the frame or the state asks for, step by step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sopilot.language.program.model import CallArguments, Local, Unknown
from sopilot.language.render import LANGUAGES
from sopilot.runtime.agent.reference._goals import wanted_goal
from sopilot.runtime.agent.reference._judging import (
    CannotJudge,
    Computes,
    PredicateJudge,
    Seen,
)
from sopilot.runtime.agent.reference._machine_misbehaviour import MachineMisbehaviour
from sopilot.runtime.agent.reference._misbehaviour import Temptation
from sopilot.runtime.agent.reference._moves import Ahead, Move
from sopilot.runtime.agent.reference._recipes import gather, is_linked, known_or
from sopilot.runtime.agent.reference._values import Resolved, call_arguments, resolve, whole
from sopilot.runtime.agent.reference.facts import GOAL, Facts
from sopilot.runtime.agent.reference.replies import Replies, not_offered
from sopilot.runtime.session.protocols import (
    JSON,
    ModelReply,
    ToolCall,
    ToolSchema,
    inputs_of,
    required_of,
)
from sopilot.runtime.vm import TOOL_NAME, agree

_TRUTHS = {True: "true", False: "false"}


class MachineExecutor:
    def __init__(
        self,
        facts: Facts,
        move: Move,
        judge: PredicateJudge,
        temptation: Temptation,
        tools: Mapping[str, ToolSchema],
        step: str = TOOL_NAME,
    ) -> None:
        self._facts = facts
        self._move = move
        self._judge = judge
        self._tools = tools
        self._replies = Replies(facts, step)
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
                blamed = _blamed(facts.slot) or facts.judged or ", ".join(move.unmet)
                return self._replies.refuse(blamed or move.function, _told(facts.slot))
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
        written = {} if self._facts.stated else given
        why = self._rejected("start", goal=goal, arguments=written)
        if why:
            return self._replies.say(f"I cannot do this: {why}.")
        started = self._replies.step_call("start", goal=goal, arguments=written)
        first = self._move.ahead.get(f"start {goal}")
        # What the program needs later is asked for there, if the user keeps it back.
        begin = self._move.needed.get(goal) or self._move.goals.get(goal, ())
        unknown = [name for name in begin if known[name] is None]
        missing: Sequence[str] = ()
        if first is not None:
            missing = call_arguments(first.arguments, {}, self._facts, users_own=True).missing
        wanted = list(dict.fromkeys([*unknown, *missing]))
        if first is not None and not wanted:
            return self._with_next([started], f"start {goal}", [], started=given)
        if wanted and not any(self._facts.asked[name] for name in wanted):
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
        return self._replies.tool(self._move.name, self._to_write(resolved))

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
        if self._facts.refused or not self._may_lack(self._move.name, resolved.missing):
            return self._otherwise()
        if self._failed_here(resolved) is not None:
            return self._otherwise()
        return self._replies.tool(self._move.name, self._to_write(resolved))

    def _may_lack(self, tool: str, names: Sequence[str]) -> bool:
        """Whether the tool takes a call without these."""
        lacking = {key for key, name in _names(self._move.arguments).items() if name in names}
        if len(lacking) < len(names) or tool not in self._tools:
            return not names
        return lacking.isdisjoint(required_of(self._tools[tool]))

    def _to_write(self, resolved: Resolved) -> Mapping[str, JSON]:
        """What the program shows for a call it fills in itself; of two calls of one tool in a
        rule nobody could tell which is meant."""
        acts = [act.action for recipe in self._move.recipes for act in recipe]
        alone = acts.count(self._move.name) <= 1
        if not self._replies.short or not alone:
            return resolved.values
        names = _names(self._move.arguments)
        return {
            key: value
            for key, value in resolved.found_out.items()
            if not (self._facts.stated and names.get(key) in self._facts.values)
        }

    def _linked(self) -> ModelReply:
        """The next call of a recipe whose calls look into earlier answers."""
        facts = self._facts
        known = {name: whole(value, facts) for name, value in self._move.known.items()}
        value = known_or(known, facts.value)
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
        judge: object = self._judge
        function = self._move.function
        try:
            if isinstance(judge, Computes) and (found := judge.computed(function, known, evidence)):
                cited = [f"#{one.seq}" for one in evidence]
                step = self._replies.step_call(
                    "return", holds=True, evidence=cited, arguments=dict(found)
                )
                return self._with_next([step], _TRUTHS[True], [])
            # What was done in this session may be anywhere in it.
            done = isinstance(judge, Computes) and judge.is_fact(function)
            seen: Sequence[Seen] = self._facts.seen if done else evidence
            holds = self._judge(function, known, seen)
        except CannotJudge as error:
            return self._replies.refuse(f"{self._move.function} cannot be verified ({error})")
        cited = [f"#{one.seq}" for one in evidence]
        verdict = ("1", self._move.function, holds, cited)
        return self._with_next([], _TRUTHS[holds], [verdict])

    def _with_next(
        self,
        before: list[ToolCall],
        edge: str,
        verdicts: list[tuple[str, str, bool, Sequence[str]]],
        *,
        started: Mapping[str, JSON] | None = None,
    ) -> ModelReply:
        """What was decided and what it leads to, as far as the slot looks ahead. ``started`` are
        the values that a start before it gives to the program."""
        judged = self._move.function
        users_own = started is not None
        ahead = self._move.ahead.get(edge)
        while ahead is not None:
            wrong = self._misbehaviour.ahead(ahead, edge)
            if wrong is not None:
                calls = [*before, *self._replies.verdicts(verdicts)]
                return ModelReply(wrong.content, (*calls, *wrong.tool_calls))
            if ahead.kind != "judge":
                break
            judged = ahead.name
            given = call_arguments(ahead.arguments, {}, self._facts, users_own=users_own)
            evidence = [one for one in self._facts.seen if one.seq in ahead.evidence]
            try:
                holds = self._judge(judged, given.values, evidence)
            except CannotJudge:
                return ModelReply("", (*before, *self._replies.verdicts(verdicts)))
            cited = [f"#{one.seq}" for one in evidence]
            verdicts.append((ahead.number, judged, holds, cited))
            edge = f"{ahead.number} {_TRUTHS[holds]}"
            ahead = self._move.ahead.get(edge)
        calls = [*before, *self._replies.verdicts(verdicts)]
        if ahead is not None and ahead.kind == "fail":
            refusal = self._replies.refuse(judged, _told(self._facts.slot))
            return ModelReply(refusal.content, self._replies.in_one((*calls, *refusal.tool_calls)))
        if ahead is not None and ahead.kind in ("tool", "goal") and ahead.name in self._tools:
            own = users_own or ahead.kind == "goal"
            given = call_arguments(ahead.arguments, {}, self._facts, users_own=own)
            if not given.missing:
                calls.append(self._replies.call(ahead.name, self._ahead_of(ahead, given, started)))
        return ModelReply("", self._replies.in_one(calls))

    def _ahead_of(
        self, ahead: Ahead, given: Resolved, started: Mapping[str, JSON] | None
    ) -> Mapping[str, JSON]:
        """What of a call that comes ahead has to be written."""
        if not self._replies.short:
            return given.values
        names = _names(ahead.arguments)
        known = {**(self._facts.values if self._facts.stated else {}), **(started or {})}
        return {key: value for key, value in given.found_out.items() if names[key] not in known}

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


def _names(arguments: CallArguments) -> dict[str, str]:
    """Parameter → the name whose value it takes."""
    return {key: term.name for key, term in arguments if isinstance(term, Local | Unknown)}


def _same(one: Seen, action: str, resolved: Resolved) -> bool:
    return one.action == action and all(
        name not in one.arguments or agree(value, one.arguments[name])
        for name, value in resolved.values.items()
    )


def _given(values: Mapping[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in values.items() if value is not None}


def _blamed(slot: str) -> str:
    """The checks that a group's result names as not met."""
    for table in LANGUAGES.values():
        before, _, behind = table["not_met"].partition("{names}")
        named = slot.rpartition(before)[2].partition(behind)[0] if before in slot else ""
        if named:
            return named
    return ""


def _told(slot: str) -> str:
    """All that the user may hear of a refusal here."""
    for line in reversed(slot.splitlines()):
        for table in LANGUAGES.values():
            for key in ("now_fail_told", "told"):
                *_, marker = table[key].removesuffix("{says}").rpartition("}")
                if marker in line:
                    return line.partition(marker)[2]
    return ""
