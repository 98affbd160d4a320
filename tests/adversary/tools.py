"""The simulator's tools: truthful answers about its records, and actions that change them.

A tool takes whatever arguments it gets and answers ``(ok, value)``. One that fails has changed
nothing. What a tool really reads and really changes is written beside it, so that a handbook's
`reads` and `changes` can be made true. The user, the clock and the counter are tools too: what
was said and done is a record like any other, and the truth is read there, never in the machine.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from adversary.simulator import Simulator
from adversary.values import JSON, USERS, is_number, kind_of
from sopilot.handbook.yes_or_no import reply_to

Answer = tuple[bool, JSON]
Arguments = Mapping[str, JSON]
Run = Callable[[Simulator, Arguments], Answer]
CONFIRM, ASK = "confirm_with_user", "ask_user"
DEEDS = frozenset({"freeze", "deposit"})
"""Actions that a `done` may speak of; by the user they were for."""
PHONES = {f"tel-{index}": user for index, user in enumerate(USERS)}
BADGES = {f"badge-{index}": user for index, user in enumerate(USERS)}
REPLIES = (
    ("yes", "yes"),
    ("Yes, please.", "yes"),
    ("OK, go ahead. Thank you!", "yes"),
    ("no", "no"),
    ("maybe later", ""),
    ("Yes, 2 adults and 3 rooms.", ""),
    ("ok is this from savings", ""),
)
"""What a user says, and means: a correction means neither."""


@dataclass(frozen=True)
class Tool:
    """``inputs`` name → type. ``reads`` and ``changes`` are what it really does."""

    name: str
    inputs: Mapping[str, str]
    run: Run
    reads: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()


def _record(table: Mapping[str, JSON], key: JSON) -> JSON:
    return table.get(key) if isinstance(key, str) else None


def _absent(sim: Simulator, kind: str) -> Answer:
    if sim.manner == "fails":
        return False, {"error": f"no such {kind}"}
    if sim.manner == "null":
        return True, None
    return True, f"no such {kind}" if sim.manner == "text" else {}


def _done(done: bool) -> Answer:
    return (True, {"done": True}) if done else (False, {"error": "not possible"})


# --- reading --------------------------------------------------------------------------


def _read(table: str, key: str, kind: str, shown: str = "") -> Run:
    """Answer with the record of that key; as the value of ``shown``, where that is named."""

    def run(sim: Simulator, given: Arguments) -> Answer:
        record = _record(getattr(sim, table), given.get(key))
        if record is None:
            return _absent(sim, kind)
        return True, {shown: record} if shown else record

    return run


def _read_account(sim: Simulator, given: Arguments) -> Answer:
    user = given.get("user")
    if sim.private and not (isinstance(user, str) and user in sim.logged_in):
        return False, {"error": "not logged in"}
    return _read("accounts", "user", "account")(sim, given)


def _read_status(sim: Simulator, given: Arguments) -> Answer:
    if given.get("at") is not None:
        return True, {"status": "open"}  # at another time everything was open
    account = _record(sim.accounts, given.get("user"))
    if account is None:
        return _absent(sim, "account")
    return True, {key: value for key, value in account.items() if key == "status"}


def _read_all(sim: Simulator, given: Arguments) -> Answer:
    return True, {"accounts": sim.accounts, "cases": sim.cases}


def _read_list(sim: Simulator, given: Arguments) -> Answer:
    return True, {"numbers": sim.blocked}


def _look_up(sim: Simulator, given: Arguments) -> Answer:
    """Says by failing that there is nothing."""
    if _record(sim.accounts, given.get("user")) is None:
        return False, {"error": "no such account"}
    return True, {"found": True}


def _read_deadline(sim: Simulator, given: Arguments) -> Answer:
    until = _record(sim.deadlines, given.get("user"))
    return (True, {"until": iso(until)}) if until is not None else (False, {"error": "none"})


def _take_token(sim: Simulator, given: Arguments) -> Answer:
    """Tells how many there were, and takes one: it changes what it reads."""
    user = given.get("user")
    left = _record(sim.tokens, user)
    if left is None:
        return _absent(sim, "token")
    sim.tokens = {**sim.tokens, user: max(0, left - 1)}
    return True, {"left": left}


# --- gates ----------------------------------------------------------------------------


DENIALS: tuple[Answer, ...] = (
    (False, {"error": "wrong password"}), (True, None), (True, False), (True, {}),
    (True, "Error: wrong password"), (True, {"ok": False}),
)  # fmt: skip
"""A wrong password fails, or is answered with nothing or an error."""


def _login(sim: Simulator, given: Arguments) -> Answer:
    user = given.get("user")
    right = _record(sim.passwords, user)
    if right is None or given.get("password") != right:
        return DENIALS[zlib.crc32(repr(given).encode("utf-8", "replace")) % len(DENIALS)]
    sim.logged_in |= {user}
    return True, {"welcome": user}


def _confirm_code(sim: Simulator, given: Arguments) -> Answer:
    user = given.get("user")
    right = _record(sim.codes, user)
    if right is None or given.get("code") != right or user not in sim.logged_in:
        return False, {"error": "wrong code"}
    sim.factors |= {user}
    return True, {"confirmed": user}


def _logout(sim: Simulator, given: Arguments) -> Answer:
    user = given.get("user")
    if not isinstance(user, str) or user not in sim.logged_in:
        return False, {"error": "not logged in"}
    sim.logged_in -= {user}
    if sim.logout_clears_factor:
        sim.factors -= {user}
    return True, {"bye": user}


def _customer(sim: Simulator, given: Arguments, name: str = "user") -> JSON:
    user = given.get(name)
    return user if _record(sim.passwords, user) is not None else None


_NOBODY: Answer = (False, {"error": "nobody here is called so"})


def _check_in(sim: Simulator, given: Arguments) -> Answer:
    if (user := _customer(sim, given)) is None:
        return _NOBODY
    sim.present |= {user}
    return True, {"here": user}


def _close_day(sim: Simulator, given: Arguments) -> Answer:
    sim.present = frozenset()
    return True, {"closed": True}


def _link(sim: Simulator, given: Arguments) -> Answer:
    user, to = _customer(sim, given), _customer(sim, given, "to")
    if user is None or to is None:
        return _NOBODY
    sim.linked |= {(user, to)}
    return True, {"linked": True}


def _unlink(sim: Simulator, given: Arguments) -> Answer:
    """All links of that user end."""
    if (user := _customer(sim, given)) is None:
        return _NOBODY
    sim.linked = frozenset(pair for pair in sim.linked if pair[0] != user)
    return True, {"unlinked": True}


def _serve(sim: Simulator, given: Arguments) -> Answer:
    if (user := _customer(sim, given)) is None:
        return _NOBODY
    _identify(sim, user, "counter")
    return True, {"serving": user}


def _ring(sim: Simulator, given: Arguments) -> Answer:
    user = PHONES.get(str(given.get("phone")))
    if user is None:
        return False, {"error": "nobody answers"}
    _identify(sim, user, "telephone")
    return True, {"user": user}


def _swipe(sim: Simulator, given: Arguments) -> Answer:
    badge = str(given.get("badge"))
    if badge not in BADGES:
        return False, {"error": "no such badge"}
    _identify(sim, BADGES[badge], badge)
    return True, {"badge": badge}


def _identify(sim: Simulator, user: str, way: str) -> None:
    """Whoever is identified is the customer; what was opened for another one is closed."""
    known = sim.ways if sim.served == user else frozenset()
    sim.served, sim.ways = user, known | {way}


# --- changing -------------------------------------------------------------------------


def _balance(sim: Simulator, user: JSON, change: JSON) -> bool:
    account = _record(sim.accounts, user)
    if account is None or not is_number(change) or not is_number(account.get("balance")):
        return False
    sim.accounts = {**sim.accounts, user: {**account, "balance": account["balance"] + change}}
    return True


def _pay(sim: Simulator, given: Arguments) -> Answer:
    amount = given.get("amount")
    return _done(is_number(amount) and _balance(sim, given.get("user"), -amount))


def _deposit(sim: Simulator, given: Arguments) -> Answer:
    return _done(_balance(sim, given.get("user"), given.get("amount")))


def _transfer(sim: Simulator, given: Arguments) -> Answer:
    amount, before = given.get("amount"), sim.accounts
    if not (is_number(amount) and _balance(sim, given.get("user"), -amount)):
        return _done(False)
    if not _balance(sim, given.get("to"), amount):
        sim.accounts = before
        return _done(False)
    return _done(True)


def _set(table: str, key: str, status: str) -> Run:
    """Give the record of that key another status."""

    def run(sim: Simulator, given: Arguments) -> Answer:
        return _set_status(sim, table, given.get(key), status)

    return run


def _set_status(sim: Simulator, table: str, key: JSON, status: str) -> Answer:
    records = getattr(sim, table)
    record = _record(records, key)
    if record is None:
        return _done(False)
    setattr(sim, table, {**records, key: {**record, "status": status}})
    return _done(True)


def _finish_case(sim: Simulator, given: Arguments) -> Answer:
    return _set_status(sim, "cases", _record(sim.case_of, given.get("user")), "closed")


def _assign(sim: Simulator, given: Arguments) -> Answer:
    user, case = given.get("user"), given.get("case_id")
    if not isinstance(user, str) or not isinstance(case, str):
        return _done(False)
    sim.case_of = {**sim.case_of, user: case}
    return _done(True)


def _rebook(sim: Simulator, given: Arguments, *, clear: bool = False) -> Answer:
    key, number = given.get("booking"), given.get("number")
    booking = _record(sim.bookings, key)
    if booking is None or not (clear or isinstance(number, str)):
        return _done(False)
    legs = [] if clear else [*(booking["legs"] or ())[:3], {"number": number}]
    sim.bookings = {**sim.bookings, key: {**booking, "legs": legs}}
    return _done(True)


def _block(sim: Simulator, given: Arguments) -> Answer:
    line = given.get("line")
    if not is_number(line):
        return _done(False)
    sim.blocked = [*(number for number in sim.blocked if number != line), line]
    return _done(True)


def _unblock(sim: Simulator, given: Arguments) -> Answer:
    sim.blocked = [number for number in sim.blocked if number != given.get("line")]
    return _done(True)


def _open_door(sim: Simulator, given: Arguments) -> Answer:
    sim.doors += 1
    return _done(True)


def _hand_over(sim: Simulator, given: Arguments) -> Answer:
    voucher = given.get("voucher")
    record = _record(sim.vouchers, voucher)
    if record is None:
        return _done(False)
    sim.vouchers = {**sim.vouchers, voucher: {**record, "owner": given.get("user")}}
    return _done(True)


def _redeem(sim: Simulator, given: Arguments) -> Answer:
    voucher = given.get("voucher")
    if _record(sim.vouchers, voucher) is None:
        return _done(False)
    sim.vouchers = {name: one for name, one in sim.vouchers.items() if name != voucher}
    return _done(True)


# --- the user and the clock -----------------------------------------------------------


def iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def spelled(value: JSON) -> str:
    """5 and 5.0 are one value; 5 and "5" are two, and so are 2**53 and 2**53 + 1. Nobody is shown
    half a surrogate pair, and no tool receives it."""
    if isinstance(value, str):
        return repr(value.encode("utf-8", "replace").decode())
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def subject(goal: JSON, arguments: Mapping[str, JSON]) -> tuple[str, str]:
    """What a yes is about: the procedure, and exactly which values."""
    values = sorted((name, spelled(v)) for name, v in arguments.items() if v is not None)
    return repr(goal), repr(values)


def user_says(sim: Simulator, action: str, given: Arguments) -> str:
    """A user who has a mind of their own, and another one the next time."""
    sim.asked += 1
    shown = repr(sorted(given.items(), key=lambda item: str(item[0])))
    roll = zlib.crc32(shown.encode("utf-8", "surrogatepass")) + sim.asked * 9
    words, answer = REPLIES[roll % len(REPLIES)]
    if action == CONFIRM:
        about = {name: v for name, v in given.items() if name not in ("action", "procedure")}
        key = subject(given.get("procedure", given.get("action")), about)
        sim.consents = {**sim.consents, key: answer}
    else:
        asked = subject(given.get("question"), {"user": given.get("user")})
        sim.said = {**sim.said, asked: answer}
    return words


def _ask(action: str, sim: Simulator, given: Arguments) -> Answer:
    words = user_says(sim, action, given)
    return True, {"said": words, "answer": reply_to(action, words)}


# --- all of them ----------------------------------------------------------------------


def _tool(name: str, inputs: str, run: Run, reads: str = "", changes: str = "") -> Tool:
    named = {each: kind_of(each) for each in inputs.split()}
    return Tool(name, named, run, frozenset(reads.split()), frozenset(changes.split()))


TOPICS = ("balances", "statuses", "cases", "legs", "flights", "lists", "gifts", "tokens")
READERS = (
    _tool("read_account", "user", _read_account, "balances statuses"),
    _tool("read_status", "user at", _read_status, "statuses"),
    _tool("read_all", "", _read_all, "balances statuses cases"),
    _tool("find_case", "user", _read("case_of", "user", "case", "case_id"), "cases"),
    _tool("read_case", "case_id", _read("cases", "case_id", "case"), "cases"),
    _tool("read_booking", "booking", _read("bookings", "booking", "booking"), "legs"),
    _tool("read_flight", "number", _read("flights", "number", "flight"), "flights"),
    _tool("read_list", "", _read_list, "lists"),
    _tool("read_group", "group", _read("groups", "group", "group", "members"), "lists"),
    _tool("read_voucher", "voucher", _read("vouchers", "voucher", "voucher"), "gifts"),
    _tool("take_token", "user", _take_token, "tokens", "tokens"),
    _tool("look_up", "user", _look_up, "balances statuses"),
    _tool("read_deadline", "user", _read_deadline, "deadlines"),
)
GATE_TOOLS = (
    _tool("login", "user password", _login),
    _tool("confirm_code", "user code", _confirm_code),
    _tool("logout", "user", _logout),
    _tool("check_in", "user", _check_in),
    _tool("close_day", "", _close_day),
    _tool("link", "user to", _link),
    _tool("unlink", "user", _unlink),
)
COUNTERS = (
    _tool("serve", "user", _serve),
    _tool("ring", "phone", _ring),
    _tool("swipe", "badge", _swipe),
)
CHANGERS = (
    _tool("deposit", "user amount", _deposit, changes="balances"),
    _tool("withdraw", "user amount", _pay, changes="balances"),
    _tool("freeze", "user", _set("accounts", "user", "frozen"), changes="statuses"),
    _tool("unfreeze", "user", _set("accounts", "user", "open"), changes="statuses"),
    _tool("reopen", "case_id", _set("cases", "case_id", "open"), changes="cases"),
    _tool("settle", "case_id", _set("cases", "case_id", "closed"), changes="cases"),
    _tool("assign", "user case_id", _assign, changes="cases"),
    _tool("rebook", "booking number", _rebook, changes="legs"),
    _tool("delay", "number", _set("flights", "number", "late"), changes="flights"),
    _tool("land", "number", _set("flights", "number", "landed"), changes="flights"),
    _tool("block", "line", _block, changes="lists"),
    _tool("unblock", "line", _unblock, changes="lists"),
    _tool("hand_over", "voucher user", _hand_over, changes="gifts"),
)
GOALS = (
    _tool("pay", "user amount", _pay, changes="balances"),
    _tool("transfer", "user to amount", _transfer, changes="balances"),
    _tool("close_account", "user", _set("accounts", "user", "closed"), changes="statuses"),
    _tool("finish_case", "user", _finish_case, changes="cases"),
    _tool("clear_booking", "booking", partial(_rebook, clear=True), changes="legs"),
    _tool("ban", "line", _block, changes="lists"),
    _tool("open_door", "user", _open_door),
    _tool("redeem", "user voucher", _redeem, changes="gifts"),
)
OWN = (
    Tool(ASK, {"question": "string", "user": "string"}, partial(_ask, ASK)),
    Tool(CONFIRM, {"action": "string"}, partial(_ask, CONFIRM)),
)
"""The machine's own."""
OPTIONAL = frozenset({("read_status", "at")})
TOOLS = {t.name: t for t in (*READERS, *GATE_TOOLS, *COUNTERS, *CHANGERS, *GOALS, *OWN)}
OF_A_CONNECTION = frozenset({"login", "confirm_code", "logout", "serve", "ring", "swipe"})
"""What they open and close holds for the connection on which they were called."""


def perform(sim: Simulator, action: str, arguments: Arguments, connection: int = 0) -> Answer:
    """Ask the simulator, on its present ``connection`` or an earlier one, and remember the
    deed."""
    if action in OF_A_CONNECTION and connection not in (0, sim.connection):
        return False, {"error": "connection closed"}
    ok, value = TOOLS[action].run(sim, arguments)
    if ok:
        user = arguments.get("user")
        act, answers = sim.rests_on
        if action == act:
            sim.said = {key: answer for key, answer in sim.said.items() if key not in answers}
        if action in DEEDS and isinstance(user, str):
            sim.deeds |= {(action, user)}
        if TOOLS[action].changes:
            # A yes was to the state of things that it was given in.
            sim.consents = {}
    return ok, value
