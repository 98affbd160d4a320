"""Sessions at a counter, whose audits `test_reports.py` compares line by line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from audit_desk import Desk
from test_misleading_transcripts import ASKED, CLOSED, LOST, dialog, login, pay

from chat_messages import Message, agent, messages, result, wanted
from small_desks import programs_of
from sopilot.handbook.reader import load_handbook
from sopilot.trace.events import (
    Amend,
    AssistantSaid,
    Call,
    Complete,
    Decision,
    DomainCall,
    DomainResult,
    Fail,
    JudgeCheck,
    Note,
    Return,
    Start,
    UserSaid,
)
from sopilot.trace.redaction import redact

BOOK = load_handbook((Path(__file__).parent / "counter.yaml").read_text("utf-8"))
COUNTER = programs_of(BOOK)
ANN, BOB = {"user": "ann"}, {"user": "bob"}
NOW = Note("clock", {"now": "2026-01-01T00:00:00Z"})
FREE = {"listed": False, "until": "2027-01-01"}


class Counter(Desk):
    """Calls as an agent without a protocol makes them, up to a guarded call."""

    def __init__(self) -> None:
        super().__init__(COUNTER)
        self.do(NOW, actor="runtime")

    def login(self, user: str = "ann") -> Self:
        return self.tool("login", {"user": user, "password": "x"}, {"ok": True})

    def answered_login(self, *answers: Any) -> Self:
        """Logins that don't fail, with these answers, and all the other checks."""
        for answer in answers:
            self.tool("login", {**ANN, "password": "x"}, answer)
        return self.orders(a=True).screen()

    def orders(self, **delivered: bool) -> Self:
        listed = [{"number": number} for number in delivered]
        self.tool("find_orders", ANN, {"orders": listed})
        for number, done in delivered.items():
            self.order(number, done)
        return self

    def order(self, number: str, delivered: bool) -> Self:
        return self.tool("read_order", {"order": number}, {"delivered": delivered})

    def screen(self, answer: Any = FREE) -> Self:
        return self.tool("screen", ANN, answer)

    def proven(self) -> Self:
        return self.login().orders(a=True, b=True).screen()

    def refund(self, amount: Any = 5, *, end: bool = True, **more: Any) -> Self:
        arguments = {**ANN, "amount": amount, **more}
        self.do(Start("refund", arguments, act="act"))
        self.tool("refund", arguments, {"done": True})
        return self.do(Complete("done")) if end else self

    def mail(self, *users: str) -> Self:
        """Find users, each by an address."""
        for user in users:
            self.tool("find_by_mail", {"mail": f"{user}@b.c"}, {"user": user})
        return self

    def letter(self, polite: bool | None = None, *evidence: int) -> Self:
        """With a model's judgement on these answers."""
        self.do(Start("send", ANN, act="act"))
        if polite is not None:
            self.do(JudgeCheck("polite", ANN, polite, evidence), actor="model")
        return self.tool("send", ANN, {}).do(Complete("done"))

    def close(self, user: str = "ann") -> Self:
        self.do(Start("close", {"user": user}, act="act"))
        return self.tool("close", {"user": user}, {}).do(Complete("done"))

    def held(self, awaits: str = "approval", amount: float = 500, why: str = "") -> Self:
        arguments = {**ANN, "amount": amount}
        self.do(Start("refund", arguments, act="act"))
        note = {"call_id": f"c{self.calls + 1}", "action": "refund", "arguments": arguments}
        more = {"why": why} if why else {}
        return self.do(Note("held_call", {**note, "awaits": awaits, **more}), actor="runtime")

    def decided(self, word: str, by: str = "ida", role: str = "boss", **more: Any) -> Self:
        return self.do(Decision(word, f"c{self.calls + 1}", by, role, **more))

    def runs(self, amount: float = 500) -> Self:
        """The call that people decided on, with an amount of their own where it isn't 500."""
        self.calls += 1
        name, arguments = f"c{self.calls}", {**ANN, "amount": amount}
        self.do(DomainCall(name, "refund", arguments, amended=amount != 500))
        return self.do(DomainResult(name, True, {"done": True}), Complete("done"))

    def note(self, name: str, actor: str = "runtime", **details: Any) -> Self:
        return self.do(Note(name, details), actor=actor)


def asked(*actions: str) -> dict[str, Any]:
    return {"upstream": "shop", "connection": "2", "actions": [*actions]}


