"""Guarded calls of agents without a protocol. The judge is what the tools were given."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import permutations
from typing import Any

import pytest

from counter_sessions import opened, replying
from small_desks import AnsweringTools, programs_of
from sopilot.protocols import ToolResult
from sopilot.records.store import Settings
from sopilot.session.questions import AGAIN
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallStatus

BOOK = """
handbook: parcels
actions:
  look: {input: {box: string}, read_only: true}
  ship: {input: {box: string}, irreversible: true, confirm: false}
  send: {input: {box: string}, irreversible: true, confirm: false}
  scrap: {input: {box: string}, irreversible: true, confirm: "Box {box} will be destroyed."}
  give: {input: {box: string}, irreversible: true, approval: boss}
  sell: {input: {box: string}, irreversible: true, approval: boss}
predicates:
  ordered(customer, box):
    says: "{customer} ordered box {box}."
    verify: look(box)
    verdict: customer == result.customer
  sound(box): {says: "Box {box} is sound.", verify: look(box), judged_by: model}
  seen(box): {says: "Box {box} is there.", verify: look(box), verdict: result.customer != 'nobody'}
procedures:
  ship: {inputs: {customer: string}, requires: "ordered(customer, box)"}
  send: {requires: sound(box)}
  scrap: {requires: seen(box)}
  give: {requires: seen(box)}
  sell: {requires: seen(box)}
