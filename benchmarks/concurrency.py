"""Many sessions at once in one process, each waiting for a slow model.

    python benchmarks/concurrency.py [--sessions 500] [--latency 1.0] [--json FILE]

Prints how long they take against the ideal of one session alone (its requests
times the latency), and the peak memory. Exit code 1 beyond 1.2 times or 2 GiB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sopilot.agent.approvers import ScriptedUser
from sopilot.agent.loop import open_run, run_programs, run_session
from sopilot.agent.reference.executor import Reference
from sopilot.agent.result import Ending, SessionResult
from sopilot.compiler.pipeline import compile_handbook
from sopilot.protocols import Model, ModelReply, ModelRequest
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.examples.example import load_example
from sopilot.tasks.examples.judge import example_judge
from sopilot.views.briefing import Briefing
from sopilot.views.catalogue import VIEWS

EXAMPLE, TASK, ARM = "bank", "dispute-electronics", "pg"
MOST_TIMES, MOST_BYTES = 1.2, 2 * 1024**3


class SlowReplay:
    """What the reference executor said once, after a while: a provider costs time, not CPU."""

    name = "slow replay"

    def __init__(self, replies: Sequence[ModelReply], latency: float) -> None:
        self._replies = iter(replies)
        self._latency = latency

    async def complete(self, request: ModelRequest) -> ModelReply:
        await asyncio.sleep(self._latency)
        return next(self._replies)


async def many(sessions: int, latency: float) -> tuple[list[SessionResult], float]:
    example = load_example(EXAMPLE)
    task = example.task(TASK)
    compiled = compile_handbook(example.handbook)
    briefing = Briefing(example.handbook, {goal: one.program for goal, one in compiled.items()})
    programs = run_programs(briefing, VIEWS[ARM])
    store = MemoryStore()

    async def one(model: Model) -> SessionResult:
        session = await open_run(
            store, briefing, VIEWS[ARM], tools=example.make_tools(task), programs=programs
        )
        user = ScriptedUser(task.request, task.inputs, goal=task.goal)
        return await run_session(session, briefing, view=VIEWS[ARM], model=model, user=user)

    first = await one(Reference(example_judge(example)))
    replies = [
        ModelReply(message.content, message.tool_calls)
        for message in first.messages
        if message.role == "assistant"
    ]
    begun = time.perf_counter()
    results = await asyncio.gather(*(one(SlowReplay(replies, latency)) for _ in range(sessions)))
    return list(results), time.perf_counter() - begun


def measure(sessions: int, latency: float) -> dict[str, float]:
    results, seconds = asyncio.run(many(sessions, latency))
    wrong = sum(result.ending is not Ending.EXECUTED for result in results)
    ideal = results[0].agent_turns * latency
    return {
        "sessions": sessions,
        "latency": latency,
        "requests_each": results[0].agent_turns,
        "ideal_seconds": round(ideal, 3),
        "seconds": round(seconds, 3),
        "times_ideal": round(seconds / ideal, 3),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "wrong": wrong,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    figures = measure(options.sessions, options.latency)
    print(
        f"{figures['sessions']} sessions of {figures['requests_each']} requests at "
        f"{figures['latency']} s: {figures['seconds']} s, {figures['times_ideal']} times the "
        f"ideal, {figures['peak_bytes'] / 2**20:.0f} MiB, {figures['wrong']} wrong"
    )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    good = figures["times_ideal"] <= MOST_TIMES and figures["peak_bytes"] < MOST_BYTES
    sys.exit(0 if good and not figures["wrong"] else 1)


if __name__ == "__main__":
    main()
