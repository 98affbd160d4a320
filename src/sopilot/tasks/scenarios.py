"""Scenarios: a request, tools that answer as the file says, and what must come of it.

The reader is strict and reports every mistake in one go.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sopilot.agent.approvers import offered_tools
from sopilot.agent.result import Ending
from sopilot.compiler.action_facts import input_schema
from sopilot.handbook import fields
from sopilot.handbook.fields import Field, Fields
from sopilot.handbook.model import Action, Handbook
from sopilot.handbook.nodes import ListNode, MapNode, Node, ScalarNode, Spot
from sopilot.handbook.requirements import Name
from sopilot.handbook.yaml import json_value, parse_nodes
from sopilot.messages.diagnostic import Diagnostic, DiagnosticCollector, did_you_mean
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.values.json import JSON, agree
from sopilot.values.schema import violation


def fits(wanted: Mapping[str, JSON], arguments: Mapping[str, JSON]) -> bool:
    return all(name in arguments and agree(arguments[name], wanted[name]) for name in wanted)


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """A tool's answer to arguments that fit ``when``."""

    result: ToolResult
    when: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScriptedRuling:
    """How a reader judges a predicate that has no verdict, for arguments that fit ``when``."""

    holds: bool
    when: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    action: str
    arguments: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MadeCall:
    action: str
    arguments: Mapping[str, JSON]
    ok: bool


@dataclass(frozen=True, slots=True)
class Expectation:
    """``cause`` is the predicate that a refusal must rest on, where one is named."""

    ending: Ending
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """``calls`` must be made in this order, with others in between; those in ``no_calls``
    never. ``approvals`` are the roles that approve when the procedure asks for it. ``answers``
    is what the user says when the machine asks, ``now`` what the clock shows."""

    name: str
    goal: str
    expect: Expectation
    request: str = ""
    inputs: Mapping[str, JSON] = field(default_factory=dict)
    tools: Mapping[str, tuple[ScriptedAnswer, ...]] = field(default_factory=dict)
    verdicts: Mapping[str, tuple[ScriptedRuling, ...]] = field(default_factory=dict)
    approvals: tuple[str, ...] = ()
    calls: tuple[ExpectedCall, ...] = ()
    no_calls: tuple[str, ...] = ()
    line: int = 0
    answers: Mapping[str, str] = field(default_factory=dict)
    now: str = ""

    @property
    def opening(self) -> str:
        """The user's first message, under every command that plays it."""
        return self.request or request_for(self.goal)


@dataclass(frozen=True, slots=True)
class Suite:
    handbook: str
    scenarios: tuple[Scenario, ...]


def request_for(goal: str) -> str:
    """A user's first message about the goal alone."""
    return f"I have a request: {goal.replace('_', ' ')}."


ANSWER_KEYS = ("when", "result", "failed")
RULING_KEYS = ("when", "holds")
SUITE_KEYS = ("handbook", "tools", "scenarios")

SCENARIO_KEYS = (
    "goal",
    "request",
    "inputs",
    "tools",
    "verdicts",
    "approvals",
    "expect",
    "calls",
    "no_calls",
    "answers",
    "now",
    "cases",
)

_MERGED = ("inputs", "tools", "verdicts", "answers")
"""A case adds to these mappings of its scenario; it replaces other values."""

EXPECTED = ("executed", "refused", "waiting")
Answers = dict[str, tuple[ScriptedAnswer, ...]]


def read_scenarios(
    text: str, handbook: Handbook, source: str = "<input>"
) -> tuple[Suite | None, list[Diagnostic]]:
    """The suite, or ``None`` when a diagnostic is an error."""
    report = DiagnosticCollector(source)
    root = parse_nodes(text, report)
    suite = SuiteReader(report, handbook).suite(root) if root is not None else None
    return (None if report.failed else suite), report.diagnostics()


def load_scenarios(text: str, handbook: Handbook, source: str = "<input>") -> Suite:
    """The suite, or ``UserMistake`` with every diagnostic."""
    suite, diagnostics = read_scenarios(text, handbook, source)
    if suite is None:
        raise UserMistake(diagnostics)
    return suite


