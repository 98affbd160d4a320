"""The campaigns of `benchmarks/` at a small size; `make evidence` runs them whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
Figures = dict[str, Any]


def run(command: str, report: Path) -> tuple[Figures, int]:
    """The figures of a campaign, and its exit code."""
    script, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *arguments, "--json", str(report)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert report.exists(), done.stdout + done.stderr
    return json.loads(report.read_text()), done.returncode


@pytest.mark.parametrize(
    ("command", "least"),
    [
        (
            "crashes.py sessions --kills 40 --stops 2 --lanes 1",
            {"sqlite/crashes": 40, "sqlite/acknowledgements": 1,
             "postgres/crashes": 2, "postgres/acknowledgements": 1},
        ),
        (
            "crashes.py chaos --minutes 0.01 --round-seconds 1",
            {"did/kills": 60, "sqlite/acknowledgements": 1, "postgres/acknowledgements": 1},
        ),
        ("crashes.py duels --races 21", {"one_owner": 21}),
        ("tamper.py traces --tamperings 1500", {"detected": 1500, "by_class": 9}),
        ("tamper.py store --manipulations 75", {"manipulations": 75, "by kind": 22}),
    ],
)  # fmt: skip
def test_a_small_campaign_passes(command: str, least: dict[str, int], tmp_path: Path) -> None:
    """Its exit code says that nothing was lost, repeated or missed; the least figures, by their
    path, that it tried enough. Of kinds the number counts."""
    figures, code = run(command, tmp_path / "r.json")
    assert code == 0, figures
    for path, number in least.items():
        figure: Any = figures
        for name in path.split("/"):
            figure = figure[name]
        assert (len(figure) if isinstance(figure, dict) else figure) >= number, (path, figures)


def test_a_regulators_question_is_answered_on_both_stores(tmp_path: Path) -> None:
    """Only the whole campaign says how fast."""
    figures, _ = run("scale.py records --sessions 40 --rounds 1", tmp_path / "r.json")
    for store in (figures["sqlite"], figures["postgres"]):
        assert store["sessions"] == 40
        assert 0 < store["selected"] <= store["of"] * 0.3
