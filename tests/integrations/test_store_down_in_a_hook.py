"""Once an agent's own tool has run, no hook says that it was not done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hooked_desk import bare_hook

from sopilot.messages.errors import StoreUnavailable
from sopilot.values.json import JSON


@pytest.mark.parametrize("action", ["read_ledger", "login"])
async def test_the_store_fails_when_the_tool_has_answered(action: str) -> None:
    hook, done = await bare_hook(), list[str]()
    store: Any = hook.session._store
    append = store.append

    async def down(lease: Any, batch: Any, **given: Any) -> Any:
        if any(one.event.kind == "domain_result" for one in batch.events):
            raise StoreUnavailable("connection refused")
        return await append(lease, batch, **given)

    async def execute(arguments: Mapping[str, JSON]) -> object:
        done.append(action)
        return {"ok": True}

    store.append = down
    with pytest.raises(StoreUnavailable, match="its outcome is unknown") as told:
        await hook.tool_call(action, {"username": "anna", "password": "x"}, "c1", execute)
    assert "not done" not in str(told.value)
    assert done == [action]
    store.append = append
    await hook.session.user_said("still there?")
    (result,) = [one for one in hook.session.own_events if one.kind == "domain_result"]
    assert result.payload["ok"]
    assert done == [action]
    await hook.close()
