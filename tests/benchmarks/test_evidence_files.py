"""Every figure that is kept can be made again by one command."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEPT = sorted((ROOT / "evidence").glob("*.json"))


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_every_evidence_file_has_its_campaign(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from evidence import CAMPAIGNS

    script, *_ = CAMPAIGNS[file.stem]
    assert (ROOT / "benchmarks" / script).is_file()
