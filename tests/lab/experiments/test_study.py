"""A study as one file, on the checkout in miniature; its archive checked without any checkout."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from chat_server import Plan, saying, serving
from click.testing import CliRunner
from tiny import bench, run_bench

from sopbench_checkout import MISSING
from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot_lab.experiments.rehearsal import CHARACTERS
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.experiments.study import estimate
from sopilot_lab.experiments.study.plan import load_study, preset
from sopilot_lab.sopbench.process import Upstream
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.source import load_task

STUDY = """
study: tiny
models:
  - {alias: bad day, model: sloppy, price: [1, 2]}
  - {model: reference}
arms: [flat, pg]
domains: [bank]
repetitions: 2
hypotheses:
  - {name: runtime, contrast: [pg, flat]}
stopping: all tasks once
exclusions: none
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study run in two pieces, the second after a torn record; then packed."""
    base = tmp_path_factory.mktemp("study")
    file = base / "tiny.yaml"
    file.write_text(STUDY)
    run = ("study", "run", str(file), "--runner", "plain")
    assert run_bench(base, *run).returncode == 0
    torn = next(path for path in base.rglob("records/*.jsonl") if path.stat().st_size)
    torn.write_bytes(torn.read_bytes()[:-5])
    assert run_bench(base, *run).returncode == 0
    archive = ("archive", str(base / "tiny" / "runs"), "--study", str(file))
    bench(base, *archive, "-o", str(base / "a.zip"))
    return base


def report(base: Path, *words: str) -> dict[str, Any]:
    return bench(base, "study", "report", str(base / "tiny.yaml"), *words)


def test_every_cell_is_run_and_its_records_name_the_hypotheses(base: Path) -> None:
    status = bench(base, "study", "status", str(base / "tiny.yaml"))
    assert len(status["cells"]) == 8
    assert all((row["judged"], row["missing"]) == (8, 0) for row in status["cells"])
    names = sorted(path.name for path in (base / "tiny" / "runs").iterdir())
    assert "bad_day-pg-official" in names
    assert "bad_day-pg-official-run2" in names
    rows = [
        json.loads(line)
        for path in base.rglob("records/*.jsonl")
        for line in path.read_text().splitlines()
        if line.endswith("}")
    ]
    assert {row["hypotheses"] for row in rows} == {status["hypotheses"]}
    assert {row["run"] for row in rows} == {1, 2}


def test_what_was_fixed_stands_first_and_the_rest_is_exploratory(base: Path) -> None:
    document = report(base)
    clock = document["tables"].pop("wall-clock")
    assert "mean seconds" in clock["header"]
    first, *rest = document["tables"].values()
    assert first["title"] == "Hypotheses fixed beforehand"
    assert "Exploratory" not in first["method"]
    assert len(first["rows"]) == 2
    assert all("Exploratory" in table["method"] for table in rest)
    assert load_study(base / "tiny.yaml").fixed.sha256 in document["notes"][0]
    columns = {column for table in rest for column in table["header"]}
    assert not any("seconds" in column for column in columns), "a machine's, not a study's"


def test_the_plan_says_what_it_takes(base: Path) -> None:
    plan = bench(base, "study", "plan", str(base / "tiny.yaml"))
    assert (plan["tasks"], len(plan["cells"]), plan["without_price"]) == (8, 8, 4)
    assert plan["cost"] > 0
    assert plan["requests"] == sum(cell["requests"] for cell in plan["cells"]) > 64
    (power,) = plan["power"]
    assert 0 < power["power"] < 1


def test_the_plan_counts_what_a_model_in_the_users_place_reads(
    upstream: Upstream, tmp_path: Path
) -> None:
    """The endpoint that plays the user is the judge."""
    tasks = [load_task(each, upstream) for each in select_tasks("bank", upstream)]
    roles = [upstream.official_text(each.domain, each.goal, each.reference.index).user_role
             for each in tasks]  # fmt: skip
    read: list[int] = []

    def play(body: bytes) -> Plan:
        contents = [message["content"] for message in json.loads(body)["messages"]]
        read.append(sum(map(len, contents)))
        known = next(task.user_known for task, role in zip(tasks, roles, strict=True)
                     if contents[0].endswith(role))  # fmt: skip
        values = (f"{name}: {json.dumps(value)}" for name, value in known.items())
        return saying("\n".join(values) if len(contents) == 4 else "###END###")

    file = tmp_path / "played.yaml"
    with serving(plan=play) as server:
        user = f"user: {{alias: user, model: '{server.url}#user'}}"
        file.write_text(
            f"study: x\nmodels: [{{model: reference}}]\narms: [flat, pg-paper]\n"
            f"domains: [bank]\n{user}\n"
        )
        plan = bench(tmp_path, "study", "plan", str(file))
        assert not read
        bench(tmp_path, "study", "run", str(file), "--runner", "plain")
    assert len(read) > len(tasks)
    assert plan["user_tokens"] == pytest.approx(sum(read) / CHARACTERS, rel=0.15)


def test_hypotheses_that_change_after_a_look_are_refused(base: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.yaml"
    changed.write_text(STUDY.replace("all tasks once", "when it looks good"))
    done = run_bench(
        base, "study", "run", str(changed), "--folder", str(base / "tiny"), "--runner", "plain"
    )
    assert done.returncode == 2
    assert "hypotheses-changed" in done.stderr


def elsewhere(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`sopilot lab …` where there is no checkout."""
    return run_bench(folder, *words, SOPBENCH_HOME=str(folder), HOME=str(folder))


