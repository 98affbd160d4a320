"""Answers of every shape: a reply, or the provider's failure, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.agent.retries import ProviderError
from sopilot.models.local import _reply
from sopilot.models.wire import check_served, read_reply
from sopilot.protocols import ModelReply, Served, ToolCall, Usage

Reader = Callable[[Any], ModelReply]


def plain(message: Any, **beside: Any) -> ModelReply:
    return read_reply({"choices": [{"message": message}], **beside})


def calling(function: Any, **beside: Any) -> dict[str, Any]:
    return {"tool_calls": [{"id": "a", "function": function, **beside}]}


@pytest.mark.parametrize(
    "message",
    [
        "x",
        5,
        ["x"],
        {"content": 5},
        {"content": {"text": "x"}},
        {"content": [5]},
        {"content": [{"text": 5}]},
        {"tool_calls": "x"},
        {"tool_calls": 5},
        {"tool_calls": {"a": 1}},
        {"tool_calls": ["x"]},
        calling("look"),
        calling(["look"]),
        calling({"name": 5}),
        calling({"name": {"a": 1}}),
    ],
    ids=json.dumps,
)
def test_wrong_shapes_are_the_providers_failure(message: Any) -> None:
    with pytest.raises(ProviderError, match="of the answer is not") as caught:
        plain(message)
    assert caught.value.retryable


@pytest.mark.parametrize("choices", [{"a": 1}, "x", 5, ["x"], [[]], {}], ids=json.dumps)
def test_choices_of_the_wrong_shape(choices: Any) -> None:
    with pytest.raises(ProviderError):
        read_reply({"choices": choices})


def test_the_provider_is_quoted() -> None:
    for error in ({"message": "over\ud800loaded"}, "over\ud800loaded"):
        with pytest.raises(ProviderError, match="the provider says: over\ufffdloaded"):
            read_reply({"error": error})
    with pytest.raises(ProviderError) as caught:
        read_reply({"error": {"code": "x" * 10_000}})
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "usage",
    [
        5,
        "x",
        [1],
        {"prompt_tokens": [1], "completion_tokens": "9", "prompt_tokens_details": [1]},
        {"prompt_tokens": float("inf"), "prompt_tokens_details": {"cached_tokens": {}}},
        {"prompt_tokens": float("nan"), "completion_tokens": -4},
        {"prompt_tokens": 10**400, "completion_tokens": True},
    ],
)
def test_an_answer_is_not_lost_for_its_bill(usage: Any) -> None:
    assert plain({"content": "hello"}, usage=usage) == ModelReply("hello", (), Usage())


def test_lone_surrogates_are_replaced() -> None:
    function = {"name": "lo\udc00ok", "arguments": '{"at": "\ud83d"}'}
    message = {"content": "a \ud800 b", "tool_calls": [{"id": "\ud800", "function": function}]}
    call = ToolCall("\ufffd", "lo\ufffdok", '{"at": "\ufffd"}')
    assert plain(message) == ModelReply("a \ufffd b", (call,), Usage())


@pytest.mark.parametrize(
    ("sent", "read_as"),
    [
        ({"at": "é", "deep": [True, None]}, '{"at": "é", "deep": [true, null]}'),
        ({}, "{}"),
        ([1], "[1]"),
        (None, ""),
        ('{"at": ', '{"at": '),
    ],
)
def test_arguments_become_json_text(sent: Any, read_as: str) -> None:
    (call,) = plain(calling({"name": "look", "arguments": sent})).tool_calls
    assert call == ToolCall("a", "look", read_as)


def test_a_text_in_parts() -> None:
    parts = [{"type": "text", "text": "Hello"}, {"type": "other"}, {"type": "text", "text": "?"}]
    assert plain({"content": parts}).content == "Hello?"


def test_the_local_model_may_write_half_a_character() -> None:
    assert _reply('{"say": "a \\ud800"}', 1, Usage()).content == "a \ufffd"
    (call,) = _reply('{"tool": "t", "arguments": {"a": "\\ud800"}}', 1, Usage()).tool_calls
    assert call.arguments == '{"a": "\ufffd"}'


TEXTS = st.text(st.characters(exclude_categories=())) | st.sampled_from(["", "look", "{", "\ud800"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def shaped(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any of the parts may be missing, and the whole may be something else."""
    return ANYTHING | st.fixed_dictionaries({}, optional=parts)


