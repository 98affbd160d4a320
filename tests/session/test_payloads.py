"""Values beside the trace leave with no export and are back on resume; so are the settings."""

from __future__ import annotations

from typing import Any

import pytest

from counter_desk import walk
from counter_sessions import opened
from sopilot.machine.automation import Automation
from sopilot.machine.layout import Limits
from sopilot.messages.errors import StoreCorrupt, UserMistake
from sopilot.records.loading import export_trace
from sopilot.records.store import Settings, settings_from_json
from sopilot.session.opening import resume_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.chain import encode_line
from sopilot.trace.files import read_trace, verify_trace, write_trace


async def run_with_secrets(store: MemoryStore) -> Session:
    beside = Settings(by_reference=frozenset({"password", "balance"}), inline_limit=400)
    session = await opened(store, settings=beside)
    await session.user_said("my life: " + "x" * 1000)
    await walk(session, "transfer")
    await session.release()
    return session


async def test_secrets_and_large_values_stay_out_of_the_trace(store: MemoryStore) -> None:
    session = await run_with_secrets(store)
    assert session.configuration.processes["p1"].status == "completed"
    lines = "\n".join(map(encode_line, session.events))
    assert '"secret"' not in lines
    assert "xxxx" not in lines
    assert '"balance":1000' not in lines
    again = await resume_session(store, session.id, clock=session.clock)
    assert again.configuration == session.configuration
    assert again.configuration.processes["p1"].known["password"] == "secret"


async def test_a_redacted_export_verifies_and_a_full_one_holds_its_payloads(
    store: MemoryStore,
) -> None:
    session = await run_with_secrets(store)
    redacted = write_trace(await export_trace(store, session.id))
    assert "xxxx" not in redacted
    assert session.metadata["salt"] not in redacted
    assert verify_trace(read_trace(redacted)) == []
    full = write_trace(await export_trace(store, session.id, payloads=True))
    assert "xxxx" in full
    trace = read_trace(full)
    assert verify_trace(trace) == []
    forged = read_trace(full.replace("xxxx", "yyyy", 1))
    assert [problem.code for problem in verify_trace(forged)] == ["wrong-payload"]


async def test_forgotten_payloads_leave_a_trace_that_verifies(store: MemoryStore) -> None:
    session = await run_with_secrets(store)
    refs = list(await store.payloads(session.id))
    assert await store.erase_payloads(session.id, refs) == len(refs)
    assert verify_trace(await export_trace(store, session.id)) == []


async def test_a_payload_that_was_swapped_is_noticed(store: MemoryStore) -> None:
    session = await run_with_secrets(store)
    payloads = store._sessions[session.id].payloads
    payloads[next(iter(payloads))] = "another"
    with pytest.raises(StoreCorrupt, match="was changed"):
        await resume_session(store, session.id, clock=session.clock)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(automation=Automation(complete=True), limits=Limits(depth=5)),
        Settings(inline_limit=None, lease_seconds=1.5),
        Settings(by_reference=frozenset({"b", "a"}), inline_limit=10),
        Settings(private=True, columns=frozenset({"y", "x"})),
    ],
)
def test_settings_come_back_as_they_were(settings: Settings) -> None:
    assert settings_from_json(settings.as_json()) == settings
    assert settings_from_json({**settings.as_json(), "something_new": 1}) == settings


@pytest.mark.parametrize(
    "wrong",
    [
        "text",
        {"inline_limit": "many"},
        {"inline_limit": True},
        {"lease_seconds": None},
        {"lease_seconds": False},
        {"by_reference": "name"},
        {"columns": {"a": 1}},
        {"automation": {"complete": 1}},
        {"limits": {"depth": True}},
    ],
)
def test_settings_of_the_wrong_kind_are_refused(wrong: Any) -> None:
    with pytest.raises(UserMistake):
        settings_from_json(wrong)


def test_missing_settings_have_their_defaults() -> None:
    assert settings_from_json({}) == Settings()
    assert settings_from_json({"private": 1, "limits": None}) == Settings()
