"""A picture as SVG. It stands in a page or alone: text takes the colour around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sopilot.language.diagnostics import visible
from sopilot.runtime.html_pages._templates import render

PALETTE: Final = (
    "#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#64b5cd",
    "#da8bc3", "#8c8c8c", "#ccb974", "#1b3a6b", "#0b7a75", "#8f2d56",
)  # fmt: skip
"""As many as there are arms; readable on light and on dark ground."""
_LETTER: Final = 6.2
"""About the width of one, for what must not run out of the picture."""


class Shape(NamedTuple):
    tag: str
    attributes: Mapping[str, str]
    text: str
    hint: str


class Drawing:
    """Shapes on a ground of ``width``; whoever draws says how far down it reaches.
    ``hint`` is what a pointer over a shape tells."""

    def __init__(self, title: str, width: float) -> None:
        self.title = title
        self.width = width
        self.height = 0.0
        self.shapes: list[Shape] = []

    def __html__(self) -> str:
        return render("drawing.svg", drawing=self, alone=False)

    def as_file(self) -> str:
        return render("drawing.svg", drawing=self, alone=True)

    def add(self, tag: str, text: str = "", hint: str = "", **attributes: float | str) -> None:
        values = {
            name.replace("_", "-"): visible(value) if isinstance(value, str) else f"{value:.6g}"
            for name, value in attributes.items()
        }
        self.shapes.append(Shape(tag, values, text, hint))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        size: int = 11,
        soft: bool = False,
    ) -> None:
        self.add(
            "text", text, x=x, y=y, font_size=size, text_anchor=anchor, opacity=0.7 if soft else 1
        )

    def bar(
        self, x: float, y: float, width: float, height: float, colour: str, hint: str = ""
    ) -> None:
        self.add("rect", hint=hint, x=x, y=y, width=max(width, 0.0), height=height, fill=colour)

    def upright(self, x: float, top: float, bottom: float, opacity: float = 1.0) -> None:
        self.add("line", x1=x, x2=x, y1=top, y2=bottom, stroke="currentColor", opacity=opacity)

    def legend(self, y: float, colours: Mapping[str, str]) -> None:
        """In as many lines as it takes, at the foot of the picture."""
        x = 0.0
        for name, colour in colours.items():
            room = 26 + _LETTER * len(name)
            if x and x + room > self.width:
                x, y = 0.0, y + 16
            self.bar(x, y, 10, 10, colour)
            self.text(x + 14, y + 9, name, size=10)
            x += room
        self.height = y + 14