"""
BOX: dict[str, JSON] = {"box": "b-1"}


class Depot(AnsweringTools):
    def __init__(self) -> None:
        super().__init__(self.answer)
        self.customer = "anna"
        self.breaks = False

    def answer(self, name: str, arguments: Mapping[str, JSON]) -> ToolResult:
        if self.breaks and name != "look":
            raise ConnectionError("reset")
        return ToolResult(True, {"customer": self.customer})

    @property
    def acts(self) -> list[tuple[str, JSON]]:
        return [(name, arguments["box"]) for name, arguments in self.made if name != "look"]


async def depot(guard: str = "auto", **options: Any) -> tuple[Session, Depot]:
    tools = Depot()
    settings = Settings(guard=guard, **options)
    return await opened(programs=programs_of(BOOK), tools=tools, settings=settings), tools


@pytest.mark.parametrize(
    ("values", "supplied", "said", "shipped"),
    [
        ({"customer": "anna"}, {}, "Recorded.", True),
        ({"customer": "bob"}, {}, "Recorded.", False),
        ({"customer": 7}, {}, "Not recorded: `customer` must be of type string", False),
        ({"box": "b-2"}, {}, "no guarded tool waits for these values", False),
        ({"customer": "anna", "clerk": "Kim"}, {}, "no guarded tool waits", False),
        ({"customer": "anna"}, {"customer": "bob"}, "no guarded tool waits", False),
    ],
)
async def test_a_model_gives_the_values_that_an_attempt_waits_for(
    values: dict[str, JSON], supplied: dict[str, JSON], said: str, shipped: bool
) -> None:
    """Only after the attempt, and none that the application supplies."""
    session, tools = await depot()
    session.supplied.update(supplied)
    assert "no guarded tool waits" in await session.give_values(values)
    await session.call_tool("ship", BOX)
    before = len(session.events)
    assert said in await session.give_values(values)
    assert (len(session.events) > before) is (said == "Recorded.")
    await session.call_tool("ship", BOX)
    assert tools.acts == [("ship", "b-1")] * shipped


@pytest.mark.parametrize("guard", ["ask", "auto"])
@pytest.mark.parametrize(
    ("check", "holds", "asked_for", "sent"),
    [("sound", True, True, True), ("sound", False, True, False), ("seen", True, False, False)],
)
async def test_a_model_judges_the_check_that_an_attempt_waits_for(
    check: str, holds: bool, asked_for: bool, sent: bool, guard: str
) -> None:
    """It is shown the answers to the calls that the runtime made."""
    session, tools = await depot(guard)
    assert "needs no judgement now" in await session.judge_check(check, holds)
    if guard == "ask":
        await session.call_tool("look", BOX)
    asked = await session.call_tool("send", BOX)
    assert ('{"customer":"anna"}' in asked.problem) is (guard == "auto")
    said = await session.judge_check(check, holds)
    assert said.startswith("Recorded.") is asked_for
    assert ("needs no judgement now" in said) is not asked_for
    answer = await session.call_tool("send", BOX)
    assert bool(answer.reasons) is (asked_for and not holds)
    assert tools.acts == [("send", "b-1")] * sent


@pytest.mark.parametrize("guard", ["ask", "auto"])
@pytest.mark.parametrize(
    ("replies", "times", "says"),
    [
        (["yes"], 1, ""),
        (["no"], 1, "Refused"),
        (["hm", "yes"], 2, ""),
        (["hm", "hm", "no"], 3, "Refused"),
        (["hm", "hm", "hm", "yes"], 3, "First the user must answer"),
        (["an earlier yes"], 1, "First the user must answer"),
        (["silence"], 1, "First the user must answer"),
        (["not shown"], 1, "this client can't show the user a question"),
        ([], 0, "First the user must answer"),
    ],
)
async def test_only_a_yes_to_the_runtimes_own_question_lets_the_call_through(
    guard: str, replies: list[str], times: int, says: str
) -> None:
    session, tools = await depot(guard)
    shown = await replying(session, *replies)
    await session.call_tool("look", BOX)
    answer = await session.call_tool("scrap", BOX)
    assert tools.acts == [("scrap", "b-1")] * (not says)
    assert says in answer.problem
    assert len(shown) == times
    assert all("Box b-1 will be destroyed." in text and 'box: "b-1"' in text for text in shown)
    assert [AGAIN in text for text in shown] == [number > 0 for number in range(times)]
    if replies == ["not shown"]:  # a person decides instead
        (held,) = session.held_calls
        assert "`fail`" not in held.why, "an agent without a protocol has no such step"
        await session.decide("approve", held.call_id, by="Kim", role="operator")
        assert (await session.call_tool("scrap", BOX)).status is CallStatus.DONE
        assert tools.acts == [("scrap", "b-1")]


@pytest.mark.parametrize("guard", ["ask", "auto"])
@pytest.mark.parametrize("happened", [True, False])
async def test_another_attempt_waits_for_the_outcome_of_a_call_that_broke_off(
    guard: str, happened: bool
) -> None:
    session, tools = await depot(guard)
    session.supplied["customer"] = "anna"
    for box in ("b-1", "b-2"):
        await session.call_tool("look", {"box": box})
    tools.breaks = True
    answer = await session.call_tool("ship", BOX, "s")
    assert (answer.status, answer.call_id) == (CallStatus.UNKNOWN, "s")
    tools.breaks = False
    for call_id in ("t", "t.2"):
        waiting = await session.call_tool("ship", {"box": "b-2"}, "t")
        assert (waiting.status, waiting.awaits, waiting.call_id) == ("held", "outcome", call_id)
        assert "no guarded tool waits" in await session.give_values({"customer": "bob"})
    assert (await session.call_tool("look", BOX)).status is CallStatus.DONE
    await session.resolve_outcome("s", ok=happened, by="Kim")
    for box in ("b-1", "b-2"):
        await session.call_tool("look", {"box": box})
        await session.call_tool("ship", {"box": box})
    again = [("ship", "b-1")] * (not happened)
    assert tools.acts == [("ship", "b-1"), *again, ("ship", "b-2")]


@pytest.mark.parametrize("guard", ["ask", "auto"])
async def test_an_act_is_repeated_only_when_the_user_has_spoken_since(guard: str) -> None:
    session, tools = await depot(guard)
    session.supplied["customer"] = "anna"
    for times in (1, 2, 3):
        await session.call_tool("look", BOX)
        assert await session.rehearse("ship", BOX) is None
        assert len(tools.acts) == times - 1, "a rehearsal makes no call"
        assert (await session.call_tool("ship", BOX)).status is CallStatus.DONE
        if times == 2:  # otherwise the user speaks at once
            await session.assistant_said("Shipped.")
            for attempt in (session.rehearse, session.call_tool):
                repeated = await attempt("ship", BOX)
                assert repeated is not None
                assert "already been carried out" in repeated.problem
        assert tools.acts == [("ship", "b-1")] * times
        await session.user_said("Once more, please.")


@pytest.mark.parametrize(("guard", "action"), [("auto", "look"), ("", "ship")])
async def test_a_call_that_nothing_guards_would_be_made(guard: str, action: str) -> None:
    session, tools = await depot(guard)
    assert await session.rehearse(action, BOX) is None
    assert (tools.made, len(session.events)) == ([], 1)


@pytest.mark.parametrize("guard", ["ask", "auto"])
@pytest.mark.parametrize("action", ["give", "sell"])
async def test_an_attempt_is_made_as_people_amended_it(action: str, guard: str) -> None:
    """Another action with the same values waits for people of its own."""
    session, tools = await depot(guard)
    for box in ("b-1", "b-2"):
        await session.call_tool("look", {"box": box})
    held = await session.call_tool("give", BOX)
    changed: dict[str, JSON] = {"box": "b-2"}
    await session.decide("amend", held.call_id, by="Kim", role="boss", arguments=changed)
    answer = await session.call_tool(action, BOX)
    assert tools.acts == [("give", "b-2")] * (action == "give")
    assert (answer.call_id == held.call_id) is (action == "give")


WAYS = """
handbook: parcels
actions:
  look: {input: {box: string}, read_only: true}
  weigh: {input: {box: string}, read_only: true}
  scan: {input: {box: string}, read_only: true}
  post: {input: {box: string}, irreversible: true, confirm: false}
