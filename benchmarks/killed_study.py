"""A study killed at random moments and gone on with, against an undisturbed one; then packed and
checked by a fresh installation without SOPBench.

    python benchmarks/killed_study.py [--kills 5] [--tasks 24] [--studies one-model two-models]
        [--local-tasks 3] [--local-turns 3] [--json FILE]

Three domains. One study has a model that needs no key and no time, the reference executor on a
bad day (`sloppy`), over many tasks; the other has two, that one and the local one, over a few
tasks and turns. Exits 1 if the report of the killed study differs by
a byte, a task was run twice, a table of the paper is not in it, or the archive does not come
out the same where there is nothing but the package.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sopilot

PACKAGE = Path(sopilot.__file__).parents[1]
STUDY = """
study: killed
models: [{models}]
arms: {arms}
domains: [bank, dmv, library]
tasks: {{limit: {tasks}}}
screen: paper
repetitions: {repetitions}
budgets: {budgets}
hypotheses:
  - {{name: runtime, contrast: [pg, flat], family: primary}}
stopping: All tasks, once.
exclusions: The execute tasks of the screened goals.
"""
OF_THE_PAPER = (
    "headline", "contrasts", "classes-bank", "classes-domains", "goal-nets",
    "official-configurations", "compiler-effort", "cost", "mechanism",
    "repeats", "full-denominator",
)  # fmt: skip


STUDIES = ["one-model", "two-models"]


def model(name: str) -> str:
    return f"{{alias: {name}, model: {name}, price: [1, 2]}}"


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "sopilot.cli.main", "lab", *words]


def done(*words: str) -> str:
    ran = subprocess.run(command(*words), stdout=subprocess.PIPE, text=True, check=True)
    return ran.stdout


def records(folder: Path) -> list[bytes]:
    return [
        line
        for path in sorted(folder.glob("runs/*/records/*.jsonl"))
        for line in path.read_bytes().split(b"\n")[:-1]
    ]


def killed(file: Path, folder: Path, kills: int, total: int, draw: random.Random) -> list[int]:
    """Kills it whenever it has come a part of the way; how far it was each time."""
    progress: list[int] = []
    run = command("study", "run", str(file), "--folder", str(folder), "--runner", "plain")
    while len(progress) < kills:
        wanted = total * (len(progress) + draw.random()) / (kills + 1)
        process = subprocess.Popen(
            run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        while process.poll() is None and len(records(folder)) < wanted:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.1))
        ended = process.poll() is not None
        if not ended:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        progress.append(len(records(folder)))
        if ended:
            break
    subprocess.run(run, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return progress


def one_study(base: Path, text: str, kills: int, draw: random.Random) -> dict[str, Any]:
    base.mkdir()
    file = base / "study.yaml"
    file.write_text(text, encoding="utf-8")
    planned = json.loads(done("study", "plan", str(file), "--json"))
    total = planned["tasks"] * len(planned["cells"])
    whole, parts = base / "whole", base / "parts"
    subprocess.run(
        command("study", "run", str(file), "--folder", str(whole), "--runner", "plain"),
        check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    progress = killed(file, parts, kills, total, draw)
    reports = [
        done("study", "report", str(file), "--folder", str(folder)) for folder in (whole, parts)
    ]
    data = json.loads(done("study", "report", str(file), "--folder", str(parts), "--json"))
    rows = [json.loads(line) for line in records(parts)]
    seen = [(row["fingerprint"], row["task"]) for row in rows if row["verdict"] is not None]
    return {
        "runs": total,
        "judged": len(set(seen)),
        "killed_at": progress,
        "identical": reports[0] == reports[1],
        "runs_twice": len(seen) - len(set(seen)),
        "hypotheses_in_every_record": all(
            row["hypotheses"] == planned["hypotheses"] for row in rows
        ),
        "tables": len(data["tables"]),
        "tables_of_the_paper_missing": [n for n in OF_THE_PAPER if n not in data["tables"]],
        "archive": archived(base, file, whole),
    }


def archived(base: Path, file: Path, folder: Path) -> dict[str, Any]:
    """Packed here; verified and reported by an installation that has nothing but the package
    and what it depends on, in an empty folder, without SOPBench."""
    archive = base / "archive.zip"
    done("archive", str(folder / "runs"), "--study", str(file), "-o", str(archive))
    elsewhere = base / "elsewhere"
    elsewhere.mkdir()
    python = fresh_installation(base / "fresh")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(elsewhere),
        "SOPBENCH_HOME": str(elsewhere / "none"),
    }

    def there(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python), "-m", "sopilot.cli.main", "lab", *words],
            cwd=elsewhere, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    verified = json.loads(there("verify", str(archive), "--json").stdout)
    original = json.loads(done("study", "report", str(file), "--folder", str(folder), "--json"))
    again = json.loads(there("report", str(archive), "--json").stdout)
    asked = there("run", "--domain", "bank", "--limit", "1")
    return {
        "files": verified["files"],
        "agrees": verified["agrees"],
        "problems": verified["problems"],
        "tables_counted_again": verified["tables"],
        "same_tables": again["tables"] == original["tables"],
        "same_notes": again["notes"] == original["notes"],
        "sopbench_is_not_there": asked.returncode == 2,
    }


def fresh_installation(folder: Path) -> Path:
    """The package in a new environment, with this one's libraries to lean on: from a wheel, or
    copied where none can be built."""
    make = [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")]
    subprocess.run(make, check=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    from_here = [*pip, "install", "--no-deps", "--target", str(site), str(PACKAGE.parent)]
    if subprocess.run(from_here, check=False, capture_output=True).returncode != 0:
        shutil.copytree(PACKAGE / "sopilot", site / "sopilot")
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n", encoding="utf-8")
    return folder / "venv" / "bin" / "python"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--local-tasks", type=int, default=3)
    parser.add_argument("--local-turns", type=int, default=3, help="requests a task, at most")
    parser.add_argument(
        "--studies", nargs="+", choices=STUDIES, default=STUDIES, help="which of the two"
    )
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    studies = {}
    with tempfile.TemporaryDirectory() as scratch:
        text = STUDY.format(
            models=model("sloppy"), tasks=options.tasks, repetitions=2, budgets="{}",
            arms="[flat, pg, full-cursor, flat-protocol, fused]",
        )  # fmt: skip
        if "one-model" in options.studies:
            studies["one-model"] = one_study(Path(scratch, "one"), text, options.kills, draw)
        if "two-models" in options.studies:
            text = STUDY.format(
                models=f"{model('sloppy')}, {model('local')}", tasks=options.local_tasks,
                repetitions=1, arms="[flat, pg]",
                budgets=json.dumps(
                    {
                        "agent_turns": options.local_turns,
                        "wall_seconds": 100_000,
                        "request_seconds": 100_000,
                    }
                ),
            )  # fmt: skip
            studies["two-models"] = one_study(Path(scratch, "two"), text, options.kills, draw)
    figures = {
        "what": "studies killed and gone on with, against undisturbed ones; their archives checked "
        "by a fresh installation without SOPBench",
        "kills": options.kills,
        "studies": studies,
    }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=1))
    sys.exit(0 if all(good(one, options.kills) for one in studies.values()) else 1)


def good(one: dict[str, Any], kills: int) -> bool:
    archive = one["archive"]
    return (
        one["identical"]
        and one["hypotheses_in_every_record"]
        and one["judged"] == one["runs"]
        and not one["runs_twice"]
        and not one["tables_of_the_paper_missing"]
        and len(one["killed_at"]) == kills
        and all(archive[key] for key in ("agrees", "same_tables", "same_notes"))
        and archive["sopbench_is_not_there"]
    )


if __name__ == "__main__":
    main()
