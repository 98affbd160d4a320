"""P8: evidence and gates belong to the connection that produced them.

The judge is the simulated bank, which keeps a login for each connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from attack_desk import AttackDesk, desk_over, mistakes, resumed

from small_desks import AnsweringTools, programs_of
from sopilot.handbook.formatter import format_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.messages.errors import UserMistake
from sopilot.program.codec import program_from_yaml, program_to_yaml
from sopilot.protocols import ToolResult, UpstreamConnection
from sopilot.values.json import JSON
from sopilot.views.step_answers import CallStatus

BANK = """
handbook: bank
actions:
  login: {input: {user: string}, changes: []}
  read_balance: {input: {user: string}}
  pay: {input: {user: string, amount: number}, irreversible: true, confirm: false}
predicates:
  logged_in(user): {says: logged in, established_by: login(user)}
  covered(user, amount):
    {says: covered, verify: read_balance(user), verdict: result.balance >= amount}
procedures:
  pay: {requires: [logged_in(user), "covered(user, amount)"]}
"""
SHARED = BANK.replace("changes: []}", "changes: [], state: shared}").replace(
    "read_balance: {input: {user: string}}",
    "read_balance: {input: {user: string}, state: shared}",
)
ANNA: dict[str, JSON] = {"user": "anna"}
PAID: dict[str, JSON] = {"user": "anna", "amount": 5}


class Bank(AnsweringTools):
    """One upstream. ``reconnect`` is what a crash of the server, or of the gateway, comes to."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.connection, self.logged_in = 1, set[str]()
        self.paid_by_strangers = 0

    def reconnect(self) -> None:
        self.connection, self.logged_in = self.connection + 1, set()

    def answer(self, name: str, given: Mapping[str, JSON]) -> JSON:
        user = str(given["user"])
        if name == "login":
            self.logged_in.add(user)
        if name == "pay":
            self.paid_by_strangers += user not in self.logged_in
        return {"balance": 100}

    async def connections(self, name: str) -> Sequence[UpstreamConnection]:
        actions = ("login", "read_balance", "pay")
        return [UpstreamConnection("bank", str(self.connection), actions)]

    async def call_on(
        self, connection: str, name: str, arguments: Mapping[str, JSON], *, key: str
    ) -> ToolResult:
        if connection != str(self.connection):
            return ToolResult(False, {"error": "not called"})
        return await self.call(name, arguments, key=key)


async def proven(bank: Bank, text: str = BANK) -> AttackDesk:
    desk = await desk_over(programs_of(text), bank)
    await desk.start("pay", **PAID)
    await desk.push({"login": ANNA, "read_balance": ANNA})
    return desk


def blamed(desk: AttackDesk) -> list[str]:
    return [finding.explanation for finding in mistakes(desk)]


@pytest.mark.parametrize("restarted", [False, True], ids=["reconnected", "restarted"])
async def test_a_login_on_one_connection_licenses_no_payment_on_another(restarted: bool) -> None:
    bank = Bank()
    desk = await proven(bank)
    bank.reconnect()
    if restarted:
        desk = await resumed(desk)
    await desk.held("pay", "`login` was called on an earlier connection", **PAID)
    await desk.held("pay", "read_balance", "connection to its server has been replaced", **PAID)
    await desk.done("read_balance", user="anna")
    await desk.held("pay", "call it again", **PAID)
    await desk.done("login", user="anna")
    await desk.done("pay", **PAID)
    assert not bank.paid_by_strangers
    assert not blamed(desk)


async def test_a_state_that_is_shared_outlives_the_connection() -> None:
    bank = Bank()
    desk = await proven(bank, SHARED)
    bank.reconnect()
    await desk.done("pay", **PAID)
    assert not blamed(desk)


async def test_a_connection_that_is_lost_after_the_proof_carries_nothing() -> None:
    """The call is made on the very connection that it was proven for."""

    bank = Bank()
    desk = await proven(bank)
    seen = bank.connections

    async def lost_since(name: str) -> Sequence[UpstreamConnection]:
        found = await seen(name)
        bank.reconnect()
        return found

    bank.connections = lost_since  # type: ignore[method-assign]
    answer = await desk.call("pay", **PAID)
    assert answer.result is not None
    assert not answer.result.ok
    assert not desk.made("pay")


async def test_the_audit_sees_it_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    bank = Bank()
    desk = await proven(bank)
    bank.reconnect()
    for place in ("leaves", "evidence"):
        monkeypatch.setattr(f"sopilot.machine.{place}.renewed", lambda *_: -1)
    await desk.done("pay", **PAID)
    assert bank.paid_by_strangers
    found = blamed(desk)
    assert any("`login` was called on an earlier connection" in one for one in found)
    assert any("on an earlier connection" in one and "read_balance" in one for one in found)


async def test_what_was_done_on_the_way_belongs_to_the_connection_too() -> None:
    """A basket, say: whoever connects anew finds it empty."""

    bank = Bank()
    text = BANK.replace(
        "  logged_in(user): {says: logged in, established_by: login(user)}",
        "  logged_in(user): {says: logged in, done: login(user)}",
    )
    desk = await desk_over(programs_of(text), bank)
    await desk.done("login", user="anna")
    await desk.start("pay", **PAID)
    await desk.push({"read_balance": ANNA})
    bank.reconnect()
    await desk.done("read_balance", user="anna")
    assert (await desk.call("pay", **PAID)).status is CallStatus.HELD
    assert not bank.paid_by_strangers


async def test_a_logout_on_one_connection_says_nothing_about_another() -> None:
    text = BANK.replace("  pay: {", "  logout: {input: {user: string}, changes: []}\n  pay: {", 1)
    text = text.replace(
        "established_by: login(user)", "established_by: login(user), closed_by: logout(user)"
    )
    text = text.replace("[logged_in(user), ", "[{not: logged_in(user)}, ")
    bank = Bank()
    desk = await desk_over(programs_of(text), bank)
    await desk.done("login", user="anna")
    await desk.done("logout", user="anna")
    await desk.start("pay", **PAID)
    await desk.push({"read_balance": ANNA})
    bank.reconnect()
    await desk.done("read_balance", user="anna")
    await desk.held("pay", "`login` was called on an earlier connection", **PAID)
    await desk.done("login", user="anna")
    await desk.done("logout", user="anna")
    await desk.done("pay", **PAID)
    assert not blamed(desk)


def test_how_it_is_written() -> None:
    handbook = load_handbook(SHARED)
    assert format_handbook(SHARED).count("state: shared") == 2
    assert [name for name, one in handbook.actions.items() if one.shared] == [
        "login",
        "read_balance",
    ]
    program = programs_of(SHARED)["pay"]
    assert program.actions["login"].shared
    assert not program.actions["pay"].shared
    assert program_from_yaml(program_to_yaml(program)) == program
    with pytest.raises(UserMistake, match="`state`"):
        load_handbook(SHARED.replace("state: shared", "state: global"))
