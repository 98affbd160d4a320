"""Sweeps and studies that are killed, over a mailbox too.

    python benchmarks/sweep_faults.py kills [--kills 20] [--tasks 200] [--no-ray] [--json FILE]
    python benchmarks/sweep_faults.py study [--kills 5] [--tasks 24] [--studies one-model …]
    python benchmarks/sweep_faults.py mailbox [--tasks 20] [--kills 10]

`kills`: a sweep killed at random moments and continued has the scores of an uninterrupted one,
byte by byte, and no task was run twice; on Ray one of two workers is killed. `study`: the report
of a killed study is the undisturbed one's but for the wall clock, and its archive verifies on a
fresh installation without SOPBench. `mailbox`: sweeps and the process that answers are both
killed; no request is asked or answered twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sopilot
from campaign import parts
from scripted_answers import completion, scripted_answer
from sopilot.models.wire import read_reply, wire_request
from sopilot.protocols import ModelReply, ModelRequest
from sopilot_lab.experiments import trial as _trial
from sopilot_lab.experiments.entrants import Contestant, Party
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.experiments.sweep import make_configuration, run_sweep
from sopilot_lab.sopbench.process import shared_upstream

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def lab(*words: object) -> list[str]:
    return [sys.executable, "-m", "sopilot.cli.main", "lab", *map(str, words)]


def lab_run(folder: Path, tasks: int, runner: str, *more: object) -> list[str]:
    return lab("run", "--domain", "all", "--limit", tasks, "--runner", runner, *more, "--json",
               "-o", folder)  # fmt: skip


def records(folder: Path, pattern: str = "records/*.jsonl") -> list[bytes]:
    return [
        line
        for path in sorted(folder.glob(pattern))
        for line in path.read_bytes().split(b"\n")[:-1]
    ]


def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, start_new_session=True, **QUIET)


def wait_until(process: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
    while process.poll() is None and not reached():
        time.sleep(0.01)


def kill(process: subprocess.Popen[bytes]) -> bool:
    """Kill the process group; whether it was still running."""
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return running


# --- a killed sweep -------------------------------------------------------------------


def kills(kills: int, tasks: int, runners: list[str], no_ray: bool, seed: int) -> dict[str, Any]:
    """Kill sweeps at random moments, continue them and compare their scores."""
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch, "whole")
        begun = time.monotonic()
        subprocess.run(lab_run(whole, tasks, "plain", "--workers", 2), check=True, **QUIET)
        seconds = time.monotonic() - begun
        scores = (whole / "scores.jsonl").read_bytes()
        sweeps = []
        for runner in runners:
            folder = Path(scratch, runner)
            draw = random.Random(f"{seed} {runner}")
            killed = kill_and_continue(folder, tasks, runner, kills, draw, seconds)
            sweeps.append({"runner": runner, "on": "local"} | killed | compared(folder, scores))
        if not no_ray:
            folder = Path(scratch, "ray")
            killed = kill_a_ray_worker(folder, tasks)
            sweeps.append({"runner": "plain", "on": "ray"} | killed | compared(folder, scores))
    return {
        "passed": all(row["identical"] and not row["tasks_run_twice"] for row in sweeps),
        "what": "sweeps killed at random moments and continued, against an uninterrupted sweep",
        "tasks": tasks,
        "sha256": hashlib.sha256(scores).hexdigest(),
        "sweeps": sweeps,
    }


def kill_and_continue(
    folder: Path, tasks: int, runner: str, kills: int, draw: random.Random, seconds: float
) -> dict[str, Any]:
    command = lab_run(folder, tasks, runner, "--workers", 2)
    progress: list[int] = []
    only_leader = after_the_end = 0
    while len(progress) < kills:
        before = len(records(folder))
        sweep = start(command)
        if draw.random() < 0.8:  # some kills fall into the start, most into the work
            wait_until(sweep, lambda before=before: len(records(folder)) != before)
        time.sleep(draw.uniform(0, 0.5 * seconds / kills))
        after_the_end += sweep.poll() is not None
        if draw.random() < 0.3:  # workers that outlive their leader must stop by themselves
            sweep.kill()
            sweep.wait()
            only_leader += 1
        else:
            kill(sweep)
        progress.append(len(records(folder)))
    subprocess.run(command, check=True, **QUIET)
    return {
        "kills": kills,
        "of_the_leader_alone": only_leader,
        "after_the_end": after_the_end,
        "records_after_each_kill": progress,
    }


def kill_a_ray_worker(folder: Path, tasks: int) -> dict[str, Any]:
    command = lab_run(folder, tasks, "plain", "--workers", 2, "--on", "ray")
    sweep = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    written = 0
    while sweep.poll() is None:
        written = len(records(folder))
        workers = shard_workers(sweep.pid) if written >= tasks // 4 else []
        if workers:
            os.kill(workers[0], signal.SIGKILL)
            break
        time.sleep(0.02)
    if sweep.wait() != 0:
        sys.exit("the sweep on Ray failed")
    return {"kills": 1, "workers": 2, "records_after_each_kill": [written]}


def shard_workers(ancestor: int) -> list[int]:
    """Ray workers that run a shard, below the process that leads the sweep."""
    parents: dict[int, int] = {}
    working: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status, name = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
        if b"ray::run_shard" in name:
            working.append(int(entry.name))

    def below(pid: int) -> bool:
        while pid in parents and pid != ancestor:
            pid = parents[pid]
        return pid == ancestor

    return [pid for pid in working if below(pid)]


def compared(folder: Path, scores: bytes) -> dict[str, Any]:
    tasks = [json.loads(line)["task"] for line in records(folder)]
    return {
        "tasks_run_twice": len(tasks) - len(set(tasks)),
        "identical": (folder / "scores.jsonl").read_bytes() == scores,
    }


# --- a killed study -------------------------------------------------------------------

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


def study(
    kills: int, tasks: int, local_tasks: int, local_turns: int, studies: list[str], seed: int
) -> dict[str, Any]:
    """Kill studies at random moments, compare their reports, verify their archives elsewhere."""
    draw = random.Random(seed)
    sloppy, local = (f"{{alias: {n}, model: {n}, price: [1, 2]}}" for n in ("sloppy", "local"))
    patient = {"agent_turns": local_turns, "wall_seconds": 100_000, "request_seconds": 100_000}
    texts = {
        "one-model": STUDY.format(
            models=sloppy, tasks=tasks, repetitions=2, budgets="{}",
            arms="[flat, pg, full-cursor, flat-protocol, fused]",
        ),
        "two-models": STUDY.format(
            models=f"{sloppy}, {local}", tasks=local_tasks, repetitions=1, arms="[flat, pg]",
            budgets=json.dumps(patient),
        ),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        done = {name: one_study(Path(scratch, name), texts[name], kills, draw) for name in studies}
    return {
        "passed": all(study_good(row, kills) for row in done.values()),
        "what": "studies killed and continued, against undisturbed ones; their archives checked "
        "by a fresh installation without SOPBench",
        "kills": kills,
        "studies": done,
    }


def output(*words: object) -> str:
    return subprocess.run(lab(*words), stdout=subprocess.PIPE, text=True, check=True).stdout


def one_study(base: Path, text: str, kills: int, draw: random.Random) -> dict[str, Any]:
    base.mkdir()
    file = base / "study.yaml"
    file.write_text(text, encoding="utf-8")
    planned = json.loads(output("study", "plan", file, "--json"))
    total = planned["tasks"] * len(planned["cells"])
    whole, parts = base / "whole", base / "parts"
    run = ("study", "run", file, "--runner", "plain", "--folder")
    subprocess.run(lab(*run, whole), check=False, **QUIET)
    progress = killed_study(lab(*run, parts), parts, kills, total, draw)
    report = ("study", "report", file, "--folder")
    data, undisturbed = (json.loads(output(*report, made, "--json")) for made in (parts, whole))
    for each in (data, undisturbed):
        del each["tables"]["wall-clock"]  # the machine's, and the day's
    rows = [json.loads(line) for line in records(parts, "runs/*/records/*.jsonl")]
    seen = [(row["fingerprint"], row["task"]) for row in rows if row["verdict"] is not None]
    return {
        "runs": total,
        "judged": len(set(seen)),
        "killed_at": progress,
        "identical": data == undisturbed,
        "runs_twice": len(seen) - len(set(seen)),
        "hypotheses_in_every_record": all(
            row["hypotheses"] == planned["hypotheses"] for row in rows
        ),
        "tables": len(data["tables"]),
        "tables_of_the_paper_missing": [n for n in OF_THE_PAPER if n not in data["tables"]],
        "archive": archived(base, file, whole),
    }


def killed_study(
    run: list[str], folder: Path, kills: int, total: int, draw: random.Random
) -> list[int]:
    """Kill it whenever it has come part of the way; how far it was each time."""

    def made() -> int:
        return len(records(folder, "runs/*/records/*.jsonl"))

    progress: list[int] = []
    while len(progress) < kills:
        wanted = total * (len(progress) + draw.random()) / (kills + 1)
        process = start(run)
        wait_until(process, lambda wanted=wanted: made() >= wanted)
        time.sleep(draw.uniform(0, 0.1))
        running = kill(process)
        progress.append(made())
        if not running:
            break
    subprocess.run(run, check=False, **QUIET)
    return progress


def archived(base: Path, file: Path, folder: Path) -> dict[str, Any]:
    """Pack it here; verify and report it with an installation that has nothing but the package
    and its dependencies, in an empty folder, without SOPBench."""
    archive, elsewhere = base / "archive.zip", base / "elsewhere"
    output("archive", folder / "runs", "--study", file, "-o", archive)
    elsewhere.mkdir()
    python = fresh_installation(base / "fresh")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(elsewhere),
        "SOPBENCH_HOME": str(elsewhere / "none"),
    }

    def there(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python), *lab(*words)[1:]],
            cwd=elsewhere, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    verified = json.loads(there("verify", archive, "--json").stdout)
    original = json.loads(output("study", "report", file, "--folder", folder, "--json"))
    again = json.loads(there("report", archive, "--json").stdout)
    return {
        "files": verified["files"],
        "agrees": verified["agrees"],
        "problems": verified["problems"],
        "tables_counted_again": verified["tables"],
        "same_tables": again["tables"] == original["tables"],
        "same_notes": again["notes"] == original["notes"],
        "sopbench_is_not_there": there("run", "--domain", "bank", "--limit", "1").returncode == 2,
    }


def fresh_installation(folder: Path) -> Path:
    """The package in a new environment that borrows this one's libraries: from a wheel, or copied
    where none can be built."""
    make = [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")]
    subprocess.run(make, check=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    from_here = [*pip, "install", "--no-deps", "--target", str(site), str(PACKAGE.parent)]
    if subprocess.run(from_here, check=False, capture_output=True).returncode != 0:
        for name in ("sopilot", "sopilot_lab"):
            shutil.copytree(PACKAGE / name, site / name)
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n", encoding="utf-8")
    return folder / "venv" / "bin" / "python"


def study_good(row: dict[str, Any], kills: int) -> bool:
    archive = row["archive"]
    return (
        row["identical"]
        and row["hypotheses_in_every_record"]
        and row["judged"] == row["runs"]
        and not row["runs_twice"]
        and not row["tables_of_the_paper_missing"]
        and len(row["killed_at"]) == kills
        and all(archive[key] for key in ("agrees", "same_tables", "same_notes"))
        and archive["sopbench_is_not_there"]
    )


# --- a mailbox ------------------------------------------------------------------------

MAILBOX_ARMS = ("pg", "flat", "fused", "official")


def mailbox(tasks: int, kills: int, seed: int, answer: str) -> dict[str, Any]:
    """Sweep over a folder that another process answers; kill both now and then."""
    if answer:
        answer_mailbox(Path(answer))
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        (base / "box" / "requests").mkdir(parents=True)
        needed = in_process(base / "process", tasks)
        killed = both_killed(base / "mail", base / "box", tasks, kills, random.Random(seed))
        figures = {**killed, **answered_once(base, needed)}
    wrong = figures["answered_twice"] or figures["unanswered"] or figures["asked_beyond"]
    same = figures["identical_scores"] == len(MAILBOX_ARMS)
    return {
        "passed": same and not wrong and min(killed.values()) >= kills,
        "what": "a sweep whose model is a folder, both sides killed, against the same in process",
        "tasks": tasks,
        "arms": list(MAILBOX_ARMS),
        **figures,
    }


def answer_mailbox(box: Path) -> None:
    """Answer until killed. A reply is put in place whole, and never over another reply."""
    (box / "replies").mkdir(parents=True, exist_ok=True)
    while True:
        for request in sorted((box / "requests").glob("*.json")):
            reply = box / "replies" / request.name
            if reply.exists():
                continue
            sent = json.loads(request.read_text(encoding="utf-8"))["request"]
            draft = box / f"draft-{os.getpid()}"
            draft.write_text(json.dumps(completion(scripted_answer(sent), 0)), encoding="utf-8")
            os.link(draft, reply)
            draft.unlink()  # the next draft must not be written into this reply
            with (box / "answered.log").open("a", encoding="utf-8") as log:
                log.write(f"{request.stem}\n")
        time.sleep(0.01)


class InProcess:
    """Gives the same replies without a folder."""

    name = "scripted"

    async def complete(self, request: ModelRequest) -> ModelReply:
        message = await asyncio.to_thread(scripted_answer, wire_request(request, "m"))
        return read_reply(completion(message, 0))


def in_process(folder: Path, tasks: int) -> int:
    """How many requests it took."""
    upstream = shared_upstream()
    honest = _trial.playing
    _trial.playing = lambda *_: InProcess()  # type: ignore[assignment]
    requests = 0
    try:
        for arm in MAILBOX_ARMS:
            done = run_sweep(
                folder / arm,
                make_configuration(upstream, arm=arm, model="scripted", tools="official"),
                select_tasks("all", upstream, limit=tasks),
                Party(Contestant("mailbox:none", "scripted")),
                runner="plain",
            )
            requests += sum(each.agent_turns for each in done.folder.records().values())
    finally:
        _trial.playing = honest
    return requests


class Side:
    """A process that is started again whenever it was killed."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self.process = start(command)
        self.kills = 0

    def kill(self, *, again: bool = True) -> None:
        self.kills += kill(self.process) and again
        if again:
            self.process = start(self._command)


