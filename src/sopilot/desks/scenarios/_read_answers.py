"""What tools answer and how readers judge, as a scenario writes it."""

from __future__ import annotations

from collections.abc import Collection

from sopilot.desks.scenarios._scenario import ScriptedAnswer, ScriptedRuling
from sopilot.language.handbook import Handbook, fields
from sopilot.language.handbook.collector import DiagnosticCollector
from sopilot.language.handbook.fields import Fields
from sopilot.language.handbook.nodes import ListNode, MapNode, Node, ScalarNode
from sopilot.language.handbook.values import json_value
from sopilot.runtime.session.protocols import JSON, ToolResult

ANSWER_KEYS = ("when", "result", "failed")
RULING_KEYS = ("when", "holds")


def read_answers(
    report: DiagnosticCollector, node: Node, what: str, inputs: Collection[str]
) -> tuple[ScriptedAnswer, ...]:
    """One answer, or a list of them."""
    if isinstance(node, ListNode):
        if not node.items:
            report.error("no-answers", f"{what} needs at least one answer", node)
        return tuple(_answer(report, item, what, inputs) for item in node.items)
    return (_answer(report, node, what, inputs),)


def _answer(
    report: DiagnosticCollector, node: Node, what: str, inputs: Collection[str]
) -> ScriptedAnswer:
    """``ok``, ``failed``, a mapping with ``result`` or ``failed``, or the result itself."""
    if isinstance(node, ScalarNode) and not node.style and node.text in ("ok", "failed"):
        return ScriptedAnswer(ToolResult(node.text == "ok", None))
    if not isinstance(node, MapNode) or not any(key.text in ANSWER_KEYS for key, _ in node.pairs):
        return ScriptedAnswer(ToolResult(True, json_value(report, node, f"the result of {what}")))
    found = fields.fields(report, node, ANSWER_KEYS, f"an answer of {what}")
    when = _when(report, found, what, inputs)
    if "result" in found and "failed" in found:
        message = "an answer either has a `result` or `failed`, not both"
        report.error("contradicting-answer", message, found["failed"].key)
    for key, ok in (("result", True), ("failed", False)):
        if key in found:
            value = json_value(report, found[key].value, f"the {key} of {what}")
            return ScriptedAnswer(ToolResult(ok, value), when)
    return ScriptedAnswer(ToolResult(True, None), when)


def _when(
    report: DiagnosticCollector, found: Fields, what: str, known: Collection[str]
) -> dict[str, JSON]:
    if "when" not in found:
        return {}
    wanted: dict[str, JSON] = {}
    for key, value in fields.entries(report, found["when"].value, "`when`"):
        if key.text not in known:
            fields.unknown(report, key, "argument", key.text, known)
        wanted[key.text] = json_value(report, value, f"`{key.text}` of {what}")
    return wanted


def read_rulings(
    report: DiagnosticCollector, node: Node, handbook: Handbook
) -> dict[str, tuple[ScriptedRuling, ...]]:
    """``predicate: true``, or a list of ``{when: …, holds: …}``."""
    rulings: dict[str, tuple[ScriptedRuling, ...]] = {}
    for key, value in fields.entries(report, node, "`verdicts`"):
        predicate = handbook.predicates.get(key.text)
        if predicate is None:
            fields.unknown(report, key, "predicate", key.text, handbook.predicates)
            continue
        if predicate.is_gate or predicate.verdict is not None:
            who = "its action's success" if predicate.is_gate else "its own verdict"
            report.error(
                "needless-verdict",
                f"`{key.text}` is judged by {who}, not by the scenario",
                key,
                "simulate the tool's result instead",
            )
            continue
        items = value.items if isinstance(value, ListNode) else (value,)
        rulings[key.text] = tuple(
            _ruling(report, item, key.text, predicate.parameters) for item in items
        )
    return rulings


def _ruling(
    report: DiagnosticCollector, node: Node, name: str, parameters: Collection[str]
) -> ScriptedRuling:
    if isinstance(node, MapNode):
        found = fields.fields(report, node, RULING_KEYS, f"a verdict on `{name}`")
        when = _when(report, found, f"`{name}`", parameters)
        if "holds" not in found:
            fields.missing(report, node, "holds", f"a verdict on `{name}`")
            return ScriptedRuling(False, when)
        return ScriptedRuling(fields.flag(report, found["holds"].value, "`holds`"), when)
    return ScriptedRuling(fields.flag(report, node, f"the verdict on `{name}`"))
