"""Walks through handbooks that use everything a handbook can say: mostly right, so that they come
far, with answers of every kind on the way."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

from random_walks import Walk

from sopilot.language.compiler import compile_handbook
from sopilot.language.handbook import Handbook, load_handbook
from sopilot.language.program.model import Act, Program
from sopilot.runtime.proof import license_call
from sopilot.runtime.vm import (
    JSON,
    AssistantSaid,
    Decision,
    DomainCall,
    DomainResult,
    Judge,
    Note,
    Operation,
    Return,
)
from sopilot.runtime.vm.position import locate

_DESK = """
handbook: everything
parameters: {largest: 500, free: {gold: 3}}
actions:
  login: {input: {user: string, password: {type: string, secret: true}}, changes: []}
  card_login: {input: {user: string, card: string}, changes: []}
  logout: {input: {user: string}, changes: []}
  confirm_code: {input: {user: string, code: string}}
  read_account: {input: {user: string}, requires: logged_in(user), reads: [accounts]}
  read_all: {full_state: true}
  find_case: {input: {user: string}, read_only: true}
  read_case: {input: {case_id: string}, read_only: true}
  list_cards: {input: {user: string}, reads: [cards]}
  read_card: {input: {number: number}, reads: [cards]}
  read_voucher: {input: {code: string}, not_found: result.error == 'no such voucher'}
  note_down: {input: {text: string}, read_only: true}
  freeze: {input: {user: string}, irreversible: true, changes: [accounts]}
  touch: {input: {user: string}, changes: [cards]}
  send:
    input: {user: string, to: string, amount: number, note: {type: string, required: false}}
    irreversible: true
    approval: {roles: [boss, auditor], needed: 2, expires: 1h, when: amount > 50}
    changes: [accounts]
    recheck: true
    confirm: "{amount} goes to {to}."
predicates:
  logged_in(user):
    says: The customer {user} has logged in.
    says_not: The customer {user} has not logged in.
    established_by: login(user, password)
    closed_by: logout(user)
    principal: true
    remedy: Log in with the right password.
  carded(user):
    says: The customer {user} has shown a card.
    established_by: card_login(user, card)
    principal: true
    verdict: result.verified
  second_factor(user):
    says: The customer {user} has confirmed the code.
    established_by: confirm_code(user, code)
  covered(user, amount):
    says: The account of {user} covers {amount}.
    verify: {any: [read_account(user), read_all()]}
    verdict: result.balance >= amount
    remedy: Pay in what is missing.
  case_closed(user):
    says: The case of {user} is closed.
    verify: {all: [find_case(user), read_case(find_case.case_id)]}
    verdict: results.read_case.status == 'closed'
  cards_valid(user):
    says: Every card of {user} is valid.
    verify:
      all: [list_cards(user), {call: read_card(card.number), for_each: list_cards.cards as card}]
    verdict: result.all(one, one.valid)
  related(user, to):
    says: The accounts of {user} and {to} have one owner.
    verify: {all: [{call: read_account(user), name: payer}, {call: read_all(), name: payee}]}
    verdict: results.payer.owner == results.payee.owner
  voucher_good(user):
    says: The customer {user} has a good voucher.
    verify: read_voucher(code)
    ask: code
    verdict: result.owner == user
  calm(user):
    says: Nothing in the account of {user} looks like fraud.
    verify: read_account(user)
    judged_by: model
    tells: We cannot do this at the moment.
  odd(user):
    says: Something is odd about {user}.
    verify: {any: [list_cards(user), find_case(user)]}
  small(amount, most):
    says: The amount {amount} is at most {most}.
    verify: arguments
    verdict: amount <= most
  frozen(user):
    says: The account of {user} is frozen.
    verify: read_account(user)
    verdict: result.status == 'frozen'
    tells: Please call us.
  wishes(user):
    says: The customer {user} wants it.
    verify: user
    question: Do you want it, {user}?
  was_frozen(user):
    says: The account of {user} was frozen here.
    done: freeze(user)