def both_killed(
    folder: Path, box: Path, tasks: int, kills: int, draw: random.Random
) -> dict[str, int]:
    """Every arm's sweep to its end; the kills are spread over them by the number of answers."""

    def answered() -> int:
        return len(list((box / "replies").glob("*.json")))

    answering = Side([sys.executable, __file__, "mailbox", "--answer", str(box)])
    of_sweeps = 0
    try:
        for number, arm in enumerate(MAILBOX_ARMS, 1):
            model = ("--model", f"mailbox:{box}", "--alias", "scripted", "--arm", arm)
            sweeping = Side(lab_run(folder / arm, tasks, "plain", *model))
            due = kills * number / len(MAILBOX_ARMS)
            while sweeping.process.poll() is None:
                enough, until = answered() + draw.randint(1, 12), time.monotonic() + 30
                wait_until(
                    sweeping.process,
                    lambda enough=enough, until=until: (
                        answered() >= enough or time.monotonic() > until
                    ),
                )
                if sweeping.process.poll() is not None:
                    break
                if of_sweeps + sweeping.kills < due:
                    sweeping.kill()
                if answering.kills < due:
                    answering.kill()
            of_sweeps += sweeping.kills
        while answering.kills < kills:
            answering.kill()
    finally:
        answering.kill(again=False)
    return {"kills_of_sweeps": of_sweeps, "kills_of_the_answerer": answering.kills}