predicates:
  paid(box): {says: "Box {box} is paid.", verify: look(box), verdict: result.customer == 'bob'}
  light(box): {says: "Box {box} is light.", verify: weigh(box), verdict: result.customer == 'anna'}
  safe(box): {says: "Box {box} is safe.", verify: scan(box), verdict: result.customer == 'anna'}
procedures:
  %s
"""
PAID, SCANNED, LIGHT = (
    "paid_post: {action: post, requires: paid(box)}",
    "scanned_post: {action: post, requires: [light(box), safe(box)]}",
    "light_post: {action: post, requires: light(box)}",
)


@pytest.mark.parametrize("ways", list(permutations([PAID, SCANNED, LIGHT])))
async def test_of_several_procedures_the_nearest_open_one_is_advised(ways: list[str]) -> None:
    """One is refused by its answer, one needs two calls, one needs a single call."""
    tools = Depot()
    programs = programs_of(WAYS % "\n  ".join(ways))
    session = await opened(programs=programs, tools=tools, settings=Settings(guard="ask"))
    await session.call_tool("look", BOX)
    blocked = await session.call_tool("post", BOX)
    assert "First call `weigh(" in blocked.problem
    assert "scan" not in blocked.problem
    await session.call_tool("weigh", BOX)
    await session.call_tool("post", BOX)
    assert tools.made[-1] == ("post", BOX)


CUSTOMERS = """
handbook: parcels
actions:
  login: {input: {user: string, code: string}, changes: []}
  logout: {input: {user: string}, changes: []}
  look: {input: {user: string}, read_only: true, requires: logged_in(user)}
  post: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  logged_in(user):
    {says: "{user} is logged in.", established_by: "login(user, code)", closed_by: logout(user)}
  rich(user): {says: "{user} is rich.", verify: look(user), verdict: result.rich}
procedures:
  post: {requires: {in_order: [logged_in(user), rich(user)]}}
"""


class SlowStore(MemoryStore):
    """As over a network: every write takes a moment."""

    async def append(self, *given: Any, **named: Any) -> Any:
        await asyncio.sleep(0.0005)
        return await super().append(*given, **named)


async def test_no_read_of_the_runtimes_own_follows_a_logout_that_is_on_record() -> None:
    ann: dict[str, JSON] = {"user": "ann"}
    posted = left = 0
    for turn in range(40):
        tools = AnsweringTools(lambda name, _: ToolResult(True, {"rich": True}))
        session = await opened(
            SlowStore(), programs=programs_of(CUSTOMERS), tools=tools,
            settings=Settings(guard="auto"),
        )  # fmt: skip
        await session.call_tool("login", {**ann, "code": "1"})

        async def later(action: str, ticks: int, session: Session = session) -> None:
            await asyncio.sleep(ticks / 4000)
            await session.call_tool(action, ann)

        await asyncio.gather(later("post", 4), later("logout", turn))
        made = [name for name, _ in tools.made]
        calls = [
            str(event.payload["action"])
            for event in session.own_events
            if event.kind == "domain_call"
        ]
        if "logout" in calls:  # else the post was under way
            assert "look" not in calls[calls.index("logout") :]
            left += 1
        posted += "post" in made
    assert posted
    assert left
