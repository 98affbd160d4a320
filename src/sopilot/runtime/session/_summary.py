"""One line about a session for listings, derived from its configuration."""

from __future__ import annotations

from sopilot.runtime.records import ActionOutcome, Register
from sopilot.runtime.session._approvals import HeldState
from sopilot.runtime.session.ledger import CallLedger
from sopilot.runtime.vm import JSON, Configuration


def summarise(
    configuration: Configuration, ledger: CallLedger, register: Register
) -> dict[str, JSON]:
    """``status``: new, running, waiting (for approval), unknown (outcome), completed, failed;
    without a machine, where nothing is started, executed once an action was carried out."""
    process = configuration.process
    frame = process.frame if process is not None else None
    latest = process
    if latest is None and configuration.processes:
        latest = list(configuration.processes.values())[-1]
    status = str(latest.status) if latest is not None else "new"
    goal = latest.goal if latest is not None else ""
    if latest is None and register.entries:
        last = list(register.entries.values())[-1]
        done = last.outcome is ActionOutcome.CARRIED_OUT
        status, goal = "executed" if done else "running", last.goal or last.action
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
        "frame": frame.place if frame is not None else "",
        "waiting": waiting,
    }
