"""The text a model sees.

Owns the active frame, the whole program, prose, the official wording and its
re-syntaxed forms, in English and Chinese scaffolds over the same leaf sentences,
and the check that those sentences are the same bytes everywhere. Pure. May
import ``diagnostics``, ``handbook``, ``program`` and ``compiler``.
"""

from sopilot.language.render._correspondences import Correspondence, Mismatch, correspondence
from sopilot.language.render._flat import render_flat
from sopilot.language.render._official import Required, render_official
from sopilot.language.render._official_code import render_official_code, requirements_as_code
from sopilot.language.render._official_recipes import list_recipes, render_official_recipes
from sopilot.language.render._prose import render_prose
from sopilot.language.render._quoted import Quote, Rendered
from sopilot.language.render._renderings import RENDERINGS, Rendering, render
from sopilot.language.render._scaffold import LANGUAGES, words
from sopilot.language.render._steps import ByMachine
from sopilot.language.render.frame import FrameResult, frame_bound, render_frame, render_function
from sopilot.language.render.values import VALUE_BUDGET, quote_value

__all__ = [
    "LANGUAGES",
    "RENDERINGS",
    "VALUE_BUDGET",
    "ByMachine",
    "Correspondence",
    "FrameResult",
    "Mismatch",
    "Quote",
    "Rendered",
    "Rendering",
    "Required",
    "correspondence",
    "frame_bound",
    "list_recipes",
    "quote_value",
    "render",
    "render_flat",
    "render_frame",
    "render_function",
    "render_official",
    "render_official_code",
    "render_official_recipes",
    "render_prose",
    "requirements_as_code",
    "words",
]
