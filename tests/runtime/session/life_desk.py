"""The desk that sessions live at, its people and its tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from counter_desk import CountingTools, counter_programs
from sopilot.runtime.session import (
    ProgramSet,
    ToolResult,
)
from sopilot.runtime.vm import JSON

_DESK = """
handbook: lives
parameters: {limit: 500}
actions:
  login: {input: {username: string, password: {type: string, secret: true}}}
  logout: {input: {username: string}}
  read_balance: {input: {username: string}, requires: logged_in(username)}
  read_card: {input: {username: string}, secret: [number], reads: [cards]}
  find_account: {input: {username: string}, read_only: true}
  transfer:
    input: {username: string, to: string, amount: integer}
    irreversible: true
    confirm: "{amount} goes to {to}."
    recheck: true
  wire:
    input: {username: string, amount: integer, pin: {type: string, secret: true, required: false}}
    irreversible: true
    approval: {roles: [supervisor, auditor], needed: 2, expires: 1h}
  refund:
    input: {username: string, amount: integer}
    approval: {roles: [supervisor], when: amount > 60}
  rename: {input: {username: string, name: string}}
predicates:
  logged_in(username):
    says: The customer {username} is logged in.
    established_by: login(username, password)
    closed_by: logout(username)
  funds_cover(username, amount):
    says: The balance of {username} is at least {amount}.
    verify: read_balance(username)
    verdict: result.balance >= amount
  small(amount):
    says: The amount is at most {limit}.
    verify: arguments
    verdict: amount <= limit
  known(username):
    says: The account {username} exists.
    verify: find_account(username)
    verdict: result.done == 'find_account'
  valid(username):
    says: The card of {username} is valid.
    verify: read_card(username)
    verdict: result.until > day(now)
procedures:
  transfer:
    requires: {in_order: [logged_in(username), funds_cover(username, amount), known(to)]}
  wire:
    requires: {all: [small(amount), known(username)]}
  refund:
    requires: {any: [known(username), valid(username)]}
    otherwise: rename
  rename:
    requires: {any: [valid(username), known(username)]}
"""


def _programs(text: str) -> ProgramSet:
    """Whose hashes stay what they are from release to release."""
    made = counter_programs(text)
    return ProgramSet({goal: replace(one, compiler="test") for goal, one in made.items()})


FIRST, SECOND = _programs(_DESK), _programs(_DESK.replace("limit: 500", "limit: 40"))
ERRANDS: dict[str, dict[str, JSON]] = {
    "transfer": {"username": "una", "to": "bob", "amount": 100},
    "wire": {"username": "una", "amount": 100, "pin": "4711-0815"},
    "refund": {"username": "una", "amount": 50},
    "rename": {"username": "una", "name": "Anna"},
}
PEOPLE = ("ida", "joe", "Ida ", "sue", "")
ROLES = ("supervisor", "auditor", "operator", "privacy")
DAY = 86_400.0


class Answering(CountingTools):
    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        found = await super().call(name, arguments, key=key)
        if name == "read_card" and found.ok:
            return ToolResult(True, {"until": "2040-01-01", "number": "4000-1234"})
        if name == "rename" and found.ok:
            return ToolResult(True, {"said": "x" * 400})
        return found
