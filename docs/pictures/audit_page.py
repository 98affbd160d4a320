"""Draw the README's picture of an audit page, and pages of three sessions to look at.

``python docs/pictures/audit_page.py`` writes ``audit-page.png`` beside this file. Pass a folder to
write the pages of a clean, a blocked and an overridden session there, each as HTML and as pictures
1280 and 390 pixels wide, in English and in Chinese. It needs Chromium.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sopilot.cli.main import sopilot
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.expressions import judge
from sopilot.handbook.reader import load_handbook
from sopilot.machine.automation import Automation
from sopilot.protocols import ToolResult, ToolSchema
from sopilot.records.sealing import seal_store
from sopilot.records.store import Settings
from sopilot.session.opening import open_session
from sopilot.session.session import Session
from sopilot.stores.open import open_store
from sopilot.trace.events import Complete, Fail, Return, Start
from sopilot.trace.signing import generate_key

HERE = Path(__file__).parent
HANDBOOK = """
handbook: refunds
actions:
  find_order: {input: {order: string}, read_only: true}
  screen: {input: {order: string}, read_only: true}
  refund:
    input: {order: string, amount: number}
    irreversible: true
    confirm: false
    approval: {roles: [manager], when: amount > 200}
predicates:
  delivered(order):
    says: {en: "Order {order} was delivered.", zh: "订单 {order} 已送达。"}
    says_not: {en: "Order {order} was not delivered.", zh: "订单 {order} 未送达。"}
    verify: find_order(order)
    verdict: result.state == 'delivered'
    remedy: {en: Ask again after the delivery., zh: 请在送达后再申请。}
  suspicious(order):
    says: {en: "Order {order} is flagged as fraud.", zh: "订单 {order} 有欺诈标记。"}
    says_not: {en: "Order {order} is not flagged as fraud.", zh: "订单 {order} 没有欺诈标记。"}
    verify: screen(order)
    verdict: result.flagged
procedures:
  refund: {requires: [delivered(order), {not: suspicious(order)}]}
"""


class Shop:
    def __init__(self, state: str, screening: Mapping[str, Any]) -> None:
        self.state, self.screening = state, screening

    def schemas(self) -> Sequence[ToolSchema]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, Any], *, key: str) -> ToolResult:
        answers = {
            "find_order": {"order": arguments["order"], "state": self.state, "total": 480},
            "screen": dict(self.screening),
        }
        return ToolResult(True, answers.get(name, {"paid": arguments.get("amount")}))


async def clean(session: Session) -> None:
    await _check(session, "A-7", 120)
    await session.call_tool("refund", {"order": "A-7", "amount": 120}, "c1")
    await session.operate(Complete("refunded 120"))


async def blocked(session: Session) -> None:
    await session.user_said("Please refund order A-8, 120 euros.")
    await session.operate(Start("refund", {"order": "A-8", "amount": 120}))
    await session.call_tool("refund", {"order": "A-8", "amount": 120}, "c0")
    await session.call_tool("find_order", {"order": "A-8"})
    await session.operate(Fail("order A-8 was not delivered"))


async def overridden(session: Session) -> None:
    await _check(session, "A-9", 480)
    await session.operate(Return(False))
    await session.call_tool("refund", {"order": "A-9", "amount": 480}, "c1")
    await session.decide(
        "amend", "c1", by="Mia Chen", role="manager", reason="screened by telephone",
        arguments={"order": "A-9", "amount": 400},
    )  # fmt: skip
    await session.run_held("c1")
    if session.held_calls:
        await session.decide("approve", "c1", by="Mia Chen", role="manager", reason="as amended")
        await session.run_held("c1")
    await session.operate(Complete("refunded 400"))


async def _check(session: Session, order: str, amount: int) -> None:
    await session.user_said(f"Please refund order {order}, {amount} euros.")
    await session.operate(Start("refund", {"order": order, "amount": amount}))
    await session.call_tool("find_order", {"order": order})
    await session.call_tool("screen", {"order": order})


SESSIONS = {
    "clean": (clean, Shop("delivered", {"flagged": False})),
    "blocked": (blocked, Shop("shipped", {"flagged": False})),
    "overridden": (overridden, Shop("delivered", {"status": "no answer"})),
}


async def make_sessions(spec: str) -> dict[str, str]:
    """Session ids by name; the store is sealed after them."""
    units = compile_handbook(load_handbook(HANDBOOK))
    programs = {name: unit.program for name, unit in units.items()}
    settings = Settings(automation=Automation(enter_calls=True, machine_verdicts=True))
    ids = {}
    store = open_store(spec)
    for name, (play, shop) in SESSIONS.items():
        session = await open_session(
            store, programs, tools=shop, settings=settings, judge=judge,
            handbook="refunds", requester="anna@example.com",
        )  # fmt: skip
        await play(session)
        ids[name] = session.id
        await session.release()
    await seal_store(store, generate_key(), at=session.clock.now())
    await store.close()
    return ids


def picture(page: Path, png: Path, width: int, height: int) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size = f"--window-size={width},{height}"
    command = [browser, *flags, size, f"--screenshot={png}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True)


def main(folder: Path | None) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        place = folder or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        spec = f"sqlite:{Path(scratch) / 'sessions.sqlite'}"
        for name, session_id in asyncio.run(make_sessions(spec)).items():
            for language in ("en", "zh"):
                page = place / f"{name}-{language}.html"
                arguments = ["audit", session_id, "--html", str(page), "--language", language]
                with suppress(SystemExit):
                    sopilot.main([*arguments, "--store", spec], standalone_mode=False)
                for width, height in ((1280, 1500), (390, 2600)) if folder else ():
                    picture(page, page.with_name(f"{page.stem}-{width}.png"), width, height)
        if folder is None:
            picture(place / "clean-en.html", HERE / "audit-page.png", 940, 1060)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
