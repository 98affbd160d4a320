"""Microseconds a step: a walk of 200 operations through a program of 49 checks.

Run: python benchmarks/vm_step.py [--rounds N]
With `langgraph` installed, its step with the in-memory saver is timed on the same machine.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time

from sopilot.machine.machine import Machine
from sopilot.machine.replay import replay
from sopilot.program.model import (
    Act,
    Check,
    CompleteStep,
    FailStep,
    Function,
    Kind,
    Local,
    Program,
    ReturnStep,
    Source,
    Step,
)
from sopilot.trace.chain import genesis, seal_line
from sopilot.trace.events import Call, DomainCall, DomainResult, Event, Operation, Start
from sopilot.trace.events import Complete as CompleteOperation
from sopilot.trace.events import Return as ReturnOperation

CHECKS = 49
ROUNDS = 200


def program() -> Program:
    rule = Function(
        "rule",
        Kind.RULE,
        ("username", "n"),
        (
            Act("read", "read", (("username", Local("username")), ("n", Local("n")))),
            ReturnStep("done"),
        ),
        predicate="rule",
    )
    steps: list[Step] = [
        Check(
            f"check_{index}",
            "rule",
            (("username", Local("username")), ("n", Local("n"))),
            f"slot_{index}",
            unmet="refuse",
        )
        for index in range(CHECKS)
    ]
    steps += [
        Act("act", "goal", (("username", Local("username")),), goal=True),
        CompleteStep("finish"),
        FailStep("refuse"),
    ]
    main = Function("main", Kind.PROCESS, ("username", "n"), tuple(steps))
    return Program("main", {"main": main, "rule": rule}, Source("bench", "main", ""), "hand")


def operations() -> list[Operation]:
    walk: list[Operation] = [Start("main", {"username": "bob", "n": 5})]
    for index in range(CHECKS):
        walk += [
            Call(),
            DomainCall(f"c{index}", "read", {"username": "bob", "n": 5}),
            DomainResult(f"c{index}", True, {"balance": 120.5, "currency": "EUR"}),
            ReturnOperation(True),
        ]
    walk += [
        DomainCall("goal", "goal", {"username": "bob"}),
        DomainResult("goal", True, "done"),
        CompleteOperation("done"),
    ]
    return walk


def peer_step() -> float | None:
    """Microseconds a step of LangGraph with its in-memory saver: one node that loops."""
    try:
        graphs = importlib.import_module("langgraph.graph")
        memory = importlib.import_module("langgraph.checkpoint.memory")
    except ImportError:
        return None
    graph = graphs.StateGraph(dict)
    graph.add_node("count", lambda state: {"n": state["n"] + 1})
    graph.add_edge(graphs.START, "count")
    graph.add_conditional_edges("count", lambda state: "count" if state["n"] < 200 else graphs.END)
    app = graph.compile(checkpointer=memory.InMemorySaver())
    rounds = []
    for number in range(10):
        began = time.perf_counter()
        config = {"configurable": {"thread_id": str(number)}, "recursion_limit": 1000}
        assert app.invoke({"n": 0}, config)["n"] == 200
        rounds.append((time.perf_counter() - began) / 200 * 1e6)
    return statistics.median(rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    source = program()
    machine = Machine({"main": source})
    walk = operations()
    steps: list[float] = []
    sealing: list[float] = []
    replaying: list[float] = []
    for _ in range(rounds):
        configuration = machine.initial()
        events: list[Event] = []
        began = time.perf_counter()
        for operation in walk:
            outcome = machine.step(configuration, operation, at=0.0)
            configuration = outcome.configuration
            events.extend(outcome.events)
        steps.append((time.perf_counter() - began) / len(walk) * 1e6)
        assert configuration.active is None
        assert len(events) == len(walk)
        began = time.perf_counter()
        previous = genesis("bench")
        for event in events:
            previous = seal_line(event, previous)[0].hash
        sealing.append((time.perf_counter() - began) / len(events) * 1e6)
        began = time.perf_counter()
        assert replay(machine, events) == configuration
        replaying.append((time.perf_counter() - began) / len(events) * 1e6)
    step = statistics.median(steps)
    print(f"walk of {len(walk)} steps, median of {rounds} rounds")
    print(f"step            {step:7.2f} us  (best round {min(steps):.2f})")
    print(f"seal and encode {statistics.median(sealing):7.2f} us")
    print(f"replay          {statistics.median(replaying):7.2f} us")
    peer = peer_step()
    if peer is None:
        print("langgraph is not installed: no comparison")
    else:
        print(f"langgraph       {peer:7.2f} us  ({peer / step:.0f} times a step)")


if __name__ == "__main__":
    main()
