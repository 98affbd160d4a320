"""A model with open weights: its attention and its log-probabilities."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from sopilot.messages.errors import UserMistake
from sopilot_lab.lens.attention import Attention, attention_of
from sopilot_lab.lens.moments import Context, Region, write


def named_weights(model: str, *, device: str = "cpu", dtype: str = "float32") -> OpenWeights:
    # The bar over a GGUF file heeds the environment alone, and only before it is imported.
    os.environ.setdefault("TQDM_DISABLE", "1")
    if model == "local":
        from sopilot.models.local import local_model_file

        name = "SmolLM2-135M-Instruct"
        return load_weights(local_model_file(), name, device=device, dtype=dtype)
    path = Path(model)
    if not path.exists():
        raise UserMistake(f"`{model}` is neither `local`, a GGUF file nor a folder")
    return load_weights(path, device=device, dtype=dtype)


SLICE: Final = 256
"""Tokens of a request that are read at once."""
_ORDER: Final = tuple(Region)


@dataclass(frozen=True, slots=True)
class Prompt:
    """``regions`` has one entry a token; ``None`` is a token of the template."""

    ids: tuple[int, ...]
    regions: tuple[Region | None, ...]
    left_out: int = 0
    """Messages of the dialog, oldest first, that did not fit."""


@dataclass(frozen=True, slots=True)
class Reading:
    """``log_probability`` of the whole move, in nats."""

    log_probability: float
    attention: Attention | None


class OpenWeights:
    """Any causal model of Transformers with eager attention, and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, name: str) -> None:
        self._model = model.eval()
        self._tokenizer = tokenizer
        self.name = name
        self.room = int(getattr(model.config, "max_position_embeddings", 8_192))
        self._cache: Any = None
        self._read: tuple[int, ...] = ()

    def prompt(self, context: Context, move: str) -> Prompt | None:
        """Turn the context into tokens. Drop its oldest dialog until it fits beside the move;
        return ``None`` if it never does."""
        room = self.room - len(self._ids(move))
        left_out = 0
        shown: Context | None = context
        while shown is not None:
            prompt = self._tokens(shown, left_out)
            if len(prompt.ids) <= room:
                return prompt
            shown = shown.without_oldest_dialog()
            left_out += 1
        return None

    def _tokens(self, context: Context, left_out: int) -> Prompt:
        written = write(context, self._template)
        made = self._tokenizer(
            written.text,
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
        )
        special = set(self._tokenizer.all_special_ids)
        regions = tuple(
            None if token in special or start == end else written.region_at(start, end)
            for token, (start, end) in zip(made["input_ids"], made["offset_mapping"], strict=True)
        )
        return Prompt(tuple(made["input_ids"]), regions, left_out)

    def _template(self, messages: Sequence[Mapping[str, str]]) -> str:
        return str(
            self._tokenizer.apply_chat_template(
                [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
            )
        )

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def read(self, prompt: Prompt, move: str, *, look: bool = False) -> Reading:
        """How probable the move is behind the prompt; with ``look``, where the rows that
        predict it look."""
        import torch

        wanted = self._ids(move)
        before, last = prompt.ids[:-1], prompt.ids[-1]
        seen = _Sums(prompt.regions)
        with torch.inference_mode():
            cache, known = self._cached(before)
            for start in range(known, len(before), SLICE):
                self._model(
                    input_ids=self._tensor(before[start : start + SLICE]),
                    past_key_values=cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
            hooks = seen.watch(self._model) if look else []
            try:
                rows = self._model(
                    input_ids=self._tensor([last, *wanted[:-1]]),
                    past_key_values=cache,
                    use_cache=True,
                ).logits[0]
            finally:
                for hook in hooks:
                    hook.remove()
            chosen = rows.cpu().double().log_softmax(-1).gather(-1, torch.tensor(wanted)[:, None])
        self._cache, self._read = cache, before
        attention = attention_of(prompt.regions, seen.masses()) if look else None
        return Reading(float(chosen.sum()), attention)

    def _tensor(self, ids: Sequence[int]) -> Any:
        """A batch of one, where the model is."""
        import torch

        return torch.tensor([list(ids)], device=self._model.device)

    def _cached(self, before: tuple[int, ...]) -> tuple[Any, int]:
        """The last reading's cache as far as this one begins alike: requests of a session
        share their first message. In whole slices, so that the figures stay the same."""
        from transformers import DynamicCache

        pairs = zip(self._read, before, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        known = shared // SLICE * SLICE
        cache, self._cache = self._cache, None
        if not known or any(getattr(layer, "is_sliding", False) for layer in cache.layers):
            return DynamicCache(config=self._model.config), 0
        cache.crop(known - cache.get_seq_length())  # negative: so many tokens go
        return cache, known


class _Sums:
    """The attention of each layer, summed per region as the layer is left."""

    def __init__(self, regions: Sequence[Region | None]) -> None:
        self._regions = regions
        self._layers: dict[int, list[dict[Region | None, float]]] = {}

    def watch(self, model: Any) -> list[Any]:
        attending = [
            module
            for module in model.modules()
            if hasattr(module, "layer_idx") and type(module).__name__.endswith("Attention")
        ]
        if not attending:
            raise UserMistake(f"`{type(model).__name__}` doesn't return its attention weights")
        return [module.register_forward_hook(self._take) for module in attending]

    def _take(self, module: Any, value: Any, made: Any) -> None:
        import torch

        weights = made[1] if isinstance(made, tuple) and len(made) > 1 else None
        if weights is None:
            raise UserMistake(f"`{type(module).__name__}` doesn't return its attention weights")
        length = len(self._regions)
        if weights.shape[-1] < length:
            raise UserMistake(
                f"layer {module.layer_idx} attends to a window of {weights.shape[-1]} tokens: "
                f"requests of {length} cannot be read with the lens"
            )
        per_key = weights[0, :, :, :length].cpu().double().mean(1)
        places = torch.tensor(
            [len(_ORDER) if region is None else _ORDER.index(region) for region in self._regions]
        )
        sums = torch.zeros(per_key.shape[0], len(_ORDER) + 1, dtype=torch.double)
        sums.index_add_(1, places, per_key)
        names: tuple[Region | None, ...] = (*_ORDER, None)
        self._layers[int(module.layer_idx)] = [
            dict(zip(names, head, strict=True)) for head in sums.tolist()
        ]

    def masses(self) -> list[list[dict[Region | None, float]]]:
        return [self._layers[index] for index in sorted(self._layers)]


DTYPES: Final = ("float32", "bfloat16", "float16")


def load_weights(
    path: Path, name: str = "", *, device: str = "cpu", dtype: str = "float32"
) -> OpenWeights:
    """A GGUF file, or a folder as Transformers saves it. Nothing is fetched. ``device`` is
    PyTorch's name of it. Sums and probabilities are computed in double precision on the CPU."""
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging
    except ImportError as error:
        raise UserMistake("the lens needs: pip install 'sopilot[lens]'") from error
    logging.disable_progress_bar()
    folder = path if path.is_dir() else path.parent
    file = {} if path.is_dir() else {"gguf_file": path.name}
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, **file)
        model = AutoModelForCausalLM.from_pretrained(
            str(folder),
            local_files_only=True,
            attn_implementation="eager",
            dtype=getattr(torch, dtype),
            **file,
        ).to(device)
    except (OSError, ValueError, ImportError, RuntimeError, AssertionError) as error:
        raise UserMistake(f"`{path}` cannot be read as a model: {error}") from error
    if not getattr(tokenizer, "chat_template", None):
        raise UserMistake(f"`{path}` has no chat template")
    return OpenWeights(model, tokenizer, name or path.name)
