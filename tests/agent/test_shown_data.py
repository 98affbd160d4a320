"""A text shows everything that the reference executor acts on: a model can do as well."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from desk_runs import briefing_of, play, some_tasks, watched

from sopilot.handbook.requirements import Constant
from sopilot.program.model import Act
from sopilot.tasks.examples.example import bundled_names
from sopilot.values.json import JSON
from sopilot.values.text import quote_literal, quote_value
from sopilot.views.frame import render_function
from sopilot.views.moment import Moment
from sopilot.views.moves import FrameMessage, Move, MoveArguments, Value
from sopilot.views.program_text import render_flat

LANGUAGES = ["en", "zh"]
SHOWN = ["pg", "pg-paper", "fused", "full-cursor", "flat-state", "chunk", "state-only"]


def spelled(value: JSON) -> set[str]:
    """A value in a text: whole, or cut to one of the two lengths."""
    return {quote_value(value), quote_value(value, 400)}


def held(arguments: MoveArguments) -> Iterator[set[str]]:
    for parameter, term in arguments:
        yield {parameter}
        if isinstance(term, Value):
            yield spelled(term.value)
        elif isinstance(term, Constant):
            yield {quote_literal(term.value)}
        else:
            yield {str(getattr(term, "name", term))}


def shown_by(move: Move) -> Iterator[set[str]]:
    """Everything that the move holds; each set is one thing, in its spellings."""
    if move.kind not in ("branch", "choose", "return"):
        yield {move.name}
    yield {move.function}
    yield from held(move.arguments)
    for name, value in move.known.items():
        yield {name}
        yield spelled(value)
    for number in move.gathered or ():
        yield {f"#{number}"}
    for goal, names in {**move.goals, **move.needed}.items():
        yield from ({goal}, *({name} for name in names))
    for act in (act for recipe in move.recipes for act in recipe):
        yield from ({act.action}, *held(act.arguments))
    yield from ({option} for option in move.options)
    if move.kind == "fail":
        yield {move.message}
    for edge, ahead in move.ahead.items():
        yield from ({edge}, {ahead.name if ahead.kind != "call" else ""}, {ahead.number})
        yield from held(ahead.arguments) if ahead.kind != "call" else ()
        yield from ({f"#{number}"} for number in ahead.gathered or ())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("view", SHOWN)
@pytest.mark.parametrize("example", bundled_names())
async def test_frame_messages(example: str, view: str, language: str) -> None:
    seen: set[str] = set()

    def look(moment: Moment, message: FrameMessage) -> None:
        assert message.move is not None
        for spellings in shown_by(message.move):
            assert any(text in message.text for text in spellings), spellings
        seen.add(message.move.kind)

    for _, task in some_tasks(12, example):
        run = await play(example, task, watched(view, look), language=language)
        assert run.judgement.passed
    assert {"start", "goal"} <= seen


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("example", bundled_names())
def test_whole_programs(example: str, language: str) -> None:
    for program in briefing_of(example).programs.values():
        whole = render_flat(program, language).text
        for function in program.functions.values():
            text = render_function(function, program, language)
            assert text in whole
            assert all(step.label in text for step in function.steps)
            for step in (*function.steps, *(act for acts in function.fallbacks for act in acts)):
                if isinstance(step, Act):
                    spellings = [{step.action}, *held(step.arguments)]
                    assert all(any(item in text for item in each) for each in spellings)
