"""Pages and pictures: templates to text, and drawings as SVG.

Text is escaped, and invisible characters are shown by number. A picture stands in a page or alone:
its text takes the surrounding colour. A row's label is above it, so that it fits a narrow screen.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sopilot.values.text import LINES, visible
from sopilot.views.catalogue import VIEWS

if TYPE_CHECKING:
    from jinja2 import Environment


_CODE = re.compile(r"`([^`]*)`")


def render(template: str, **values: object) -> str:
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> Environment:
    # Commands that make no page start without it.
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    def words(text: str) -> Markup:
        """Names in backticks as code."""
        return Markup(_CODE.sub(r"<code>\1</code>", str(escape(visible(text, LINES)))))

    def shown(value: object) -> object:
        return (
            visible(value, LINES)
            if isinstance(value, str) and not hasattr(value, "__html__")
            else value
        )

    environment = Environment(
        loader=PackageLoader(__package__, ""),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["words"] = words
    environment.filters["capitalize_first"] = lambda text: text[:1].upper() + text[1:]
    return environment


PALETTE: Final = (
    "#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#64b5cd",
    "#da8bc3", "#8c8c8c", "#ccb974", "#1b3a6b", "#0b7a75", "#8f2d56", "#b5651d", "#6b6ecf",
    "#2f7d32", "#a05195",
)  # fmt: skip
"""A colour per view, for a white ground."""


def view_colour(name: str) -> str:
    """The colour of a view, the same in every picture."""
    views = list(VIEWS)
    return PALETTE[views.index(name) % len(PALETTE)] if name in views else "#8c8c8c"


def _contrasting(colour: str) -> str:
    """Return black or white, whichever is easier to see on ``colour`` (``#rrggbb``)."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (value**2.2 for value in channels)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#fff" if luminance < 0.18 else "#000"  # both contrast alike at 0.18


COLUMN_POINTS: Final = 8.5 / 2.54 * 72
"""The width of a column in print."""


_INK: Final = "currentColor"

_LETTER: Final = 6.2
"""About the width of a letter, to keep text inside the picture."""


class Shape(NamedTuple):
    tag: str
    attributes: Mapping[str, str]
    text: str
    hint: str


class Drawing:
    """Shapes on a ground of ``width``; set ``height`` to the lowest one. A shape's ``hint`` shows
    under the pointer."""

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

    def as_pdf(self) -> bytes:
        """One page of the picture's size, at 8.5 cm for a column; needs the extra `figures`."""
        from cairosvg import svg2pdf

        scale = COLUMN_POINTS / _WIDTH
        return bytes(svg2pdf(self.as_file().encode(), scale=scale * 4 / 3, background_color="#fff"))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        size: int = 11,
        bold: bool = False,
        fixed: bool = False,
    ) -> None:
        """``fixed``: in letters of one width, spaces kept."""
        more = {"font_weight": "bold"} if bold else {}
        if fixed:
            more |= {"font_family": "monospace", "xml:space": "preserve"}
        self.add("text", text, x=x, y=y, font_size=size, text_anchor=anchor, **more)

    def bar(
        self, x: float, y: float, width: float, height: float, colour: str, hint: str = ""
    ) -> None:
        self.add("rect", hint=hint, x=x, y=y, width=max(width, 0.0), height=height, fill=colour)

    def upright(
        self, x: float, top: float, bottom: float, opacity: float = 1.0, colour: str = _INK
    ) -> None:
        self.add("line", x1=x, x2=x, y1=top, y2=bottom, stroke=colour, opacity=opacity)

    def legend(self, y: float, colours: Mapping[str, str]) -> None:
        """Name the colours at the foot of the picture, and end the picture there."""
        x = 0.0
        for name, colour in colours.items():
            room = 26 + _LETTER * len(name)
            if x and x + room > self.width:
                x, y = 0.0, y + 16
            self.bar(x, y, 10, 10, colour)
            self.text(x + 14, y + 9, name, size=10)
            x += room
        self.height = y + 14


