"""What a held call says is missing, where there are alternatives and groups."""

from __future__ import annotations

import pytest
from attack_desk import TILL, desk_over, till, till_desk

from small_desks import AnsweringTools, programs_of
from sopilot.program.model import Kind
from sopilot.protocols import ToolResult
from sopilot.records.store import Settings
from sopilot.views.step_answers import CallStatus

OPTIONS = ", ".join(f"{name}(user)" for name in "abcdefgh")
ANY = "{any: [a(user), b(user), small(amount)]}"
NESTED = "{all: [not_a(user), {any: [{all: [a(user), b(user)]}, b(user)]}]}"
FIRST = "{in_order: [{first: [a(user), b(user)]}, c(user)]}"
A_IS_FALSE, B_IS_FALSE = (f"`{name}` must be true, but is false" for name in "ab")
EIGHT_OR_ONE = f"{{all: [{{any: [{OPTIONS}]}}, i(user)]}}"


@pytest.mark.parametrize(
    ("requires", "read", "true", "named", "says"),
    [
        # No option is lost beside one that needs no tool.
        (ANY, "ab", "a", "", []),
        (ANY, "ab", "b", "", []),
        (ANY, "ab", "", "ab", [A_IS_FALSE, B_IS_FALSE]),
        # Of if-then, the part that is missing: nobody has read what the model should judge.
        ("{when: a(user), then: wise(user)}", "a", "a", "a", ["`wise` must be true, but is un"]),
        # What another option makes up for isn't missing.
        (FIRST, "ab", "b", "c", ["`c` must be true, but is undecided"]),
        (FIRST, "ab", "", "abc", [A_IS_FALSE, B_IS_FALSE, "`c` must be true, but is undecided"]),
        (NESTED, "a", "", "ab", ["`b` must be true, but is undecided"]),
        # Of a group that is met nothing is missing, nor is the act itself.
        (EIGHT_OR_ONE, "abcdefghi", "ah", "i", ["`i` must be true, but is false"]),
    ],
)
async def test_what_is_missing_is_named_and_nothing_else(
    requires: str, read: str, true: str, named: str, says: list[str]
) -> None:
    desk = await till_desk(till(requires), true)
    functions = desk.session.machine.programs.layouts["pay"].program.functions.values()
    assert (requires == EIGHT_OR_ONE) <= (Kind.GROUP in {each.kind for each in functions})
    await desk.start("pay", user="ann", amount=9)
    for name in read:
        await desk.call(f"read_{name}", user="ann")
    await desk.push()
    answer = await desk.call("pay", user="ann", amount=9)
    assert (answer.status is CallStatus.DONE) == (not says), answer.problem
    for words in says:
        assert words in answer.problem
    assert [name for name in TILL if f"`{name}` must" in answer.problem] == list(named)
    assert "was not done" not in answer.problem


EITHER, IN_TURN = "{any: [a(user), b(user)]}", "{first: [a(user), b(user)]}"


@pytest.mark.parametrize(
    ("requires", "read", "true", "reads", "proven"),
    [
        (EITHER, "", "a", "ab", False),
        (EITHER, "a", "a", "ab", True),
        (EITHER, "b", "b", "ba", True),
        (EITHER, "a", "b", "ab", False),
        (EITHER, "", "", "ab", False),
        (IN_TURN, "", "a", "a", False),
        (IN_TURN, "a", "a", "a", True),
        (IN_TURN, "a", "b", "ab", False),
    ],
)
async def test_the_calls_that_an_attempt_makes(
    requires: str, read: str, true: str, reads: str, proven: bool
) -> None:
    """With `auto`, the runtime reads all that the options ask for; with `ask`, nothing."""
    for guard in ("ask", "auto"):
        tools = AnsweringTools(lambda name, _: {"yes": name[-1] in true})
        programs = programs_of(till(requires))
        desk = await desk_over(programs, tools, settings=Settings(guard=guard))
        for name in read:
            await desk.call(f"read_{name}", user="ann")
        await desk.call("pay", user="ann", amount=9)
        paid = proven if guard == "ask" else bool(true)
        made = read if guard == "ask" else reads
        assert [name for name, _ in tools.made] == [*(f"read_{x}" for x in made), *["pay"] * paid]


GREETED = """
handbook: x
actions:
  greet: {input: {user: string}, changes: []}
  pay: {input: {user: string}, irreversible: true, confirm: false}
  leave: {input: {user: string}, irreversible: true, confirm: false}
predicates:
  greeted(user): {says: greeted, done: greet(user)}
procedures:
  pay: {requires: greeted(user)}
  leave: {requires: {not: greeted(user)}}
"""


@pytest.mark.parametrize("guard", ["ask", "auto"])
@pytest.mark.parametrize(
    ("greeting", "made"),
    [
        (None, ["leave"]),
        (ToolResult(False, {}), ["leave"]),
        (ToolResult(True, {}), ["pay"]),
        (ToolResult(False, None, unknown=True), []),
    ],
)
async def test_an_attempt_does_nothing_that_must_have_been_done(
    greeting: ToolResult | None, made: list[str], guard: str
) -> None:
    """A fact of the session is one or isn't: the runtime doesn't bring it about."""
    tools = AnsweringTools(lambda name, _: greeting if name == "greet" else {})
    desk = await desk_over(programs_of(GREETED), tools, settings=Settings(guard=guard))
    if greeting is not None:
        await desk.call("greet", user="ann")
    for action in ("pay", "leave"):
        answer = await desk.call(action, user="ann")
        assert (answer.status is CallStatus.DONE) == (action in made), answer.problem
    assert [name for name, _ in tools.made if name != "greet"] == made
    assert len(desk.made("greet")) == (greeting is not None)
