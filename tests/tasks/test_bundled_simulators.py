"""The simulators behind the tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema
import pytest
from clerk import EXAMPLES, every_desk
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.handbook.requirements import leaves
from sopilot.protocols import ToolResult
from sopilot.tasks.examples.example import Example, load_example
from sopilot.tasks.examples.simulator import Simulator


def simulator(name: str) -> Simulator:
    example = load_example(name)
    return Simulator(example.handbook.actions, example.handlers, example.base_state)


def do(simulator: Simulator, action: str, **arguments: Any) -> Any:
    """Calls a tool that is expected to answer, and gives its value."""
    key = f"key-{len(simulator.calls)}"
    result = simulator.perform(action, arguments, key=key)
    assert result.ok, result.value
    return result.value


def error(simulator: Simulator, action: str, **arguments: Any) -> str:
    """Calls a tool that is expected to refuse; the state must stay as it was."""
    before = simulator.state
    result = simulator.perform(action, arguments, key=f"key-{len(simulator.calls)}")
    assert not result.ok
    assert simulator.state == before
    return str(result.value["error"])


@every_desk
def test_guarded_tools_refuse_until_the_gate_is_open(example: Example) -> None:
    guarded = [a for a in example.handbook.actions.values() if list(leaves(a.requires))]
    assert len(guarded) >= 3
    task = next(t for t in example.tasks if t.cause is None and "approval" in t.tags)
    for action in guarded:
        arguments = {item.name: task.inputs.get(item.name, "x") for item in action.inputs}
        shut = example.make_tools(task)
        assert "not" in error(shut, action.name, **arguments)
        opened = example.make_tools(task)
        for leaf in leaves(action.requires):
            gate = example.handbook.predicates[leaf.predicate].established_by
            assert gate is not None
            inputs = example.handbook.actions[gate.action].input_names()
            do(opened, gate.action, **{name: task.inputs[name] for name in inputs})
        do(opened, action.name, **arguments)


@every_desk
def test_bad_arguments_are_answered(example: Example) -> None:
    simulator = example.make_tools(example.tasks[0])
    name, action = next((n, a) for n, a in example.handbook.actions.items() if a.inputs)
    first = action.inputs[0].name
    assert "no tool" in error(simulator, name + "s")
    assert f"did you mean `{name}`" in error(simulator, name + "s")
    assert "also needs" in error(simulator, name)
    assert "has no argument `extra`" in error(simulator, name, extra=1)
    for value in (None, 3, True, ["a"], {"a": 1}):
        assert "must be of type string" in error(simulator, name, **{first: value})


def test_a_tool_that_refuses_halfway_leaves_no_trace() -> None:
    def transfer(state: dict[str, Any], username: str, to: str, amount: int) -> ToolResult:
        state["accounts"][username]["balance"] -= amount
        return ToolResult(False, {"error": f"the line to {to} broke"})

    example = load_example("bank")
    handlers = {**example.handlers, "transfer": transfer}
    bank = Simulator(example.handbook.actions, handlers, example.base_state)
    assert "broke" in error(bank, "transfer", username="anna", to="ben", amount=5)


def test_a_repeated_key_is_not_carried_out_twice() -> None:
    bank = simulator("bank")
    arguments = {"username": "anna", "to": "ben", "amount": 100}

    async def thrice() -> list[Any]:
        return [await bank.call("transfer", arguments, key="k1") for _ in range(3)]

    first, second, third = asyncio.run(thrice())
    assert first == second == third
    assert bank.state["accounts"]["anna"]["balance"] == 1400
    assert len(bank.calls) == 1
    other = bank.perform("transfer", {**arguments, "amount": 5}, key="k1")
    assert not other.ok
    assert "another call" in other.value["error"]
    assert bank.perform("transfer", arguments, key="k2").ok
    assert bank.state["accounts"]["anna"]["balance"] == 1300


def test_a_restored_simulator_still_knows_the_keys() -> None:
    bank = simulator("bank")
    arguments = {"username": "anna", "to": "ben", "amount": 100}
    bank.perform("transfer", arguments, key="k1")
    stored = json.loads(json.dumps(bank.snapshot()))
    bank.perform("transfer", arguments, key="k2")
    revived = simulator("bank")
    revived.restore(stored)
    revived.perform("transfer", arguments, key="k1")
    assert revived.state["accounts"]["anna"]["balance"] == 1400
    assert revived.calls == bank.calls[:1]


def test_answers_and_states_are_copies() -> None:
    bank = simulator("bank")
    bank.state["accounts"].clear()
    do(bank, "read_ledger")["accounts"].clear()
    bank.snapshot()["state"]["accounts"].clear()
    assert len(bank.state["accounts"]) == 7


@pytest.mark.parametrize(
    ("name", "table", "gate", "tool", "fields"),
    [
        ("clinic", "prescriptions", "identified", "find_prescription", ("patient_id", "medicine")),
        ("clinic", "referrals", "identified", "find_referral", ("patient_id", "specialty")),
        ("it", "requests", "signed_in", "find_request", ("employee", "group")),
    ],
)
def test_a_row_is_looked_up_by_all_its_fields(
    name: str, table: str, gate: str, tool: str, fields: tuple[str, str]
) -> None:
    example = load_example(name)
    rows = {tuple(row[field] for field in fields) for row in example.base_state[table].values()}
    people = sorted({person for person, _ in rows})
    state = {**example.base_state, "sessions": {"confirmed": [], gate: people}}
    system = Simulator(example.handbook.actions, example.handlers, state)
    for person in people:
        for other in sorted({each for _, each in rows}):
            arguments = dict(zip(fields, (person, other), strict=True))
            assert do(system, tool, **arguments)["found"] is ((person, other) in rows)


@every_desk
def test_the_full_state_reader_tells_no_secret(example: Example) -> None:
    (reader,) = (a.name for a in example.handbook.actions.values() if a.full_state)
    simulator = example.make_tools(example.tasks[0])
    shown = json.dumps(do(simulator, reader))
    state = simulator.state
    for person in (state.get("credentials") or state["secrets"]).values():
        for secret in person.values():
            assert json.dumps(secret) not in shown


@every_desk
def test_schemas_are_json_schemas_that_the_tasks_satisfy(example: Example) -> None:
    schemas = {s.name: s.parameters for s in example.make_tools(example.tasks[0]).schemas()}
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for task in example.tasks:
        jsonschema.validate(dict(task.arguments), schemas[task.goal])


def scalars(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [x for name, item in value.items() for x in (name, *scalars(item))]
    if isinstance(value, list):
        return [x for item in value for x in scalars(item)]
    return [value]


POOLS = {
    example.name: sorted({str(x) for x in scalars(example.base_state)}) for example in EXAMPLES
}


@st.composite
def call_sequences(draw: st.DrawFn) -> tuple[Example, list[tuple[str, dict[str, Any]]]]:
    example = draw(st.sampled_from(EXAMPLES))
    texts = st.sampled_from(POOLS[example.name]) | st.text(max_size=5)
    tellable = [task.inputs for task in example.tasks]
    calls = []
    for _ in range(draw(st.integers(1, 12))):
        action = draw(st.sampled_from(list(example.handbook.actions.values())))
        told = draw(st.sampled_from(tellable))
        arguments: dict[str, Any] = {}
        for item in action.inputs:
            values = st.integers(-5, 3000) if item.type == "integer" else texts
            known = st.just(told[item.name]) if item.name in told else values
            arguments[item.name] = draw(st.one_of(known, known, values, st.just(None)))
        calls.append((action.name, arguments))
    return example, calls


@settings(deadline=None, max_examples=120)
@given(call_sequences())
def test_any_calls_are_answered_and_only_goals_and_gates_change_the_state(
    sequence: tuple[Example, list[tuple[str, dict[str, Any]]]],
) -> None:
    example, calls = sequence
    acting = set(example.handbook.procedures) | {
        p.established_by.action for p in example.handbook.predicates.values() if p.established_by
    }
    simulator = Simulator(example.handbook.actions, example.handlers, example.base_state)
    twin = simulator.copy()
    for position, (name, arguments) in enumerate(calls):
        before = simulator.state
        result = simulator.perform(name, arguments, key=str(position))
        assert json.loads(json.dumps(result.value)) == result.value
        if not result.ok or name not in acting:
            assert simulator.state == before
        assert twin.perform(name, arguments, key=str(position)) == result
    assert json.loads(json.dumps(simulator.state)) == simulator.state == twin.state
