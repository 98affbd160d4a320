"""No text of any view names a tool, an operation or an argument that the model does not have,
or tells it to take a step that would be refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from desk_runs import ScriptedModel, briefing_of, play, reference, some_tasks, watched
from hypothesis import given, settings
from hypothesis import strategies as st
from named_things import misnamed, refused_steps, shown_tools, told_starts, told_steps
from random_handbooks import handbooks

from sopilot.agent.toolbox import Toolbox
from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.model import Handbook
from sopilot.machine.affordances import completed
from sopilot.messages.scaffold import LANGUAGES
from sopilot.program.model import Act, Branch, Check, ReturnStep
from sopilot.proof.guard import license_here
from sopilot.protocols import Model, ModelReply, ModelRequest, ToolSchema
from sopilot.tasks.examples.example import bundled_names, load_example
from sopilot.views.catalogue import VIEWS
from sopilot.views.frame import render_frame, render_function
from sopilot.views.moment import Moment
from sopilot.views.moves import FrameMessage
from sopilot.views.questions import user_tools
from sopilot.views.view import View
from sopilot_lab.experiments.misbehaviour import Misbehaviour

READABLE = [name for name, view in VIEWS.items() if view.machine or name == "flat"]
SWITCHES = (
    "skip_check",
    "act_early",
    "over_verify",
    "return_without_evidence",
    "refuse_wrongly",
    "ignore_frame",
)


class Reading:
    """A model whose requests are read as they come."""

    name = "reading"

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self.problems: list[str] = []
        self.texts = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        for message in request.messages:
            if message.role in ("system", "tool"):
                self.texts += 1
                self.problems += misnamed(message.content, request.tools)
        slot = request.messages[-1]
        names = {tool.name for tool in request.tools}
        if slot.role == "system":
            self.problems += [one for one in shown_tools(slot.content) if one not in names]
        return await self._inner.complete(request)


def accepting(view: str, problems: list[str]) -> View:
    """The view, with every step that its slot tells to take tried on the machine."""

    def look(moment: Moment, message: FrameMessage) -> None:
        if moment.here is not None:
            problems.extend(refused_steps(message.text, moment))
        else:
            problems.extend(
                f"{start} is refused"
                for start in told_starts(message.text)
                if moment.machine.suppose(moment.configuration, start, at=0.0) is None
            )

    return watched(view, look) if VIEWS[view].machine else VIEWS[view]


async def read_run(
    example: str,
    task: str,
    view: str,
    misbehaviour: Misbehaviour | None = None,
    language: str = "en",
) -> list[str]:
    model = Reading(reference(example, misbehaviour))
    problems: list[str] = []
    await play(example, task, accepting(view, problems), model=model, language=language)
    assert model.texts >= 2
    return [*problems, *model.problems]


@pytest.mark.parametrize("language", sorted(LANGUAGES))
@pytest.mark.parametrize("view", READABLE)
async def test_what_honest_runs_show_is_on_offer(view: str, language: str) -> None:
    for number, name in enumerate(bundled_names()):
        tasks = load_example(name).tasks
        for task in tasks[number :: max(1, len(tasks) // 3)]:
            assert await read_run(name, task.id, view, language=language) == [], task.id


@pytest.mark.parametrize("view", ["pg", "pg-paper", "fused", "full-cursor", "flat"])
@pytest.mark.parametrize("switch", SWITCHES)
async def test_what_misbehaving_runs_are_answered_is_on_offer(view: str, switch: str) -> None:
    for example, task in some_tasks(17, "bank"):
        wrong = Misbehaviour(**{switch: 0.7}, seed=len(task))
        assert await read_run(example, task, view, wrong) == [], task


@pytest.mark.parametrize("language", sorted(LANGUAGES))
@pytest.mark.parametrize("view", [name for name in VIEWS if name not in READABLE])
async def test_first_requests_of_the_other_views_name_what_is_on_offer(
    view: str, language: str
) -> None:
    for name in bundled_names():
        model = Reading(ScriptedModel([ModelReply("Goodbye."), ModelReply("Goodbye.")]))
        await play(name, view=view, model=model, language=language)
        assert model.texts
        assert model.problems == []


@settings(deadline=None, max_examples=25)
@given(handbooks(), st.sampled_from(sorted(LANGUAGES)))
def test_frames_of_any_handbook_name_what_is_on_offer(handbook: Handbook, language: str) -> None:
    program = compile_procedure(handbook, "goal").program
    briefing = replace(briefing_of("bank", language), handbook=handbook, programs={"goal": program})
    actions = [
        ToolSchema(name, "", {"properties": {one.name: {} for one in action.inputs}})
        for name, action in handbook.actions.items()
    ]
    actions += user_tools([program])
    for name in ("pg", "pg-paper", "fused"):
        toolbox = Toolbox(VIEWS[name], briefing, actions)
        for function in program.functions.values():
            for step in function.steps:
                if name == "fused" and isinstance(step, Check | Branch | ReturnStep):
                    continue  # the machine's own moves, or tried in runs
                for known in ({}, dict.fromkeys(function.parameters, "x")):
                    for failed in ((), (3,)):
                        frame = render_frame(
                            program, function.name, step.label, {}, known, language,
                            failed=failed, tool=toolbox.step,
                        )  # fmt: skip
                        assert list(misnamed(frame, toolbox.schemas)) == []


def test_the_reader_of_texts_finds_what_is_wrong() -> None:
    """The check itself: the sentences that models stumbled over."""
    fused = Toolbox(VIEWS["fused"], briefing_of("bank"), ()).schemas
    flat = Toolbox(VIEWS["flat"], briefing_of("bank"), ()).schemas
    paper = Toolbox(VIEWS["pg-paper"], briefing_of("bank"), ()).schemas
    for text, tools in (
        ("Now: `pg_program_step` with operation `return`, `holds`: true.", fused),
        ("Now: pg_program_step return holds = true.", fused),
        ("`step` with `return`: true", fused),
        ("or `undecided`", paper),
        ("`amend` corrects values", paper),
        ("then `complete`", flat),
        ("call `open_sesame(x=1)` first", fused),
    ):
        assert list(misnamed(text, tools)), text
    assert len(told_steps('Now: `step` with `true`: "1" or `false`: "1".', short=True)) == 2


# --- the frame and the guard ----------------------------------------------------------


@pytest.mark.parametrize("view", ["pg", "pg-paper", "fused", "full-cursor"])
async def test_a_frame_never_contradicts_the_guard(view: str) -> None:
    """An executor that claims every check comes to the goal tool: the frame says what the guard
    would say, and not that the decision allows it."""
    met, blocked = [], []

    def look(moment: Moment, message: FrameMessage) -> None:
        text, here = message.text, moment.here
        if here is not None and isinstance(here.step, Act) and here.step.goal:
            guarded = {one.action for one in here.source.guarded}
            arguments = completed(here, here.step.action, {})
            assert moment.judge is not None
            missing = license_here(here, arguments, moment.judge).missing
            if here.step.action in guarded and missing:
                assert "the decision allows it" not in text
                assert f"`{here.step.action}` is blocked: " in text or "answered `failed`" in text
                blocked.append(text)
            else:
                met.append(text)

    for example, task in some_tasks(6):
        for rate in (0.0, 0.8):
            wrong = Misbehaviour(return_without_evidence=rate, skip_check=rate, seed=7)
            model = Reading(reference(example, wrong))
            await play(example, task, watched(view, look), model=model)
            assert model.problems == []
    assert met
    assert blocked


def test_flat_has_no_word_of_bookkeeping() -> None:
    for name in bundled_names():
        for program in briefing_of(name).programs.values():
            for function in program.functions.values():
                text = render_function(function, program)
                assert not re.search(r"return holds|select_branch|: complete$|undecided", text)
