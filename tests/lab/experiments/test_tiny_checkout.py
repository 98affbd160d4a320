"""The whole harness on a checkout in miniature: these tests need no SOPBench."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from tiny import HOME, bench, run_bench

from sopilot.tasks.starter import starter
from sopilot_lab.experiments.archive import check_file
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.experiments.source_fingerprint import deciding_sources
from sopilot_lab.experiments.sweep import make_configuration
from sopilot_lab.experiments.trial import Trial, TrialRunner
from sopilot_lab.sopbench.checkout import find_checkout
from sopilot_lab.sopbench.process import ToolList, Upstream, UpstreamRefused
from sopilot_lab.sopbench.reach import find_reach, survey
from sopilot_lab.sopbench.source import load_task

REACHABLE: dict[ToolList, int] = {"official": 6, "full-state": 7}


def run_all(upstream: Upstream, arm: str, model: str, tools: ToolList) -> list[Trial]:
    configuration = make_configuration(upstream, arm=arm, model=model, tools=tools)
    assert configuration.sources == deciding_sources().fingerprint
    runner = TrialRunner(configuration, upstream)

    async def run() -> list[Trial]:
        return [await runner.run(each) for each in select_tasks("all", upstream)]

    return asyncio.run(run())


@pytest.mark.parametrize("tools", REACHABLE)
@pytest.mark.parametrize("arm", ["pg-paper", "flat", "fused", "full-cursor"])
def test_the_reference_passes_what_is_reachable_without_a_finding(
    upstream: Upstream, arm: str, tools: ToolList
) -> None:
    trials = run_all(upstream, arm, "reference", tools)
    assert len(trials) == 8
    for trial, task in zip(trials, select_tasks("all", upstream), strict=True):
        reach = find_reach(task, tools, upstream)
        assert trial.record.passed is reach.reachable, (trial.record, reach)
        assert bool(reach.proof) is not reach.reachable
        assert trial.findings == (), (task, trial.findings)
        assert trial.record.agent_turns < 40
    assert sum(trial.record.passed for trial in trials) == REACHABLE[tools]


@pytest.mark.parametrize("arm", ["flat", "pg-paper"])
async def test_the_oracle_list_offers_the_tools_of_the_right_answer_alone(
    upstream: Upstream, arm: str
) -> None:
    offered: list[set[str]] = []
    configuration = make_configuration(upstream, arm=arm, model="reference", tools="oracle")
    runner = TrialRunner(
        configuration,
        upstream,
        exchanged=lambda request, _: offered.append({one.name for one in request.tools[1:]}),
    )
    for each in select_tasks("all", upstream):
        offered.clear()
        await runner.run(each)
        graph = upstream.graphs(each.domain)[each.goal][each.index]
        right = {node[0] for node in graph["nodes"]}
        assert offered
        assert all(names <= right for names in offered)


def test_the_papers_three_views_take_the_same_turns(upstream: Upstream) -> None:
    """Between them visibility alone differs."""
    turns = [
        [trial.record.agent_turns for trial in run_all(upstream, arm, "reference", "official")]
        for arm in ("pg-paper", "full-cursor", "flat-protocol")
    ]
    assert turns[0] == turns[1] == turns[2]


def test_a_goal_that_is_not_offered_is_told_as_that(upstream: Upstream) -> None:
    (task,) = select_tasks("bank", upstream, goal="take_back")[:1]
    reach = find_reach(task, "official", upstream)
    assert "`take_back` is not in the tool list `official`" in reach.proof
    assert "returns success and changes nothing" in reach.proof
    for arm in ("pg", "flat"):
        trials = {t.record.task: t.record for t in run_all(upstream, arm, "reference", "official")}
        assert trials[str(task)].reason == "the tool take_back isn't offered"
        assert trials[str(task)].ending == "refused"


def test_a_login_that_the_user_cannot_give_needs_the_reader(upstream: Upstream) -> None:
    task = select_tasks("bank", upstream, goal="lend_tool")[4]
    blocked = find_reach(task, "official", upstream)
    assert blocked.by_inventing
    assert "missing-value" in blocked.obstacles
    assert find_reach(task, "full-state", upstream).calls == ["internal_get_database", "lend_tool"]


def test_a_search_that_was_cut_proves_nothing(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = select_tasks("bank", upstream, goal="lend_tool")[4]
    whole = find_reach(task, "official", upstream)
    assert not whole.cut
    assert "not proved" not in whole.proof
    monkeypatch.setattr("sopilot_lab.sopbench.reach.MOST_WAYS", 1)
    found = find_reach(task, "official", upstream)
    assert (found.reachable, found.cut) == (False, True)
    assert found.ways_tried < whole.ways_tried
    assert found.proof.startswith("not proved, the search was cut")


@pytest.mark.parametrize(
    ("model", "execute", "refuse"),
    [("null", 0, 4), ("refuse-always", 0, 4), ("call-everything", 2, 2)],
)
def test_agents_without_a_policy(upstream: Upstream, model: str, execute: int, refuse: int) -> None:
    records = [trial.record for trial in run_all(upstream, "pg", model, "official")]
    assert sum(each.passed for each in records if each.should_succeed) == execute
    assert sum(each.passed for each in records if not each.should_succeed) == refuse


def test_a_checkout_without_a_commit_is_known_by_its_content(
    upstream: Upstream, tmp_path: Path
) -> None:
    tasks = select_tasks("all", upstream)
    found = survey(tasks, "official", upstream, cache=tmp_path)
    assert sum(each.reachable for each in found.values()) == REACHABLE["official"]
    (kept,) = tmp_path.iterdir()
    assert not kept.name.startswith("unknown")
    rows = json.loads(kept.read_text())
    rows[str(tasks[0])]["proof"] = "kept"
    kept.write_text(json.dumps(rows))
    again = survey(tasks, "official", upstream, cache=tmp_path)
    assert again[str(tasks[0])].proof == "kept"
    kept.write_text(kept.read_text()[:50])
    anew = survey(tasks, "official", upstream, cache=tmp_path)
    assert anew == found, "a torn cache is searched again"


def test_text_of_the_checkout_does_not_go_out(upstream: Upstream) -> None:
    says = upstream.metadata("bank")["positive"]["logged_in_user"]
    task = load_task(select_tasks("bank", upstream)[0], upstream)
    own = task.handbook.predicates["logged_in_user"].says
    assert own.replace("{=", "{") == says  # its names stand bare, as upstream writes them
    sentence = "x" * 7 + "has said the word at the door and hung the key on the nail beside it."
    assert list(check_file("a.txt", sentence, upstream=upstream)) == []
    words = upstream.metadata("bank")["instructions"]
    assert len(words) > 60
    assert [each.code for each in check_file("a.txt", f"so: {words[5:]}", upstream=upstream)] == [
        "archive-upstream"
    ]


def test_a_sweep_by_the_command_goes_on_where_it_stopped(tmp_path: Path) -> None:
    command = ("run", "--domain", "all", "--runner", "plain")
    whole = bench(tmp_path, *command, "--workers", "2", "-o", str(tmp_path / "whole"))
    assert (whole["n"], whole["pass"], whole["reachable"]) == (8, 6, 6)
    assert whole["share_of_reachable"] == 1.0
    assert all(each["proof"] for each in whole["failures"])
    assert whole["findings"] == {}
    assert whole["overhead_ms_per_task"] is not None

    bench(tmp_path, *command, "--limit", "3", "-o", str(tmp_path / "parts"))
    torn = next(path for path in (tmp_path / "parts" / "records").iterdir() if path.stat().st_size)
    torn.write_bytes(torn.read_bytes()[:-5])
    rest = bench(tmp_path, *command, "-o", str(tmp_path / "parts"))
    assert rest["ran"] == 6
    scores = [(tmp_path / name / "scores.jsonl").read_bytes() for name in ("whole", "parts")]
    assert scores[0] == scores[1]

    report = bench(tmp_path, "report", str(tmp_path / "whole"), "-o", str(tmp_path / "report"))
    assert report["tables"]["classes-all"]["rows"][0][2:5] == ["8", "75.0", "100.0"]
    assert "<svg" in (tmp_path / "report" / "report.html").read_text()
    told = run_bench(tmp_path, "report", str(tmp_path / "whole"))
    assert told.stdout.strip() == (tmp_path / "report" / "report.md").read_text().strip()
    packed = bench(tmp_path, "archive", str(tmp_path / "whole"), "-o", str(tmp_path / "a.zip"))
    assert "programs/official/bank-lend_tool-0.yaml" in packed["files"]


def test_a_defect_is_found_by_replay(tmp_path: Path) -> None:
    goals = ("--goal", "bank/take_back", "--goal", "bank/lend_tool")
    found = bench(tmp_path, "sopbench", "check", "defects", *goals)
    assert [each["classification"] for each in found["goals"]] == ["confirmed defect", "reachable"]


def test_ones_own_scenarios_are_swept_without_a_checkout(tmp_path: Path) -> None:
    handbook, scenarios = starter("my-desk")
    (tmp_path / "my-desk.yaml").write_text(handbook, encoding="utf-8")
    (tmp_path / "my-desk.scenarios.yaml").write_text(scenarios, encoding="utf-8")
    environment = {"SOPBENCH_HOME": str(tmp_path)}
    for model, arm in (("reference", "pg"), ("refuse-always", "flat"), ("reference", "flat")):
        words = ("run", "--source", str(tmp_path / "my-desk.yaml"), "--runner", "plain")
        folder = str(tmp_path / "runs" / f"{model}-{arm}")
        done = run_bench(
            tmp_path, *words, "--model", model, "--arm", arm, "--json", "-o", folder, **environment
        )
        assert done.returncode == 0, done.stderr
        summary = json.loads(done.stdout)
        assert summary["n"] == summary["asked"] > 1
        assert summary["reachable"] is None
        assert summary["configuration"]["upstream_commit"] == "none"
        if model == "reference":
            assert summary["pass"] == summary["n"]
        else:
            assert summary["execute"]["pass"] == 0
    report = run_bench(tmp_path, "report", str(tmp_path / "runs"), "--json", **environment)
    assert json.loads(report.stdout)["tables"]["headline"]["rows"]


def test_budgets_and_repetitions_are_part_of_a_configuration(tmp_path: Path) -> None:
    choice = ("run", "--goal", "lend_tool", "--limit", "2", "--runner", "plain")
    budgets = ("domain_calls=1", "temperature=none", "seed=7")
    terms = [word for budget in budgets for word in ("--budget", budget)]
    summary = bench(tmp_path, *choice, *terms, "--run", "2", "-o", str(tmp_path / "runs"))
    configuration = summary["configuration"]
    assert configuration["run"] == 2
    bank = configuration["budgets"]["bank"]
    assert (bank["domain_calls"], bank["temperature"], bank["seed"]) == (1, None, 7)
    assert summary["budgets_spent"] == {"domain calls": 1}
    refused = run_bench(tmp_path, *choice, "-o", str(tmp_path / "runs"))
    assert refused.returncode == 2
    assert "budgets differs" in refused.stderr
    assert "run differs" in refused.stderr


def test_a_checkout_with_older_data_is_named_as_the_cause(tmp_path: Path) -> None:
    home = tmp_path / "older"
    shutil.copytree(HOME, home)
    file = home / "data/bank_tasks.json"
    file.write_text(file.read_text("utf-8").replace('"constraints"', '"dependency"'), "utf-8")
    upstream = Upstream(find_checkout({"SOPBENCH_HOME": str(home)}))
    with pytest.raises(UpstreamRefused, match="without `constraints`: this checkout is older"):
        select_tasks("all", upstream)
    upstream.close()
