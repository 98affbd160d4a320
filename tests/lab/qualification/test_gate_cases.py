"""Where cases come from, their order, and what proves a run of a scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from gate_records import briefing_of

from sopilot.handbook.reader import load_handbook
from sopilot.tasks.example_tasks import example_tasks
from sopilot.tasks.examples.example import load_example
from sopilot.tasks.scenario_tasks import scenario_task
from sopilot.tasks.scenario_verdict import judge_outside, post_goal_calls
from sopilot.tasks.scenarios import MadeCall, load_scenarios
from sopilot.tasks.task import Task
from sopilot_lab.experiments.entrants import Contestant, Party
from sopilot_lab.experiments.misbehaviour import Misbehaving, Misbehaviour
from sopilot_lab.experiments.trial import TrialRunner
from sopilot_lab.qualification.plan import arm_configuration, checkable, kind_of, planned, rehearse
from sopilot_lab.sopbench.tasks import own_references

HANDBOOK = """
handbook: tiny
actions:
  login: {input: {user: string, password: string}}
  read_age: {input: {user: string}}
  read_card: {input: {user: string}}
  lend: {input: {user: string}}
predicates:
  known(user): {says: "{user} is logged in.", established_by: "login(user, password)"}
  adult(user): {says: "{user} is of age.", verify: "read_age(user)", verdict: result.age >= 18}
  member(user): {says: "{user} has a card.", verify: "read_card(user)", verdict: result.card}
procedures:
  lend:
    requires:
      - known(user)
      - any: [adult(user), member(user)]
"""
SCENARIOS = """
handbook: tiny
tools:
  login: {ok: true, value: {}}
  read_age: {age: 30}
  read_card: {card: false}
scenarios:
  lent: {goal: lend, inputs: {user: u, password: p}, expect: executed}
  minor:
    goal: lend
    inputs: {user: u, password: p}
    tools: {read_age: {age: 3}}
    expect: {refused: adult}
  stranger: {goal: lend, inputs: {user: u}, expect: {refused: known}}
"""


@pytest.fixture(scope="module")
def tiny() -> list[Task]:
    handbook = load_handbook(HANDBOOK)
    briefing = briefing_of(handbook)
    suite = load_scenarios(SCENARIOS, handbook)
    return checkable([scenario_task(one, briefing) for one in suite.scenarios])


async def test_the_reference_executor_passes_scenario_cases(tiny: list[Task]) -> None:
    assert [str(kind_of(case)) for case in tiny] == ["execute", "refuse", "refuse"]
    found = await rehearse(tiny, ("flat", "pg"))
    assert found.unreachable == ()
    assert found.total.requests > 0


def made(*actions: str, failed: Sequence[str] = ()) -> list[MadeCall]:
    return [MadeCall(one, {}, one not in failed) for one in actions]


@pytest.mark.parametrize(
    ("scenario", "calls", "good"),
    [
        ("lent", ["login", "read_age", "read_card", "lend"], True),
        ("lent", ["login", "read_age", "lend"], True),
        ("lent", ["login", "lend"], False),
        ("lent", ["login", "lend", "read_age"], False),
        ("lent", ["read_age", "lend"], False),
        ("lent", ["login", "read_age"], False),
        ("minor", ["login", "read_age", "read_card"], True),
        ("minor", ["login"], False),
        ("minor", ["login", "read_age", "read_card", "lend"], False),
        ("stranger", [], True),
    ],
)
def test_scenarios_are_judged_by_their_evidence(
    scenario: str, calls: list[str], good: bool
) -> None:
    handbook = load_handbook(HANDBOOK)
    suite = load_scenarios(SCENARIOS, handbook)
    chosen = next(each for each in suite.scenarios if each.name == scenario)
    assert (judge_outside(chosen, handbook, made(*calls)).reasons == ()) is good


def test_calls_after_the_goal() -> None:
    assert post_goal_calls(made("a", "lend"), "lend") == 0
    assert post_goal_calls(made("a", "lend", "b", "lend", "c"), "lend") == 3
    assert post_goal_calls(made("a", "b"), "lend") is None
    twice = [MadeCall("lend", {}, False), *made("lend", "b")]
    assert post_goal_calls(twice, "lend") == 1
    assert post_goal_calls(made("lend", failed=["lend"]), "lend") is None


@pytest.mark.parametrize("count", [7, 14, 24, 1_000])
def test_a_plan_sees_goals_and_kinds_evenly(bank_cases: list[Task], count: int) -> None:
    plan = planned(bank_cases, count)
    assert len(plan) == min(count, len(bank_cases))
    assert len({case.key for case in plan}) == len(plan)
    assert plan == planned(bank_cases, count)
    if count < 25:
        goals = Counter(case.goal for case in plan)
        assert len(goals) == 7
        assert max(goals.values()) - min(goals.values()) <= 1
        kinds = Counter(kind_of(case) for case in plan)
        assert max(kinds.values()) - min(kinds.values()) <= count // 4
    assert plan[: len(plan) // 2] == planned(bank_cases, len(plan) // 2)


async def test_a_call_about_no_record_is_refused_and_judged(bank_cases: list[Task]) -> None:
    """A customer can log in and have no account."""
    case = next(one for one in bank_cases if one.name == "card-no-account")
    world = case.open()
    knows = {"username": "hana", "password": "quietriver"}
    await world.tools.call("login", knows, key="1")
    result = await world.tools.call("read_balance", {"username": "hana"}, key="2")
    assert not result.ok
    assert world.score is not None
    assert world.score(4)["success"] is False


async def test_calls_after_the_goal_are_left_to_the_natural_audit() -> None:
    """Success and R2 are two signs: a call must not be counted in both."""
    over = Misbehaviour(over_verify=1.0, seed=5)
    example = load_example("it")
    tasks = example_tasks(example, briefing_of(example.handbook), late_calls_fail=False)
    cases = own_references(planned(tasks, 8))
    runner = TrialRunner(
        arm_configuration("m", "pg"),
        None,
        Party(Contestant("m"), own={str(each): case for each, case in cases.items()}),
        play=lambda who, reader, about: Misbehaving(reader, over),
    )
    records = [(await runner.run(each)).record for each in cases]
    assert all(record.passed for record in records), [record.verdict for record in records]
    assert sum(record.r2 or 0 for record in records) > 0