def test_an_archive_is_verified_and_reported_without_a_checkout(base: Path, tmp_path: Path) -> None:
    verified = elsewhere(tmp_path, "verify", str(base / "a.zip"), "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    found = json.loads(verified.stdout)
    assert (found["configurations"], found["runs"], found["agrees"]) == (8, 64, True)
    assert found["programs"] == 8
    assert found["tables"] > 10
    again = elsewhere(tmp_path, "report", str(base / "a.zip"), "--json")
    assert json.loads(again.stdout)["tables"] == report(base)["tables"]
    with zipfile.ZipFile(base / "a.zip") as archive:
        names = set(archive.namelist())
        study = yaml.safe_load(archive.read("study/study.yaml"))
    assert {"COMMIT_PIN.txt", "environment.json", "analysis/tables.json"} <= names
    assert "source/sopilot/compiler/pipeline.py" in names
    assert "case/projections/quotation/events.jsonl" in names
    assert study["models"][0]["alias"] == "bad day"


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        (
            "scores.jsonl",
            (b'"passed": true', b'"passed": false'),
            "scores.jsonl doesn't match the runs",
        ),
        ("records/published.jsonl", (b'"success": true', b'"success": false'), "comes out"),
        ("configuration.json", (b'"arm": "pg"', b'"arm": "flat"'), "fingerprint"),
        ("analysis/tables.json", (b"bad day", b"good day"), "comes out differently"),
    ],
)
def test_a_changed_archive_does_not_agree(
    base: Path, tmp_path: Path, name: str, change: tuple[bytes, bytes], problem: str
) -> None:
    """Even with a manifest that was made anew."""
    with zipfile.ZipFile(base / "a.zip") as archive:
        archive.extractall(tmp_path / "a")
    inside = next(path for path in sorted((tmp_path / "a").rglob("*")) if _is(path, name, change))
    inside.write_bytes(inside.read_bytes().replace(*change))
    done = elsewhere(tmp_path, "verify", str(tmp_path / "a"), "--json")
    assert done.returncode == 1
    problems = json.loads(done.stdout)["problems"]
    assert any("differs from the manifest" in one for one in problems)
    assert any(problem in one for one in problems), problems


def _is(path: Path, name: str, change: tuple[bytes, bytes]) -> bool:
    return path.as_posix().endswith(name) and change[0] in path.read_bytes()


def test_an_empty_input_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    for words in (("report", str(tmp_path / "none")), ("verify", str(tmp_path / "none"))):
        done = elsewhere(tmp_path, *words)
        assert done.returncode == 2
        assert "1.000" not in done.stdout


