"""Correct conduct that an audit must not blame, and the wrong one beside it that it must."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from telecom import HANDBOOK, PROGRAMS, Telecom, run_honestly

from sopilot.agent.calls import USER_LEFT
from sopilot.agent.retries import ProviderError
from sopilot.audit.audit import audit_trace
from sopilot.audit.report import Report
from sopilot.handbook.expressions import judge
from sopilot.machine.automation import Automation
from sopilot.messages.diagnostic import Severity
from sopilot.protocols import ModelReply, ModelRequest
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.scenario_verdict import judge_outside
from sopilot.tasks.scenarios import MadeCall, load_scenarios
from sopilot.trace.events import Actor, Complete, Fail, Start
from sopilot.values.json import JSON

ANN: Mapping[str, JSON] = {"phone": "555-1", "customer_id": "C1"}
ROAM: Mapping[str, JSON] = {**ANN, "line_id": "L1"}
BILL: Mapping[str, JSON] = {**ANN, "bill_id": "B1"}


async def fresh(simulation: Telecom | None = None) -> Session:
    settings = Settings(automation=Automation(*[True] * 7))
    return await open_session(
        MemoryStore(), PROGRAMS, tools=simulation or Telecom(), settings=settings
    )


async def audited(session: Session, *, ended: bool = True) -> Report:
    return audit_trace(PROGRAMS, await session.whole_events(), judge=judge, ended=ended)


# --- look-ups ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("find_by_phone", {"phone": "555-1"}),
        ("read_bill", {"bill_id": "B1"}),
        ("list_bills", {"customer_id": "C1"}),
        ("read_plan", {"plan_id": "P1"}),
    ],
)
async def test_looking_somebody_up_before_the_start_is_blamed_for_nothing(
    name: str, arguments: Mapping[str, JSON]
) -> None:
    session = await fresh()
    for _ in range(3):
        await session.call_tool(name, arguments)
    assert not (await audited(session)).findings
    await session.operate(Start("roam", ROAM))
    assert not (await audited(session, ended=False)).findings


async def test_looking_an_input_up_while_it_is_missing_is_a_note() -> None:
    session = await fresh()
    await session.operate(Start("roam", {"line_id": "L1"}))
    await session.call_tool("find_by_phone", {"phone": "555-1"})
    await session.call_tool("list_bills", {"customer_id": "C1"})
    report = await audited(session, ended=False)
    assert {one.severity for one in report.findings} <= {Severity.NOTE}


async def test_a_call_that_changes_something_before_the_start_is_blamed() -> None:
    simulation = Telecom()
    session = await fresh(simulation)
    await session.call_tool("enable_roaming", {"customer_id": "C1", "line_id": "L1"})
    assert simulation.done
    codes = {one.code for one in (await audited(session)).findings}
    assert codes >= {"premature-goal", "skipped-check"}


async def test_reading_for_the_next_goal_is_not_reading_after_the_goal() -> None:
    simulation = Telecom()
    session = await fresh(simulation)
    first = await _to_the_end(session, simulation)
    await session.call_tool("find_by_phone", {"phone": "555-1"})
    await session.call_tool("read_bill", {"bill_id": "B1"})
    idle = await audited(session)
    assert idle.score_card.calls_after_goal == 2
    assert {one.code for one in idle.findings} - first == {"calls-after-goal"}
    await session.operate(Start("ask_for_payment", BILL))
    after = await audited(session, ended=False)
    assert after.score_card.calls_after_goal == 0
    assert {one.code for one in after.findings} == first


async def _to_the_end(session: Session, simulation: Telecom) -> set[str]:
    """Roaming is switched on and the process completed. Returns the codes of the findings."""
    await session.operate(Start("roam", ROAM))
    await session.call_tool("find_by_phone", {"phone": "555-1"})
    await session.call_tool("read_line", {"line_id": "L1"})
    await session.call_tool("enable_roaming", {"customer_id": "C1", "line_id": "L1"})
    if session.configuration.process is not None:
        await session.operate(Complete("done"))
    assert simulation.done
    assert session.configuration.process is None
    return {one.code for one in (await audited(session)).findings}


# --- refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["pg", "fused", "flat"])
@pytest.mark.parametrize("missing", ["status", "contract_end", "roaming"])
async def test_refusing_because_a_field_is_missing_has_a_cause(view: str, missing: str) -> None:
    simulation = Telecom()
    goal, inputs = "roam", ROAM
    if missing == "status":
        goal, inputs = "ask_for_payment", BILL
        del simulation.bills["B1"]["status"]
    else:
        goal = "resume" if missing == "contract_end" else "roam"
        simulation.bills["B1"]["status"] = "Paid"
        del simulation.lines["L1"][missing]
    result = (await run_honestly(view, goal, inputs, simulation=simulation)).result
    assert (str(result.ending), simulation.done) == ("refused", [])
    assert not result.audit.findings
    assert result.audit.score_card.outcome == "refused"


@pytest.mark.parametrize("missing", [True, False])
async def test_only_what_cannot_be_decided_is_an_excuse(missing: bool) -> None:
    simulation = Telecom()
    if missing:
        del simulation.customers["555-1"]["customer_id"]
    session = await fresh(simulation)
    await session.operate(Start("roam", ROAM))
    await session.call_tool("find_by_phone", {"phone": "555-1"})
    await session.operate(Fail("I would rather not"))
    codes = [one.code for one in (await audited(session)).findings]
    assert codes == ([] if missing else ["refusal-without-cause"])


class Unreachable:
    name = "unreachable"

    async def complete(self, request: ModelRequest) -> ModelReply:
        raise ProviderError("no route to host", retryable=False)


@pytest.mark.parametrize("view", ["pg", "fused", "flat"])
async def test_a_model_that_cannot_be_reached_has_refused_nothing(view: str) -> None:
    result = (await run_honestly(view, "roam", ROAM, model=Unreachable())).result
    assert str(result.ending) == "infrastructure_failure"
    assert not result.audit.findings
    assert not result.audit.refusals
    assert result.audit.score_card.outcome == "abandoned"


# --- one word for the ending ------------------------------------------------------------


@pytest.mark.parametrize(
    ("actor", "ending"),
    [(Actor.MODEL, "refused"), (Actor.USER, "abandoned"), (Actor.RUNTIME, "abandoned")],
)
async def test_listing_and_audit_call_an_ending_the_same(actor: Actor, ending: str) -> None:
    store = MemoryStore()
    session = await open_session(store, PROGRAMS, tools=Telecom())
    await session.operate(Start("roam", ROAM))
    await session.step(Fail(USER_LEFT), actor=actor)
    (record,) = await store.sessions()
    assert record.summary["status"] == ending
    assert (await audited(session)).score_card.outcome == ending


# --- what a play is told at its end -----------------------------------------------------

PAYING = """
handbook: telecom
tools:
  find_by_phone: {customer_id: C2, lines: [L3]}
  read_bill: {customer_id: C2, status: Awaiting payment}
  take_payment: {done: true}
scenarios:
  pays:
    goal: pay_bill
    inputs: {phone: '555-2', customer_id: C2, bill_id: B3}
    expect: executed
"""


@pytest.mark.parametrize(("made", "missing"), [(3, []), (2, ["awaited", "their_bill"])])
def test_questions_of_the_runtime_reach_no_tool_and_are_not_missed(
    made: int, missing: list[str]
) -> None:
    suite = load_scenarios(PAYING, HANDBOOK)
    names = ["find_by_phone", "read_bill", "take_payment"]
    kept = names if made == 3 else [names[0], names[2]]
    calls = [MadeCall(name, {}, ok=True) for name in kept]
    told = judge_outside(suite.scenarios[0], HANDBOOK, calls).reasons
    assert sorted(one.split("`")[1] for one in told) == missing
