"""A sweep whose model is a folder: another process answers, and both are killed now and then.

    python benchmarks/mailbox_sweep.py [--tasks 20] [--kills 10] [--json FILE]

Twenty tasks under four arms; the sweeps and the process that answers are each killed ten
times at random moments and started again. Exits 1 if a request was answered twice or not at
all, if more was asked than the same replies need in one process, or if a byte of the scores
differs from theirs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from faulty_endpoint import completion, scripted_answer
from sopilot.models.wire import read_reply, wire_request
from sopilot.protocols import ModelReply, ModelRequest
from sopilot_lab.experiments import trial as _trial
from sopilot_lab.experiments.entrants import Contestant
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.experiments.sweep import make_configuration, run_sweep
from sopilot_lab.sopbench.process import shared_upstream

ARMS = ("pg", "flat", "fused", "official")


def answer(box: Path) -> None:
    """Until it is killed. A reply is put in place whole, and never over another one."""
    (box / "replies").mkdir(parents=True, exist_ok=True)
    while True:
        for request in sorted((box / "requests").glob("*.json")):
            reply = box / "replies" / request.name
            if reply.exists():
                continue
            asked = json.loads(request.read_text(encoding="utf-8"))["request"]
            draft = box / f"draft-{os.getpid()}"
            draft.write_text(json.dumps(completion(scripted_answer(asked), 0)), encoding="utf-8")
            os.link(draft, reply)
            draft.unlink()  # the next one must not be written into this reply
            with (box / "answered.log").open("a", encoding="utf-8") as log:
                log.write(f"{request.stem}\n")
        time.sleep(0.01)


class InProcess:
    """The same replies without a folder."""

    name = "scripted"

    async def complete(self, request: ModelRequest) -> ModelReply:
        message = await asyncio.to_thread(scripted_answer, wire_request(request, "m"))
        return read_reply(completion(message, 0))


def in_process(folder: Path, tasks: int) -> int:
    """How many requests it took."""
    upstream = shared_upstream()
    honest = _trial.playing
    _trial.playing = lambda *_: InProcess()  # type: ignore[assignment]
    asked = 0
    try:
        for arm in ARMS:
            configuration = make_configuration(
                upstream, arm=arm, model="scripted", tools="official"
            )
            done = run_sweep(
                folder / arm,
                configuration,
                select_tasks("all", upstream, limit=tasks),
                contestant=Contestant("mailbox:none", "scripted"),
                runner="plain",
            )
            asked += sum(each.agent_turns for each in done.folder.records().values())
    finally:
        _trial.playing = honest
    return asked


def sweep(folder: Path, box: Path, arm: str, tasks: int) -> list[str]:
    run = [sys.executable, "-m", "sopilot.cli.main", "lab", "run", "--domain", "all"]
    model = ["--model", f"mailbox:{box}", "--alias", "scripted", "--arm", arm, "--runner", "plain"]
    return [*run, *model, "--limit", str(tasks), "--json", "-o", str(folder / arm)]


class Side:
    """A process that is started again whenever it was killed."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self.process = self._start()
        self.kills = 0

    def _start(self) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(self._command, stdout=quiet, stderr=quiet, start_new_session=True)

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.kills += 1
        self.process.wait()

    def again(self) -> None:
        self.process = self._start()


def killed(folder: Path, box: Path, tasks: int, kills: int, draw: random.Random) -> dict[str, int]:
    """Every arm's sweep to its end; the kills are spread over them by what was answered."""
    answering = Side([sys.executable, __file__, "--answer", str(box)])
    of_sweeps = 0
    for number, arm in enumerate(ARMS, 1):
        sweeping = Side(sweep(folder, box, arm, tasks))
        while sweeping.process.poll() is None:
            before = _answered(box)
            until = time.monotonic() + 30
            progress = draw.randint(1, 12)
            while (
                sweeping.process.poll() is None
                and _answered(box) < before + progress
                and time.monotonic() < until
            ):
                time.sleep(0.01)
            if of_sweeps + sweeping.kills < kills * number / len(ARMS):
                sweeping.kill()
                sweeping.again()
            if answering.kills < kills * number / len(ARMS):
                answering.kill()
                answering.again()
        of_sweeps += sweeping.kills
    while answering.kills < kills:
        answering.kill()
        answering.again()
    answering.kill()
    answering.kills -= 1  # the last one ends it
    return {"kills_of_sweeps": of_sweeps, "kills_of_the_answerer": answering.kills}


def _answered(box: Path) -> int:
    return len(list((box / "replies").glob("*.json")))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer(options.answer)
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        (base / "box" / "requests").mkdir(parents=True)
        needed = in_process(base / "process", options.tasks)
        counts = killed(
            base / "mail", base / "box", options.tasks, options.kills, random.Random(options.seed)
        )
        figures = {**counts, **compared(base, needed)}
    figures = {
        "what": "a sweep whose model is a folder, both sides killed, against the same in process",
        "tasks": options.tasks,
        "arms": list(ARMS),
        **figures,
    }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=1))
    good = figures["identical_scores"] == len(ARMS) and not (
        figures["answered_twice"] or figures["unanswered"] or figures["asked_beyond"]
    )
    enough = min(counts.values()) >= options.kills
    sys.exit(0 if good and enough else 1)


def compared(base: Path, needed: int) -> dict[str, Any]:
    box = base / "box"
    asked = {path.name for path in (box / "requests").glob("*.json")}
    replies = {path.name for path in (box / "replies").glob("*.json")}
    logged = Counter((box / "answered.log").read_text(encoding="utf-8").split())
    scores = [
        (base / side / arm / "scores.jsonl").read_bytes()
        for arm in ARMS
        for side in ("process", "mail")
    ]
    return {
        "requests": len(asked),
        "requests_needed": needed,
        "asked_beyond": len(asked) - needed,
        "unanswered": len(asked - replies),
        "answered_twice": sum(count > 1 for count in logged.values())
        + len(list((box / "replies").glob("*.refused-*"))),
        "identical_scores": sum(
            scores[place] == scores[place + 1] for place in range(0, len(scores), 2)
        ),
    }


if __name__ == "__main__":
    main()
