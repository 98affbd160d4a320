"""One run reads every file once, parses its handbook once and is audited once."""

from __future__ import annotations

from pathlib import Path

import pytest

from one_run import EXAMPLE_TASK, OWN, measure
from sopilot.tasks.starter import starter


@pytest.mark.parametrize("own", [False, True], ids=["desk", "own handbook"])
def test_what_one_run_touches(own: bool, tmp_path: Path) -> None:
    task = EXAMPLE_TASK
    if own:
        handbook, scenarios = starter("my-desk")
        (tmp_path / "my-desk.yaml").write_text(handbook, encoding="utf-8")
        (tmp_path / "my-desk.scenarios.yaml").write_text(scenarios, encoding="utf-8")
        task = (str(tmp_path / "my-desk.yaml"),)
    figures = measure(OWN, *task)
    assert figures["exit"] == 0
    assert figures["data files read"] == (2 if own else 3)
    assert figures["read more than once"] == []
    assert figures["handbooks parsed"] == 1
    assert figures["closing audits"] == figures["audits of any kind"] == 1
