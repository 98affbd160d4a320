"""Answers of every shape: a reply, or the provider's failure, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sopilot.adapters.model_stream import DONE, StreamedReply

from sopilot.adapters.model_local import _reply
from sopilot.adapters.model_wire import read_reply
from sopilot.runtime.agent import ProviderError
from sopilot.runtime.session.protocols import ModelReply, ToolCall, Usage

Reader = Callable[[Any], ModelReply]


def plain(message: Any, **beside: Any) -> ModelReply:
    return read_reply({"choices": [{"message": message}], **beside})


def streamed(message: Any, **beside: Any) -> ModelReply:
    chunk = {"choices": [{"delta": message, "finish_reason": "stop"}], **beside}
    return read_stream([chunk])


def read_stream(chunks: list[Any]) -> ModelReply:
    stream = StreamedReply()
    for chunk in chunks:
        stream.feed(f"data: {json.dumps(chunk)}")
    stream.feed(f"data: {DONE}")
    return stream.finish()


def calling(function: Any, **beside: Any) -> dict[str, Any]:
    return {"tool_calls": [{"id": "a", "function": function, **beside}]}


both = pytest.mark.parametrize("read", [plain, streamed])


@both
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
def test_wrong_shapes_are_the_providers_failure(read: Reader, message: Any) -> None:
    with pytest.raises(ProviderError, match="of the answer is not") as caught:
        read(message)
    assert caught.value.retryable


@pytest.mark.parametrize("choices", [{"a": 1}, "x", 5, ["x"], [[]], {}], ids=json.dumps)
@pytest.mark.parametrize("read", [read_reply, lambda body: read_stream([body])])
def test_choices_of_the_wrong_shape(read: Reader, choices: Any) -> None:
    with pytest.raises(ProviderError):
        read({"choices": choices})


def test_an_index_that_is_no_number() -> None:
    with pytest.raises(ProviderError, match="`index`"):
        streamed(calling({"name": "look"}, index="first"))


@pytest.mark.parametrize("read", [read_reply, lambda body: read_stream([body])])
def test_the_provider_is_quoted(read: Reader) -> None:
    for error in ({"message": "over\ud800loaded"}, "over\ud800loaded"):
        with pytest.raises(ProviderError, match="the provider says: over\ufffdloaded"):
            read({"error": error})
    with pytest.raises(ProviderError) as caught:
        read({"error": {"code": "x" * 10_000}})
    assert len(str(caught.value)) < 400


@both
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
def test_an_answer_is_not_lost_for_its_bill(read: Callable[..., ModelReply], usage: Any) -> None:
    assert read({"content": "hello"}, usage=usage) == ModelReply("hello", (), Usage())


@both
def test_lone_surrogates_are_replaced(read: Reader) -> None:
    function = {"name": "lo\udc00ok", "arguments": '{"at": "\ud83d"}'}
    message = {"content": "a \ud800 b", "tool_calls": [{"id": "\ud800", "function": function}]}
    call = ToolCall("\ufffd", "lo\ufffdok", '{"at": "\ufffd"}')
    assert read(message) == ModelReply("a \ufffd b", (call,), Usage())


def test_a_character_cut_in_two_is_joined() -> None:
    pieces = [{"choices": [{"delta": {"content": half}}]} for half in ("\ud83d", "\ude00!")]
    assert read_stream(pieces).content == "\N{GRINNING FACE}!"


@both
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
def test_arguments_become_json_text(read: Reader, sent: Any, read_as: str) -> None:
    (call,) = read(calling({"name": "look", "arguments": sent})).tool_calls
    assert call == ToolCall("a", "look", read_as)


@both
def test_a_text_in_parts(read: Reader) -> None:
    parts = [{"type": "text", "text": "Hello"}, {"type": "other"}, {"type": "text", "text": "?"}]
    assert read({"content": parts}).content == "Hello?"


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


@settings(deadline=None, max_examples=300)
@given(st.lists(BODY, max_size=3))
def test_no_streamed_answer_escapes(chunks: list[Any]) -> None:
    must_be_a_reply(lambda: read_stream(chunks))


@pytest.mark.parametrize("depth", [100, 480, 900, 100_000])
@pytest.mark.parametrize("inside", ["content", "tool_calls", "arguments", "error"])
def test_deep_answers(depth: int, inside: str) -> None:
    hole = {
        "content": '{"choices": [{"delta": {"content": %s}}]}',
        "tool_calls": '{"choices": [{"delta": {"tool_calls": %s}}]}',
        "arguments": '{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": %s}}]}}]}',
        "error": '{"error": %s}',
    }[inside]
    for opened, closed in (("[", "]"), ('[{"text": ', "}]")):
        body = hole % (opened * depth + "5" + closed * depth)
        stream = StreamedReply(complete=True)

        def read(body: str = body, stream: StreamedReply = stream) -> ModelReply:
            stream.feed(f"data: {body}")
            return stream.finish()

        must_be_a_reply(read)
