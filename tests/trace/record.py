"""Records the trace that later releases must still replay.

    PYTHONPATH=benchmarks python tests/trace/record.py tests/trace/v1/counter.jsonl

Run once for a format version, never again: what matters is that these very bytes
go on being readable.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from counter_desk import (
    COUNTER,
    ERRANDS,
    HANDBOOK,
    CountingTools,
    HandClock,
    counter_programs,
    go_on,
    walk,
)
from sopilot.machine.program_set import ProgramSet
from sopilot.records.loading import export_trace
from sopilot.records.store import Settings
from sopilot.session.opening import open_session, resume_session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.chain import head
from sopilot.trace.events import Complete, EmitArtifact, Fail, SelectBranch, Start
from sopilot.trace.files import TraceFile, write_trace
from sopilot.trace.signing import generate_key, sign_head


async def record() -> TraceFile:
    """One of everything: talk, mistakes, a changed goal, guards, approvals, lost outcomes."""
    store = MemoryStore()
    tools = CountingTools()
    clock = HandClock()
    session = await open_session(
        store,
        COUNTER,
        tools=tools,
        clock=clock,
        handbook="counter",
        view="pg",
        model="scripted",
        settings=Settings(by_reference=frozenset({"password"}), inline_limit=2000),
    )
    await session.user_said("Überweise 100 an Bob, bitte. 請快一點。\u2028" + "x" * 2500)
    await session.assistant_said("One moment.")
    await session.operate(SelectBranch("nothing"))
    await session.operate(Start("transfr"))
    await session.operate(Start("transfer", ERRANDS["transfer"]))
    await session.operate(Complete("it is done"))
    await session.operate(EmitArtifact("letter", {"a": [1, 2.5, None, True]}))
    await session.call_tool("transfer", ERRANDS["transfer"], "early")
    await session.operate(Start("rename", ERRANDS["rename"]))
    clock.advance(1.25)
    await go_on(session, stop_at_action="transfer")
    tools.failing.add("transfer")
    await session.call_tool("transfer", ERRANDS["transfer"], "t")
    tools.failing.clear()
    await session.resolve_outcome("t", ok=True, value={"receipt": 7}, by="dana")
    await go_on(session)
    await walk(session, "wire", stop_at_action="wire")
    await session.call_tool("wire", ERRANDS["wire"], "w")
    await session.decide("approve", "w", by="ann", role="supervisor")
    await session.decide("amend", "w", by="bo", role="auditor", arguments={"amount": 5})
    await session.decide("reject", "w", by="cy", role="officer", reason="no such payee")
    await session.operate(Fail("rejected"))
    await walk(session, "wire", stop_at_action="wire")
    await session.call_tool("wire", ERRANDS["wire"], "w")
    await session.decide("approve", "w.2", by="ann", role="supervisor")
    clock.advance(4000)
    await session.call_tool("wire", ERRANDS["wire"], "w")
    await session.decide("approve", "w.3", by="ann", role="supervisor")
    await session.decide("approve", "w.3", by="bo", role="auditor")
    await session.run_held("w.3")
    await session.note("budget", {"turns": 30})
    await session.release()
    changed = ProgramSet(counter_programs(HANDBOOK.replace("limit: 500", "limit: 400")))
    session = await resume_session(
        store, session.id, tools=tools, clock=clock, programs=changed, accept_changed=True
    )
    await walk(session, "refund", stop_at_action="refund")
    await session.call_tool("refund", ERRANDS["refund"], "r")
    await session.decide("approve", "r", by="ann", role="supervisor")
    await session.run_held("r")
    await go_on(session)
    await session.operate(Start("transfer", {"username": "eve"}))
    trace = await export_trace(store, session.id, payloads=True)
    signed = sign_head(generate_key(), head(trace.session_id, trace.events), at=clock.now())
    return replace(trace, signatures=(signed,))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if target.exists():
        sys.exit(f"{target} exists: a stored trace is never made anew")
    target.write_text(write_trace(asyncio.run(record())), encoding="utf-8", newline="\n")
