"""The simulators behind the tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.handbook.requirements import leaves
from sopilot.protocols import ToolResult
from sopilot.tasks.examples.example import Example, bundled_names, load_example
from sopilot.tasks.examples.simulator import Simulator
from sopilot.tasks.examples.task import merged

EXAMPLES = [load_example(name) for name in bundled_names()]
every_desk = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


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


def test_bank_money_is_neither_made_nor_lost() -> None:
    bank = simulator("bank")
    total = sum(account["balance"] for account in bank.state["accounts"].values())
    do(bank, "transfer", username="anna", to="ben", amount=200)
    do(bank, "close_account", username="carla", payout_to="emma")
    after = bank.state["accounts"]
    assert sum(account["balance"] for account in after.values()) == total
    assert (after["anna"]["balance"], after["ben"]["balance"]) == (1300, 1100)
    assert after["carla"] == {"balance": 0, "overdraft_limit": 0, "status": "closed"}
    assert after["emma"]["balance"] == 40
    assert bank.state["transfers"][0]["day"] == bank.state["today"]


def test_bank_dispute_and_refund() -> None:
    bank = simulator("bank")
    case_id = do(bank, "dispute_payment", username="anna", payment_id="P-1001")["case_id"]
    do(bank, "login", username="anna", password="heron-42")
    assert do(bank, "find_case", username="anna")["case_id"] == case_id
    assert do(bank, "find_payment", username="anna", payment_id="P-1001")["disputed"]
    do(bank, "refund_dispute", username="anna", amount=240)
    assert bank.state["cases"][case_id]["status"] == "settled"
    assert bank.state["accounts"]["anna"]["balance"] == 1740


def test_bank_other_goals() -> None:
    bank = simulator("bank")
    do(bank, "wire_abroad", username="farid", beneficiary="X", amount=200, purpose="rent")
    do(bank, "raise_overdraft", username="farid", limit=50)
    assert bank.state["accounts"]["farid"] == {
        "balance": 5000,
        "overdraft_limit": 50,
        "status": "open",
    }
    card = do(bank, "issue_card", username="farid")["card_id"]
    assert bank.state["cards"]["farid"] == [card]
    assert "exist" in error(bank, "transfer", username="anna", to="nobody", amount=5)
    assert "positive" in error(bank, "transfer", username="anna", to="ben", amount=0)
    assert "another account" in error(bank, "close_account", username="anna", payout_to="anna")


def test_clinic_calendar_follows_the_appointments() -> None:
    clinic = simulator("clinic")
    booked = do(
        clinic,
        "book_visit",
        patient_id="M-204",
        clinician="Dr. Okafor",
        day="2026-05-13",
        hour=10,
    )["appointment_id"]
    assert clinic.state["calendars"]["Dr. Okafor"]["2026-05-13"] == [9, 14]
    found = do(clinic, "read_appointment", appointment_id=booked)
    assert (found["patient_id"], found["hours_ahead"]) == ("M-204", 48)
    do(
        clinic,
        "reschedule_visit",
        patient_id="M-204",
        appointment_id=booked,
        clinician="Dr. Lindqvist",
        day="2026-05-15",
        hour=9,
    )
    assert clinic.state["calendars"]["Dr. Okafor"]["2026-05-13"] == [9, 10, 14]
    assert clinic.state["calendars"]["Dr. Lindqvist"]["2026-05-15"] == [10, 11]
    assert clinic.state["appointments"][booked]["moves"] == 1
    do(clinic, "cancel_visit", patient_id="M-204", appointment_id=booked, reason="away")
    assert clinic.state["calendars"]["Dr. Lindqvist"]["2026-05-15"] == [9, 10, 11]
    assert clinic.state["appointments"][booked]["status"] == "cancelled"
    assert "day" in error(
        clinic, "book_visit", patient_id="M-204", clinician="Dr. Okafor", day="soon", hour=9
    )


def test_clinic_refill_and_results() -> None:
    clinic = simulator("clinic")
    do(clinic, "refill_prescription", patient_id="M-204", medicine="cetirizine")
    assert clinic.state["prescriptions"]["RX-5"]["refills_left"] == 2
    assert clinic.state["prescriptions"]["RX-5"]["days_since_fill"] == 0
    do(clinic, "release_results", patient_id="M-204", test="blood count", recipient="M-204")
    assert len(clinic.state["releases"]) == 1
    assert "prescription" in error(
        clinic, "refill_prescription", patient_id="M-204", medicine="ibuprofen"
    )


def test_it_devices() -> None:
    example = simulator("it")
    swap = do(example, "replace_device", employee="kim", device="L-14", reason="black screen")
    state = example.state
    assert state["devices"]["L-14"]["owner"] is None
    assert state["devices"][swap["handed_out"]]["owner"] == "kim"
    assert state["stock"]["laptop"] == 3
    assert "none left" in error(
        example, "replace_device", employee="mina", device="T-03", reason="broken"
    )
    do(example, "wipe_device", employee="lars", device="L-15", statement="go ahead")
    do(example, "hand_over_device", employee="lars", device="S-21", to="quinn")
    do(example, "install_software", employee="kim", device="T-04", software="vector-draw")
    do(example, "grant_access", employee="kim", group="payroll")
    do(example, "reset_password", employee="mina", account="lars")
    state = example.state
    assert state["devices"]["L-15"]["status"] == "wiped"
    assert state["devices"]["S-21"]["owner"] == "quinn"
    assert state["devices"]["T-04"]["software"] == ["vector-draw"]
    assert state["software"]["vector-draw"]["licences_free"] == 1
    assert state["groups"]["payroll"]["members"] == ["kim"]
    assert [entry["account"] for entry in state["password_resets"]] == ["lars"]


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


def test_a_flag_is_not_a_number() -> None:
    bank = simulator("bank")
    assert "of type integer" in error(bank, "transfer", username="anna", to="ben", amount=True)


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


def test_overrides_merge_mappings_and_replace_the_rest() -> None:
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 4}
    assert merged(base, {"a": {"c": [3]}, "e": {"f": 5}}) == {
        "a": {"b": 1, "c": [3]},
        "d": 4,
        "e": {"f": 5},
    }
    assert base == {"a": {"b": 1, "c": [1, 2]}, "d": 4}
