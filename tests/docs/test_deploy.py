"""The files of `deploy/` hold together: they parse, and name what there is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from sopilot.cli import serve, sessions
from sopilot.cli.configuration import load_configuration
from sopilot.integrations.metrics import COUNTERS, GAUGES, TIMES

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())["groups"][0]["rules"]
BOARD = json.loads((DEPLOY / "grafana" / "sopilot.json").read_text())


def metric_names() -> set[str]:
    counted = {f"sopilot_{name}_total" for name in COUNTERS}
    timed = {f"sopilot_{name}_seconds_bucket" for name in TIMES}
    return counted | timed | {f"sopilot_{name}" for name in GAUGES}


def test_alerts_and_dashboard_name_metrics_that_there_are() -> None:
    asked = [rule["expr"] for rule in RULES]
    asked += [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    named = {name for text in asked for name in re.findall(r"sopilot_\w+", text)}
    assert named - metric_names() == set()
    shown = {
        name
        for panel in BOARD["panels"]
        for target in panel["targets"]
        for name in re.findall(r"sopilot_\w+", target["expr"])
    }
    assert metric_names() == shown


def test_the_dashboard_is_whole_at_any_scrape_interval() -> None:
    """Prometheus asks every minute by default: a rate over one has a single point."""
    asked = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    windows = {one for text in asked for one in re.findall(r"\[(.*?)\]", text)}
    assert windows == {"$__rate_interval", "5m"}
    places = [tuple(panel["gridPos"].values()) for panel in BOARD["panels"]]
    assert len(set(places)) == len(places)


def test_every_alert_has_its_page_in_the_runbook() -> None:
    told = re.findall(
        r"^\*\*(\w+)\.\*\*", (ROOT / "docs" / "how-to" / "runbook.md").read_text(), re.M
    )
    assert sorted(told) == sorted(rule["alert"] for rule in RULES)
    assert len(told) == 10


def test_settings_are_options_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPILOT_STORE", "postgresql://runner@db/sopilot")
    configuration = load_configuration(DEPLOY / "sopilot.toml", ["gateway"])
    options = configuration.table("gateway", serve.gateway, click.Context(serve.gateway))
    assert options["address"] == "0.0.0.0:8321"
    assert configuration.values["store"] == "postgresql://runner@db/sopilot"


def test_units_start_commands_that_there_are() -> None:
    options = {one for param in serve.gateway.params for one in param.opts}
    for unit in (DEPLOY / "systemd").glob("*.service"):
        (line,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.M)
        words = line.split()[1:]
        if words[0] == "--config":
            assert words[2] == "gateway"
            assert {word for word in words[2:] if word.startswith("--")} <= options
        else:
            assert words[:2] == ["sessions", "sweep"]
            assert "sweep" in sessions.command.commands


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_units_are_units() -> None:
    units = sorted(map(str, (DEPLOY / "systemd").glob("*.service")))
    done = subprocess.run(
        ["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=60
    )
    problems = [
        line
        for line in done.stderr.splitlines()
        # The program is not installed where a unit expects it.
        if "sopilot" in line and "is not executable" not in line
    ]
    assert problems == []


def test_manifests_and_compose_agree_on_what_they_run() -> None:
    manifests = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "sopilot.yaml").read_text()))
    kinds = [one["kind"] for one in manifests]
    assert {"Deployment", "Service", "Job", "PodDisruptionBudget"} <= set(kinds)
    (deployment,) = [one for one in manifests if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert {"db", "migrate", "mcp-1", "mcp-2", "proxy"} == set(compose["services"])
    assert compose["services"]["migrate"]["command"][:2] == ["store", "migrate"]


def test_manifests_fit_the_schemas() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    for one in yaml.safe_load_all((DEPLOY / "kubernetes" / "sopilot.yaml").read_text()):
        validate.validate(one, "1.31", strict=True)
