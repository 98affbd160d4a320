"""A desk whose calls are guarded, opened by hand."""

from __future__ import annotations

from typing import Any

from counter_desk import COUNTER, CountingTools, HandClock
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.machine.program_set import ProgramSet
from sopilot.session.opening import open_session
from sopilot.session.session import Session
from sopilot.stores.memory import MemoryStore

DESK = """
handbook: desk
actions:
  login: {input: {user: string, password: {type: string, secret: true}}, changes: []}
  logout: {input: {user: string}, changes: [logins]}
  look: {input: {user: string}, reads: [money], not_found: result.error == 'none'}
  tell: {input: {user: string}, changes: [weather]}
  move: {input: {user: string}, changes: [money]}
  note: {input: {text: string}, read_only: true}
  pay: {input: {user: string, amount: number}, irreversible: true, confirm: "{amount} for {user}."}
  give: {input: {user: string}, irreversible: true}
predicates:
  known(user):
    says: K.
    established_by: login(user, password)
    closed_by: logout(user)
  fine(user): {says: F., verify: look(user), verdict: result.ok}
  wants(user): {says: W., verify: user, question: "Do you want it, {user}?"}
procedures:
  pay: {requires: {in_order: [known(user), fine(user)]}}
  give: {requires: wants(user)}
"""
PROGRAMS = {name: one.program for name, one in compile_handbook(load_handbook(DESK)).items()}
SET = ProgramSet(PROGRAMS)


async def opened(store: MemoryStore, clock: HandClock, **given: Any) -> Session:
    more: dict[str, Any] = {"tools": CountingTools(), "session_id": "s", **given}
    return await open_session(store, COUNTER, clock=clock, **more)
