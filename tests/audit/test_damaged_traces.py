"""Whatever a trace says, the audit answers with a report."""

from __future__ import annotations

import random
from typing import Any

from trace_violations import CLASSES, labelled_trace
from trace_worlds import judge, random_world

from sopilot.audit.audit import audit_trace
from sopilot.audit.report import Report
from sopilot.audit.text import render_text
from sopilot.trace.chain import SealedEvent
from sopilot.trace.events import Event
from sopilot.web.audit_page import render_audit

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0.5,
    "",
    "#0",
    "p1",
    [],
    [None],
    [[1]],
    {},
    {"a": {}},
    {"$ref": "x", "bytes": 1},
    {"holds": 3, "evidence": "x"},
)
KINDS = (
    "start",
    "call",
    "return",
    "reuse",
    "resumed",
    "complete",
    "fail",
    "rejected",
    "domain_call",
    "domain_result",
    "decision",
    "note",
    "select_branch",
    "emit_artifact",
    "user_said",
    "dance",
)


def damaged(rng: random.Random, event: Event) -> Event:
    payload = dict(event.payload)
    for _ in range(rng.randint(1, 3)):
        keys = [*payload, "result", "evidence", "details", "call_id"]
        key = rng.choice(keys)
        if rng.random() < 0.2:
            payload.pop(key, None)
        else:
            payload[key] = rng.choice(VALUES)
    kind = rng.choice(KINDS) if rng.random() < 0.2 else event.kind
    return event._replace(payload=payload, kind=kind)


def test_damaged_traces_give_a_report() -> None:
    rng = random.Random(99)
    found = 0
    for _ in range(30):
        world = random_world(rng)
        for _ in range(15):
            trace = labelled_trace(world, rng.randrange(2**40), rng.choice((None, *CLASSES)))
            events = [e.event if isinstance(e, SealedEvent) else e for e in trace.events]
            for _ in range(rng.randint(1, 4)):
                index = rng.randrange(len(events))
                events[index] = damaged(rng, events[index])
            if rng.random() < 0.2:
                del events[rng.randrange(len(events))]
            report = audit_trace(world.programs, events, judge=judge)
            assert isinstance(report, Report)
            render_text(report)
            render_audit(report, events)
            found += not report.clean
    assert found > 200
