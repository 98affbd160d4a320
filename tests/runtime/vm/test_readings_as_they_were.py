"""Values, schemas, operations and what a model writes, at random: read as they always were.

Many of these are properties elsewhere; here is the whole answer to each, by digest.
``SOPILOT_REGOLD=1`` rewrites them, after a look at what has changed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from hashlib import sha256

import pytest
from machine_walks import told
from walk_digests import as_they_were

from sopilot.runtime.vm import JSON, TraceError, decode_operation, parse_step, parse_steps
from sopilot.runtime.vm.operation_codec import misshapen, operation_fields
from sopilot.runtime.vm.schema_check import violation
from sopilot.runtime.vm.values import (
    agree,
    canonical,
    holds_stand_in,
    key_of,
    plain,
    plain_mapping,
    same,
    same_name,
    shown,
    spoken_at,
    without_references,
)

WORDS = (
    "a",
    "1",
    "1.0",
    "#3",
    "#12, #4",
    "login",
    "true",
    "No",
    "undecided",
    "é",
    "",
    "a b",
    "x(y)",
)
FIELDS = (
    *("operation", "goal", "function", "arguments", "holds", "undecided", "evidence", "value"),
    *("option", "name", "content", "summary", "reason", "true", "false", "start", "amend", "call"),
    *("complete", "fail", "call_id", "action", "ok", "unknown", "text", "decision", "by", "role"),
    *("principal", "details", "result", "licence", "amended", "$ref"),
)
OPERATIONS = (
    *("start", "amend", "call", "return", "select_branch", "emit_artifact", "complete", "fail"),
    *("domain_call", "domain_result", "user_said", "assistant_said", "decision", "note"),
    *("bind_evidence", "sing"),
)
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object", "other")
Say = Callable[[random.Random], str]


def value(dice: random.Random, depth: int = 0) -> JSON:
    kind = dice.randint(0, 11 if depth < 3 else 7)
    if kind > 9:
        names = dice.sample(("id", "a", "$ref", "bytes", "$dropped", "message"), dice.randint(0, 2))
        return {name: value(dice, depth + 1) for name in names}
    if kind > 7:
        return [value(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    numbers: tuple[JSON, ...] = (0, 1, 1.0, 2.5, -1, 10**20, True, False, None)
    return dice.choice(WORDS) if kind < 4 else dice.choice(numbers)


def values_said(dice: random.Random) -> str:
    one, other = value(dice), value(dice)
    if dice.random() < 0.3:
        other = json.loads(json.dumps(one))
    found = [plain(one), canonical(one), shown(one), shown(one, 9), without_references(one)]
    found += [holds_stand_in(one), spoken_at(one), same(one, other), agree(one, other)]
    given = {"x": one, "y": other}
    found += [
        key_of(given) == key_of({"y": other, "x": one}),
        key_of(given) == key_of({"x": other}),
    ]
    return told(
        [*found, key_of(given), same_name(dice.choice(WORDS)), plain_mapping({"b": 1, **given})]
    )


def schema(dice: random.Random, depth: int = 0) -> dict[str, object]:
    made: dict[str, object] = {}
    for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if dice.random() < 0.2:
            made[key] = dice.choice((0, 1, 2.5, True, "1"))
    for key in ("minLength", "maxLength", "minItems", "maxItems"):
        if dice.random() < 0.2:
            made[key] = dice.choice((0, 1, 2, 1.5, 2.0))
    if dice.random() < 0.5:
        made["type"] = dice.choice((*TYPES, dice.sample(TYPES, 2), tuple(dice.sample(TYPES, 3)), 7))
    if dice.random() < 0.15:
        made["enum"] = [value(dice, 2) for _ in range(3)]
    if dice.random() < 0.1:
        made["const"] = value(dice, 2)
    if dice.random() < 0.15:
        made["pattern"] = dice.choice(("^a", "[0-9]+", "(", "b$", 3))
    if depth < 2:
        if dice.random() < 0.4:
            made["items"] = schema(dice, depth + 1)
        if dice.random() < 0.5:
            made["properties"] = {"a": schema(dice, depth + 1), "id": schema(dice, depth + 1)}
        if dice.random() < 0.3:
            made["required"] = dice.sample(("a", "id", "b"), dice.randint(1, 2))
        if dice.random() < 0.3:
            made["additionalProperties"] = dice.choice((False, True))
    return made


def schemas_said(dice: random.Random) -> str:
    wanted = schema(dice)
    return told([violation(value(dice), wanted, dice.choice(("", "`x`"))) for _ in range(4)])


def written(dice: random.Random) -> JSON:
    if dice.random() < 0.05:
        return value(dice)
    names = dice.sample(FIELDS, dice.randint(0, 6))
    made: dict[str, JSON] = {name: value(dice, 2) for name in names}
    if dice.random() < 0.3:
        made["arguments"] = dice.choice(({"a": 1}, '{"a": 1}', "", "[1]", "{"))
    if dice.random() < 0.3:
        made["holds"] = dice.choice((True, False, "true", "否", "Undecided"))
    if dice.random() < 0.2:
        made["evidence"] = dice.choice((["#1", "#2"], "#1 and #22", [3, "login"], "see `login`"))
    return made


def operations_said(dice: random.Random) -> str:
    """What a model writes, spelled out or short, and what a trace has."""
    short = written(dice)
    said = [told(parse_steps(short)), told(parse_steps(json.dumps(short)))]
    named = {**short, "operation": dice.choice(OPERATIONS)} if isinstance(short, dict) else short
    said += [told(parse_step(named)), told(parse_steps(named))]
    for kind in dice.sample(OPERATIONS, 4):
        fields = dict(named) if isinstance(named, dict) else {}
        for name in ("call_id", "action", "goal", "by", "role", "decision", "text", "name"):
            if dice.random() < 0.8:
                fields[name] = "w"
        for name in ("arguments", "details"):
            if dice.random() < 0.8:
                fields[name] = {"a": value(dice, 2)}
        fields["ok"] = dice.choice((True, False, 1))
        try:
            operation = decode_operation(fields, kind if dice.random() < 0.8 else None)
        except TraceError as refused:
            said.append(str(refused))
        else:
            said.append(told((operation, operation_fields(operation), misshapen(operation))))
    return "\n".join(said)


@pytest.mark.parametrize("of", [values_said, schemas_said, operations_said])
def test_readings_are_as_they_were(of: Say) -> None:
    found = {}
    for batch in range(10):
        dice = random.Random(f"{of.__name__}{batch}")
        said = [of(dice) for _ in range(60)]
        found[str(batch)] = sha256("\n".join(said).encode()).hexdigest()[:12]
    as_they_were(of.__name__, found)
