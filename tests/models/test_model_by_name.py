"""Models by name, recordings, the local model's plumbing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.agent.reference.executor import Reference
from sopilot.agent.reference.judging import VerdictJudge
from sopilot.agent.result import Ending, SessionResult
from sopilot.messages.errors import RunEnded, UserMistake
from sopilot.models.hosted import HostedModel
from sopilot.models.http import HttpModel
from sopilot.models.local import fit, local_model_file, plain_messages, reply_schema
from sopilot.models.open import make_model
from sopilot.models.replay import load_replay, record
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall, ToolSchema
from sopilot.tasks.examples.example import load_example

TOOL = ToolSchema("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})


def test_names() -> None:
    judge = VerdictJudge(load_example("bank").handbook)
    assert isinstance(make_model("reference", judge=judge), Reference)
    endpoint = make_model("http://127.0.0.1:1/v1#small", environment={})
    assert isinstance(endpoint, HttpModel)
    assert endpoint.name == "small"
    named = {"SOPILOT_MODEL_URL": "https://host/v1#big"}
    assert make_model("openai-compatible", environment=named).name == "big"
    hosted = make_model("openrouter/vendor/model")
    assert isinstance(hosted, HostedModel)
    assert hosted.name == "openrouter/vendor/model"
    assert make_model("local").name == "local"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nonsense", "there is no model `nonsense`"),
        ("http://host/v1", "name the model behind `#`"),
        ("openai-compatible", "set SOPILOT_MODEL_URL"),
        ("replay:/nowhere.json", "cannot be read"),
        ("reference", "needs a handbook"),
    ],
)
def test_mistakes(name: str, problem: str) -> None:
    with pytest.raises(UserMistake, match=problem):
        make_model(name, environment={})


async def test_replaying_a_recording(tmp_path: Path) -> None:
    call = ToolCall("c", "look", '{"at": 1')
    messages = [
        Message("system", "s"),
        Message("assistant", "hello", (call,)),
        Message("user", "u"),
        Message("assistant", "bye"),
    ]
    path = tmp_path / "r.json"
    path.write_text(record(SessionResult("id", Ending.EXECUTED, messages=messages)))
    model = load_replay(str(path))
    assert await model.complete(ModelRequest([])) == ModelReply("hello", (call,))
    assert await model.complete(ModelRequest([])) == ModelReply("bye")
    with pytest.raises(RunEnded, match="needs more"):
        await model.complete(ModelRequest([]))


@pytest.mark.parametrize("text", ["{", "[]", '{"sopilot_replies": 9}'])
def test_broken_recordings(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(UserMistake):
        load_replay(str(path))


def test_local_replies_are_constrained() -> None:
    import jsonschema

    check = jsonschema.Draft202012Validator(reply_schema([TOOL]))
    assert check.is_valid({"say": "hello"})
    assert check.is_valid({"tool": "look", "arguments": {"at": "x"}})
    assert not check.is_valid({"tool": "jump", "arguments": {}})
    assert not check.is_valid({"tool": "look", "arguments": {"at": 3}})


def test_local_messages_are_plain() -> None:
    made = plain_messages(
        [
            Message("system", "Rules."),
            Message("assistant", "", (ToolCall("c", "look", '{"at": "x"}'),)),
            Message("tool", "#3 (ok): 1", tool_call_id="c", name="look"),
        ],
        [TOOL],
    )
    assert "- look(at?: string): Looks." in made[0]["content"]
    assert json.loads(made[1]["content"]) == {"tool": "look", "arguments": {"at": "x"}}
    assert made[2] == {"role": "user", "content": "[look] #3 (ok): 1"}


@settings(deadline=None)
@given(lengths=st.lists(st.integers(0, 500), min_size=1, max_size=12), room=st.integers(200, 2_000))
def test_the_context_always_fits(lengths: list[int], room: int) -> None:
    messages = [{"role": "user", "content": str(i) * length} for i, length in enumerate(lengths)]
    kept = fit(messages, room)
    assert sum(len(one["content"]) for one in kept) <= room + 10
    assert kept[0]["content"][:1] == messages[0]["content"][:1]
    assert kept[-1]["content"][-1:] == messages[-1]["content"][-1:]
    if sum(lengths) + 20 * len(lengths) < room // 4:
        assert kept == messages


def test_a_named_file_must_exist() -> None:
    with pytest.raises(UserMistake, match="SOPILOT_LOCAL_MODEL"):
        local_model_file({"SOPILOT_LOCAL_MODEL": "/nowhere.gguf"})


async def test_hosted_models_are_read_through_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("any_llm")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserMistake, match="cannot be used"):
        await make_model("openai/gpt-4o-mini").complete(ModelRequest([]))