def open_call(counter: Counter) -> Counter:
    """A refund that got no answer."""
    arguments = {**ANN, "amount": 5}
    counter.do(Start("refund", arguments, act="act"), DomainCall("c90", "refund", arguments))
    return counter.note("outcome_unknown", call_id="c90", action="refund")


def at_the_counter() -> dict[str, Desk]:
    fewer = {**ANN, "amount": 400}

    def ready() -> Counter:
        return Counter().proven()

    return {
        "proven": ready().refund(),
        "a name that looks the same": ready().refund(5, user="ann "),
        # --- gates
        "nobody logged in": Counter().orders(a=True).screen().refund(),
        "somebody else logged in": Counter().login("bob").orders(a=True).screen().refund(),
        "logged out since": ready().tool("logout", ANN, {}).refund(),
        "logged out by another": ready().tool("logout", BOB, {}).refund(),
        "logout failed": ready().tool("logout", ANN, "no", ok=False).refund(),
        "another customer since": ready().login("bob").refund(),
        "another customer by another gate": ready().tool("fingerprint", BOB, True).refund(),
        "the same customer by another gate": ready().tool("fingerprint", ANN, True).refund(),
        "another customer by mail": ready().mail("bob").refund(),
        "the same customer by mail": ready().mail("ann").refund(),
        "another customer, unanswered": ready()
        .do(DomainCall("c80", "find_by_mail", {"mail": "a@b.c"})).refund(),
        "another customer before": Counter().login("bob").proven().refund(),
        "login failed": Counter().tool("login", ANN, "no", ok=False).orders(a=True).screen()
        .refund(),
        "login on another connection": ready().note("connected", **asked("login")).refund(),
        # --- answers
        "logged out on another connection": ready().tool("logout", ANN, {})
        .note("connected", **asked("login")).refund(),
        "found without a name": Counter().tool("find_by_mail", {"mail": "a@b.c"}, {}).letter(),
        "closed": Counter().tool("fingerprint", ANN, True).letter().close(),
        "closed for another": Counter().tool("fingerprint", ANN, True).letter().close("bob"),
        "closed at once": Counter().tool("fingerprint", ANN, True).close(),
        "no order": Counter().login().orders().screen().refund(),
        "one order was not read": Counter().login().orders(a=True)
        .tool("find_orders", ANN, {"orders": [{"number": "a"}, {"number": "b"}]}).screen().refund(),
        "one order was not delivered": Counter().login().orders(a=True, b=False).screen().refund(),
        "orders that are no list": Counter().login().tool("find_orders", ANN, {"orders": 5})
        .screen().refund(),
        "orders without a number": Counter().login().tool("find_orders", ANN, {"orders": [{}]})
        .screen().refund(),
        "too many orders": Counter().login()
        .tool("find_orders", ANN, {"orders": [{"number": "a"}] * 1001}).screen().refund(),
        "an order of another type": Counter().login()
        .tool("find_orders", ANN, {"orders": [{"number": 5}]}).screen().refund(),
        "orders of another": Counter().login().tool("find_orders", BOB, {"orders": []}).screen()
        .refund(),
        "an order was changed": ready()
        .tool("change_order", {"order": "a", "text": "t"}, {}).refund(),
        "an order was changed and read": ready()
        .tool("change_order", {"order": "a", "text": "t"}, {}).orders(a=True, b=True).refund(),
        "the last reading failed": ready().tool("read_order", {"order": "b"}, "x", ok=False)
        .refund(),
        "read on another connection": ready().note("connected", **asked("screen")).refund(),
        "asked with more": ready().screen().tool("screen", {**ANN, "as_of": "may"}, {})
        .refund(),
        "on the list": Counter().login().orders(a=True)
        .screen({"listed": True, "until": "2027-01-01"}).refund(),
        "an answer that decides nothing": Counter().login().orders(a=True).screen({"listed": True})
        .refund(),
        "nothing was looked up": Counter().login().refund(),
        # --- the call
        "an input of another type": ready().refund("5"),
        "an unknown input": ready().refund(memo="m"),
        "a missing input": ready().refund(None),
        "refunded twice": ready().refund().refund(),
        "refunded twice at the user's word": ready().refund()
        .do(UserSaid("again please")).refund(),
        "a letter to a polite user": Counter().screen().letter(),
        "a letter to a user judged polite": Counter().screen().letter(True, 2),
        "a letter to a user judged impolite": Counter().screen().letter(False, 2),
        "a letter on no answer": Counter().screen().letter(True),
        "a letter on an older answer": Counter().screen().screen({"listed": 1}).letter(True, 2),
        "a letter on the same answer": Counter().screen().screen().letter(True, 2),
        **{
            f"a letter by the mail of {names}": Counter().mail(*names.split()).letter()
            for names in ("ann", "bob", "ann bob", "bob ann")
        },
        "read after the goal": ready().refund(end=False).screen().do(Complete("done")),
        "sent after the goal": ready().refund(end=False).tool("send", ANN, {}),
        "a login that answers nothing": Counter().answered_login(None).refund(),
        "a login that answers an error": Counter().answered_login(True, "Error: no").refund(),
        "a login after an error": Counter().answered_login("Error: no", True).refund(),
        "a letter by fingerprint": Counter().tool("fingerprint", ANN, True)
        .do(Start("send", ANN, act="act")).tool("send", {**ANN, "copy": "bob"}, {}),
        # --- people
        "no approval": ready().refund(500),
        "approved": ready().held().decided("approve").runs(),
        "approved by nobody": ready().held().decided("approve", "").runs(),
        "approved by another role": ready().held().decided("approve", role="clerk").runs(),
        "rejected": ready().held().decided("reject", reason="too much"),
        "carried out after a rejection": ready().held().decided("reject").runs(),
        "expired": ready().held().decided("expire", "", ""),
        "still waiting": ready().held(),
        "called otherwise": ready().held().runs(400),
        "amended by people": ready().held()
        .decided("amend", arguments=fewer).runs(400),
        "amended to another amount": ready().held()
        .decided("amend", arguments=fewer).runs(),
        "let through unproven": Counter().do(UserSaid("please " * 60)).login().orders(a=False)
        .screen().held(why="not delivered").decided("approve").runs(),
        "let through, and another doubt since": Counter().login().orders(a=False).screen()
        .held(why="not delivered").decided("approve").tool("logout", ANN, {}).runs(),
        "held although all is shown": ready().held(why="not delivered"),
        "held back in a step": ready().held("root"),
        # --- outcomes
        "no answer": open_call(ready()),
        "no answer, then one": open_call(ready()).do(DomainResult("c90", True, {})),
        "no answer, then a failure": open_call(ready()).do(DomainResult("c90", False, "x")),
        "no answer, and again": open_call(ready())
        .do(DomainCall("c91", "refund", {**ANN, "amount": 5})),
        "no answer, and another call beside it": open_call(ready()).login("bob").screen(),
        "answered late": ready().refund().note("answered_late", call_id="c6", ok=True),
        "answered late with a failure": Counter().note("answered_late", call_id="c6", ok=False),
        "made although denied": Counter().note("unlicensed_call", tool="refund"),
        # --- words
        "refused": ready().held().do(Fail("no")),
        "told what is kept from customers": Counter().login().orders(a=True)
        .screen({"listed": True, "until": "2027-01-01", "number": 4711, "page": 12})
        .do(AssistantSaid("ann is on the list.")),
    }  # fmt: skip


