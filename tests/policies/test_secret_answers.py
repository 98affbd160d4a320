"""Fields of an answer that are secret: the model reads them, and nothing keeps them in clear."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import sopilot
from sopilot.agent.reference.executor import Reference
from sopilot.audit.findings import Unjudgeable

BOOK = """
handbook: clinic
actions:
  read_report: {input: {claim: string}, secret: [report, findings]}
  pay: {input: {claim: string}, irreversible: true, confirm: false}
predicates:
  plausible(claim):
    says: The report on {claim} is plausible.
    verify: read_report(claim)
    judged_by: model
  recent(claim):
    says: The report on {claim} names a leg.
    verify: read_report(claim)
    verdict: result.findings.exists(one, one.part == 'tibia-left') && result.day == '2026-01-01'
procedures:
  pay: {requires: [plausible(claim), recent(claim)]}
"""
REPORT = "fracture of the shin"


class Reader:
    """Judges by what it was shown."""

    name = "reader"

    def __init__(self, inner: sopilot.Model) -> None:
        self.inner = inner
        self.shown = ""

    async def complete(self, request: sopilot.ModelRequest) -> sopilot.ModelReply:
        self.shown += json.dumps([one.content for one in request.messages])
        return await self.inner.complete(request)


def test_the_model_reads_what_no_trace_keeps(tmp_path: Path) -> None:
    (tmp_path / "clinic.yaml").write_text(BOOK, encoding="utf-8")
    runner = sopilot.load(str(tmp_path / "clinic.yaml"))
    reader = Reader(Reference(lambda predicate, arguments, evidence: True))
    paid: list[str] = []

    def read_report(claim: str) -> dict[str, object]:
        return {"report": REPORT, "findings": [{"part": "tibia-left"}], "day": "2026-01-01"}

    tools = {"read_report": read_report, "pay": lambda claim: paid.append(claim)}

    async def served() -> tuple[sopilot.Result, str]:
        own = runner.session("Pay.", tools=tools, inputs={"claim": "c-1"}, model=reader)
        async with own as one:
            result = await one.run()
            return result, json.dumps([sealed.event.payload for sealed in one.session.events])

    result, kept = asyncio.run(served())
    assert paid == ["c-1"]
    # The verdict on `recent` reads a secret: a reader without it neither blames nor acquits.
    assert result.audit.clean is None
    assert {one.reason for one in result.audit.not_judged} == {Unjudgeable.SECRET}
    assert {"recent", None} == {one.predicate for one in result.audit.not_judged}
    assert REPORT in reader.shown
    assert REPORT not in kept
    assert "tibia-left" not in kept
    assert "2026-01-01" in kept
