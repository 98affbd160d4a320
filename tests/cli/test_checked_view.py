"""A model is paged only after it has been checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sopilot.runner import qualifications as checks
from sopilot.runner.qualifications import checked_view
from sopilot.runner.sources import open_source
from sopilot.tasks.starter import starter

FOLDER = str(Path(__file__).parents[2] / "examples" / "quotation")
VERDICTS: dict[str, dict[str, object]] = {
    "good": {"arm": "fused", "page": True},
    "weak": {"arm": "flat", "page": False},
    "strong": {"arm": "prose", "page": False, "answer": "may page", "guarded_arm": "fused"},
    "too-few": {"arm": "prose", "page": False, "answer": "too few", "guarded_arm": None},
    "broken": {"arm": "prose", "page": False, "answer": "broken", "guarded_arm": None},
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts on some models, and handbooks of one's own: guarded and not."""
    monkeypatch.setenv("SOPILOT_HOME", str(tmp_path / "home"))
    for model, verdict in VERDICTS.items():
        path = checks.model_folder(tmp_path / "home", model) / checks.LATEST
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"cases": 4, "planned": 4, **verdict}))
    text, _ = starter("mine")
    (tmp_path / "guarded.yaml").write_text(text)
    (tmp_path / "open.yaml").write_text(text.replace("irreversible: true", "irreversible: false"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("model", "source", "view", "why"),
    [
        ("reference", "bank", "pg", ""),
        ("person", "bank", "pg", ""),
        ("replay:x", "bank", "pg", ""),
        ("local", "bank", "flat", "`sopilot qualify --model local`"),
        ("local", FOLDER, "full-cursor", "view full-cursor"),
        ("good", "bank", "fused", "view fused"),
        ("good", FOLDER, "fused", ""),
        ("weak", "bank", "flat", "do not page"),
        ("weak", "guarded.yaml", "full-cursor", ""),
        ("weak", "open.yaml", "flat", ""),
        ("weak", FOLDER, "full-cursor", ""),
        ("strong", "guarded.yaml", "fused", "may page"),
        ("strong", "bank", "fused", ""),
        ("strong", FOLDER, "fused", ""),
        ("strong", "open.yaml", "prose", ""),
        ("too-few", "bank", "flat", "without a finding"),
        ("broken", "bank", "flat", "without a finding"),
    ],
)
def test_the_view_follows_the_last_verdict(model: str, source: str, view: str, why: str) -> None:
    chosen, explained = checked_view(model, open_source(source))
    assert chosen == view
    assert why in explained
    assert bool(explained) is (model not in ("reference", "person", "replay:x"))
