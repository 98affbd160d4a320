"""What each view puts into a prompt, pinned for one task at two moments.

Regenerate with ``SOPILOT_REGOLD=1 pytest tests/agent/test_view_goldens.py``.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import pytest
from desk_runs import RecordingModel, ScriptedModel, briefing_of, calls, play, reference
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.messages.errors import UserMistake
from sopilot.protocols import ModelReply, ModelRequest
from sopilot.views.baselines import best, bm25
from sopilot.views.catalogue import VIEWS
from sopilot.views.view import no_frame_message

GOLDEN = Path(__file__).parent / "golden"
EXAMPLE, TASK = "bank", "dispute-electronics"


async def prompts(view: str) -> list[ModelRequest]:
    """The requests of a run under the view; views that the reference cannot read get one."""
    recorder = RecordingModel(reference(EXAMPLE))
    try:
        await play(EXAMPLE, TASK, view, model=recorder)
    except UserMistake:
        assert not VIEWS[view].machine
    return recorder.requests


def spelled(request: ModelRequest) -> str:
    lines = [f"tools: {', '.join(tool.name for tool in request.tools)}"]
    for message in request.messages:
        lines += ["", f"--- {message.role}" + (f" ({message.name})" if message.name else "")]
        lines += [message.content] if message.content else []
        lines += [f"{call.name} {call.arguments}" for call in message.tool_calls]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("view", VIEWS)
async def test_prompts(view: str) -> None:
    made = await prompts(view)
    moments = {"first": made[0]}
    if len(made) > 1:
        moments["middle"] = made[len(made) // 2]
    for moment, request in moments.items():
        path = GOLDEN / f"{view}.{moment}.txt"
        text = spelled(request)
        if os.environ.get("SOPILOT_REGOLD"):
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text


SHOWN = [
    name
    for name, view in VIEWS.items()
    if view.machine and view.frame_message is not no_frame_message
]
"""The views with a machine that show where it stands."""


@pytest.mark.parametrize("view", SHOWN)
async def test_stable_text_first_and_slot_last(view: str) -> None:
    made = await prompts(view)
    firsts = {request.messages[0] for request in made}
    assert len(firsts) == 1
    for before, after in itertools.pairwise(made):
        # All but the slot is a prefix of the next request: that is what a prefix cache needs.
        kept = list(before.messages[:-1])
        assert list(after.messages[: len(kept)]) == kept
        assert before.messages[-1].role == "system"
    slots = {request.messages[-1].content for request in made}
    assert len(slots) > (2 if view == "fused" else 5)


async def test_chunk_stays_within_its_budget() -> None:
    briefing = briefing_of(EXAMPLE)
    for request in await prompts("chunk"):
        chunk, position, _ = request.messages[-1].content.partition("Position: ")
        if position:
            assert len(chunk.rstrip()) <= briefing.largest_frame("dispute_payment")


NAMES = ("anna", "anna", "ben")


async def test_checklist_ticks_after_the_call() -> None:
    model = ScriptedModel(
        [
            calls(("login", '{"username": "anna", "password": "wrong"}')),
            *(calls(("find_account", json.dumps({"username": name}))) for name in NAMES),
            ModelReply("That is all."),
        ]
    )
    await play(EXAMPLE, TASK, "checklist", model=model)
    shown = [request.messages[-1].content.count("[x]") for request in model.requests[:5]]
    none, failed, anna, again, ben = shown
    assert none == failed == 0 < anna == again < ben


words = st.lists(
    st.sampled_from(["login", "account", "card", "case", "balance", "frozen"]), max_size=6
)


@settings(deadline=None)
@given(query=words, documents=st.lists(words, min_size=1, max_size=8), count=st.integers(1, 8))
def test_retrieval(query: list[str], documents: list[list[str]], count: int) -> None:
    texts = [" ".join(document) for document in documents]
    chosen = best(" ".join(query), texts, count)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(count, len(texts))
    scores = bm25(" ".join(query), texts)
    left = [scores[i] for i in range(len(texts)) if i not in chosen]
    assert not left or max(left) <= min(scores[i] for i in chosen)
    for text, score in zip(texts, scores, strict=True):
        assert (score > 0) == bool(set(query) & set(text.split()))
