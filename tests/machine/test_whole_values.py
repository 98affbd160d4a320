"""What a frame cuts and an executor copies is the whole value again where it is used."""

from __future__ import annotations

import json

import pytest
from vm_programs import PROGRAMS
from vm_runs import Run, in_rule

from sopilot.machine.terms import whole_values
from sopilot.trace.events import Return, Start
from sopilot.values.json import JSON
from sopilot.values.text import digest_of, quote_value

LONG: list[JSON] = ["x" * 500, 'say "no" ' * 40, ["a" * 60, "b" * 60], {"k": "v" * 100}]


def _run(value: JSON) -> Run:
    run = Run(PROGRAMS)
    name = next(iter(PROGRAMS))
    entry = PROGRAMS[name].functions[PROGRAMS[name].entry]
    run.ok(Start(name, {entry.parameters[0]: value}))
    return run


@pytest.mark.parametrize("value", LONG, ids=lambda value: type(value).__name__)
def test_an_abbreviation_stands_for_its_value(value: JSON) -> None:
    shown = json.loads(quote_value(value))
    assert shown != value
    configuration = _run(value).configuration
    given: dict[str, JSON] = {"a": shown, "b": [shown], "c": {"d": shown}, "e": 3}
    assert whole_values(configuration, given) == {
        "a": value,
        "b": [value],
        "c": {"d": value},
        "e": 3,
    }
    assert whole_values(configuration, {"a": f"@{digest_of(value)}"}) == {"a": value}


def test_what_nobody_knows_stays_what_it_is() -> None:
    configuration = _run("x" * 500).configuration
    other: dict[str, JSON] = {"a": json.loads(quote_value("y" * 500)), "b": "@home", "c": "@"}
    assert whole_values(configuration, other) == other


def test_a_name_that_two_values_share_stands_for_neither() -> None:
    values = ["x" * 200 + ending for ending in ("22659", "74722")]
    assert len(set(map(digest_of, values))) == 1
    run = _run(values[0])
    shown: dict[str, JSON] = {"a": json.loads(quote_value(values[0]))}
    assert whole_values(run.configuration, shown) == {"a": values[0]}
    run.tool("look", values[1])
    assert whole_values(run.configuration, shown) == shown


@pytest.mark.parametrize("value", LONG, ids=lambda value: type(value).__name__)
def test_a_part_of_an_answer_or_of_a_verdict_is_known(value: JSON) -> None:
    run = in_rule()
    run.tool("look", {"a": {"b": [value]}, "c": 0})
    shown = json.loads(quote_value(value))
    assert whole_values(run.configuration, {"it": [shown]}) == {"it": [value]}
    judged = ["verdict", value]
    run.ok(Return(True, value=judged))
    assert whole_values(run.configuration, {"a": f"@{digest_of(judged)}"}) == {"a": judged}
