"""Templates to text: escaped, and nothing invisible gets through."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from sopilot.language.diagnostics import LINES, visible

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
    return environment
