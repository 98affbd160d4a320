"""What strong readers stumbled over, each as a test of the texts a model is sent."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from desk_runs import ScriptedModel, briefing_of, calls, play, some_tasks, watched

from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.driver import Driver
from sopilot.agent.loop import open_run
from sopilot.agent.result import Ending
from sopilot.agent.toolbox import Toolbox
from sopilot.audit.audit import audit_trace
from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.reader import load_handbook
from sopilot.machine.affordances import completed
from sopilot.machine.machine import Machine
from sopilot.messages.scaffold import LANGUAGES
from sopilot.program.model import Check
from sopilot.protocols import ModelReply, ToolCall
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import load_example
from sopilot.tasks.scenarios import SimulatedTools
from sopilot.trace.events import Call as CallOperation
from sopilot.trace.events import Return, Start
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS
from sopilot.views.frame import render_function
from sopilot.views.moment import Moment
from sopilot.views.step_tool import TOOL_NAME

FUSED, PG = VIEWS["fused"], VIEWS["pg"]


def test_a_group_says_its_condition_and_a_refusal_names_the_check() -> None:
    tree = "{in_order: [" + ", ".join(f"c{n}(x)" for n in range(9)) + "]}"
    text = "handbook: many-checks\nactions:\n  go: {input: {x: string}}\npredicates:\n"
    text += "".join(f"  c{n}(x): {{says: 'C{n} of {{x}}.', verify: arguments}}\n" for n in range(9))
    text += f"procedures:\n  go: {{action: go, requires: {tree}}}\n"
    program = compile_procedure(load_handbook(text), "go").program
    group = next(name for name in program.functions if name.startswith("in_order_"))
    assert group == "in_order_7_to_c6"
    said = render_function(program.functions[group], program).splitlines()[1]
    assert said == "True if: " + " and ".join(f"c{n}" for n in range(7))
    machine = Machine({"go": program})
    configuration = machine.initial()
    for operation in (Start("go", {"x": "1"}), CallOperation(), CallOperation(), Return(True)):
        configuration = machine.step(configuration, operation, at=0.0).configuration
    for operation in (CallOperation(), Return(False), Return()):
        configuration = machine.step(configuration, operation, at=0.0).configuration
    briefing = Briefing(load_handbook(text), {"go": program})
    frame = PG.frame_message(Moment(briefing, machine, configuration, ())).text
    assert f"Results: {group} = false (because of c1)" in frame


@pytest.mark.parametrize(
    ("arguments", "username"),
    [('{"password": "x"}', "anna"), ('{"username": "ben", "password": "x"}', "ben")],
)
async def test_a_call_takes_what_the_waiting_program_has(arguments: str, username: str) -> None:
    """A program that enters functions by itself passes on what it has, unless another is meant."""
    start = '{"operation": "start", "goal": "issue_card", "arguments": {"username": "anna"}}'
    login = calls((TOOL_NAME, start), ("login", arguments))
    model = ScriptedModel([login, ModelReply("That is all.")])
    done = await play("bank", view="fused", model=model)
    assert [call.arguments["username"] for call in done.world.calls] == [username]


def test_a_call_takes_what_the_check_at_the_cursor_passes_on() -> None:
    machine = Machine(briefing_of("bank").programs)
    started = machine.step(machine.initial(), Start("issue_card", {"username": "anna"}), at=0.0)
    here = machine.position(started.configuration)
    assert here is not None
    assert isinstance(here.step, Check)
    assert completed(here, "login", {}) == {}
    assert completed(here, "login", {}, enters=True) == {"username": "anna"}
    other: dict[str, JSON] = {"username": "ben"}
    assert completed(here, "login", other, enters=True) == other


async def test_what_the_user_cannot_give_is_a_ground_for_refusing() -> None:
    known = '{"operation": "start", "goal": "issue_card", "arguments": {"username": "anna"}}'
    entered = calls((TOOL_NAME, known), (TOOL_NAME, '{"operation": "call"}'))
    model = ScriptedModel([entered, ModelReply("That is all.")])
    await play("bank", model=model)
    assert (
        "If the user cannot give it, `pg_program_step` with operation `return`, `holds`: false."
    ) in model.requests[1].messages[-1].content
    start = '{"operation": "start", "goal": "issue_card"}'
    refuse = '{"operation": "fail", "reason": "the user cannot give username"}'
    model = ScriptedModel(
        [calls((TOOL_NAME, start)), ModelReply("Your username?"), calls((TOOL_NAME, refuse))]
    )
    user = ScriptedUser("A card, please.", {"shoe_size": 44})
    run = await play("bank", model=model, user=user)
    assert run.result.ending is Ending.REFUSED
    programs = dict(run.session.programs.programs)
    # As a closing audit sees them: the user's words are withheld in the sealed ones.
    report = audit_trace(programs, await run.session.shown_events())
    assert [one.code for one in report.findings] == []
    # Who refuses without having asked has no such ground.
    unasked = ScriptedModel([calls((TOOL_NAME, start)), calls((TOOL_NAME, refuse))])
    run = await play("bank", model=unasked, user=user)
    report = audit_trace(programs, [one.event for one in run.session.events])
    assert [one.code for one in report.findings] == ["refusal-without-cause"]


@pytest.mark.parametrize("view", ["pg", "fused", "flat"])
async def test_words_and_the_end_need_not_fit_into_one_message(view: str) -> None:
    end: tuple[str, str] = (
        ("end_session", '{"outcome": "refused", "reason": "no password"}')
        if view == "flat"
        else (TOOL_NAME, '{"operation": "fail", "reason": "no password"}')
    )
    start = '{"operation": "start", "goal": "issue_card", "arguments": {"username": "anna"}}'
    begun = [] if view == "flat" else [calls((TOOL_NAME, start))]
    model = ScriptedModel([*begun, ModelReply("I must refuse."), calls(end)])
    user = ScriptedUser("A card, please.", {})
    run = await play("bank", view=view, model=model, user=user)
    assert run.result.ending is Ending.REFUSED
    assert run.result.reason == "no password"
    told = [m.content for m in run.result.messages if "nothing more to say" in m.content]
    assert len(told) == 1
    # Who then only talks on is left alone.
    talks = ScriptedModel([*begun, ModelReply("I must refuse."), ModelReply("Farewell.")])
    run = await play("bank", view=view, model=talks, user=user)
    assert run.result.ending in (Ending.ABANDONED, Ending.REFUSED)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("I am sorry, this cannot be done.", None),
        ("办理完毕。", None),
        ("Please provide your username.", 'username: "anna"'),
        ("I cannot go on without your username?", 'username: "anna"'),
    ],
)
async def test_a_farewell_is_not_answered_with_all_the_values(
    said: str, answer: str | None
) -> None:
    user = ScriptedUser("A card, please.", {"username": "anna"})
    assert await user.reply(said) == answer


# --- the Chinese scaffold -------------------------------------------------------------

ENGLISH_WORDS = sorted(
    {
        fragment.strip()
        for key, template in LANGUAGES["en"].items()
        if not key.startswith(("code_", "official"))
        for fragment in re.split(r"\{\w+\}|`[^`]*`|[.:;,()—“”→|]", template)
        if len(fragment.split()) > 1
    }
    - {"result ="}
)


@pytest.mark.parametrize("view", ["pg", "fused", "state-only", "flat", "chunk"])
async def test_a_session_in_chinese_is_chinese(view: str) -> None:
    """All that the scaffold says: instructions, slots, answers, refusals, tools."""
    example = load_example("bank")
    run = await play("bank", view=view, language="zh")
    briefing = Briefing(example.handbook, {}, "zh")
    said = [
        message.content for message in run.result.messages if message.role in ("system", "tool")
    ]
    own = Toolbox(
        VIEWS[view], replace(briefing, programs=run.session.programs.programs), ()
    ).schemas
    said += [str(tool.description) + str(tool.parameters) for tool in own]
    assert len(ENGLISH_WORDS) > 60
    for text in said:
        if re.match(r"#\d+ \((ok|failed)\): ", text):
            continue
        found = [words for words in ENGLISH_WORDS if words in text]
        assert found == [], text


@pytest.mark.parametrize("example_name", ["bank", "clinic", "it"])
async def test_no_move_is_offered_twice(example_name: str) -> None:
    """Neither by the look-ahead of a slot nor by the answer to a step."""
    slots: list[str] = []
    view = watched("fused", lambda moment, message: slots.append(message.text))
    answers: list[str] = []
    for _, task in some_tasks(9, example_name):
        await play(example_name, task, view)
        run = await play(example_name, task)
        answers += [m.content for m in run.result.messages if m.role == "tool"]
    for text in slots:
        after = [line[6:].split(": ", 1) for line in text.splitlines() if line.startswith("After ")]
        edges = [edge for one, _ in after for edge in one.split(", ")]
        assert len(edges) == len(set(edges)), text
        plain = [move for _, move in after if not move.startswith("judge ")]
        assert len(plain) == len(set(plain)), text
        assert not re.search(r"^After .*: (call|select_branch) ", text, re.MULTILINE)
    fits = [line for text in answers for line in text.splitlines() if line.startswith("Fits: ")]
    assert fits
    for line in fits:
        moves = line.removeprefix("Fits: ").rstrip(".").split("; ")
        assert len(moves) == len(set(moves)), line


async def test_the_guard_words_a_refusal_in_the_users_language() -> None:
    """The handbook's own sentences, the remedy and the words for the customer, too."""
    book = """
handbook: payments
parameters: {most: 200}
actions:
  pay: {input: {amount: number, country: string}, irreversible: true, confirm: false}
predicates:
  small(amount):
    says: {en: "The amount {amount} is at most {most}.", zh: "金额 {amount} 不超过 {most}。"}
    verify: arguments
    verdict: amount <= most
    remedy: {en: Ask a manager., zh: 请联系经理。}
  allowed(country):
    says: The country is allowed.
    verify: arguments
    verdict: country != 'X'
    customer_message: {en: "We pay up to {most} only.", zh: "目前最多支付 {most}。"}
procedures:
  pay: {requires: [small(amount), allowed(country)]}
"""
    handbook = load_handbook(book)
    briefing = Briefing(handbook, {"pay": compile_procedure(handbook, "pay").program}, "zh")
    tools = SimulatedTools(handbook.actions, {})
    session = await open_run(MemoryStore(), briefing, VIEWS["guard"], tools=tools)
    driver = Driver(session, briefing, VIEWS["guard"])

    async def answer(amount: int, country: str) -> str:
        arguments = json.dumps({"amount": amount, "country": country})
        return (await driver.call(ToolCall("", "pay", arguments))).text

    refused = "已拒绝：不得调用 `pay`。"
    assert await answer(900, "Y") == f"{refused}不成立：金额 900 不超过 200。请联系经理。"
    assert await answer(100, "X") == f"{refused}目前最多支付 200。"
