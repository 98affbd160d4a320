"""One run reads every file once, parses its handbook once and is audited once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sopilot.tasks.starter import starter

MEASURE = """
import collections, json, os, sys, threading
calls, opened = collections.Counter(), collections.Counter()
def profile(frame, event, argument):
    if event == "call" and os.sep + "sopilot" + os.sep in frame.f_code.co_filename:
        calls[frame.f_code.co_name] += 1
def hook(event, arguments):
    if event == "open" and str(arguments[0]).endswith((".yaml", ".yml")):
        opened[os.path.abspath(arguments[0])] += 1
sys.addaudithook(hook)
from sopilot.cli.main import main
sys.setprofile(profile)
threading.setprofile(profile)
code = main(["run", *sys.argv[2:]])
sys.setprofile(None)
audits = calls["audit_trace"] + calls["audit_untracked"]
figures = [code, len(opened), max(opened.values()), calls["read_handbook"], audits,
           calls["read_events"]]
with open(sys.argv[1], "w") as file:
    json.dump(figures, file)
"""


@pytest.mark.parametrize("own", [False, True], ids=["desk", "own handbook"])
def test_what_one_run_touches(own: bool, tmp_path: Path) -> None:
    task = ("bank", "--task", "refund-unknown-shop")
    if own:
        handbook, scenarios = starter("my-desk")
        (tmp_path / "my-desk.yaml").write_text(handbook, encoding="utf-8")
        (tmp_path / "my-desk.scenarios.yaml").write_text(scenarios, encoding="utf-8")
        task = (str(tmp_path / "my-desk.yaml"),)
    out = tmp_path / "figures.json"
    subprocess.run(
        [sys.executable, "-c", MEASURE, str(out), *task],
        check=True,
        env={**os.environ, "SOPILOT_HOME": str(tmp_path)},
        stdout=subprocess.DEVNULL,
    )
    code, files, most_reads, handbooks, closing_audits, audits = json.loads(out.read_text())
    assert (code, files, most_reads) == (0, 2 if own else 3, 1)
    assert (handbooks, closing_audits, audits) == (1, 1, 1)
