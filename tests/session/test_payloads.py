"""Values beside the trace: absent from what leaves, back in place on resume."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from counter_desk import COUNTER, CountingTools, HandClock, walk
from sopilot.machine.automation import Automation
from sopilot.machine.layout import Limits
from sopilot.messages.errors import StoreCorrupt
from sopilot.protocols import ToolResult
from sopilot.records.loading import export_trace
from sopilot.records.store import Settings, settings_from_json
from sopilot.session.opening import open_session, resume_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore
from sopilot.trace import redaction as _redaction
from sopilot.trace.chain import encode_line
from sopilot.trace.files import read_trace, verify_trace, write_trace
from sopilot.values.json import JSON, canonical
from sopilot.views import answers as call_answer


async def run_with_secrets(store: MemoryStore) -> Session:
    session = await open_session(
        store,
        COUNTER,
        tools=CountingTools(),
        clock=HandClock(),
        settings=Settings(by_reference=frozenset({"password", "balance"}), inline_limit=400),
    )
    await session.user_said("my life: " + "x" * 1000)
    await walk(session, "transfer")
    await session.release()
    return session


async def test_secrets_and_large_values_stay_out_of_the_trace() -> None:
    store = MemoryStore()
    session = await run_with_secrets(store)
    assert session.configuration.processes["p1"].status == "completed"
    lines = "\n".join(map(encode_line, session.events))
    assert '"secret"' not in lines
    assert "xxxx" not in lines
    assert '"balance":1000' not in lines
    again = await resume_session(store, session.id, clock=session.clock)
    assert again.configuration == session.configuration
    assert again.configuration.processes["p1"].known["password"] == "secret"


async def test_a_redacted_export_verifies_and_a_full_one_holds_its_payloads() -> None:
    store = MemoryStore()
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


async def test_forgotten_payloads_leave_a_trace_that_verifies() -> None:
    store = MemoryStore()
    session = await run_with_secrets(store)
    refs = list(await store.payloads(session.id))
    assert await store.erase_payloads(session.id, refs) == len(refs)
    assert verify_trace(await export_trace(store, session.id)) == []


async def test_a_payload_that_was_swapped_is_noticed() -> None:
    store = MemoryStore()
    session = await run_with_secrets(store)
    kept = store._sessions[session.id].payloads
    kept[next(iter(kept))] = "another"
    with pytest.raises(StoreCorrupt, match="is another value"):
        await resume_session(store, session.id, clock=session.clock)


def test_a_large_answer_is_spelled_once_to_be_withheld_and_once_to_be_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spelled: list[str] = []
    for module in (_redaction, call_answer):

        def counting(value: JSON, name: str = module.__name__) -> bytes:
            text = canonical(value)
            if len(text) > 100_000:
                spelled.append(name)
            return text

        monkeypatch.setattr(module, "canonical", counting)

    class Wordy(CountingTools):
        async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
            return ToolResult(True, {"text": "x" * 100_000})

    async def case() -> None:
        session = await open_session(MemoryStore(), COUNTER, tools=Wordy(), clock=HandClock())
        answer = await session.call_tool("read_balance", {"user": "una"}, "c")
        assert answer.said("de")

    asyncio.run(case())
    assert spelled == [_redaction.__name__, call_answer.__name__]


def test_settings_are_remembered() -> None:
    settings = Settings(
        automation=Automation(complete=True),
        limits=Limits(depth=5),
        by_reference=frozenset({"b", "a"}),
        inline_limit=None,
        lease_seconds=7.5,
    )
    assert settings_from_json(settings.as_json()) == settings
    later = {**settings.as_json(), "something_new": 1}
    assert settings_from_json(later) == settings
