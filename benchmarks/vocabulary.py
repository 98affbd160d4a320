"""A real tokenizer without a network: the vocabulary inside the local model's GGUF file.

SmolLM2's byte-level BPE, read out of the file's header and run by `tiktoken`. Other
models cut texts otherwise; ratios between arms hardly depend on it.
"""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from sopilot.models.local import local_model_file

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q"}
_STRING, _ARRAY, _DOUBLE = 8, 9, 12
# GPT-2's pre-tokenizer with single digits, as the file's `tokenizer.ggml.pre` names it.
_PATTERN = r"\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


class Tokenizer:
    """``count(text)`` and the tokens themselves, special tokens read as plain text."""

    def __init__(self, path: Path) -> None:
        import tiktoken

        header = _header(path)
        tokens: list[str] = header["tokenizer.ggml.tokens"]
        kinds: list[int] = header["tokenizer.ggml.token_type"]
        merges: list[str] = header["tokenizer.ggml.merges"]
        bytes_of = {letter: byte for byte, letter in _letters().items()}

        def spelled(token: str) -> bytes:
            return bytes(bytes_of[letter] for letter in token)

        ranks = {bytes([byte]): index for index, byte in enumerate(_letters())}
        for merge in merges:
            ranks.setdefault(spelled(merge.replace(" ", "", 1)), len(ranks))
        ordinary = sum(kind == 1 for kind in kinds)
        if not ordinary <= len(ranks) + 256 or len(tokens) < 1_000:
            raise ValueError(f"{path.name} does not hold the vocabulary that was expected")
        self.name = f"{path.stem} ({len(tokens)} tokens)"
        self._encoding = tiktoken.Encoding(
            path.stem, pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={}
        )

    def tokens(self, text: str) -> list[int]:
        return self._encoding.encode_ordinary(text)

    def count(self, text: str) -> int:
        return len(self.tokens(text))


@cache
def smollm2() -> Tokenizer:
    return Tokenizer(local_model_file())


def _letters() -> dict[int, str]:
    """The letters that byte-level BPE writes for the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable}
    return letters | {byte: chr(256 + index) for index, byte in enumerate(others)}


def _header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path.name} is no GGUF file")
        _, _, entries = struct.unpack("<IQQ", file.read(20))
        return {_text(file): _value(file, _number(file, "I")) for _ in range(entries)}


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _text(file)
    if kind == _ARRAY:
        inner, count = _number(file, "I"), _number(file, "Q")
        return [_value(file, inner) for _ in range(count)]
    return _number(file, "d" if kind == _DOUBLE else _SCALARS[kind])


def _text(file: BinaryIO) -> str:
    return file.read(_number(file, "Q")).decode("utf-8", "replace")


def _number(file: BinaryIO, code: str) -> Any:
    return struct.unpack(f"<{code}", file.read(struct.calcsize(f"<{code}")))[0]
