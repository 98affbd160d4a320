"""A request as regions of text, so that each can be weighed and taken away. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sopilot.messages.errors import UserMistake


class Region(StrEnum):
    INSTRUCTIONS = "instructions"
    TOOLS = "tools"
    PROGRAM = "program"
    """The SOP's text beyond the active frame; all of it in an arm without frames."""
    DIALOG = "dialog"
    FRAME = "frame"


@dataclass(frozen=True, slots=True)
class Piece:
    region: Region
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Context:
    turns: tuple[Turn, ...]

    def without(self, *regions: Region) -> Context:
        """A message that has nothing left goes with its region."""
        turns = []
        for turn in self.turns:
            pieces = tuple(piece for piece in turn.pieces if piece.region not in regions)
            if pieces:
                turns.append(Turn(turn.role, pieces))
        return Context(tuple(turns))

    def has(self, region: Region) -> bool:
        return any(
            piece.region is region and piece.text.strip()
            for turn in self.turns
            for piece in turn.pieces
        )

    def without_oldest_dialog(self) -> Context | None:
        """``None`` when there is none left to leave out."""
        for index, turn in enumerate(self.turns):
            if all(piece.region is Region.DIALOG for piece in turn.pieces):
                return Context((*self.turns[:index], *self.turns[index + 1 :]))
        return None


@dataclass(frozen=True, slots=True)
class Written:
    """``spans`` are (start, end, region) in ``text``; what no span covers is the template's."""

    text: str
    spans: tuple[tuple[int, int, Region], ...]

    def region_at(self, start: int, end: int) -> Region | None:
        """The region of the first character there that is not blank."""
        while start < end - 1 and self.text[start].isspace():
            start += 1
        for first, last, region in self.spans:
            if first <= start < last:
                return region
        return None


Template = Callable[[Sequence[Mapping[str, str]]], str]


def write(context: Context, template: Template) -> Written:
    """The text that the chat template makes of a context, with its regions found again."""
    contents = ["".join(piece.text for piece in turn.pieces).strip() for turn in context.turns]
    text = template(
        [
            {"role": turn.role, "content": content}
            for turn, content in zip(context.turns, contents, strict=True)
        ]
    )
    spans: list[tuple[int, int, Region]] = []
    after = 0
    for turn, content in zip(context.turns, contents, strict=True):
        start = text.find(content, after)
        if start < 0:
            raise UserMistake("this model's chat template changes the messages: no lens on it")
        after = start + len(content)
        joined = "".join(piece.text for piece in turn.pieces)
        at = start - (len(joined) - len(joined.lstrip()))
        for piece in turn.pieces:
            first, last = max(at, start), min(at + len(piece.text), after)
            if first < last:
                spans.append((first, last, piece.region))
            at += len(piece.text)
    return Written(text, tuple(spans))
