"""Every figure that is kept can be made again by one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEPT = sorted((ROOT / "evidence").glob("*.json"))


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_every_evidence_file_has_its_campaign(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from evidence import CAMPAIGNS

    campaign = CAMPAIGNS[file.stem]
    assert (ROOT / "benchmarks" / campaign.script).is_file()
    figures = json.loads(file.read_text("utf-8"))
    assert campaign.tried(figures) > 0
    assert figures.get("passed") is not False or figures["explanation"]


def test_a_smaller_run_never_replaces_a_larger_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from evidence import keep

    file = tmp_path / "labelled-traces.json"
    assert keep({"traces": 120_000, "from": "large"}, file)
    assert not keep({"traces": 400, "from": "small"}, file)
    assert '"large"' in file.read_text()
    assert keep({"traces": 120_000, "from": "again"}, file)
    assert '"again"' in file.read_text()


def test_a_check_of_one_pair_is_no_passed_check() -> None:
    found = json.loads((ROOT / "evidence" / "local-model.json").read_text("utf-8"))
    assert found["passed"] is all(found["met"].values())
    few = found["check"]["conditions"]["enough"].split()[0]
    assert int(few) >= 20 or not found["met"]["found something"]
