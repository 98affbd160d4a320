"""What a model sees of a small handbook, word for word. ``SOPILOT_REGOLD=1`` rewrites it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sopilot.compiler.pipeline import compile_procedure
from sopilot.handbook.reader import load_handbook
from sopilot.messages.scaffold import LANGUAGES
from sopilot.views.frame import render_function
from sopilot.views.program_text import RENDERINGS, render

HERE = Path(__file__).parent
HANDBOOK = load_handbook((HERE / "small.yaml").read_text(encoding="utf-8"), "small.yaml")
PROGRAM = compile_procedure(HANDBOOK, "redirect").program
TRAVEL = load_handbook((HERE / "travel.yaml").read_text(encoding="utf-8"), "travel.yaml")
CANCEL = compile_procedure(TRAVEL, "cancel").program


def _check(name: str, language: str, text: str) -> None:
    golden = HERE / "goldens" / f"{name}.{language}.txt"
    if os.environ.get("SOPILOT_REGOLD"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", RENDERINGS)
def test_rendering(name: str, language: str) -> None:
    _check(name, language, render(name, HANDBOOK, "redirect", PROGRAM, language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_functions(language: str) -> None:
    functions = [render_function(f, PROGRAM, language) for f in PROGRAM.functions.values()]
    _check("functions", language, "\n".join(functions))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["flat", "prose", "official-recipes"])
def test_paths_elements_and_names(name: str, language: str) -> None:
    """What a recipe takes from its earlier answers, in every way that a call is shown."""
    _check(f"travel-{name}", language, render(name, TRAVEL, "cancel", CANCEL, language))
