"""Every test has a data folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from sopilot.stores.open import data_folder

_SEEN: set[Path] = set()


@pytest.mark.parametrize("number", [1, 2])
def test_every_test_has_a_home_of_its_own(number: int) -> None:
    home = data_folder()
    assert home not in _SEEN
    assert not home.exists()
    assert Path.home() in home.parents
    assert not (Path.home() / ".local").exists()
    _SEEN.add(home)
    home.mkdir()
