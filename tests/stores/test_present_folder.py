"""Nothing of the present folder is run: it may be anybody's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sopilot.runner.processes import in_parts

SHADOWED = ("sopilot", "json", "multiprocessing", "pickle", "re", "runpy", "selectors", "signal")


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which modules lie that are called as those which are needed."""
    mark = tmp_path / "ran"
    for name in SHADOWED:
        text = f"open({str(mark)!r}, 'a').write({name!r})\n"
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return mark


def test_other_processes_are_our_own(foreign: Path) -> None:
    before = dict(os.environ)
    assert list(in_parts(abs, [-1, -2], workers=2, on="local")) == [1, 2]
    assert not foreign.exists()
    assert dict(os.environ) == before