class SuiteReader:
    def __init__(self, report: DiagnosticCollector, handbook: Handbook) -> None:
        self.report = report
        self.handbook = handbook
        self._tellable = _tellable(handbook)

    def suite(self, root: Node) -> Suite | None:
        result = fields.fields(self.report, root, SUITE_KEYS, "a scenario file")
        if not isinstance(root, MapNode):
            return None
        for key in ("handbook", "scenarios"):
            if key not in result:
                spot = Spot(root.line, root.column)
                fields.missing(self.report, spot, key, "a scenario file")
        name = self.handbook.name
        if "handbook" in result:
            node = result["handbook"].value
            text = fields.text(self.report, node, "`handbook`")
            if text and text != name:
                message = f"these scenarios are about `{text}`, but the handbook is `{name}`"
                self.report.error("other-handbook", message, node)
        shared = self._tools(result)
        scenarios: list[Scenario] = []
        if "scenarios" in result:
            entries = self._entries(result, "scenarios")
            scenarios = [
                self._scenario(named, value, shared)
                for key, node in entries
                for named, value in self._cases(key, node)
            ]
            if not entries and isinstance(result["scenarios"].value, MapNode):
                self.report.error("no-scenarios", "there is no scenario", result["scenarios"].key)
        return Suite(name, tuple(scenarios))

    def _cases(self, key: ScalarNode, node: Node) -> list[tuple[ScalarNode, Node]]:
        """A scenario, or one for each row of its table of ``cases``."""
        if not isinstance(node, MapNode):
            return [(key, node)]
        own = {name.text: (name, value) for name, value in node.pairs}
        if "cases" not in own:
            return [(key, node)]
        _, table = own.pop("cases")
        result: list[tuple[ScalarNode, Node]] = []
        for name, row in fields.entries(self.report, table, "`cases`"):
            pairs = dict(own)
            for column, value in row.pairs if isinstance(row, MapNode) else ():
                base = pairs.get(column.text)
                if column.text in _MERGED and base is not None:
                    pairs[column.text] = (column, _merged(base[1], value))
                else:
                    pairs[column.text] = (column, value)
            if not isinstance(row, MapNode):
                fields.wrong(self.report, row, f"the case `{name.text}`", "a mapping")
            named = replace(name, text=f"{key.text}/{name.text}")
            result.append((named, MapNode(tuple(pairs.values()), name.line, name.column)))
        return result

    def _entries(self, result: Fields, key: str) -> list[Field]:
        if key not in result:
            return []
        return fields.entries(self.report, result[key].value, f"`{key}`")

    def _user_answers(self, result: Fields) -> Mapping[str, str]:
        """The user's answers to the runtime's questions, by action or by predicate."""
        asking = [each.name for each in self.handbook.predicates.values() if each.question]
        known = {*asking, *self.handbook.actions}
        answers: dict[str, str] = {}
        for key, value in self._entries(result, "answers"):
            if key.text not in known:
                fields.unknown(self.report, key, "question", key.text, known)
            answers[key.text] = fields.text(self.report, value, f"the answer to `{key.text}`")
        return answers

    def _scenario(self, key: ScalarNode, node: Node, shared: Answers) -> Scenario:
        what = f"the scenario `{key.text}`"
        result = fields.fields(self.report, node, SCENARIO_KEYS, what)
        if isinstance(node, MapNode):
            for needed in ("goal", "expect"):
                if needed not in result:
                    fields.missing(self.report, key, needed, what)
        goal = self._goal(result)
        forbidden = [self._action(item) for item in self._list(result, "no_calls")]
        return Scenario(
            name=key.text,
            goal=goal,
            expect=self._expectation(result),
            request=fields.optional_text(self.report, result, "request"),
            inputs=self._inputs(result, goal),
            tools={**shared, **self._tools(result)},
            verdicts=self._verdicts(result),
            approvals=self._approvals(result),
            answers=self._user_answers(result),
            now=fields.optional_text(self.report, result, "now"),
            calls=self._calls(result),
            no_calls=tuple(action for action in forbidden if action is not None),
            line=key.line,
        )

    def _answers(
        self, node: Node, what: str, inputs: Collection[str]
    ) -> tuple[ScriptedAnswer, ...]:
        """One answer, or a list of them."""
        if isinstance(node, ListNode) and not node.items:
            self.report.error("no-answers", f"{what} needs at least one answer", node)
        return tuple(self._answer(item, what, inputs) for item in fields.one_or_more(node))

    def _answer(self, node: Node, what: str, inputs: Collection[str]) -> ScriptedAnswer:
        """``ok``, ``failed``, a mapping with ``result`` or ``failed``, or the result itself."""
        if isinstance(node, ScalarNode) and not node.style and node.text in ("ok", "failed"):
            return ScriptedAnswer(WORKED if node.text == "ok" else ToolResult(False, None))
        keys = [key.text for key, _ in node.pairs] if isinstance(node, MapNode) else []
        if not any(key in ANSWER_KEYS for key in keys):
            value = json_value(self.report, node, f"the result of {what}")
            return ScriptedAnswer(ToolResult(True, value))
        result = fields.fields(self.report, node, ANSWER_KEYS, f"an answer of {what}")
        when = self._when(result, what, inputs)
        if "result" in result and "failed" in result:
            message = "an answer either has a `result` or `failed`, not both"
            self.report.error("contradicting-answer", message, result["failed"].key)
        for key, ok in (("result", True), ("failed", False)):
            if key in result:
                value = json_value(self.report, result[key].value, f"the {key} of {what}")
                return ScriptedAnswer(ToolResult(ok, value), when)
        return ScriptedAnswer(WORKED, when)

    def _when(self, result: Fields, what: str, known: Collection[str]) -> dict[str, JSON]:
        wanted: dict[str, JSON] = {}
        for key, value in self._entries(result, "when"):
            if key.text not in known:
                fields.unknown(self.report, key, "argument", key.text, known)
            wanted[key.text] = json_value(self.report, value, f"`{key.text}` of {what}")
        return wanted

    def _verdicts(self, result: Fields) -> dict[str, tuple[ScriptedRuling, ...]]:
        """``predicate: true``, or a list of ``{when: …, holds: …}``."""
        rulings: dict[str, tuple[ScriptedRuling, ...]] = {}
        for key, value in self._entries(result, "verdicts"):
            predicate = self.handbook.predicates.get(key.text)
            if predicate is None:
                fields.unknown(self.report, key, "predicate", key.text, self.handbook.predicates)
            elif predicate.is_gate or predicate.verdict is not None:
                who = "its action's success" if predicate.is_gate else "its own verdict"
                message = f"`{key.text}` is judged by {who}, not by the scenario"
                cure = "simulate the tool's result instead"
                self.report.error("needless-verdict", message, key, cure)
            else:
                rulings[key.text] = tuple(
                    self._ruling(item, key.text, predicate.parameters)
                    for item in fields.one_or_more(value)
                )
        return rulings

    def _ruling(self, node: Node, name: str, parameters: Collection[str]) -> ScriptedRuling:
        if not isinstance(node, MapNode):
            return ScriptedRuling(fields.flag(self.report, node, f"the verdict on `{name}`"))
        result = fields.fields(self.report, node, RULING_KEYS, f"a verdict on `{name}`")
        when = self._when(result, f"`{name}`", parameters)
        if "holds" not in result:
            fields.missing(self.report, node, "holds", f"a verdict on `{name}`")
            return ScriptedRuling(False, when)
        return ScriptedRuling(fields.flag(self.report, result["holds"].value, "`holds`"), when)

    def _goal(self, result: Fields) -> str:
        goal = fields.optional_text(self.report, result, "goal")
        known = self.handbook.procedures
        if goal and goal not in known:
            fields.unknown(self.report, result["goal"].value, "procedure", goal, known)
        return goal

    def _inputs(self, result: Fields, goal: str) -> Mapping[str, JSON]:
        kinds = _kinds(self.handbook, goal)
        inputs: dict[str, JSON] = {}
        for key, value in self._entries(result, "inputs"):
            inputs[key.text] = json_value(self.report, value, f"`{key.text}`")
            if key.text not in self._tellable:
                message = f"nothing in the handbook asks for `{key.text}`"
                help = did_you_mean(key.text, self._tellable)
                self.report.warning("unused-value", message, key, help)
            reply = inputs[key.text]
            problem = None
            if key.text in kinds and reply is not None:
                problem = violation(reply, kinds[key.text], f"`{key.text}`")
            if problem is not None:
                text = isinstance(reply, str)
                shown = fields.describe(value)
                message = f"{problem} for `{goal}`, found {'the text ' if text else ''}{shown}"
                help = "write a number without quotes, and text like `007` in quotes"
                self.report.error("wrong-type", message, value, help)
        return inputs

    def _tools(self, result: Fields) -> Answers:
        answers: Answers = {}
        for key, value in self._entries(result, "tools"):
            if key.text not in self.handbook.actions:
                fields.unknown(self.report, key, "action", key.text, self.handbook.actions)
                continue
            inputs = self.handbook.actions[key.text].input_names()
            answers[key.text] = self._answers(value, f"`{key.text}`", inputs)
        return answers

    def _expectation(self, result: Fields) -> Expectation:
        if "expect" not in result:
            return Expectation(Ending.EXECUTED)
        node = result["expect"].value
        if isinstance(node, MapNode):
            pairs = fields.fields(self.report, node, ("refused",), "`expect`")
            if "refused" in pairs:
                cause = fields.optional_text(self.report, pairs, "refused")
                known = self.handbook.predicates
                if cause and cause not in known:
                    fields.unknown(self.report, pairs["refused"].value, "predicate", cause, known)
                return Expectation(Ending.REFUSED, cause)
        elif isinstance(node, ScalarNode) and node.text in EXPECTED:
            return Expectation(Ending(node.text))
        else:
            fields.wrong(
                self.report,
                node,
                "`expect`",
                "`executed`, `refused`, `waiting` or `refused: <predicate>`",
                did_you_mean(node.text, EXPECTED) if isinstance(node, ScalarNode) else "",
            )
        return Expectation(Ending.EXECUTED)

    def _approvals(self, result: Fields) -> tuple[str, ...]:
        roles = {
            role
            for action in self.handbook.actions.values()
            if action.approval is not None
            for role in action.approval.roles
        }
        values = []
        for node in self._list(result, "approvals"):
            role = fields.text(self.report, node, "a role")
            if role and role not in roles:
                fields.unknown(self.report, node, "role", role, roles)
            values.append(role)
        return tuple(values)

    def _calls(self, result: Fields) -> tuple[ExpectedCall, ...]:
        calls: list[ExpectedCall] = []
        for node in self._list(result, "calls"):
            if isinstance(node, MapNode) and len(node.pairs) == 1:
                key, value = node.pairs[0]
                arguments = json_value(self.report, value, f"`{key.text}`")
                action = self._action(key)
                if not isinstance(arguments, dict):
                    fields.wrong(self.report, value, "the arguments of a call", "a mapping")
                elif action is not None:
                    calls.append(ExpectedCall(action, arguments))
            else:
                action = self._action(node)
                if action is not None:
                    calls.append(ExpectedCall(action))
        return tuple(calls)

    def _action(self, node: Node) -> str | None:
        name = fields.text(self.report, node, "an action")
        if name and name not in self.handbook.actions:
            fields.unknown(self.report, node, "action", name, self.handbook.actions)
            return None
        return name or None

    def _list(self, result: Fields, key: str) -> tuple[Node, ...]:
        if key not in result:
            return ()
        node = result[key].value
        if isinstance(node, ListNode):
            return node.items
        fields.wrong(self.report, node, f"`{key}`", "a list")
        return ()


