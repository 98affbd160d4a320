from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sopbench_checkout import NEEDS_SOPBENCH
from sopilot_lab.sopbench.checkout import Checkout, find_checkout
from sopilot_lab.sopbench.process import (
    Simulator,
    ToolList,
    Upstream,
    UpstreamFault,
    UpstreamLost,
    UpstreamRefused,
    UpstreamTimeout,
    shared_upstream,
)
from sopilot_lab.sopbench.source import load_tasks

pytestmark = NEEDS_SOPBENCH


@pytest.fixture
def own() -> Iterator[Upstream]:
    upstream = Upstream(find_checkout())
    yield upstream
    upstream.close()


def opened(goal: str, tools: ToolList = "official") -> tuple[Mapping[str, Any], Simulator]:
    """What the user of the task knows, and the task's simulator."""
    (task,) = load_tasks(f"sopbench:{goal}")
    simulator = shared_upstream().open(task.domain, task.goal, task.index, tools=tools)
    return task.user_known, simulator


def some(known: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: known[name] for name in names}


def test_upstreams_modules_stay_in_the_worker() -> None:
    upstream = shared_upstream()
    upstream.metadata("bank")
    foreign = [name for name in sys.modules if name.split(".")[0] in ("env", "swarm")]
    assert foreign == []
    assert str(upstream.checkout.path) not in sys.path


def test_an_executed_request_passes_the_official_evaluator() -> None:
    assert shared_upstream().scoring("bank")["transfer_funds"][20]
    known, simulator = opened("bank/transfer_funds#20")
    user = some(known, "username")
    for name in (known["username"], known["destination_username"]):
        assert simulator.call("internal_check_username_exist", {"username": name}).value is True
    assert simulator.judge("logged_in_user", user) is False
    login = {**user, "identification": known["identification"]}
    assert simulator.call("login_user", login).ok
    assert simulator.judge("logged_in_user", user) is True
    admin = {**user, "admin_password": known["admin_password"]}
    assert simulator.judge("authenticated_admin_password", user) is False
    assert simulator.call("authenticate_admin_password", admin).ok
    assert simulator.judge("authenticated_admin_password", user) is True
    balance = simulator.call("get_account_balance", user)
    assert balance.ok
    assert balance.value >= known["amount"]
    enough = simulator.judge("sufficient_account_balance", {**user, "amount": known["amount"]})
    assert enough is True
    goal = some(known, "username", "destination_username", "amount", "unit")
    assert simulator.call("transfer_funds", goal).ok
    verdict = simulator.evaluate(messages=3)
    assert verdict["success"] is True
    assert verdict["action_successfully_called"] is True
    assert (verdict["num_function_calls"], verdict["num_messages"]) == (6, 3)
    left = simulator.call("get_account_balance", user)
    assert left.value == balance.value - known["amount"]


def test_the_same_request_without_its_checks_fails() -> None:
    known, simulator = opened("bank/transfer_funds#20")
    goal = some(known, "username", "destination_username", "amount", "unit")
    assert simulator.call("transfer_funds", goal).ok
    verdict = simulator.evaluate()
    assert verdict["success"] is False
    assert verdict["constraint_not_violated"] is False


def test_a_refused_request_passes_the_official_evaluator() -> None:
    assert not shared_upstream().scoring("bank")["transfer_funds"][21]
    known, simulator = opened("bank/transfer_funds#21")
    user = some(known, "username")
    assert simulator.call("internal_check_username_exist", user).ok
    assert simulator.call("login_user", {**user, "identification": known["identification"]}).ok
    admin = {**user, "admin_password": known["admin_password"]}
    assert not simulator.call("authenticate_admin_password", admin).ok
    assert simulator.judge("authenticated_admin_password", user) is False
    assert simulator.evaluate()["success"] is True


def test_a_wrong_password_opens_no_gate_and_a_logout_closes_it() -> None:
    known, simulator = opened("bank/transfer_funds#20")
    user = some(known, "username")
    assert not simulator.call("login_user", {**user, "identification": "wrong"}).ok
    assert simulator.judge("logged_in_user", user) is False
    assert simulator.call("login_user", {**user, "identification": known["identification"]}).ok
    assert simulator.judge("logged_in_user", {"username": "somebody"}) is False
    assert simulator.judge("logged_in_user", user) is True
    assert simulator.call("logout_user", user).ok
    assert simulator.judge("logged_in_user", user) is False


@pytest.mark.parametrize(
    "name",
    ["__class__", "__init__", "data", "accounts", "domain_dep", "evaluation_get_database", ""],
)
def test_names_outside_the_tool_list_reach_nothing(name: str) -> None:
    simulator = shared_upstream().open("bank", "get_loan", 3)
    outcome = simulator.call(name, {})
    assert (outcome.ok, outcome.known) == (False, False)
    assert outcome.value == f"Error: Tool {name} not found."
    verdict = simulator.evaluate()
    assert verdict["no_tool_call_error"] is False
    assert verdict["success"] is False


def test_the_database_reader_needs_its_tool_list() -> None:
    upstream = shared_upstream()
    official = upstream.open("bank", "get_loan", 3)
    assert not official.call("internal_get_database", {}).known
    full = upstream.open("bank", "get_loan", 3, tools="full-state")
    outcome = full.call("internal_get_database", {})
    assert outcome.ok
    assert "accounts" in outcome.value
    assert not full.call("cancel_credit_card", {"username": "x", "card_number": "y"}).known


