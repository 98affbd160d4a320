"""``sopilot demo``: a call that is blocked, proven and carried out; a refusal; a forged trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import click

from sopilot.cli.options import AS_JSON, flag, option, wants_json
from sopilot.cli.output import Exit, print_json, say
from sopilot.messages.errors import TraceError
from sopilot.records.loading import export_trace
from sopilot.records.store import Store
from sopilot.runner.conversations import conversation
from sopilot.runner.guard import Guard, Missing, Refused
from sopilot.runner.runner import load
from sopilot.stores.memory import MemoryStore
from sopilot.stores.open import open_store
from sopilot.trace.files import read_trace, verify_trace, write_trace
from sopilot.values.text import quote_value

PASSWORD = "heron-42"


@dataclass(frozen=True, slots=True)
class Step:
    """``expected``: whether it came out as the demo says."""

    title: str
    call: str
    done: bool
    answer: str
    expected: bool
    told_agent: str = ""


@click.command(
    help="Watch the guard at work on a small refund handbook. It blocks a call until it is proven, "
    "refuses another, and detects a changed trace. Needs no model and no key."
)
@flag("--verbose", "Show the guard's whole answers to the agent.")
@option("--store", "Keep the session in this store: sqlite:PATH.", "spec")
@AS_JSON
def command(verbose: bool, spec: str | None) -> None:
    with as_file(files("sopilot.cli") / "demo.yaml") as handbook:
        steps = _steps(handbook, open_store(spec) if spec else MemoryStore())
    if wants_json():
        print_json({"handbook": "refunds", "steps": [asdict(step) for step in steps]})
    else:
        _print(steps, verbose=verbose)
    raise SystemExit(Exit.if_any(not all(step.expected for step in steps)))


def _steps(handbook: Path, store: Store) -> list[Step]:
    refunded: list[float] = []
    guard = Guard(handbook, store=store)

    @guard
    def login(customer: str, password: str) -> dict[str, bool]:
        return {"logged_in": password == PASSWORD}

    @guard
    def find_order(customer: str, order: str) -> dict[str, str]:
        return {"state": "delivered"}

    @guard
    def refund(customer: str, order: str, amount: float) -> dict[str, float]:
        refunded.append(amount)
        return {"refunded": amount}

    small = 'refund(customer="anna", order="A-7", amount=120)'
    large = small.replace("120", "900")
    log_in, find = (
        'login(customer="anna", password=•••)',
        'find_order(customer="anna", order="A-7")',
    )
    script: list[tuple[str, str, Callable[[], Any], bool]] = [
        ("The agent wants to refund at once", small, lambda: refund("anna", "A-7", 120), False),
        ("It makes the missing calls", log_in, lambda: login("anna", PASSWORD), True),
        ("", find, lambda: find_order("anna", "A-7"), True),
        ("Now the call is proven", small, lambda: refund("anna", "A-7", 120), True),
        ("A larger refund is refused", large, lambda: refund("anna", "A-7", 900), False),
    ]
    with conversation("demo") as talk:
        steps = [_called(*line) for line in script]
        session = talk.session_ids()["refunds"]
    steps += asyncio.run(_judged(handbook, store, session))
    paid = f"{len(refunded)} refund, {sum(refunded)} euros"
    return [*steps, Step("The shop's ledger", "", True, paid, refunded == [120])]


def _called(title: str, shown: str, call: Callable[[], Any], proven: bool) -> Step:
    try:
        return Step(title, shown, True, quote_value(call()), proven)
    except Missing as missing:
        answer = f"blocked; first: {', '.join(missing.agenda)}"
        return Step(title, shown, False, answer, not proven, str(missing))
    except Refused as refused:
        sentences = " ".join(reason.sentence for reason in refused.reasons)
        answer = f"refused; not true: {sentences} {refused.remedy}"
        return Step(title, shown, False, answer, not proven, str(refused))


async def _judged(handbook: Path, store: Store, session: str) -> list[Step]:
    report = await load(handbook, store=store).audit(session)
    findings = len(report.findings)
    audit = f"{findings} findings in {report.score_card.calls} tool calls"
    text = write_trace(await export_trace(store, session))
    forged = text.replace('"amount":120', '"amount":920', 1)
    try:
        problems = [str(problem) for problem in verify_trace(read_trace(forged))]
    except TraceError as problem:
        problems = [str(problem)]
    clean, detected = not findings, bool(problems) and forged != text
    changed = "Somebody changes one digit in it (120 → 920)"
    first = problems[0] if problems else "not detected"
    return [
        Step("The audit judges the trace", "", clean, audit, clean),
        Step(changed, "", not detected, first, detected),
    ]


def _print(steps: list[Step], *, verbose: bool) -> None:
    say("A shop's handbook: refunds of at most 200 euros, for delivered orders, after a login.")
    say("The agent has three tools (login, find_order, refund) and knows nothing of the handbook.")
    for step in steps:
        if step.title:
            say()
            say(step.title, bold=True)
        if step.call:
            say(f"  {step.call}")
        color = "green" if step.done else "yellow"
        say(f"  {'✓' if step.done else '✗'} {step.answer}", fg=color)
        if verbose and step.told_agent:
            say(f"    the agent reads: {step.told_agent}")
    say("Next: `sopilot new refunds` writes a handbook of your own.")