def withheld() -> dict[str, Desk]:
    """With these fields masked as secrets."""
    said = Counter().do(Start("refund", {**ANN, "amount": 5}), Call()).login()
    said.do(Return(True), Call()).orders(a=True).do(Return(True), Call())
    said.screen({**FREE, "listed": True}).do(Return(True), AssistantSaid("on the list"), Fail("x"))
    sessions: dict[str, Desk] = {"withheld text": masked(said, "text")}
    for name in ("password", "secret", "number", "until", "user", "amount"):
        answer = {"listed": True, "until": "2025-01-01", "secret": 4711}
        counter = Counter().login().orders(a=True).screen(answer).refund()
        sessions[f"withheld {name}"] = masked(counter, name)
    return sessions


def masked(counter: Counter, name: str) -> Counter:
    counter.events = [redact(event, names=frozenset({name}))[0] for event in counter.events]
    return counter


def step_by_step() -> dict[str, Desk]:
    def begun(goal: str = "refund") -> Counter:
        return Counter().do(Start(goal, {**ANN, "amount": 5} if goal == "refund" else ANN), Call())

    def known() -> Counter:
        return begun().login().do(Return(True), Call())

    def listed(holds: bool = True) -> Counter:
        counter = known().orders(a=True).do(Return(True), Call())
        answer = {
            "listed": holds,
            "until": "2027-01-01",
            "number": 4711,
            "page": 12,
            "names": ["eve!", "twin"],
        }
        return counter.do(UserSaid("I am eve!")).screen(answer).do(Return(holds))

    def accepted() -> Counter:
        return listed(False)

    def evidence(*cited: str, holds: bool | None = True) -> Counter:
        return known().orders(a=True).do(Return(holds, cited))

    return {
        **{f"evidence {cited}": evidence(cited) for cited in (
            "#5", "#7", "#99", "#9999999999999", "login", "find_orders", "nothing",
        )},
        "evidence of another customer": known().tool("find_orders", BOB, {"orders": []})
        .do(Return(True)),
        "evidence of another process": begun("send").screen().do(Start("refund", ANN), Call())
        .login().do(Return(True, ("#4",))),
        "the opposite verdict": evidence(holds=False),
        "undecided": evidence(holds=None),
        "no evidence": known().do(Return(True)),
        "part of the evidence": known().tool("find_orders", ANN, {"orders": [{"number": "a"}]})
        .do(Return(True)),
        "failed evidence": known().tool("find_orders", ANN, "x", ok=False).do(Return(True)),
        "evidence that decides nothing": known().tool("find_orders", ANN, {"orders": []})
        .do(Return(True), Call()).screen({}).do(Return(True)),
        "a gate on the user's word": begun().do(UserSaid("no password"), Return(False), Fail("x")),
        "a gate on nobody's word": begun().do(Return(False), Fail("no")),
        "a gate that failed": begun().tool("login", ANN, "no", ok=False).do(Return(True)),
        "carried out": accepted().tool("refund", {**ANN, "amount": 5}, {}).do(Complete("done")),
        "carried out for another": accepted().tool("refund", {**BOB, "amount": 5}, {}),
        "carried out too early": known().tool("refund", {**ANN, "amount": 5}, {}),
        "carried out against a verdict": listed().tool("refund", {**ANN, "amount": 5}, {}),
        "calls after the goal": accepted().tool("refund", {**ANN, "amount": 5}, {}).screen()
        .tool("change_order", {"order": "a", "text": "t"}, {}).do(Complete("done")).screen(),
        "called while nothing ran": Counter().tool("refund", {**ANN, "amount": 5}, {}),
        "strangers' calls": begun().tool("change_order", {"order": "a", "text": "t"}, {}).screen()
        .tool("wipe", {}, {}),
        "claimed": begun().do(Complete("done")),
        "refused for a cause": listed().do(Fail("on the list")),
        "refused without a cause": accepted().do(Fail("no")),
        "refused before anything was shown": begun().do(Fail("no")),
        "refused for another reason": begun("send").do(Return(False)).do(Fail("no")),
        "refused by the user": accepted().do(Fail("no"), actor="user"),
        "a tool that isn't offered": accepted().note("not_offered", actions=["refund"])
        .do(Fail("no")),
        "told": listed().do(AssistantSaid("ann is on the list."), Fail("x")),
        "told by a number": listed().do(AssistantSaid("It is 4711."), Fail("x")),
        "told by a name": listed().do(AssistantSaid("So you are the twin."), Fail("x")),
        "told nothing": listed().do(AssistantSaid("Page 12 of 14711, eve!"), Fail("x")),
        "told before": listed().do(Fail("x"), AssistantSaid("We can't do that at present.")),
        "set aside": begun().do(UserSaid("rather a letter"), Start("send", ANN), Call())
        .tool("fingerprint", ANN, True).do(Return(True)).tool("send", ANN, {}).do(Complete("done"))
        .do(Fail("set aside")),
        "set aside, and then amended": begun()
        .do(UserSaid("rather a letter"), Start("send", ANN), Call())
        .tool("fingerprint", ANN, True).do(Return(True)).tool("send", ANN, {}).do(Complete("done"))
        .do(Amend({"amount": 6}), Fail("set aside")),
        "asked for what is known": Counter().do(Start("refund", {**ANN, "amount": 5}))
        .do(AssistantSaid("Which user?"), UserSaid("no idea"), Fail("x")),
        "amended": known().do(Amend({"user": "bob"}), Fail("x")),
        "begun for another customer": known().do(Start("refund", {**BOB, "amount": 5}), Call())
        .login("bob").do(Return(True), Call()).tool("find_orders", BOB, {"orders": []})
        .do(Return(True), Call()).tool("screen", BOB, FREE).do(Return(False))
        .tool("refund", {**BOB, "amount": 5}, {}).do(Complete("done"), Fail("x")),
    }  # fmt: skip


