"""The runtime asks the user in its own words, with the exact values of the call."""

from __future__ import annotations

import pytest

from counter_sessions import opened, programs_of, replying
from sopilot.session.questions import UNASKED, find_question
from sopilot.values.json import JSON
from sopilot.views.questions import user_tools

PROGRAMS = programs_of("""
handbook: desk
actions:
  pay: {input: {user: string, amount: number}, irreversible: true, confirm: "{amount} for {user}."}
  give: {input: {user: string}, irreversible: true}
predicates:
  known(user): {says: K., verify: arguments, verdict: user != ''}
  wants(user): {says: W., verify: user, question: "Do you want it, {user}?"}
procedures:
  pay: {requires: known(user)}
  tip: {action: pay, requires: known(user), confirm: "A tip for {user}."}
  give: {requires: wants(user)}
""")
PAY: dict[str, JSON] = {"action": "pay", "user": "änn", "amount": 5}
WANTS: dict[str, JSON] = {"question": "wants", "user": "änn"}


@pytest.mark.parametrize(
    ("tool", "arguments", "lines"),
    [
        ("confirm_with_user", PAY, ["5 for änn.", 'pay (user: "änn", amount: 5)', "yes / no?"]),
        (
            "confirm_with_user",
            {**PAY, "procedure": "tip"},
            ["A tip for änn.", 'pay (user: "änn", amount: 5)', "yes / no?"],
        ),
        ("confirm_with_user", {**PAY, "procedure": "loan"}, None),
        ("confirm_with_user", {**PAY, "action": "give"}, None),
        ("confirm_with_user", {**PAY, "more": 1}, None),
        ("confirm_with_user", WANTS, None),
        ("ask_user", WANTS, ["Do you want it, änn?"]),
        ("ask_user", {**WANTS, "question": "odd"}, None),
    ],
)
def test_the_words_of_a_question(
    tool: str, arguments: dict[str, JSON], lines: list[str] | None
) -> None:
    """Each procedure asks for its own yes, and values are quoted."""
    question = find_question(PROGRAMS.programs.values(), tool, arguments)
    assert (None if question is None else question.text.split("\n")) == lines
    assert question is None or question.closed


def test_the_tools_with_which_a_model_asks() -> None:
    tools = {tool.name: tool.parameters for tool in user_tools(PROGRAMS.programs.values())}
    assert sorted(tools) == ["ask_user", "confirm_with_user"]
    assert tools["ask_user"]["required"] == ["question"]
    assert tools["confirm_with_user"]["required"] == ["action"]
    assert tools["confirm_with_user"]["additionalProperties"] is False
    assert {"action", "procedure", "user", "amount"} == set(
        tools["confirm_with_user"]["properties"]
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(WANTS, UNASKED), ({**WANTS, "question": "odd"}, "the handbook doesn't ask this question")],
)
async def test_where_nobody_can_ask_the_user_nothing_was_answered(
    arguments: dict[str, JSON], error: str
) -> None:
    session = await opened(programs=PROGRAMS)
    assert session.asker is None
    result = (await session.call_tool("ask_user", arguments, "q")).result
    assert result is not None
    assert (result.ok, result.value) == (False, {"error": error})


@pytest.mark.parametrize("reply", ["silence", "not shown", "an earlier yes", "hm", "yes"])
async def test_only_a_message_sent_after_the_question_answers_it(reply: str) -> None:
    session = await opened(programs=PROGRAMS)
    await replying(session, reply)
    result = (await session.call_tool("ask_user", WANTS, "q")).result
    assert result is not None
    assert isinstance(result.value, dict)
    assert result.ok is (reply in ("hm", "yes"))
    assert result.value.get("said") == (reply if result.ok else None)


@pytest.mark.parametrize(
    ("tool", "arguments", "other"),
    [
        ("confirm_with_user", PAY, {**PAY, "amount": 6}),
        ("ask_user", WANTS, {**WANTS, "user": "bo"}),
    ],
)
async def test_a_no_is_not_asked_about_again_until_the_user_writes(
    tool: str, arguments: dict[str, JSON], other: dict[str, JSON]
) -> None:
    """A model may put a question as often as it likes."""
    session = await opened(programs=PROGRAMS)
    shown = await replying(session, "no")
    first = await session.call_tool(tool, arguments, "q")
    for _ in range(3):
        again = await session.call_tool(tool, arguments, "q")
        assert f"said no to exactly this (#{first.seq})" in again.problem
    await session.call_tool(tool, other, "q")
    assert len(shown) == 2
    await session.user_said("I have thought about it.")
    await session.call_tool(tool, arguments, "q")
    assert len(shown) == 3