@pytest.mark.parametrize("name", ["__class__", "domain_system", "set_login_user", "get_loan"])
def test_only_predicates_are_judged(name: str) -> None:
    simulator = shared_upstream().open("bank", "get_loan", 3)
    with pytest.raises(UpstreamRefused):
        simulator.judge(name, {})


def test_arguments_that_do_not_fit_are_an_outcome() -> None:
    simulator = shared_upstream().open("bank", "get_loan", 3)
    outcome = simulator.call("get_account_balance", {"user": 1})
    assert (outcome.ok, outcome.known) == (False, True)
    assert outcome.value.startswith("TypeError: ")
    assert simulator.judge("no_owed_balance", {"username": "nobody"}) is None
    assert simulator.evaluate()["no_tool_call_error"] is False


def test_text_is_data_never_code(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    code = f"__import__('pathlib').Path({str(trap)!r}).touch()"
    simulator = shared_upstream().open("bank", "get_loan", 3)
    for value in (code, f"value {code}"):
        simulator.call("internal_check_username_exist", {"username": value})
        simulator.call("login_user", {"username": value, "identification": value})
        simulator.judge("logged_in_user", {"username": value})
    simulator.evaluate()
    assert not trap.exists()


def test_readers_are_kept_as_they_were() -> None:
    """The simulator hands out its live database; the evaluator must see the old one."""
    known, simulator = opened("bank/transfer_funds#0", "full-state")
    for name in (known["username"], known["destination_username"]):
        simulator.call("internal_check_username_exist", {"username": name})
    simulator.call("internal_get_database", {})
    goal = some(known, "username", "destination_username", "amount", "unit")
    assert simulator.call("transfer_funds", goal).ok
    assert simulator.evaluate()["success"] is True


def test_judging_changes_nothing() -> None:
    upstream = shared_upstream()
    for domain, goal in (("bank", "close_account"), ("library", "borrow_book")):
        simulator = upstream.open(domain, goal, 0, tools="full-state")
        before = simulator.call("internal_get_database", {}).value
        (task,) = load_tasks(f"sopbench:{domain}/{goal}#0")
        for predicate in task.handbook.predicates.values():
            values = {name: task.user_known.get(name, 1) for name in predicate.parameters}
            simulator.judge(predicate.name, values)
        assert simulator.call("internal_get_database", {}).value == before


def test_simulators_do_not_share_state() -> None:
    (known, first), (_, second) = opened("bank/transfer_funds#20"), opened("bank/transfer_funds#20")
    login = some(known, "username", "identification")
    assert first.call("login_user", login).ok
    assert second.judge("logged_in_user", {"username": known["username"]}) is False
    assert second.evaluate()["num_function_calls"] == 0
    second.close()
    with pytest.raises(UpstreamRefused, match="no open simulator"):
        second.call("login_user", login)


def test_a_slow_worker_is_replaced_and_its_simulators_say_so(own: Upstream) -> None:
    simulator = own.open("bank", "get_loan", 3)
    own.timeout_seconds = 0
    with pytest.raises(UpstreamTimeout, match="no answer to `metadata`"):
        own.metadata("hotel")
    own.timeout_seconds = 60
    assert own.metadata("hotel")["instructions"]
    with pytest.raises(UpstreamLost, match="is gone"):
        simulator.evaluate()
    simulator.close()
    assert own.open("bank", "get_loan", 3).evaluate()["num_function_calls"] == 0


def test_a_dead_worker_is_a_typed_error(own: Upstream, tmp_path: Path) -> None:
    assert own.tasks("bank")
    process = own._process
    assert process is not None
    process.kill()
    process.wait()
    with pytest.raises(UpstreamLost, match="ended during `open`"):
        own.open("bank", "get_loan", 3)
    empty = Upstream(Checkout(tmp_path, None))
    with pytest.raises(UpstreamLost, match="No module named 'env'"):
        empty.metadata("bank")


def test_unknown_requests_are_refused(own: Upstream) -> None:
    for verb, arguments in (
        ("metadata", {"domain": "no_such"}),
        ("tasks", {"domain": "../secrets"}),
        ("open", {"domain": "bank", "goal": "get_loan", "index": 999, "tools": "official"}),
        ("open", {"domain": "bank", "goal": "get_loan", "index": -1, "tools": "official"}),
        ("open", {"domain": "bank", "goal": "get_loan", "index": 0, "tools": "everything"}),
        ("__init__", {}),
        ("data", {"domain": "bank"}),
    ):
        with pytest.raises(UpstreamRefused):
            own.request(verb, **arguments)
    with pytest.raises(UpstreamFault, match="TypeError"):
        own.request("metadata", nothing="of the kind")


def test_the_hash_seed_fixes_what_upstream_invents() -> None:
    """Upstream makes licence numbers up with ``hash()``: a seed must always give the same."""
    (task,) = load_tasks("sopbench:dmv/update_test_status#0")
    username = task.user_known["username"]
    numbers = []
    for seed in (0, 0, 1):
        upstream = Upstream(find_checkout(), hash_seed=seed)
        try:
            simulator = upstream.open(task.domain, task.goal, task.index, tools="full-state")
            passed = {"username": username, "test_type": "drive", "passed": True}
            assert simulator.call("update_test_status", passed).ok
            database = simulator.call("internal_get_database", {}).value
            numbers.append(database["accounts"][username]["driver_license"]["dl_number"])
        finally:
            upstream.close()
    assert numbers[0] == numbers[1] != numbers[2]