def without_a_machine() -> dict[str, tuple[Desk, Mapping[str, Any]]]:
    """With what is known besides: the goal, the tools that the agent had."""
    goal, late = {"goal": "refund"}, {**ANN, "amount": 500}
    refund = ("refund", {**ANN, "amount": 5}, {})
    few = {**goal, "offered": ["login", "screen"]}

    def asked(*replies: str) -> Counter:
        counter = Counter().do(UserSaid("Refund my order."))
        return counter.do(
            *(
                Turn(text)
                for reply in replies
                for Turn, text in (
                    (AssistantSaid, "What is your password?"),
                    (UserSaid, reply),
                )
            )
        )

    def ended(counter: Counter, outcome: str = "refused") -> Counter:
        return counter.note("end_session", outcome=outcome)

    return {
        "carried out": (Counter().proven().tool(*refund), goal),
        "carried out although listed": (
            Counter().login().orders(a=True)
            .screen({"listed": True, "until": "2027-01-01"}).tool(*refund),
            goal,
        ),
        "carried out on an empty answer": (
            Counter().login().orders(a=True).screen({}).tool(*refund), goal,
        ),
        "carried out without a word": (Counter().tool(*refund), goal),
        "carried out without a goal": (Counter().proven().tool(*refund), {}),
        "not approved": (Counter().proven().tool("refund", late, {}), goal),
        "turned away": (Counter().tool("refund", late, "no", ok=False), goal),
        "called after the goal": (Counter().proven().tool(*refund).screen().tool(*refund), goal),
        "claimed": (ended(Counter().proven(), "executed"), goal),
        "claimed without a goal": (ended(Counter().proven(), "executed"), {}),
        "cut short": (Counter().login().note("budget"), goal),
        "refused without a word": (ended(Counter()), goal),
        "refused by the password": (ended(asked("I have none")), goal),
        "refused by a failed login": (
            ended(Counter().tool("login", {**ANN, "password": "x"}, "no", ok=False)), goal,
        ),
        "refused by the orders": (ended(asked("user: ann").login().orders(a=False)), goal),
        "refused by the list": (
            ended(Counter().login().orders(a=True).screen({"listed": True, "until": "2027-01-01"})),
            goal,
        ),
        "refused although all is shown": (ended(asked("user: ann").proven()), goal),
        "refused for want of a tool": (ended(Counter().proven()), few),
        "refused for want of a tool, as noted": (
            ended(Counter().proven().note("not_offered", actions=["refund"])), goal,
        ),
        "refused for want of another tool": (
            ended(Counter().proven().note("not_offered", actions=["send"])), goal,
        ),
        "refused for want of a verifier": (
            ended(Counter().login()), {**goal, "offered": ["login", "screen", "refund"]},
        ),
        "changed over": (
            asked("rather send it").tool("fingerprint", ANN, True).tool("send", ANN, {}), goal,
        ),
        "a withheld reply": (
            masked(asked("rather send it").tool("send", ANN, {}), "text"), goal,
        ),
        "withheld arguments": (masked(Counter().proven().tool(*refund), "arguments"), goal),
        "an unknown call": (Counter().tool("wipe", {}, {}), goal),
        "an unknown input": (Counter().tool("login", {**ANN, "memo": "m"}, True), goal),
        "a missing input": (
            Counter().tool("login", {}, True).tool("login", {}, {}, ok=False), goal,
        ),
    }  # fmt: skip


