"""The text a model sees.

Owns the active frame, the whole program, prose, the official wording and its
re-syntaxed forms, in English and Chinese scaffolds over the same leaf sentences,
and the check that those sentences are the same bytes everywhere. Pure. May
import ``diagnostics``, ``handbook``, ``program`` and ``compiler``.
"""

from sopilot.language.render.correspondences import Correspondence, Mismatch, correspondence
from sopilot.language.render.flat import render_flat
from sopilot.language.render.frame import Result, frame_bound, render_frame, render_function
from sopilot.language.render.official import render_official
from sopilot.language.render.official_code import render_official_code
from sopilot.language.render.official_recipes import render_official_recipes
from sopilot.language.render.prose import render_prose
from sopilot.language.render.quoted import Quote, Rendered
from sopilot.language.render.renderings import RENDERINGS, Rendering, render
from sopilot.language.render.scaffold import LANGUAGES, words
from sopilot.language.render.values import VALUE_BUDGET, quote_value

__all__ = [
    "LANGUAGES",
    "RENDERINGS",
    "VALUE_BUDGET",
    "Correspondence",
    "Mismatch",
    "Quote",
    "Rendered",
    "Rendering",
    "Result",
    "correspondence",
    "frame_bound",
    "quote_value",
    "render",
    "render_flat",
    "render_frame",
    "render_function",
    "render_official",
    "render_official_code",
    "render_official_recipes",
    "render_prose",
    "words",
]