def _merged(base: Node, own: Node) -> Node:
    """Two mappings, the second one's entries over the first one's."""
    if not isinstance(base, MapNode) or not isinstance(own, MapNode):
        return own
    texts = {key.text for key, _ in own.pairs}
    pairs = tuple(pair for pair in base.pairs if pair[0].text not in texts)
    return MapNode((*pairs, *own.pairs), own.line, own.column)


def _kinds(handbook: Handbook, goal: str) -> dict[str, Mapping[str, object]]:
    """Schemas of the goal's inputs and of other values that the user is asked for, such as a
    password."""
    procedure = handbook.procedures.get(goal)
    action = handbook.actions.get(procedure.action) if procedure is not None else None
    if procedure is None or action is None:
        return {}
    renamed = dict(procedure.arguments)
    return _questions_of(handbook) | {
        term.name: input_schema(item)
        for item in (*action.inputs, *procedure.inputs)
        if isinstance(term := renamed.get(item.name, Name(item.name)), Name)
    }


def _questions_of(handbook: Handbook) -> dict[str, Mapping[str, object]]:
    """Schemas by name; a name with different schemas in different calls has none."""
    result: dict[str, list[Mapping[str, object]]] = {}
    for predicate in handbook.predicates.values():
        gate = [predicate.established_by] if predicate.established_by is not None else []
        for call in (*gate, *(call for recipe in predicate.recipes for call in recipe)):
            action = handbook.actions.get(call.action)  # the runtime's own questions aren't actions
            inputs = {item.name: item for item in action.inputs} if action is not None else {}
            for value, term in call.arguments:
                if not isinstance(term, Name) or term.name in predicate.parameters:
                    continue
                if value in inputs:
                    result.setdefault(term.name, []).append(input_schema(inputs[value]))
    return {name: kinds[0] for name, kinds in result.items() if all(k == kinds[0] for k in kinds)}