def payments() -> dict[str, list[Message]]:
    """To the bank of the misleading transcripts."""
    return {
        "yes, then another guarded call": dialog(ASKED, "Yes.", LOST, CLOSED),
        "yes, then a change": dialog(ASKED, "Yes.", login()),
        "yes, then a reading": dialog(ASKED, "Yes.", LOST),
        "yes, then a question": dialog(ASKED, "Yes.", "> Shall I write it down?"),
        "yes to another amount": dialog("> Shall I pay 500 to bob?", "Yes."),
        "yes to an amount with a comma": dialog("> Shall I pay 50,00 to bob?", "Yes."),
        "yes to nothing by name": dialog("> Shall I do it?", "Yes."),
        "yes to a name within another": dialog("> Shall I pay 50 to bobby?", "Yes."),
        "yes to one of two": dialog("> Shall I pay 50 to bob?", "Yes.", paid=pay(to="carol")),
        "yes to an empty name": dialog(ASKED, "Yes.", paid=pay(to="")),
    }


SMALL = "small"
"""The goal is a refund of an amount that needs no approval."""


def transcripts() -> dict[str, tuple[list[Message], str | None]]:
    goal = "refund"
    known = ("login", {**ANN, "password": "x"}, {"ok": True})
    orders = ("find_orders", ANN, {"orders": [{"number": "a"}]})
    order = ("read_order", {"order": "a"}, {"delivered": True})
    late = ("read_order", {"order": "a"}, {"delivered": False})
    screen = ("screen", ANN, FREE)
    done = {"done": True}
    refund = ("refund", {**ANN, "amount": 5}, done)
    finger, letter, closed = (("fingerprint", ANN, done), ("send", ANN, done), ("close", ANN, done))
    wish = "Refund my order, please."
    return {
        name: (messages(wish, *steps), aim)
        for name, aim, *steps in (
            ("carried out", goal, known, orders, order, refund),
            ("carried out without a login", goal, orders, order, screen, refund),
            ("carried out against an answer", goal, known, orders, late, screen, refund),
            ("carried out without a goal", None, known, orders, order, refund),
            ("nothing was done", goal),
            ("nothing was done without a goal", None, "> Hello."),
            ("refused in words", goal, "> Sorry, I can't do that."),
            ("claimed in words", goal, "> Done, it has been refunded."),
            ("asked and left", goal, known, "> Shall I refund it?"),
            ("asked and answered", goal, known, "> Shall I refund it?", "Leave it."),
            ("refused after two replies", goal, "> Your name?", "ann", "> Sorry, I can't.", "Oh."),
            ("refused by a password", goal, "> What is your password?", "None.", "> Sorry, no."),
            ("refused by the orders", goal, known, orders, late, "> I can't refund it."),
            ("an answer of a failed call", goal, ("login", ANN, {"error": "no"}), "> Sorry."),
            ("two customers", goal, known, ("login", BOB, {}), orders, order, "> Sorry, I can't."),
            ("the same twice", goal, known, orders, order, screen, refund, refund),
            ("another after it", goal, known, orders, order, screen, refund, screen),
            ("a word, then another", goal, known, orders, order, screen, refund, "thanks", screen),
            ("a large amount", goal, known, orders, order, screen,
             ("refund", {**ANN, "amount": 500}, {"done": True})),
            ("a letter", "send", screen, ("send", {**ANN, "copy": ""}, {"done": True})),
            ("a letter without a check", "send", ("send", ANN, {"done": True})),
            ("calls at once", goal, known, agent(
                wanted("find_orders", ANN, "a"), wanted("screen", ANN, "b"),
            ), result("b", FREE), result("a", {"orders": []}), refund),
            ("called with its checks", goal, known, agent(
                wanted("find_orders", ANN, "a"), wanted("screen", ANN, "b"),
                wanted("refund", refund[1], "c"),
            ), result("a", {"orders": []}), result("b", FREE), result("c", {"done": True})),
            ("no answer", goal, known, orders, order, screen,
             agent(wanted("refund", refund[1], "c"))),
            ("an unclear answer", goal, known, orders, order, screen, (*refund[:2], "declined")),
            ("closed", "close", finger, letter, closed),
            ("closed without a letter", "close", finger, closed),
            ("closed without anything", "close", closed),
            ("closed after a letter to another", "close", ("send", BOB, done), closed),
            ("unreadable arguments", goal, ("screen", "ann", FREE)),
            ("refused before anything was done", SMALL),
            ("refused in words, a small amount", SMALL, "> Sorry, I can't do that."),
            ("refused after a reply", SMALL, "> Your name?", "ann", "> Sorry, I can't do that."),
            ("refused at the password", SMALL, "> Your password?", "None", "> Sorry, I can't."),
            ("refused, and asked why", SMALL, "> Sorry, I can't do that.", "Why?"),
            ("refused after a login", SMALL, known, "> Sorry, I can't do that."),
            ("refused although all is shown", SMALL, known, orders, order, screen),
            ("refused, and asked", SMALL, known, "> Sorry, I can't.", "Why?", "> Anything else?"),
            ("refused with no further word", SMALL, known, "> I can't do that. Shall I ask?"),
        )
    }  # fmt: skip