FUNCTION = shaped(name=ANYTHING, arguments=ANYTHING)
CALLS = ANYTHING | st.lists(shaped(id=ANYTHING, index=ANYTHING, function=FUNCTION), max_size=3)
MESSAGE = shaped(content=ANYTHING, tool_calls=CALLS)
CHOICES = ANYTHING | st.lists(
    shaped(message=MESSAGE, delta=MESSAGE, finish_reason=ANYTHING), max_size=2
)
COUNTS = shaped(
    prompt_tokens=ANYTHING,
    completion_tokens=ANYTHING,
    prompt_tokens_details=shaped(cached_tokens=ANYTHING),
)
BODY = shaped(choices=CHOICES, usage=COUNTS, error=st.none() | ANYTHING)


def must_be_a_reply(read: Callable[[], ModelReply]) -> None:
    try:
        reply = read()
    except ProviderError as problem:
        str(problem).encode()
        return
    for call in reply.tool_calls:
        (call.id + call.name + call.arguments).encode()
        assert call.id
    reply.content.encode()
    counts = (reply.usage.prompt_tokens, reply.usage.cached_tokens, reply.usage.completion_tokens)
    assert all(type(count) is int and count >= 0 for count in counts)


@settings(deadline=None, max_examples=300)
@given(BODY)
def test_no_plain_answer_escapes(body: Any) -> None:
    must_be_a_reply(lambda: read_reply(json.loads(json.dumps(body))))


@pytest.mark.parametrize("depth", [100, 480, 900, 100_000])
@pytest.mark.parametrize("inside", ["content", "tool_calls", "arguments", "error"])
def test_deep_answers(depth: int, inside: str) -> None:
    hole = {
        "content": '{"choices": [{"message": {"content": %s}}]}',
        "tool_calls": '{"choices": [{"message": {"tool_calls": %s}}]}',
        "arguments": (
            '{"choices": [{"message": {"tool_calls": [{"function": {"arguments": %s}}]}}]}'
        ),
        "error": '{"error": %s}',
    }[inside]
    for opened, closed in (("[", "]"), ('[{"text": ', "}]")):
        body = hole % (opened * depth + "5" + closed * depth)

        def read(body: str = body) -> ModelReply:
            try:
                answer = json.loads(body)
            except RecursionError as error:
                raise ProviderError("the answer is not JSON") from error
            return read_reply(answer)

        must_be_a_reply(read)


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4", "gpt-4.1", False),
        ("gpt-4", "gpt-4-32k", False),
        ("vendor/model:free", "vendor/model", True),
        ("claude-x-latest", "claude-x-20250101", True),
        ("Model-A", "model-a", True),
        ("model-a", "", True),
        ("model-a", "model-b", False),
    ],
)
def test_whose_answer_it_is(asked: str, served: str, same: bool) -> None:
    reply = ModelReply("x", served=Served(model=served))
    if same:
        assert check_served(reply, asked) is reply
        return
    with pytest.raises(ProviderError) as caught:
        check_served(reply, asked)
    assert caught.value.kind == "wrong-model"
    assert check_served(reply, None) is reply


def test_what_is_not_the_models_word() -> None:
    def body(message: dict[str, object], reason: str) -> dict[str, object]:
        return {"choices": [{"message": message, "finish_reason": reason}], "usage": {}}

    for message, reason, kind in (
        ({"content": "I ca"}, "content_filter", "content-filter"),
        ({"content": ""}, "stop", "empty"),
        ({"content": " \n"}, "stop", "empty"),
        ({"content": None}, "length", "empty"),
        ({"content": {}}, "stop", "wrong-schema"),
    ):
        with pytest.raises(ProviderError) as caught:
            read_reply(body(message, reason))
        assert caught.value.kind == kind
    assert read_reply(body({"content": None, "refusal": "No."}, "stop")).content == "No."
    for code, kind in (
        ("context_length_exceeded", "context"),
        ("content_filter", "content-filter"),
    ):
        with pytest.raises(ProviderError) as caught:
            read_reply({"error": {"message": "m", "code": code}})
        assert (caught.value.kind, caught.value.retryable) == (kind, False)


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("vendor/model", "vendor/model"),
        ("/home/me/models/small.gguf", "small.gguf"),
        ("C:\\models\\small.gguf", "small.gguf"),
        ("./small.gguf", "small.gguf"),
        (7, ""),
    ],
)
def test_a_server_that_names_a_file_is_not_quoted(told: object, kept: str) -> None:
    assert plain({"content": "x"}, model=told).served.model == kept