def answered_once(base: Path, needed: int) -> dict[str, Any]:
    box = base / "box"
    names = {path.name for path in (box / "requests").glob("*.json")}
    replies = {path.name for path in (box / "replies").glob("*.json")}
    logged = Counter((box / "answered.log").read_text(encoding="utf-8").split())
    return {
        "requests": len(names),
        "requests_needed": needed,
        "asked_beyond": len(names) - needed,
        "unanswered": len(names - replies),
        "answered_twice": sum(count > 1 for count in logged.values())
        + len(list((box / "replies").glob("*.refused-*"))),
        "identical_scores": sum(
            (base / "process" / arm / "scores.jsonl").read_bytes()
            == (base / "mail" / arm / "scores.jsonl").read_bytes()
            for arm in MAILBOX_ARMS
        ),
    }


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    runners = ["inspect", "plain"]
    local = {"local_tasks": 3, "local_turns": 3}
    parts(
        __doc__,
        kills=(kills, {"kills": 20, "tasks": 200, "runners": runners, "no_ray": False, "seed": 27}),
        study=(study, {"kills": 5, "tasks": 24, **local, "studies": STUDIES, "seed": 5}),
        mailbox=(mailbox, {"tasks": 20, "kills": 10, "seed": 9, "answer": ""}),
    )
