"""The capture against the model's own attentions, on a tiny model with random weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sopilot.messages.errors import UserMistake
from sopilot.protocols import ModelRequest
from sopilot_lab.lens.moments import Context, Piece, ReadMoment, Region, Turn
from sopilot_lab.lens.open_weights import OpenWeights, load_weights
from sopilot_lab.lens.report import plot, summarise
from sopilot_lab.lens.study import study

Recorded = Callable[[str], tuple[list[ReadMoment], list[ModelRequest]]]
Tiny = Callable[..., OpenWeights]
MOVE = '{"tool": "login"'
CONTEXT = Context(
    (
        Turn("system", (Piece(Region.INSTRUCTIONS, "Serve. "), Piece(Region.TOOLS, "login()"))),
        *(
            Turn("user", (Piece(Region.DIALOG, f"I am number {n}, and I wait."),))
            for n in range(30)
        ),
        Turn("system", (Piece(Region.FRAME, "call login\n"), Piece(Region.PROGRAM, "then pay"))),
    )
)


def reading(weights: OpenWeights, context: Context = CONTEXT) -> tuple[Any, Any]:
    prompt = weights.prompt(context, MOVE)
    assert prompt is not None
    return prompt, weights.read(prompt, MOVE, look=True)


def test_sliced_reading_equals_the_whole_at_once(tiny: Tiny) -> None:
    import torch

    weights = tiny()
    prompt, found = reading(weights)
    assert len(prompt.ids) > 3 * 256
    move = weights._ids(MOVE)
    with torch.inference_mode():
        whole = weights._model(
            input_ids=torch.tensor([[*prompt.ids, *move[:-1]]]), output_attentions=True
        )
    rows = whole.logits[0, len(prompt.ids) - 1 :].log_softmax(-1)
    expected = sum(float(rows[n, token]) for n, token in enumerate(move))
    assert found.log_probability == pytest.approx(expected, abs=1e-3)
    real = torch.tensor([one is not None for one in prompt.regions])
    for region in Region:
        inside = torch.tensor([one is region for one in prompt.regions])
        for layer, attentions in enumerate(whole.attentions):
            asked = attentions[0, :, len(prompt.ids) - 1 :, : len(prompt.ids)]
            share = asked[..., inside].sum((1, 2)) / asked[..., real].sum((1, 2))
            assert found.attention.shares[region][layer] == pytest.approx(share.tolist(), abs=1e-4)


def test_heads_that_look_at_everything_alike_are_at_parity(tiny: Tiny) -> None:
    _, found = reading(tiny(blind=True))
    for region in Region:
        assert found.attention.parity(region) == pytest.approx(1.0, abs=1e-5)
    _, sighted = reading(tiny())
    assert any(abs((sighted.attention.parity(r) or 1.0) - 1.0) > 0.02 for r in Region)


def test_only_real_tokens_count(tiny: Tiny) -> None:
    prompt, found = reading(tiny())
    words = sum(len("".join(p.text for p in turn.pieces).strip()) for turn in CONTEXT.turns)
    assert sum(one is not None for one in prompt.regions) == words
    assert sum(found.attention.tokens.values()) == words
    assert 0 < found.attention.outside < 1


def test_nothing_larger_than_a_slice_by_the_length_is_made(tiny: Tiny) -> None:
    weights = tiny()
    largest = 0

    def look(module: Any, given: Any, made: Any) -> None:
        nonlocal largest
        largest = max(largest, made[1].shape[-2])

    for layer in weights._model.model.layers:
        layer.self_attn.register_forward_hook(look)
    reading(weights)
    assert 0 < largest <= 256


def test_a_request_that_is_too_long_loses_its_oldest_dialog(tiny: Tiny) -> None:
    prompt, _ = reading(tiny(room=400))
    assert prompt.left_out > 0
    assert len(prompt.ids) <= 400 - len(MOVE)
    assert any(one is Region.FRAME for one in prompt.regions)
    assert tiny(room=40).prompt(CONTEXT, MOVE) is None


def test_what_was_read_before_does_not_show(tiny: Tiny) -> None:
    fresh, used = tiny(), tiny()
    shorter = CONTEXT.without(Region.FRAME)
    _, other = reading(used, shorter)
    _, again = reading(used)
    assert again == reading(fresh)[1]
    assert other == reading(used, shorter)[1]
    assert other != again


def cut(context: Context) -> Context:
    """A byte is a token here: a few of each piece will do."""
    return Context(
        tuple(
            Turn(t.role, tuple(Piece(p.region, p.text[:80]) for p in t.pieces))
            for t in context.turns
        )
    )


def test_a_recorded_session_under_the_lens(recorded: Recorded, tiny: Tiny) -> None:
    moments, _ = recorded("full-cursor")
    third = moments[2]
    found = study(tiny(), replace(third, own=cut(third.own), clean=cut(third.clean)))
    assert found is not None
    assert found.nothing == 0.0
    assert set(found.removed) == {Region.DIALOG, Region.FRAME, Region.PROGRAM}
    assert all(change != 0.0 for change in found.removed.values())
    summary = summarise("tiny", [found])
    assert summary is not None
    assert summary["focus"] == Region.FRAME
    for presented in ("own", "clean"):
        lines = [one for one in summary["regions"] if one["presentation"] == presented]
        assert sum(one["attention_share"] for one in lines) == pytest.approx(1.0)
        assert sum(one["length_share"] for one in lines) == pytest.approx(1.0)
    assert summary["removed"]["nothing"] == {"moments": 1, "nats": 0.0}
    drawn = plot(summary).as_file()
    assert drawn.count("<title>layer") == 2 * 4
    assert summarise("tiny", []) is None


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_reads_almost_the_same(tiny: Tiny, tmp_path: Path, dtype: str) -> None:
    whole = tiny()
    whole._model.save_pretrained(tmp_path)
    whole._tokenizer.save_pretrained(tmp_path)
    half = load_weights(tmp_path, device="cpu", dtype=dtype)
    assert str(half._model.dtype) == f"torch.{dtype}"
    _, expected = reading(whole)
    _, found = reading(half)
    assert found.log_probability == pytest.approx(expected.log_probability, rel=0.05)
    for region in Region:
        for layer, heads in enumerate(expected.attention.shares[region]):
            assert found.attention.shares[region][layer] == pytest.approx(heads, abs=0.05)


def test_every_operation_has_its_tensors_on_one_device(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`meta` stands for a GPU. It holds no numbers, so the way back gives zeros."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class OneDevice(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
            devices = {each.device.type for each in given if each.dim()}
            assert len(devices) < 2, (func, devices)
            return func(*args, **(kwargs or {}))

    def zeros(tensor: Any) -> Any:
        brought.append(tensor.device.type)
        return torch.zeros(tensor.shape, dtype=tensor.dtype)

    brought: list[str] = []
    weights = tiny()
    weights._model.to("meta")
    monkeypatch.setattr(torch.Tensor, "cpu", zeros)
    with OneDevice():
        reading(weights)
        reading(weights, CONTEXT.without(Region.FRAME))  # with a part of the first one's cache
    layers = len(weights._model.model.layers)
    assert brought == ["meta"] * 2 * (layers + 1)


def test_a_device_that_is_not_there_is_a_mistake(tiny: Tiny, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    whole = tiny()
    whole._model.save_pretrained(tmp_path)
    whole._tokenizer.save_pretrained(tmp_path)
    with pytest.raises(UserMistake, match="cannot be read as a model"):
        load_weights(tmp_path, device="cuda")