def _tellable(handbook: Handbook) -> frozenset[str]:
    """Every name under which a user can be asked for a value."""
    names = {name for action in handbook.actions.values() for name in action.input_names()}
    for predicate in handbook.predicates.values():
        names.update(predicate.parameters)
        calls = [call for recipe in predicate.recipes for call in recipe]
        if predicate.established_by is not None:
            calls.append(predicate.established_by)
        for call in calls:
            names.update(name for _, term in call.arguments if (name := getattr(term, "name", "")))
    for procedure in handbook.procedures.values():
        names.update(name for _, term in procedure.arguments if (name := getattr(term, "name", "")))
        names.update(item.name for item in procedure.inputs)
    return frozenset(names)


FAILED = "failed"


def scripted_results(
    actions: Iterable[str], results: Mapping[str, JSON]
) -> dict[str, tuple[ScriptedAnswer, ...]]:
    """The answers of tools that return ``results``: a value, or a list of values for one call
    after the other. ``{failed: value}`` is a call that doesn't succeed. An action without a result
    fails and says so."""
    answers = {}
    for name in actions:
        missing = {FAILED: {"error": f"no result was written down for `{name}`"}}
        value = results.get(name, missing)
        listed = (value or [None]) if isinstance(value, list) else [value]
        answers[name] = tuple(map(_scripted, listed))
    return answers


