"""Microseconds a step of a session in memory, where nothing is guarded and where the goal is.

Run: python benchmarks/session_step.py [WALKS]

The walk is that of `vm_step.py`; a step is checked, judged for its grade where something is
guarded, sealed into the chain and kept. Processor time, best walk: whoever else uses the
machine only ever adds.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import time

import vm_step

try:
    from sopilot.machine.program_set import ProgramSet
    from sopilot.program.model import Guarded
    from sopilot.session.opening import open_session
    from sopilot.stores.memory import MemoryStore
except ModuleNotFoundError:  # the layout before the packages were flat, for `step_cost.py`
    from sopilot.adapters.memory_store import (  # type: ignore[import-not-found, no-redef]
        MemoryStore,
    )
    from sopilot.language.program import (  # type: ignore[import-not-found, no-redef]
        Guarded,
    )
    from sopilot.runtime.session import (  # type: ignore[import-not-found, no-redef]
        ProgramSet,
        open_session,
    )


async def walk(guarded: bool) -> float:
    program = vm_step.program()
    if guarded:
        program = dataclasses.replace(program, guarded=(Guarded("goal"),))
    session = await open_session(MemoryStore(), ProgramSet.of({"main": program}))
    operations = vm_step.operations()
    began = time.process_time()
    for operation in operations:
        outcome = await session.operate(operation)
        assert outcome.accepted
    return (time.process_time() - began) / len(operations) * 1e6


def main() -> None:
    walks = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    best = {name: float("inf") for name in ("unguarded", "guarded")}
    for _ in range(walks):
        for name in best:
            best[name] = min(best[name], asyncio.run(walk(name == "guarded")))
    for name, taken in best.items():
        print(f"session step, {name}: best walk {taken:.2f} microseconds")


if __name__ == "__main__":
    main()