_WIDTH, _LINE = 360, 15
"""A column of a two-column page: at 8.5 cm, letters of 11 are 7.4 points high."""


_NAMES, _FIGURES = 104, 82
"""Room for the names at the left of bars, and for the figures at their right."""


def even_ticks(least: float, most: float, about: int = 5) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) that enclose both ends."""
    if most <= least:
        most = least + 1.0
    rough = (most - least) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def draw_axis(
    drawing: Drawing, y: float, ticks: Sequence[float], x: Callable[[float], float], title: str
) -> None:
    """A line with ticks, their numbers and a title; ends the picture."""
    drawing.add("line", x1=x(ticks[0]), x2=x(ticks[-1]), y1=y, y2=y, stroke=_INK)
    for at in ticks:
        drawing.upright(x(at), y, y + 4)
        shown = f"{abs(at) if at == 0 else at:g}".replace("-", "−")
        drawing.text(x(at), y + 15, shown, anchor="middle", size=10)
    drawing.height = y + 19
    if title:
        drawing.text((x(ticks[0]) + x(ticks[-1])) / 2, y + 28, title, anchor="middle", size=10)
        drawing.height = y + 33


@dataclass(frozen=True, slots=True)
class Mark:
    label: str
    value: float | None
    interval: Sequence[float] | None
    text: str
    strong: bool = False
    colour: str = _INK


def dot_plot(
    title: str,
    marks: Sequence[Mark],
    *,
    least: float,
    most: float,
    zero: float | None = None,
    axis: str = "",
) -> Drawing:
    """Dots with whiskers; ``zero`` is a line to compare with. The scale covers ``least`` to
    ``most`` and every mark."""
    drawing = Drawing(title, _WIDTH)
    row = 2 * _LINE + 4
    ends = [each for mark in marks for each in (mark.value, *(mark.interval or ()))]
    known = [each for each in ends if each is not None]
    ticks = even_ticks(min([least, *known]), max([most, *known]))
    scale = (_WIDTH - 24) / (ticks[-1] - ticks[0])

    def x(value: float) -> float:
        return 12 + (value - ticks[0]) * scale

    bottom = row * len(marks) + 4
    for number, mark in enumerate(marks):
        top = row * number
        y = top + 1.5 * _LINE + 1
        for at in ticks:
            drawing.upright(x(at), top + _LINE, top + row, 0.12)
        if zero is not None:
            drawing.upright(x(zero), top + _LINE, top + row, 0.7)
        drawing.text(0, top + 11, mark.label, bold=mark.strong)
        drawing.text(_WIDTH, top + 11, mark.text, anchor="end")
        if mark.interval is not None:
            low, high = mark.interval
            drawing.bar(x(low), y - 1, x(high) - x(low), 2, mark.colour)
        if mark.value is not None:
            drawing.add("circle", cx=x(mark.value), cy=y, r=4, fill=mark.colour)
    draw_axis(drawing, bottom, ticks, x, axis)
    return drawing


class Bar(NamedTuple):
    """``n`` is how many runs the value counts."""

    value: float
    interval: Sequence[float] | None
    n: int


def grouped_bars(
    title: str,
    groups: Mapping[str, Mapping[str, Bar]],
    colours: Mapping[str, str],
    *,
    highest: float = 0.0,
    axis: str,
) -> Drawing:
    """Group → name → bar, with whiskers and n; ``colours`` by name. The scale covers zero to
    ``highest`` and every bar."""
    drawing = Drawing(title, _WIDTH)
    ends = [
        end
        for bars in groups.values()
        for bar in bars.values()
        for end in (bar.value, *(bar.interval or ()))
    ]
    ticks = even_ticks(0.0, max([highest, *ends]))
    scale = (_WIDTH - _NAMES - _FIGURES) / ticks[-1]

    def x(value: float) -> float:
        return _NAMES + value * scale

    y = 0.0
    for group, bars in groups.items():
        drawing.text(0, y + 11, group)
        y += _LINE + 2
        top = y - 2
        for name, bar in bars.items():
            hint = f"{group}, {name}: {bar.value:.1f}, n = {bar.n}"
            drawing.text(_NAMES - 5, y + 9.5, name, anchor="end", size=10)
            drawing.bar(x(0), y, x(bar.value) - x(0), 11, colours[name], hint)
            if bar.interval is not None:
                low, high = bar.interval
                # Ink can't be seen on a dark bar: the half inside the bar has its own colour.
                for end, colour in ((low, _contrasting(colours[name])), (high, _INK)):
                    drawing.add(
                        "line", x1=x(bar.value), x2=x(end), y1=y + 5.5, y2=y + 5.5, stroke=colour
                    )
                    drawing.upright(x(end), y + 3, y + 8, colour=colour)
            shown = f"{bar.value:.1f}" if highest >= 10 else f"{bar.value:.2f}"
            drawing.text(_WIDTH, y + 9.5, f"{shown} (n = {bar.n})", anchor="end", size=10)
            y += _LINE - 1
        drawing.upright(x(0), top, y)
        y += 4
    draw_axis(drawing, y, ticks, x, axis)
    return drawing


def diverging_bars(
    title: str,
    rows: Sequence[tuple[str, int, int]],
    left: tuple[str, str],
    right: tuple[str, str],
) -> Drawing:
    """Losses to the left, wins to the right of a line; sides have a name and a colour."""
    drawing = Drawing(title, _WIDTH)
    most = max([1, *(max(wins, losses) for _, wins, losses in rows)])
    ticks = [each for each in even_ticks(0, most, 3) if each == int(each)]
    middle = _NAMES + (_WIDTH - _NAMES) / 2
    scale = ((_WIDTH - _NAMES) / 2 - 24) / ticks[-1]

    def x(value: float) -> float:
        return middle + value * scale

    y = 0.0
    for label, wins, losses in rows:
        drawing.text(0, y + 10, label)
        drawing.bar(x(-losses), y, losses * scale, 12, left[1])
        drawing.bar(middle, y, wins * scale, 12, right[1])
        drawing.text(x(-losses) - 4, y + 10, str(losses), anchor="end", size=10)
        drawing.text(x(wins) + 4, y + 10, str(wins), size=10)
        y += _LINE + 3
    drawing.upright(middle, 0, y)
    drawing.add("line", x1=x(-ticks[-1]), x2=x(ticks[-1]), y1=y, y2=y, stroke=_INK)
    for at in sorted({-each for each in ticks} | {*ticks}):
        drawing.upright(x(at), y, y + 4)
        drawing.text(x(at), y + 15, f"{abs(at):g}", anchor="middle", size=10)
    drawing.text(middle, y + 28, "pairs in which one of the two passes", anchor="middle", size=10)
    drawing.legend(y + 36, dict((left, right)))
    return drawing


def stacked(title: str, panels: Sequence[Drawing]) -> Drawing:
    """Pictures as one, below each other, each under its own title."""
    drawing = Drawing(title, max((panel.width for panel in panels), default=0.0))
    for panel in panels:
        top = drawing.height + (_GAP if drawing.height else 0.0)
        drawing.text(0, top + 12, panel.title, size=12, bold=True)
        drawing.shapes += [
            shape._replace(attributes=_moved(shape.attributes, top + _HEAD))
            for shape in panel.shapes
        ]
        drawing.height = top + _HEAD + panel.height
    return drawing


_GAP, _HEAD = 14.0, 22.0


_DOWN = frozenset({"y", "y1", "y2", "cy"})


def _moved(attributes: Mapping[str, str], down: float) -> dict[str, str]:
    return {
        name: f"{float(value) + down:.6g}" if name in _DOWN else value
        for name, value in attributes.items()
    }