def test_mistakes_in_a_study_are_told_together(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(
        "study: x\nmodels: [{model: reference, key: sk-abc/def, temprature: 1}, {alias: y}]\n"
        "arms: [pgg]\ndomains: [banc]\nscreen: mine\nrepetitions: 0\n"
        "hypotheses: [{contrast: [pg]}]\nwhat: 1\n"
    )
    with pytest.raises(UserMistake) as caught:
        load_study(file)
    told = "\n".join(str(each) for each in caught.value.diagnostics)
    for part in ("temprature", "is not the key", "a model needs", "pgg", "banc", "mine",
                 "at least 1", "two arms", "unknown key `what`", "`stopping`"):  # fmt: skip
        assert part in told, part


def test_the_papers_study_is_a_study(tmp_path: Path) -> None:
    (tmp_path / "paper.yaml").write_text(preset("paper"))
    study = load_study(tmp_path / "paper.yaml")
    assert len(study.entrants) == 6
    assert {each.who.key_variable for each in study.entrants} == {"OPENROUTER_API_KEY"}
    assert study.fixed.sha256


EVERY = frozenset(DOMAINS)
SIX = EVERY - {"hotel"}
BANK = frozenset({"bank"})
PAPER = {
    # tab:models, tab:p1, tab:matrix, tab:fullcursor, tab:7b-fullcursor, "Decoupling",
    # "Comparability disclosures": arm → domains, in the first run with the usual conditions
    "DeepSeek-V4-Flash": {
        "official": BANK, "flat": EVERY, "pg-paper": EVERY, "full-cursor": EVERY,
        "flat-protocol": BANK, "official-code": BANK, "prose": BANK, "official-recipes": BANK,
    },
    "Qwen3.7-Plus": {"official": BANK, "flat": EVERY, "pg-paper": EVERY},
    "Qwen3.6-35B-A3B": {"official": BANK, "flat": BANK, "pg-paper": BANK},
    "Qwen3.6-27B": {"official": BANK, "flat": SIX, "pg-paper": SIX},
    "Qwen2.5-7B": {
        "official": BANK, "flat": SIX, "pg-paper": SIX, "full-cursor": BANK,
        "flat-protocol": BANK, "official-code": BANK, "prose": BANK,
    },
    "GPT-4o-mini": {"official": BANK, "flat": BANK, "pg-paper": BANK, "flat-protocol": BANK},
}  # fmt: skip
ENGLISH = {"DeepSeek-V4-Flash": {"flat"}, "Qwen2.5-7B": {"flat", "official-code"}}
COUNTS = {("DeepSeek-V4-Flash", "flat"): 819, ("DeepSeek-V4-Flash", "pg-paper"): 819,
          ("DeepSeek-V4-Flash", "full-cursor"): 821, ("Qwen3.7-Plus", "flat"): 821,
          ("Qwen3.7-Plus", "pg-paper"): 821, ("GPT-4o-mini", "pg-paper"): 125}  # fmt: skip


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_the_dry_run_of_the_papers_study_has_the_papers_design(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Model by model and arm by arm, in the JSON that `study new` and `study plan` lead to."""
    monkeypatch.setattr(estimate, "REHEARSED", 1)  # the design, not its cost
    file, cli = str(tmp_path / "paper.yaml"), CliRunner()
    assert cli.invoke(sopilot, ["lab", "study", "new", file, "--preset", "paper"]).exit_code == 0
    plan = json.loads(cli.invoke(sopilot, ["lab", "study", "plan", file, "--json"]).stdout)
    design: dict[str, dict[str, frozenset[str]]] = {}
    english: dict[str, set[str]] = {}
    counts: dict[tuple[str, str], int] = {}
    others: dict[str, set[tuple[str, str]]] = {}
    for cell in plan["cells"]:
        model, arm, tools, *rest = cell["cell"].split(" / ")
        assert tools == "official"
        if rest == ["zh"]:
            design.setdefault(model, {})[arm] = frozenset(cell["domains"])
            counts[model, arm] = cell["tasks"]
            continue
        assert (cell["domains"], cell["tasks"]) == (["bank"], 125)
        if rest:
            others.setdefault(rest[1], set()).add((model, arm))
        else:
            english.setdefault(model, set()).add(arm)
    assert (len(plan["cells"]), plan["tasks"], plan["goals"]) == (60, 821, 70)
    assert (design, english) == (PAPER, ENGLISH)
    assert counts == counts | COUNTS
    assert all(counts[model, arm] == 125 for model, arms in PAPER.items()
               for arm, domains in arms.items() if domains == BANK)  # fmt: skip
    again = {(model, arm) for model in PAPER for arm in ("flat", "pg-paper")}
    asked = {("DeepSeek-V4-Flash", arm) for arm in ("official", "flat", "pg-paper")}
    assert others == {
        "run 2": again, "run 3": again, "another user": asked,
        "ten user turns": asked - {("DeepSeek-V4-Flash", "official")},
    }  # fmt: skip


def test_arms_domains_and_language_differ_from_model_to_model(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(
        "study: x\narms: [flat, fused]\ndomains: [bank]\n"
        "models:\n  - {model: reference}\n  - {model: sloppy, arms: [pg-paper], language: zh}\n"
        "  - model: 'null'\n    domains: [library]\n"
        "    runs: [{arms: [flat]}, {arms: [pg], repetitions: 2}]"
    )
    blocks = [
        (each.who.label, block.arms, block.domains, block.language, block.repetitions)
        for each in load_study(file).entrants
        for block in each.blocks
    ]
    assert blocks == [
        ("reference", ("flat", "fused"), ("bank",), "en", 1),
        ("sloppy", ("pg-paper",), ("bank",), "zh", 1),
        ("null", ("flat",), ("library",), "en", 1),
        ("null", ("pg",), ("library",), "en", 2),
    ]
