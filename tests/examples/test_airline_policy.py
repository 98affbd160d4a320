"""The airline's handbook: held against the plain functions, against the table of rules, against
the real tools, and put through the machine."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from typing import Any

import airline_policy as policy
import pytest
from airline_agreement import LOCAL_NOW, Agreement, shown
from airline_small_simulator import RESERVATIONS, small_benchmark, small_simulator

from airline.checkout import checkout_home, find_checkout, load_data, load_tasks, load_tools
from airline.guarded import Attempt, airline_source, attempt, copied
from airline.simulator import AirlineTools
from sopilot.messages.errors import UserMistake
from sopilot.runner.sources import open_source
from sopilot.tasks.trust import folder_code

FOLDER = Path(__file__).parents[2] / "examples" / "airline"
needs_checkout = pytest.mark.skipif(
    not (checkout_home() / "tau_bench/types.py").exists(), reason="needs a τ-bench checkout"
)


@pytest.fixture(scope="module")
def source() -> Any:
    return airline_source()


def tried(source: Any, goal: str, answers: dict[str, str] | None = None, **inputs: Any) -> Attempt:
    return asyncio.run(
        attempt(source, small_simulator(), goal, {"user_id": "ann_1", **inputs}, answers)
    )


def test_handbook_and_plain_functions_agree_on_every_case(source: Any) -> None:
    agreement = Agreement(source.handbook, small_simulator())
    for one in RESERVATIONS:
        agreement.reservation(one)
    assert not agreement.tally.differences, shown(agreement.tally)
    for kind, cases in agreement.tally.cases.items():
        assert 0 < agreement.tally.allowed[kind] <= cases, kind


def test_a_changed_rule_is_found(source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "COVERED_BY_INSURANCE", ("health",))
    agreement = Agreement(source.handbook, small_simulator())
    agreement.reservation("AHEAD1")
    assert any("weather" in one for one in agreement.tally.differences)


def test_the_whole_machine_does_as_the_policy_says(source: Any) -> None:
    tools = small_simulator()
    agreement = Agreement(source.handbook, tools)
    rng = random.Random(5)
    licensed = 0
    for name, record in tools.data["reservations"].items():
        record["cabin"] = rng.choice(["basic_economy", "economy", "business"])
        record["insurance"] = rng.choice(["yes", "no"])
        case = policy.Case(
            record, "regular", LOCAL_NOW, agreement.on_sale(policy.segments(record)),
            reason=rng.choice(policy.REASONS), says_unflown=rng.random() < 0.5,
        )  # fmt: skip
        inputs = {"user_id": "ann_1", "reservation_id": name, "reason": case.reason}
        said = {"said_unflown": "yes" if case.says_unflown else "no"}
        done = asyncio.run(attempt(source, copied(tools), "cancel_reservation", inputs, said))
        assert done.licensed is policy.may_cancel(case), (name, case, done)
        assert not done.findings, (name, done)
        licensed += done.licensed
    assert 0 < licensed < len(RESERVATIONS)


def test_cancelling_needs_a_yes(source: Any) -> None:
    said = {"cancel_reservation": "No, wait."}
    done = tried(source, "cancel_reservation", said, reservation_id="FRESH1", reason="other")
    assert not done.licensed


def test_somebody_elses_reservation_stays(source: Any) -> None:
    tools = small_simulator()
    tools.data["users"]["bob_2"] = {**tools.data["users"]["ann_1"], "reservations": []}
    inputs = {"user_id": "bob_2", "reservation_id": "FRESH1", "reason": "other"}
    done = asyncio.run(attempt(source, tools, "cancel_reservation", inputs))
    assert done.broken == ("theirs",)


LEG = {"flight_number": "F1", "date": "2024-05-17"}
BOOKING: dict[str, Any] = {
    "origin": "AAA",
    "destination": "BBB",
    "flight_type": "one_way",
    "cabin": "economy",
    "flights": [LEG],
    "legs": [{**LEG, "origin": "AAA", "destination": "BBB"}],
    "passengers": [{"first_name": "Ann", "last_name": "A", "dob": "1990-01-01"}],
    "payment_methods": [{"payment_id": "credit_card_1", "amount": 150}],
    "total_baggages": 2,
    "insurance": "no",
}


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({}, ()),
        ({"passengers": BOOKING["passengers"] * 6}, ("few_enough",)),
        ({"destination": "CCC"}, ("trip_fits",)),
        ({"flight_type": "round_trip"}, ("trip_fits",)),
        ({"payment_methods": [{"payment_id": "gift_card_7", "amount": 1}]}, ("payments_fit",)),
        (
            {
                "payment_methods": [
                    {"payment_id": "certificate_1", "amount": 1},
                    {"payment_id": "certificate_2", "amount": 1},
                ]
            },
            ("payments_fit",),
        ),
        ({"insurance": "yes"}, ("insurance_asked",)),
    ],
)
def test_booking(source: Any, changed: dict[str, Any], broken: tuple[str, ...]) -> None:
    said = {"insurance_asked": "no"}
    done = tried(source, "book_reservation", said, **{**BOOKING, **changed})
    assert done.broken == broken, done
    if not broken:
        assert done.made is not None
        assert done.made["nonfree_baggages"] == 1  # a regular member has one free bag


def test_bags_are_added_and_passengers_stay_as_many(source: Any) -> None:
    fewer = tried(
        source, "add_bags", reservation_id="AHEAD1", total_baggages=0, payment_id="gift_card_1"
    )
    assert fewer.broken == ("no_bag_less",)
    by_certificate = tried(
        source, "add_bags", reservation_id="AHEAD1", total_baggages=2, payment_id="certificate_1"
    )
    assert by_certificate.broken == ("pays_by_card",)
    one = BOOKING["passengers"]
    assert tried(source, "change_passengers", reservation_id="AHEAD1", passengers=one).broken == (
        "as_many_passengers",
    )
    assert tried(source, "change_passengers", reservation_id="AHEAD1", passengers=one * 2).licensed


def test_the_oracle_wants_the_gold_data_and_the_words(source: Any) -> None:
    benchmark = small_benchmark()
    (entry,) = benchmark.tasks()
    simulation = benchmark.open(entry)
    assert simulation.verdict(1, ["within 24 hours"])["reasons"] == [
        "reservations are not as they should be"
    ]
    simulation.tools.perform("cancel_reservation", {"reservation_id": "FRESH1"})
    assert simulation.verdict(1, ["within 24 hours"]) == {"success": True, "reasons": []}
    assert not simulation.verdict(1, ["done"])["success"]
    assert simulation.verdict(1, None)["reasons"] == ["nobody kept whether `24` was said"]


def test_without_a_checkout_it_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(UserMistake) as raised:
        find_checkout({"TAUBENCH_HOME": str(tmp_path / "none")})
    (problem,) = raised.value.diagnostics
    assert problem.code == "taubench-missing"
    assert "git clone" in problem.help
    assert "TAUBENCH_HOME" in problem.help


def test_every_rule_of_the_table_names_the_lines_that_say_it() -> None:
    lines = (FOLDER / "handbook.yaml").read_text("utf-8").splitlines()
    rows = re.findall(
        r"^\| (\d+) \| .* \| (.*) \|$", (FOLDER / "README.md").read_text("utf-8"), re.M
    )
    assert [int(number) for number, _ in rows] == list(range(1, len(rows) + 1))
    assert len(rows) >= 31
    for number, where in rows:
        named = re.findall(r"`([^`]+)` \((\d+)\)", where)
        assert named or where.startswith("the tool"), number
        for text, line in named:
            assert text in lines[int(line) - 1], (number, text, line, lines[int(line) - 1])


# --- with a checkout ------------------------------------------------------------------------


@needs_checkout
def test_no_tool_and_no_input_is_made_up(source: Any) -> None:
    real = {one.name: one for one in AirlineTools(load_tools(find_checkout()), "{}").schemas()}
    assert set(source.handbook.actions) == set(real)
    for name, action in source.handbook.actions.items():
        assert set(action.input_names()) == set(real[name].parameters["properties"]), name


@needs_checkout
def test_a_sample_of_the_real_reservations_agrees(source: Any) -> None:
    home = find_checkout()
    agreement = Agreement(source.handbook, AirlineTools(load_tools(home), load_data(home)))
    for one in list(agreement.data["reservations"])[::700]:
        agreement.reservation(one)
    assert not agreement.tally.differences, shown(agreement.tally)


@needs_checkout
def test_the_tasks_come_in_as_tasks() -> None:
    folder_code(FOLDER.resolve()).trust()
    opened = open_source(str(FOLDER))
    assert len(load_tasks(find_checkout())) == len(opened.tasks()) == 50
    with pytest.raises(UserMistake, match="has no task `51`"):
        opened.task("51")
