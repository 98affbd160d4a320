"""What the slot tells in advance is what happens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from desk_runs import ScriptedModel, calls, play, some_tasks, watched

from small_desks import programs_of
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.machine.machine import Machine
from sopilot.protocols import ModelReply
from sopilot.tasks.examples.example import bundled_names
from sopilot.trace.events import Return as ReturnOperation
from sopilot.trace.events import Start
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS
from sopilot.views.fused import MOST_VERDICTS, Point, is_verdict, point_after
from sopilot.views.moment import Moment, known_values
from sopilot.views.moves import FrameMessage, Move, next_move
from sopilot.views.step_tool import TOOL_NAME

AFTER = "After "

FUSED = VIEWS["fused"]
WORDS = {True: "true", False: "false", None: "undecided"}


def agrees(ahead: Move, point: Point) -> bool:
    here = point.here
    if is_verdict(here):
        return (ahead.kind, ahead.name) == ("judge", here.layout.function.name)
    move = next_move(here, known_values(here))
    return (ahead.kind, ahead.name) == (move.kind, move.name)


def walk(moment: Moment, point: Point, told: dict[str, Move], number: str = "") -> Iterator[str]:
    """Every told edge behind this verdict, followed by the machine."""
    for holds in (True, False, None):
        edge = f"{number} {WORDS[holds]}".strip()
        verdict = ReturnOperation(holds, undecided=holds is None)
        led = point_after(moment, point.configuration, verdict)
        if edge not in told:
            continue
        assert led is not None
        assert agrees(told[edge], led), (edge, told[edge])
        yield edge
        if told[edge].kind == "judge":
            yield from walk(moment, led, told, told[edge].number)


@pytest.mark.parametrize("example", bundled_names())
async def test_every_told_edge_is_where_the_machine_goes(example: str) -> None:
    seen = 0

    def look(moment: Moment, message: FrameMessage) -> None:
        nonlocal seen
        assert message.move is not None
        told = dict(message.move.ahead)
        if moment.here is not None and told:
            followed = walk(moment, Point(moment.configuration, moment.here), told)
            assert {*followed} == {*told}
            seen += len(told)

    for _, task in some_tasks(8, example):
        assert (await play(example, task, watched("fused", look))).judgement.passed
    assert seen > 0


RULE = '  rule_{}(day): {{says: "Rule {} is met on {{day}}.", verify: arguments{}}}\n'


def moment_of(count: int, *, started: bool, verdict: str = "") -> Moment:
    """A procedure that checks so many rules from the arguments alone, then acts."""
    rules = "".join(RULE.format(n, n, verdict) for n in range(count))
    names = ", ".join(f"rule_{n}(day)" for n in range(count))
    book = load_handbook(
        "handbook: plain\nactions:\n  main: {input: {day: string}}\n"
        f"predicates:\n{rules}procedures:\n  main: {{requires: [{names}]}}\n"
    )
    programs = programs_of(book)
    machine = Machine(programs)
    configuration = machine.initial()
    if started:
        begun = machine.step(configuration, Start("main", {"day": "Monday"}), at=0.0)
        configuration = machine.automate(
            begun.configuration, FUSED.automation, at=0.0, judge=judge
        ).configuration
    return Moment(Briefing(book, programs), machine, configuration, (), FUSED.automation, judge)


@pytest.mark.parametrize("started", [True, False])
def test_a_chain_of_verdicts_is_told_to_its_end(started: bool) -> None:
    text, move = FUSED.frame_message(moment_of(20, started=started))
    lines = [line for line in text.splitlines() if line.startswith(AFTER)]
    assert move is not None
    edge, names = ("true", ["rule_0"]) if started else ("start main", [])
    while move.ahead[edge].kind == "judge":
        names.append(move.ahead[edge].name)
        edge = f"{move.ahead[edge].number} true"
    assert names == [f"rule_{n}" for n in range(20)]
    assert move.ahead[edge].kind == "goal"
    # One line a verdict, one for the goal, one for all refusals.
    assert len(lines) == len(names) + (1 if started else 2)


def test_what_is_told_is_bounded() -> None:
    sizes = [len(FUSED.frame_message(moment_of(n, started=True)).text) for n in (30, 60)]
    assert sizes[0] > MOST_VERDICTS
    assert sizes[0] == sizes[1]


def test_verdicts_of_the_machine_are_not_asked_for_before_the_start() -> None:
    moment = moment_of(3, started=False, verdict=", verdict: day == 'Monday'")
    assert AFTER not in FUSED.frame_message(moment).text


async def test_a_verdict_given_ahead_is_not_bound_to_another_rule() -> None:
    start = '{"operation": "start", "goal": "issue_card", "arguments": {"username": "anna"}}'
    stray = '{"operation": "return", "holds": true, "function": "funds_cover(username)"}'
    meant = '{"operation": "return", "holds": false, "function": "logged_in"}'
    model = ScriptedModel(
        [
            calls((TOOL_NAME, start), (TOOL_NAME, stray), ("find_account", '{"username": "anna"}')),
            calls((TOOL_NAME, meant)),
            ModelReply("That is all."),
        ]
    )
    played = await play("bank", view="fused", model=model)
    assert "the program is at `logged_in`" in str(played.notes("malformed_step"))
    assert "domain_call" not in played.kinds()
    returned = [one.event.payload for one in played.session.events if one.event.kind == "return"]
    assert [(one["function"], one["bound"]["holds"]) for one in returned] == [("logged_in", False)]
