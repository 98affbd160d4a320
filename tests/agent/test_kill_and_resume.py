"""SIGKILL at every durable step and in the middle of tool calls; `resume` finishes the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sopilot.agent.result import Ending
from sopilot.cli.run import perform_here
from sopilot.models.person import PROMPT
from sopilot.protocols import ToolResult
from sopilot.records.store import SessionRecord, Store
from sopilot.runner.options import RunOptions, stored_options
from sopilot.runner.store_access import StoreAccess
from sopilot.stores.sqlite import SQLiteStore
from sopilot.tasks.replay import SavedSimulation
from sopilot.tasks.task import Result

TASKS = {
    "refund-unknown-shop": ("refund_dispute", Ending.EXECUTED),
    "transfer-above-the-limit": ("transfer", Ending.REFUSED),
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed(arrange: Callable[[], None], work: Callable[[], object]) -> bool:
    """Runs ``work`` in a child that kills itself as arranged; whether it died."""
    child = os.fork()
    if child == 0:
        arrange()
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def at_append(number: int, *, before: bool) -> Callable[[], None]:
    def arrange() -> None:
        original = SQLiteStore.append
        made = [0]

        async def append(self: SQLiteStore, *args: Any, **named: Any) -> Any:
            made[0] += 1
            if before and made[0] == number:
                die()
            answer = await original(self, *args, **named)
            if made[0] == number:
                die()
            return answer

        SQLiteStore.append = append  # type: ignore[method-assign]

    return arrange


def at_call(action: str, *, before: bool) -> Callable[[], None]:
    def arrange() -> None:
        original = SavedSimulation.call

        async def call(self: SavedSimulation, name: str, arguments: Any, *, key: str) -> ToolResult:
            if before and name == action:
                die()
            result = await original(self, name, arguments, key=key)
            if name == action:
                die()
            return result

        SavedSimulation.call = call  # type: ignore[method-assign]

    return arrange


def the_session(spec: str) -> SessionRecord | None:
    async def listed(store: Store) -> list[SessionRecord]:
        return await store.sessions()

    found = StoreAccess(spec).write(listed)
    return found[0] if found else None


def finish(spec: str) -> Result:
    record = the_session(spec)
    assert record is not None
    access = StoreAccess(spec)
    options = access.read(lambda store: stored_options(store, record.id))
    assert options is not None
    take_over = {"take_over": True}
    return perform_here(options, access, session_id=record.id, resume=take_over, quiet=True)


def transitions(done: Result) -> list[tuple[str, str, str]]:
    """Who did what where, without what was said and noted."""
    return [
        (one.event.actor, one.event.kind, one.event.frame)
        for one in done.events
        if one.event.kind not in ("note", "assistant_said", "user_said")
    ]


def check(spec: str, folder: Path, task: str) -> None:
    goal, ending = TASKS[task]
    done = finish(spec)
    assert done.ending is ending
    assert done.passed, done.verdict
    assert not [f for f in done.audit.findings if f.severity == "error"], done.audit.findings
    (simulation,) = (folder / "simulators").glob("*.json")
    answered = json.loads(simulation.read_text())["answered"]
    made = [call["name"] for call in answered.values()]
    assert made.count(goal) == (1 if ending is Ending.EXECUTED else 0)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("task", "view", "step"),
    [
        ("refund-unknown-shop", "pg", 11),
        ("refund-unknown-shop", "fused", 7),
        *(pytest.param(task, "pg", 1, marks=SLOW) for task in TASKS),
    ],
)
def test_killed_at_every_append(task: str, view: str, step: int, tmp_path: Path) -> None:
    """Before and after each; of these moments, every `step`-th."""
    deaths = 0
    for moment in range(2, 20_000, step):
        folder = tmp_path / str(moment)
        spec = f"sqlite:{folder / 's.db'}"
        folder.mkdir()
        options = RunOptions("bank", task=task, view=view)
        arrange = at_append(moment // 2, before=moment % 2 == 1)
        if not killed(arrange, partial(perform_here, options, StoreAccess(spec), quiet=True)):
            break
        check(spec, folder, task)
        deaths += 1
    assert deaths >= 6


def test_a_resumed_fused_run_goes_on_as_it_would_have(tmp_path: Path) -> None:
    """The machine still makes the transitions of the view, by the verdicts of the handbook."""
    description = RunOptions("bank", task="refund-unknown-shop", view="fused")
    whole = f"sqlite:{tmp_path / 'whole.db'}"
    expected = transitions(perform_here(description, StoreAccess(whole), quiet=True))
    assert any(by == "machine" and kind == "return" for by, kind, _ in expected)
    number = expected.index(next(one for one in expected if one[1] == "domain_call"))
    for offset in (0, 4):
        spec = f"sqlite:{tmp_path / f'killed{offset}.db'}"
        arrange = at_append(number + offset, before=False)
        access = StoreAccess(spec)
        assert killed(arrange, partial(perform_here, description, access, quiet=True))
        assert transitions(finish(spec)) == expected


@pytest.mark.parametrize("action", ["login", "find_case", "refund_dispute"])
@pytest.mark.parametrize("before", [True, False])
def test_killed_within_a_call(tmp_path: Path, action: str, before: bool) -> None:
    task = "refund-unknown-shop"
    spec = f"sqlite:{tmp_path / 's.db'}"
    assert killed(
        at_call(action, before=before),
        lambda: perform_here(RunOptions("bank", task=task), StoreAccess(spec), quiet=True),
    )
    check(spec, tmp_path, task)


def test_killed_from_outside_and_resumed_by_command(tmp_path: Path) -> None:
    spec = f"sqlite:{tmp_path / 's.db'}"
    command = [sys.executable, "-m", "sopilot.cli.main"]
    run = subprocess.Popen(
        [*command, "run", "bank", "--task", "refund-unknown-shop", "--store", spec],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    record = None
    while record is None and time.monotonic() < deadline:
        time.sleep(0.01)
        record = the_session(spec) if (tmp_path / "s.db").exists() else None
    run.kill()
    run.wait()
    assert record is not None
    done = subprocess.run(
        [*command, "resume", record.id, "--take-over", "--store", spec, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ending"] == "executed"
    assert json.loads(done.stdout)["task"]["passed"]


def test_interrupted_by_a_person(tmp_path: Path) -> None:
    spec = f"sqlite:{tmp_path / 's.db'}"
    chat = subprocess.Popen(
        [sys.executable, "-m", "sopilot.cli.main", "chat", "bank", "--store", spec],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As at a terminal: a suite that runs in the background ignores interrupts, and so
        # would everything that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert chat.stdin is not None
    assert chat.stdout is not None
    chat.stdin.write("I would like to transfer money.\n")
    chat.stdin.flush()
    said = ""
    while PROMPT not in said.partition("Please tell me")[2]:
        read = chat.stdout.read(1)
        assert read
        said += read
    time.sleep(0.5)
    chat.send_signal(signal.SIGINT)
    # The input stays open: its end is an answer, and would end the dialog as well.
    chat.wait(timeout=60)
    _, problems = chat.communicate()
    assert chat.returncode == 130
    record = the_session(spec)
    assert record is not None
    assert f"sopilot resume {record.id}" in problems
    # The lease was given back, so nobody has to wait for it.
    again = subprocess.run(
        [sys.executable, "-m", "sopilot.cli.main", "resume", record.id, "--store", spec],
        input="\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "abandoned" in again.stdout, again.stderr
