"""What the discipline check says at a terminal: the estimate beforehand, then the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sopilot.values.json import Fields
from sopilot.values.text import Heading, table
from sopilot_lab.qualification.prepared import PreparedCheck
from sopilot_lab.qualification.rehearsal import Rehearsal
from sopilot_lab.qualification.spending import Allowance


def recorded_lines(prepared: PreparedCheck) -> Iterator[str]:
    yield (
        f"{len(prepared.runs)} runs of {prepared.recorded} on {prepared.planned} tasks; "
        f"{len(prepared.questions)} questions about places in {prepared.sessions} of them"
    )


def estimate_lines(
    document: Fields, rehearsal: Rehearsal, arms: Sequence[str], allowance: Allowance, cases: int
) -> Iterator[str]:
    """Before anything is spent. The reference executor makes no detours: a lower estimate."""
    total = rehearsal.total
    yield Heading(f"{cases} cases under {len(arms)} arms")
    rows = [
        (arm, result.requests, result.prompt_tokens)
        for arm in arms
        for result in (rehearsal.of_arm(arm),)
    ]
    yield table(rows, ("arm", "requests", "prompt tokens"))
    priced = "" if document["money"] is None else f", {document['money']:.2f} in money"
    yield (
        f"at least {total.requests} requests, about {total.prompt_tokens} prompt and "
        f"{total.completion_tokens} reply tokens{priced}"
    )
    limit = f", {allowance.money:g} in money" if allowance.money is not None else ""
    yield f"allowed: {allowance.calls} requests, {allowance.minutes:g} minutes{limit}"
    if rehearsal.unreachable:
        yield f"left out, the reference executor fails them: {', '.join(rehearsal.unreachable)}"
    yield "what this can show, known beforehand:"
    for line in document["can_show"]["says"]:
        yield f"  {line}"
    yield ""


def verdict_lines(document: Fields) -> Iterator[str]:
    yield ""
    rows = [
        (
            arm,
            f"{entry['pass']}/{entry['n']}",
            _number(entry["rate"]),
            _interval(entry["interval"]),
            _number(entry["execute"]),
            _number(entry["refuse"]),
            _number(entry["r2"]),
            entry["requests"],
        )
        for arm, entry in document["arms"].items()
    ]
    header = ("arm", "passed", "rate", "95 % interval", "execute", "refuse", "R2", "requests")
    yield table(rows, header)
    probe = document["probe"]
    if probe["questions"]:
        yield (
            f"probe: localisation {_number(probe['localisation'])} "
            f"{_interval(probe['interval'])}, score {_number(probe['score'])}, whole state "
            f"{_number(probe['whole'])} over {probe['questions']} questions"
        )
        depths = ", ".join(
            f"{depth}: {_number(entry['localisation'])}" for depth, entry in probe["depths"].items()
        )
        yield f"       by depth {depths}"
    yield ""
    for item in document["conditions"]:
        only = "" if len(item["needed_for"]) > 1 else f" (for *{item['needed_for'][0]}*)"
        yield (
            f"  {'met    ' if item['met'] else 'NOT MET'}  {item['name']:<16} {item['found']}{only}"
        )
    yield ""
    yield Heading(f"verdict for {document['model']}: {document['answer']}{_use(document)}")
    for line in document["reasons"]:
        yield f"  {line}"
    for line in document["notes"]:
        yield f"  note: {line}"
    if document["changes"]:
        yield "what would change it:"
        for line in document["changes"]:
            yield f"  {line}"
    used = document["used"]
    ended = f"; ended by {document['stopped_by']}" if document["stopped_by"] else ""
    money = used["money"]
    priced = "price not known (--price)" if money is None else f"{money:.4f} in money"
    yield (
        f"used: {used['requests']} requests, {used['prompt_tokens']} prompt and "
        f"{used['completion_tokens']} reply tokens, {priced}, {used['seconds']:.0f} s{ended}"
    )
    yield f"page: {document['report']}"


def _use(document: Fields) -> str:
    arm, guarded = document["arm"], document["guarded_arm"]
    if arm is None:
        return ""
    if guarded in (None, arm):
        return f"; run it with `{arm}`"
    return f"; run it with `{arm}`, or with `{guarded}` where actions are guarded"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _interval(value: Sequence[float] | None) -> str:
    return "–" if value is None else f"{value[0]:.2f}–{value[1]:.2f}"
