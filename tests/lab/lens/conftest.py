"""Recorded sessions of the bank example, and a tiny model with random weights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.loop import open_run, run_session
from sopilot.agent.reference.executor import Reference
from sopilot.compiler.pipeline import compile_handbook
from sopilot.protocols import ModelReply, ModelRequest
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import load_example
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import view_named
from sopilot_lab.lens.moments import ReadMoment, moments_of
from sopilot_lab.lens.open_weights import OpenWeights

Recorded = tuple[list[ReadMoment], list[ModelRequest]]
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


class Listening:
    """A model that keeps what it was asked."""

    def __init__(self, inner: Reference) -> None:
        self._inner = inner
        self.asked: list[ModelRequest] = []

    @property
    def name(self) -> str:
        return self._inner.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return await self._inner.complete(request)


def record(arm_name: str) -> Recorded:
    """The moments of a session from its trace, beside the requests that were really made."""
    example = load_example("bank")
    programs = {goal: one.program for goal, one in compile_handbook(example.handbook).items()}
    task = example.tasks[0]
    briefing = Briefing(example.handbook, programs)
    arm = view_named(arm_name)
    tools = example.make_tools(task)
    model = Listening(Reference(example.reader))

    async def run() -> list[ReadMoment]:
        session = await open_run(MemoryStore(), briefing, arm, tools=tools, unguarded=True)
        user = ScriptedUser(task.request, task.inputs, goal=task.goal, late=task.late)
        await run_session(session, briefing, view=arm, model=model, user=user)
        events = list(session.own_events)
        return moments_of(session.machine, events, briefing, arm, tools.schemas(), task.goal)

    return asyncio.run(run()), model.asked


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], Recorded]:
    kept: dict[str, Recorded] = {}

    def of(arm: str) -> Recorded:
        if arm not in kept:
            kept[arm] = record(arm)
        return kept[arm]

    return of


@pytest.fixture
def tiny() -> Callable[..., OpenWeights]:
    """``blind`` makes every head look at everything alike."""
    torch = pytest.importorskip("torch", reason="needs the extra `lens`")
    pytest.importorskip("transformers", reason="needs the extra `lens`")

    torch.set_num_threads(1)

    def make(*, blind: bool = False, room: int = 16_384) -> OpenWeights:
        model = tiny_model(torch, room)
        if blind:
            for layer in model.model.layers:
                torch.nn.init.zeros_(layer.self_attn.q_proj.weight)
        return OpenWeights(model, tiny_tokenizer(), "tiny")

    return make


def tiny_model(torch: Any, room: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=room,
        attn_implementation="eager",
        initializer_range=0.4,
    )
    return LlamaForCausalLM(config)


def tiny_tokenizer() -> Any:
    """Bytes as tokens, and four special ones."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={one: n for n, one in enumerate(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = [f"<|{name}|>" for name in ("system", "user", "assistant", "end")]
    made = PreTrainedTokenizerFast(tokenizer_object=raw, additional_special_tokens=special)
    made.chat_template = TEMPLATE
    return made
