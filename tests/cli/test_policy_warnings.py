"""What a naive handbook leaves out: each gets a warning that names the cure.

`warnings/NAME.txt` holds the findings about `warnings/NAME.yaml`; SOPILOT_REGOLD=1 rewrites it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from called_commands import call

from sopilot.runner.check_findings import check_text

WARNINGS = sorted((Path(__file__).parent / "warnings").glob("*.yaml"))


@pytest.mark.parametrize("path", WARNINGS, ids=lambda path: path.stem)
def test_each_finding_names_place_cause_and_cure(path: Path) -> None:
    findings = "".join(f"{finding}\n" for finding in check_text(path.read_text(), path.name))
    golden = path.with_suffix(".txt")
    if os.environ.get("SOPILOT_REGOLD") == "1":
        golden.write_text(findings, encoding="utf-8")
    assert findings == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        (
            "shared",
            [
                f"pay may use {action} from an earlier connection (state: shared)"
                for action in ("login", "look")
            ],
        ),
        ("gate_too_late", ["known(user) needs logged_in(user), which is opened only later"]),
    ],
)
def test_the_explanation_names_the_same(name: str, notes: list[str]) -> None:
    path = Path(__file__).parent / "warnings" / f"{name}.yaml"
    shown = call("show", str(path), "--as", "explanation").stdout
    assert [note in shown for note in notes] == [True] * len(notes)