def _scripted(value: JSON) -> ScriptedAnswer:
    if isinstance(value, Mapping) and set(value) == {FAILED}:
        return ScriptedAnswer(ToolResult(False, value[FAILED]))
    return ScriptedAnswer(ToolResult(True, value))


WORKED = ToolResult(True, True)
"""The answer ``ok``, and that of a tool that the scenario doesn't mention."""


class SimulatedTools:
    """Implements ``Tools`` for one run; ``made`` lists the calls.

    Answers for these arguments go before answers for any. Of those that fit, the first
    unused one is given; once all were used, the last of them again.
    """

    def __init__(
        self,
        actions: Mapping[str, Action],
        answers: Mapping[str, Sequence[ScriptedAnswer]],
        now: str = "",
    ) -> None:
        if now:
            self.time = lambda: now
        self._schemas = offered_tools(actions)
        self._answers = answers
        self._used: set[tuple[str, int]] = set()
        self.made: list[MadeCall] = []

    def schemas(self) -> Sequence[ToolSchema]:
        return self._schemas

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        result = copy.deepcopy(self._answer(name, arguments))
        self.made.append(MadeCall(name, dict(arguments), result.ok))
        return result

    def _answer(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        listed = self._answers.get(name, ())
        if not listed:
            return WORKED
        fitting = [index for index, answer in enumerate(listed) if fits(answer.when, arguments)]
        fitting = [index for index in fitting if listed[index].when] or fitting
        if not fitting:
            return ToolResult(False, {"error": "the scenario has no answer for these arguments"})
        unused = [index for index in fitting if (name, index) not in self._used]
        chosen = unused[0] if unused else fitting[-1]
        self._used.add((name, chosen))
        return listed[chosen].result
