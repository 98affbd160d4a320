"""Templates to text: escaped, and nothing invisible gets through."""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

_CODE = re.compile(r"`([^`]*)`")


def render(template: str, **values: object) -> str:
    return _environment().get_template(template).render(values)


def visible(text: str) -> str:
    """Characters that steer or hide text (control, bidirectional, zero-width, unassigned) by
    their number: whoever reads a page sees what is there. Line ends and spaces stay."""
    if text.isprintable():
        return str(text)
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" or unicodedata.category(sign) == "Zs"
        else f"\\u{ord(sign):04x}"
        for sign in text
    )  # fmt: skip


@functools.cache
def _environment() -> Environment:
    # Commands that make no page start without it.
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    def words(text: str) -> Markup:
        """Names in backticks as code."""
        return Markup(_CODE.sub(r"<code>\1</code>", str(escape(visible(text)))))

    def shown(value: object) -> object:
        return (
            visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
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
    return environment
