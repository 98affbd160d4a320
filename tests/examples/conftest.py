"""The example is trusted here; what becomes of a folder that is not, has tests of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from sopilot.tasks.trust import folder_code

EXAMPLE = (Path(__file__).parents[2] / "examples" / "quotation").resolve()


@pytest.fixture(scope="session", autouse=True)
def _trusted_by_shared_fixtures(_home_of_shared_fixtures: None) -> None:
    folder_code(EXAMPLE).trust()


@pytest.fixture(autouse=True)
def _trusted(_own_home: None) -> None:
    folder_code(EXAMPLE).trust()
