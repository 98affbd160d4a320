"""One line about a session for listings, derived from its configuration."""

from __future__ import annotations

from collections.abc import Container

from sopilot.runtime.records import Register
from sopilot.runtime.session._approvals import HeldState
from sopilot.runtime.session.ledger import CallLedger
from sopilot.runtime.vm import JSON, Configuration, Status


def summarise(
    configuration: Configuration,
    ledger: CallLedger,
    register: Register,
    guarded: Container[str],
) -> dict[str, JSON]:
    """``status``: new, running, waiting (for approval), unknown (outcome), completed, refused;
    without a machine, running or ended, and the goal is that of the latest action. ``open`` are
    irreversible calls under way: where the owner is gone, nobody knows how they end."""
    process = configuration.process
    latest = process
    if latest is None and configuration.processes:
        latest = list(configuration.processes.values())[-1]
    if latest is not None:
        # A process fails by refusing.
        status = "refused" if latest.status is Status.FAILED else str(latest.status)
        goal = latest.goal
    elif register.entries:
        last = next(reversed(register.entries.values()))
        status, goal = "running", last.goal or last.action
    else:
        status, goal = "new", ""
    if latest is None and ledger.ended:
        status = "ended"
    waiting = []
    if ledger.held:
        waiting = [held.call_id for held in ledger.held.values() if held.state is HeldState.WAITING]
    if ledger.unknown:
        status = "unknown"
    elif waiting and process is not None:
        status = "waiting"
    return {
        "status": status,
        "goal": goal,
        "frame": process.frames[-1].place if process is not None and process.frames else "",
        "waiting": waiting,
        "open": _open(configuration, ledger, guarded) if configuration.pending else [],
    }


def _open(configuration: Configuration, ledger: CallLedger, guarded: Container[str]) -> list[JSON]:
    return [
        call_id
        for call_id, pending in configuration.pending.items()
        if pending.action in guarded and call_id not in ledger.unknown
    ]
