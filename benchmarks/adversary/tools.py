"""The tools of a world: truthful answers about it, and actions that change it.

A tool takes whatever arguments it gets and answers ``(ok, value)``. One that fails has changed
nothing. What a tool really reads and really changes is written beside it, so that a handbook's
`reads` and `changes` can be made true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adversary.values import JSON, is_number
from adversary.world import World

Answer = tuple[bool, JSON]
Arguments = Mapping[str, JSON]

BALANCES, STATUSES, CASE_FILES = "balances", "statuses", "cases"
LEGS, FLIGHT_STATES, LISTS, GIFTS, TOKENS = "legs", "flights", "lists", "gifts", "tokens"
TOPICS = (BALANCES, STATUSES, CASE_FILES, LEGS, FLIGHT_STATES, LISTS, GIFTS, TOKENS)


@dataclass(frozen=True)
class Tool:
    """``inputs`` name → type. ``reads`` and ``changes`` are what it really does."""

    name: str
    inputs: Mapping[str, str]
    run: Callable[[World, Arguments], Answer]
    reads: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()


def _found(table: Mapping[str, JSON], key: JSON) -> JSON:
    return table.get(key) if isinstance(key, str) else None


def _absent(world: World, what: str) -> Answer:
    manner = world.manner
    if manner == "fails":
        return False, {"error": f"no such {what}"}
    if manner == "null":
        return True, None
    return True, f"no such {what}" if manner == "text" else {}


# --- reading --------------------------------------------------------------------------


def _read_account(world: World, given: Arguments) -> Answer:
    user = given.get("user")
    if world.private and not (isinstance(user, str) and user in world.logged_in):
        return False, {"error": "not logged in"}
    account = _found(world.accounts, user)
    return (True, account) if account is not None else _absent(world, "account")


def _read_status(world: World, given: Arguments) -> Answer:
    if given.get("at") is not None:
        return True, {"status": "open"}  # at another time everything was open
    account = _found(world.accounts, given.get("user"))
    if account is None:
        return _absent(world, "account")
    return True, {key: value for key, value in account.items() if key == "status"}


def _read_all(world: World, given: Arguments) -> Answer:
    return True, {"accounts": world.accounts, "cases": world.cases}


def _find_case(world: World, given: Arguments) -> Answer:
    case = _found(world.case_of, given.get("user"))
    return (True, {"case_id": case}) if case is not None else _absent(world, "case")


def _read_case(world: World, given: Arguments) -> Answer:
    case = _found(world.cases, given.get("case_id"))
    return (True, case) if case is not None else _absent(world, "case")


def _read_booking(world: World, given: Arguments) -> Answer:
    booking = _found(world.bookings, given.get("booking"))
    return (True, booking) if booking is not None else _absent(world, "booking")


def _read_flight(world: World, given: Arguments) -> Answer:
    flight = _found(world.flights, given.get("number"))
    return (True, flight) if flight is not None else _absent(world, "flight")


def _read_list(world: World, given: Arguments) -> Answer:
    return True, {"numbers": world.blocked}


def _read_group(world: World, given: Arguments) -> Answer:
    members = _found(world.groups, given.get("group"))
    return (True, {"members": members}) if members is not None else _absent(world, "group")


def _read_voucher(world: World, given: Arguments) -> Answer:
    voucher = _found(world.vouchers, given.get("voucher"))
    return (True, voucher) if voucher is not None else _absent(world, "voucher")


# --- gates ----------------------------------------------------------------------------


def _login(world: World, given: Arguments) -> Answer:
    user = given.get("user")
    right = _found(world.passwords, user)
    if right is None or given.get("password") != right:
        return False, {"error": "wrong password"}
    world.logged_in |= {user}
    return True, {"welcome": user}


def _confirm_code(world: World, given: Arguments) -> Answer:
    user = given.get("user")
    right = _found(world.codes, user)
    if right is None or given.get("code") != right or user not in world.logged_in:
        return False, {"error": "wrong code"}
    world.factors |= {user}
    return True, {"confirmed": user}


def _logout(world: World, given: Arguments) -> Answer:
    user = given.get("user")
    if not isinstance(user, str) or user not in world.logged_in:
        return False, {"error": "not logged in"}
    world.logged_in -= {user}
    if world.logout_clears_factor:
        world.factors -= {user}
    return True, {"bye": user}


def _check_in(world: World, given: Arguments) -> Answer:
    user = given.get("user")
    if _found(world.passwords, user) is None:
        return False, {"error": "nobody here is called so"}
    world.present |= {user}
    return True, {"here": user}


def _close_day(world: World, given: Arguments) -> Answer:
    world.present = frozenset()
    return True, {"closed": True}


def _link(world: World, given: Arguments) -> Answer:
    user, to = given.get("user"), given.get("to")
    if _found(world.passwords, user) is None or _found(world.passwords, to) is None:
        return False, {"error": "nobody here is called so"}
    world.linked |= {(user, to)}
    return True, {"linked": True}


def _unlink(world: World, given: Arguments) -> Answer:
    """All links of that user end."""
    user = given.get("user")
    if _found(world.passwords, user) is None:
        return False, {"error": "nobody here is called so"}
    world.linked = frozenset(pair for pair in world.linked if pair[0] != user)
    return True, {"unlinked": True}


def _take_token(world: World, given: Arguments) -> Answer:
    """Tells how many there were, and takes one: it changes what it reads."""
    user = given.get("user")
    left = _found(world.tokens, user)
    if left is None:
        return _absent(world, "token")
    world.tokens = {**world.tokens, user: max(0, left - 1)}
    return True, {"left": left}


# --- changing -------------------------------------------------------------------------


def _balance(world: World, user: JSON, change: JSON) -> bool:
    account = _found(world.accounts, user)
    if account is None or not is_number(change) or not is_number(account.get("balance")):
        return False
    world.accounts = {
        **world.accounts,
        user: {**account, "balance": account["balance"] + change},
    }
    return True


def _done(done: bool) -> Answer:
    return (True, {"done": True}) if done else (False, {"error": "not possible"})


def _status(world: World, user: JSON, status: str) -> Answer:
    account = _found(world.accounts, user)
    if account is None:
        return _done(False)
    world.accounts = {**world.accounts, user: {**account, "status": status}}
    return _done(True)


def _pay(world: World, given: Arguments) -> Answer:
    amount = given.get("amount")
    return _done(is_number(amount) and _balance(world, given.get("user"), -amount))


def _deposit(world: World, given: Arguments) -> Answer:
    return _done(_balance(world, given.get("user"), given.get("amount")))


def _transfer(world: World, given: Arguments) -> Answer:
    amount, to = given.get("amount"), given.get("to")
    before = world.accounts
    if not (is_number(amount) and _balance(world, given.get("user"), -amount)):
        return _done(False)
    if not _balance(world, to, amount):
        world.accounts = before
        return _done(False)
    return _done(True)


def _close_account(world: World, given: Arguments) -> Answer:
    return _status(world, given.get("user"), "closed")


def _freeze(world: World, given: Arguments) -> Answer:
    return _status(world, given.get("user"), "frozen")


def _unfreeze(world: World, given: Arguments) -> Answer:
    return _status(world, given.get("user"), "open")


def _finish_case(world: World, given: Arguments) -> Answer:
    return _case_status(world, _found(world.case_of, given.get("user")), "closed")


def _reopen(world: World, given: Arguments) -> Answer:
    return _case_status(world, given.get("case_id"), "open")


def _case_status(world: World, case_id: JSON, status: str) -> Answer:
    case = _found(world.cases, case_id)
    if case is None:
        return _done(False)
    world.cases = {**world.cases, case_id: {**case, "status": status}}
    return _done(True)


def _settle(world: World, given: Arguments) -> Answer:
    return _case_status(world, given.get("case_id"), "closed")


def _assign(world: World, given: Arguments) -> Answer:
    user, case = given.get("user"), given.get("case_id")
    if not isinstance(user, str) or not isinstance(case, str):
        return _done(False)
    world.case_of = {**world.case_of, user: case}
    return _done(True)


def _clear_booking(world: World, given: Arguments) -> Answer:
    key = given.get("booking")
    booking = _found(world.bookings, key)
    if booking is None:
        return _done(False)
    world.bookings = {**world.bookings, key: {**booking, "legs": []}}
    return _done(True)


def _rebook(world: World, given: Arguments) -> Answer:
    key, number = given.get("booking"), given.get("number")
    booking = _found(world.bookings, key)
    if booking is None or not isinstance(number, str):
        return _done(False)
    legs = [*(booking["legs"] or ())[:3], {"number": number}]
    world.bookings = {**world.bookings, key: {**booking, "legs": legs}}
    return _done(True)


def _flight(world: World, number: JSON, status: str) -> Answer:
    if _found(world.flights, number) is None:
        return _done(False)
    world.flights = {**world.flights, number: {"status": status}}
    return _done(True)


def _delay(world: World, given: Arguments) -> Answer:
    return _flight(world, given.get("number"), "late")


def _land(world: World, given: Arguments) -> Answer:
    return _flight(world, given.get("number"), "landed")


def _block(world: World, given: Arguments) -> Answer:
    line = given.get("line")
    if not is_number(line):
        return _done(False)
    world.blocked = [*(one for one in world.blocked if one != line), line]
    return _done(True)


def _unblock(world: World, given: Arguments) -> Answer:
    line = given.get("line")
    world.blocked = [one for one in world.blocked if one != line]
    return _done(True)


def _open_door(world: World, given: Arguments) -> Answer:
    world.doors += 1
    return _done(True)


def _hand_over(world: World, given: Arguments) -> Answer:
    voucher, user = given.get("voucher"), given.get("user")
    found = _found(world.vouchers, voucher)
    if found is None:
        return _done(False)
    world.vouchers = {**world.vouchers, voucher: {**found, "owner": user}}
    return _done(True)


def _redeem(world: World, given: Arguments) -> Answer:
    voucher = given.get("voucher")
    if _found(world.vouchers, voucher) is None:
        return _done(False)
    world.vouchers = {name: one for name, one in world.vouchers.items() if name != voucher}
    return _done(True)


def made_tool(
    name: str,
    inputs: str,
    run: Callable[[World, Arguments], Answer],
    reads: tuple[str, ...] = (),
    changes: tuple[str, ...] = (),
) -> Tool:
    kinds = {"amount": "number", "line": "integer"}
    named = {one: kinds.get(one, "string") for one in inputs.split()}
    return Tool(name, named, run, frozenset(reads), frozenset(changes))


READERS = (
    made_tool("read_account", "user", _read_account, (BALANCES, STATUSES)),
    made_tool("read_status", "user at", _read_status, (STATUSES,)),
    made_tool("read_all", "", _read_all, (BALANCES, STATUSES, CASE_FILES)),
    made_tool("find_case", "user", _find_case, (CASE_FILES,)),
    made_tool("read_case", "case_id", _read_case, (CASE_FILES,)),
    made_tool("read_booking", "booking", _read_booking, (LEGS,)),
    made_tool("read_flight", "number", _read_flight, (FLIGHT_STATES,)),
    made_tool("read_list", "", _read_list, (LISTS,)),
    made_tool("read_group", "group", _read_group, (LISTS,)),
    made_tool("read_voucher", "voucher", _read_voucher, (GIFTS,)),
    made_tool("take_token", "user", _take_token, (TOKENS,), (TOKENS,)),
)
GATE_TOOLS = (
    made_tool("login", "user password", _login),
    made_tool("confirm_code", "user code", _confirm_code),
    made_tool("logout", "user", _logout),
    made_tool("check_in", "user", _check_in),
    made_tool("close_day", "", _close_day),
    made_tool("link", "user to", _link),
    made_tool("unlink", "user", _unlink),
)
CHANGERS = (
    made_tool("deposit", "user amount", _deposit, changes=(BALANCES,)),
    made_tool("withdraw", "user amount", _pay, changes=(BALANCES,)),
    made_tool("freeze", "user", _freeze, changes=(STATUSES,)),
    made_tool("unfreeze", "user", _unfreeze, changes=(STATUSES,)),
    made_tool("reopen", "case_id", _reopen, changes=(CASE_FILES,)),
    made_tool("settle", "case_id", _settle, changes=(CASE_FILES,)),
    made_tool("assign", "user case_id", _assign, changes=(CASE_FILES,)),
    made_tool("rebook", "booking number", _rebook, changes=(LEGS,)),
    made_tool("delay", "number", _delay, changes=(FLIGHT_STATES,)),
    made_tool("land", "number", _land, changes=(FLIGHT_STATES,)),
    made_tool("block", "line", _block, changes=(LISTS,)),
    made_tool("unblock", "line", _unblock, changes=(LISTS,)),
    made_tool("hand_over", "voucher user", _hand_over, changes=(GIFTS,)),
)
GOALS = (
    made_tool("pay", "user amount", _pay, changes=(BALANCES,)),
    made_tool("transfer", "user to amount", _transfer, changes=(BALANCES,)),
    made_tool("close_account", "user", _close_account, changes=(STATUSES,)),
    made_tool("finish_case", "user", _finish_case, changes=(CASE_FILES,)),
    made_tool("clear_booking", "booking", _clear_booking, changes=(LEGS,)),
    made_tool("ban", "line", _block, changes=(LISTS,)),
    made_tool("open_door", "user", _open_door),
    made_tool("redeem", "user voucher", _redeem, changes=(GIFTS,)),
)
OPTIONAL = frozenset({("read_status", "at")})
TOOLS = {tool.name: tool for tool in (*READERS, *GATE_TOOLS, *CHANGERS, *GOALS)}