requirements:
  known(user): {any: [logged_in(user), carded(user)]}
procedures:
  send:
    says: Sends money to another account.
    requires:
      all:
        - in_order: [logged_in(user), second_factor(user)]
        - small(amount, largest)
        - any: [covered(user, amount), voucher_good(user)]
        - not: was_frozen(user)
        - {requires: {not: frozen(user)}, otherwise: note_down}
  send_one:
    action: send(amount=1, to=friend)
    requires: {in_order: [known(user), calm(user), {not: frozen(friend)}]}
  freeze:
    says: Freezes an account.
    requires:
      in_order:
        - {not: logged_in(user)}
        - carded(user)
        - first: [case_closed(user), cards_valid(user)]
        - {when: {not: odd(user)}, then: wishes(user)}
  touch:
    says: Touches an account.
    requires: {in_order: [related(user, user), {any: [odd(user), was_frozen(user)]}]}
  note_down: {says: Notes something down.}
"""
_POLICIES = File(__file__).parents[2] / "desks" / "policies"
BOOKS: dict[str, Handbook] = {
    "everything": load_handbook(_DESK),
    "claims": load_handbook((_POLICIES / "claims.yaml").read_text("utf-8")),
    "clinic": load_handbook((_POLICIES / "clinic.yaml").read_text("utf-8")),
}
WORLDS: dict[str, Mapping[str, Program]] = {
    name: {goal: one.program for goal, one in compile_handbook(book).items()}
    for name, book in BOOKS.items()
}
_GOOD: dict[str, Any] = {
    "balance": 120, "owner": "ann", "status": "open", "verified": True, "case_id": "k1",
    "cards": [{"number": 7}, {"number": 8}], "valid": True, "holder": "ann", "deputies": ["bob"],
    "policy": "ann", "state": "open", "held": False, "from": "2024-01-01", "until": "2027-01-01",
    "product": "health", "payments": [], "iban": "ann", "event_date": "2026-01-02", "amount": 300,
    "decided": "2026-01-10",
}  # fmt: skip
_OTHERWISE: dict[str, Any] = {
    "balance": 1, "owner": "eve", "status": "frozen", "verified": False, "case_id": None,
    "cards": [], "valid": False, "holder": "eve", "deputies": [], "policy": "eve",
    "state": "rejected", "held": True, "product": "travel", "iban": "eve",
    "payments": [{"day": "2026-02-01", "amount": 99999}],
}  # fmt: skip
_SAID = (
    "The account of ann is frozen.", "the account of ANN is  frozen, sorry", "Please call us.",
    "Nothing in the account of ann looks like fraud", "It says frozen. Please call us.",
    "Claim ann is held for suspicion of fraud.", "eve holds policy ann, or is a deputy named in it",
    "We cannot do this at the moment. 2026-01-02", "The case k1 of ann is open, 120 left.",
)  # fmt: skip


class RichWalk(Walk):
    """Of nearly everything that fits, in an order that comes far; guarded calls are held, decided
    on and licensed as a session does it, or nearly so."""

    worlds = WORLDS

    def __init__(self, rng: random.Random, name: str, judge: Judge) -> None:
        super().__init__(rng, name, judge)
        self.closed = rng.random() < 0.3
        self.slips = rng.choice((0.02, 0.08, 0.2))
        if rng.random() < 0.5:
            self.observe(Note("clock", {"now": "2026-01-15T15:00:00"}))

    def value(self, name: str) -> JSON:
        if name in ("amount", "most", "n"):
            return self.rng.choice((5, 100, 100.0))
        if name.endswith("date"):
            return "2026-01-02"
        return "ann" if self.rng.random() < 0.85 else self.rng.choice(("bob", 5))

    def observe(self, operation: Operation) -> None:
        """As the session itself says it."""
        at = float(len(self.events))
        self.take(self.machine.step(self.now, operation, at=at, actor="runtime"))

    def walk(self, steps: int) -> None:
        for _ in range(steps):
            if self.rng.random() < self.slips:
                self.do(self.anything())
                continue
            shapes = self.machine.fits(self.now)
            onward = [one for one in shapes if one["operation"] not in ("fail", "start")]
            first = [one for one in onward if one["operation"] in ("ask_user", "domain_call")]
            ahead = first if first and self.rng.random() < 0.8 else onward
            self.fitting(self.rng.choice(ahead or shapes))

    def verdict(self, holds: bool | None) -> Return:
        if self.rng.random() < 0.8:
            said = self.rng.random() < 0.8 if holds is None else holds
            return Return(said)
        return super().verdict(holds)

    def tool(self, action: str, arguments: dict[str, JSON]) -> None:
        here = locate(self.machine.programs, self.now)
        step = here.step if here is not None else None
        if here is None or not isinstance(step, Act) or not step.goal or self.rng.random() < 0.1:
            super().tool(action, arguments)
            return
        licence = license_call(self.machine.programs, here, arguments, self.judge)
        self.calls += 1
        call_id = f"c{self.calls}"
        amended = False
        if licence.missing or self.rng.random() < 0.5:
            amended = self.hold(call_id, action, arguments, licence.missing)
        told: dict[str, JSON] | None = licence.as_json()
        chance = self.rng.random()
        if chance < 0.1:
            told = {**licence.as_json(), "grade": "proven" if chance < 0.05 else "attested"}
        elif chance < 0.2:
            told = {"grade": str(licence.grade), "leaves": []} if chance < 0.15 else None
        self.do(DomainCall(call_id, action, arguments, told, amended=amended))
        if chance < 0.9:
            self.do(self.result(call_id))
        elif chance < 0.95:
            self.observe(Note("outcome_unknown", {"call_id": call_id, "action": action}))

    def hold(self, call_id: str, action: str, arguments: dict[str, JSON], why: str) -> bool:
        """People decide, in time or not; whether they changed what they were asked for."""
        rng, amended = self.rng, False
        asked: dict[str, JSON] = {"call_id": call_id, "action": action, "arguments": {**arguments}}
        awaits = "root" if rng.random() < 0.1 else "approval"
        said = why if rng.random() < 0.9 else "not sure"
        self.observe(Note("held_call", {**asked, "awaits": awaits, "why": said}))
        for who in rng.sample((("Ida", "boss"), ("Joe", "auditor"), ("ida", "handler"),
                               ("Al", "operator"), ("Sue", "controller")), 3):  # fmt: skip
            word = rng.choice(("approve", "approve", "approve", "approve", "amend", "reject"))
            changed = {**arguments}
            if word == "amend" and "amount" in changed:
                changed["amount"] = 7
            if word == "amend" and rng.random() < 0.7:
                amended = True
                arguments.update(changed)
            self.do(Decision(word, call_id, *who, changed if word == "amend" else {}))
        if rng.random() < 0.1:
            self.observe(Decision("expire", call_id))
        return amended

    def anything(self) -> Operation:
        """Also what a customer may not hear, and what only others should know."""
        if self.rng.random() < 0.3:
            return AssistantSaid(self.rng.choice(_SAID))
        return super().anything()

    def result(self, call_id: str) -> DomainResult:
        chance = self.rng.random()
        if chance < 0.08:
            broken = self.rng.random() < 0.4
            return DomainResult(call_id, False, {"error": "no such voucher"}, broken)
        answer = dict(_GOOD)
        if self.closed:
            answer["status"] = "closed"
        for name in self.rng.sample(sorted(_OTHERWISE), self.rng.choice((0, 0, 0, 1, 2))):
            answer[name] = _OTHERWISE[name]
        return DomainResult(call_id, True, answer if chance < 0.95 else None)
