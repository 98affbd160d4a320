"""What holds where nobody says anything: defaults, patience and formats. Others count on them, so
that changing one is a decision."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from sopilot.runtime.session import (
    _admission,
    _approvals,
    _leasing,
    _loading,
    _opening,
    _store,
    _tool_calls,
    _trace_file,
    bundle,
    call_answer,
    deciding,
    guards,
    journal,
    ledger,
    privacy,
    protocols,
    pruning,
    recovery,
    reminders,
    sealing,
    unsettled,
)
from sopilot.runtime.session._session import Session
from sopilot.runtime.session._settings import Settings


def said_by_nobody(what: Callable[..., Any]) -> dict[str, Any]:
    """The flags and numbers among its defaults."""
    return {
        name: one.default
        for name, one in inspect.signature(what).parameters.items()
        if isinstance(one.default, bool | int | float)
    }


@pytest.mark.parametrize(
    ("what", "defaults"),
    [
        (_admission.admit, {"amended": False}),
        (_admission.Admitted, {"amended": False}),
        (_loading.load, {"even_erased": False}),
        (_opening.resume_session, {"accept_changed": False, "take_over": False}),
        (_opening.attach_session, {"take_over": False}),
        (Session.wait_for_decision, {"poll_seconds": 1.0}),
        (_store.Store.acquire, {"take_over": False}),
        (_store.Store.sessions, {"limit": 100}),
        (_store.Store.events, {"after": -1}),
        (_tool_calls._perform, {"again": False}),
        (_trace_file.export_trace, {"payloads": False, "programs": True, "secrets": False}),
        (bundle.bundle_files, {"payloads": False}),
        (guards.hold_reason, {"amended": False}),
        (privacy.note_reading, {"to_all": False, "or_nothing": False}),
        (privacy.shred_wanted, {"unfinished": False}),
        (privacy.shred, {"unfinished": False}),
        (pruning.prune, {"dry": False}),
        (recovery.recover, {"replaying": True}),
        (reminders.due_calls, {"once": False}),
        (sealing.verify_store, {"events": True}),
        (unsettled.settle_orphan, {"take_over": False}),
    ],
)
def test_what_a_caller_gets_who_says_nothing(
    what: Callable[..., Any], defaults: dict[str, Any]
) -> None:
    found = said_by_nobody(what)
    assert found == defaults
    assert [type(one) for one in found.values()] == [type(one) for one in defaults.values()]


@pytest.mark.parametrize(
    ("kind", "defaults"),
    [
        (_approvals.HeldCall, {"amended": False}),
        (_store.SessionRecord, {"lease_expires_at": 0.0}),
        (ledger.CallLedger, {"ended": False}),
        (protocols.ToolResult, {"unknown": False}),
        (
            protocols.Usage,
            dict.fromkeys(
                ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"), 0
            ),
        ),
        (protocols.ModelRequest, {"temperature": 0.0, "timeout_seconds": 600.0}),
        (pruning.Pruning, {"dry": False}),
        (
            sealing.Verified,
            dict.fromkeys(
                ("sessions", "events_read", "moved", "later", "pruned", "journals", "locked"), 0
            ),
        ),
        (sealing._Reading, {"pruned": 0, "locked": 0}),
        (Settings, {"inline_limit": 16_384, "lease_seconds": 3.0, "private": False}),
    ],
)
def test_what_a_value_is_of_which_nothing_is_said(kind: Any, defaults: dict[str, Any]) -> None:
    found = {
        one.name: one.default for one in fields(kind) if isinstance(one.default, bool | int | float)
    }
    assert found == defaults
    assert [type(one) for one in found.values()] == [type(one) for one in defaults.values()]


@pytest.mark.parametrize(
    ("found", "value"),
    [
        ((_leasing._FIRST_PAUSE, _leasing._LONGEST_PAUSE), (0.03, 0.5)),
        (_opening.METADATA_FORMAT, 1),
        (_store._READINGS, 5),
        (_trace_file.TRACE_FILE_FORMAT, 1),
        (deciding.PATIENCE_SECONDS, 15.0),
        ((journal._LEASE_SECONDS, journal._TRIES, journal._PAUSE_SECONDS), (5.0, 200, 0.05)),
        (privacy.EVERY, 4_611_686_018_427_387_904),
        ((pruning._AT_A_TIME, pruning._LEASE_SECONDS), (500, 600.0)),
        ((sealing._TRIES, sealing._LATEST_SECONDS), (20, 60.0)),
        (unsettled.GRACE_SECONDS, 2.0),
        (call_answer.NOT_MADE.ok, False),
    ],
)
def test_how_often_how_long_and_in_which_format(found: object, value: object) -> None:
    assert found == value
