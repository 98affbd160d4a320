from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from random_handbooks import handbooks

from sopilot.handbook.field_tables import handbook_schema
from sopilot.handbook.model import Handbook
from sopilot.handbook.nodes import ListNode, Node, ScalarNode
from sopilot.handbook.reader import read_handbook
from sopilot.handbook.writer import write_handbook
from sopilot.handbook.yaml import parse_nodes
from sopilot.messages.diagnostic import DiagnosticCollector

HERE = Path(__file__).parent
VALIDATOR = jsonschema.Draft202012Validator(handbook_schema())


def instance(text: str) -> Any:
    """The file as an editor's YAML 1.2 reader sees it."""

    def plain(node: Node | None) -> Any:
        if node is None or isinstance(node, ScalarNode):
            return node.value if node else None
        if isinstance(node, ListNode):
            return [plain(item) for item in node.items]
        return {key.text: plain(value) for key, value in node.pairs}

    return plain(parse_nodes(text, DiagnosticCollector("")))


def accepts(text: str) -> bool:
    return bool(VALIDATOR.is_valid(instance(text)))


def test_the_schema_is_a_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(handbook_schema())


def test_it_accepts_what_the_reader_accepts() -> None:
    for path in (HERE / "valid").glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert read_handbook(text)[0] is not None
        assert accepts(text)


@settings(deadline=None, max_examples=30)
@given(handbooks())
def test_it_accepts_every_written_handbook(handbook: Handbook) -> None:
    assert accepts(write_handbook(handbook))


MEANING = (
    "unknown_predicate", "unknown_action", "wrong_arity", "unbound_name", "unbound_placeholder",
    "circular_gate", "circular_guards", "unknown_goal", "verdict_names", "unused_predicate",
    "origins", "two_meanings",
)  # fmt: skip


@pytest.mark.parametrize("name", MEANING)
def test_it_leaves_meaning_to_the_reader(name: str) -> None:
    assert accepts((HERE / "mistakes" / f"{name}.yaml").read_text(encoding="utf-8"))


SMALL = """
handbook: desk
says: words
parameters: {limit: 5}
actions:
  act:
    says: words
    input: {user: string, amount: {type: number, says: words, required: true, schema: {a: 1}}}
    requires: p(user)
    irreversible: true
    approval: {roles: [boss], needed: 1, expires: 1h}
    full_state: false
    offered: true
    changes: [stock, prices]
    recheck: true
  peek:
    input: {user: string}
    read_only: true
    reads: stock
predicates:
  p(user):
    says: words
    says_not: words
    verify:
      all:
        - {call: peek(user), name: list}
        - {call: peek(one.name), for_each: list.names as one}
        - {any: [{call: peek(code), name: other}]}
    ask: [code]
    verdict: 'true'
    remedy: words
  g(user): {says: words, established_by: act(user), closed_by: peek(user)}
  q(user): {says: words, verify: peek(user), judged_by: model}
procedures:
  act:
    says: words
    action: act(user)
    requires: [p(user), q(user), {not: g(user)}]
    worded: p(user)
"""


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = [path] if path else []
    for key, item in inner if isinstance(value, dict | list) else ():
        found.extend(
            _places(item, (*path, key)) if isinstance(item, dict | list) else [(*path, key)]
        )
    return found


@pytest.mark.parametrize("value", [None, 7, True, "a b", [], {}, [[]], {"zzz": 1}], ids=repr)
def test_reader_and_schema_agree_on_shapes(value: Any) -> None:
    """Every place of a valid file takes every kind of value: both accept or both refuse."""
    base = instance(SMALL)
    assert read_handbook(json.dumps(base))[0] is not None
    shape_codes = {
        "wrong-type", "unknown-key", "missing-key", "unknown-operator", "two-operators",
        "empty-operator", "two-recipes", "missing-recipe", "unknown-type", "bad-identifier",
        "bad-declaration", "empty-roles",
    }  # fmt: skip
    compared = 0
    for path in _places(base):
        changed = copy.deepcopy(base)
        target = changed
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value
        _, diagnostics = read_handbook(json.dumps(changed))
        refused = {one.code for one in diagnostics} & shape_codes
        assert VALIDATOR.is_valid(changed) == (not refused), (path, value, refused)
        compared += 1
    assert compared > 60
