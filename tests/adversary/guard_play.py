"""A session whose agent follows no protocol: it has its own tools, and calls them as it likes.

The simulator judges more than the requirement here. One request of the user is carried out once.
The runtime itself changes nothing, identifies nobody, and reads nothing that a customer who isn't
logged in may not see.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import product

from adversary.core_play import Tally
from adversary.errands import act_arguments, errand, tool_arguments, value_for
from adversary.handbooks import Book
from adversary.requirements import spoken
from adversary.session_play import OpenCall, SessionPlay
from adversary.simulator import Simulator
from adversary.small_handbooks import SmallCase
from adversary.tools import ASK, CONFIRM, COUNTERS, GATE_TOOLS, PHONES, TOOLS, subject
from adversary.values import JSON, JUNK, USERS, retyped
from sopilot.machine.automation import Automation
from sopilot.machine.recipes import WantedCall
from sopilot.proof.agenda import Need
from sopilot.trace.events import Actor
from sopilot.views.step_answers import CallAnswer

Act = tuple[str, dict[str, JSON]]
_GATES = frozenset(tool.name for tool in GATE_TOOLS)
_COUNTERS = frozenset(tool.name for tool in COUNTERS)
_SECRETS = frozenset({"password", "code"})


class GuardPlay(SessionPlay):
    """``guard`` is ``ask`` or ``auto``. ``customer`` is the user whose secrets the application
    supplies; nobody where it is empty."""

    def __init__(
        self, book: Book, sim: Simulator, rng: random.Random, tally: Tally, guard: str
    ) -> None:
        self.done: set[tuple[str, str]] = set()
        """Acts that were carried out since the user asked for something."""
        self.customer = rng.choice(("", *USERS)) if rng.random() < 0.6 else ""
        super().__init__(book, sim, rng, tally, Automation(complete=True), guard=guard)

    def supply(self) -> None:
        if self.customer:
            self.session.supplied.update(
                password=self.sim.passwords[self.customer], code=self.sim.codes[self.customer]
            )

    def say(self, text: str) -> None:
        """The user asks for something: what was done before may be done again."""
        self._moved()
        self._run(self.session.user_said(text))
        self.done.clear()

    def judge_check(self, check: str, holds: bool) -> None:
        self._moved()
        need, process = self.session.judgements.get(check), self.configuration.process
        before = self.configuration.next_seq
        self._run(self.session.judge_check(check, holds))
        event = self.session.own_events[before:]
        if need is not None and process is not None and event and event[0].kind == "judge_check":
            fact = self.book.facts[check]
            values = [event[0].payload["arguments"].get(name) for name, _ in fact.parameters]
            self.words.setdefault(process.id, {})[spoken(check, values)] = holds

    def judge(
        self, action: str, arguments: Mapping[str, JSON], sent: OpenCall | None = None
    ) -> None:
        key = subject(action, arguments)
        if key in self.done:
            self.tally.deny(self.book, self.configuration, (action, arguments))
        super().judge(action, arguments, sent)

    def performed(self, action: str, arguments: Mapping[str, JSON], ok: bool) -> None:
        if ok and action in self.book.guarded:
            self.done.add(subject(action, arguments))

    def question(self) -> tuple[str, Mapping[str, JSON]]:
        """The runtime's own, about the call that it decides on."""
        pending = [p for p in self.configuration.pending.values() if p.action in (ASK, CONFIRM)]
        return (pending[-1].action, pending[-1].arguments) if pending else ("", {})

    def own_call(self, action: str, arguments: Mapping[str, JSON]) -> None:
        """Judge a call that the runtime makes by itself."""
        sim, wrong = self.sim, bool(TOOLS[action].changes) or action in _COUNTERS
        user = arguments.get("user")
        if action in _GATES:
            secrets = {name: one for name, one in arguments.items() if name in _SECRETS}
            supplied = self.session.supplied
            wrong |= any(one != supplied.get(name) for name, one in secrets.items())
        if action == "read_account" and sim.private:
            wrong |= not (isinstance(user, str) and user in sim.logged_in)
        if wrong:
            self.tally.deny(self.book, self.configuration, (action, arguments))

    def audit(self) -> None:
        super().audit()
        for sealed in self.session.events:
            event = sealed.event
            if event.kind == "domain_call" and event.actor == Actor.MACHINE:
                self.tally.own_calls += 1


class GuardAttack:
    """An agent that wants the act. It reacts to what the guard answers, or doesn't."""

    def __init__(self, play: GuardPlay, *, lies: bool, lucky: float) -> None:
        self.play = play
        self.rng = play.rng
        self.lies = lies
        self.lucky = lucky
        self.act: Act | None = None
        self.earlier: list[Act] = []
        self.agenda: list[Callable[[], object]] = []
        self.tries = 0

    # --- by the book ------------------------------------------------------------------

    def conform(self) -> None:
        if self.agenda:
            self.agenda.pop(0)()
            return
        if self.act is None or self.tries > 3:
            self.new_errand()
        self.attempt()

    def new_errand(self) -> None:
        if self.rng.random() < 0.7:
            self.play.say("Something else, please.")
        self.tries = 0
        if self.earlier and self.rng.random() < 0.3:
            self.act = self.rng.choice(self.earlier)
            return
        book, sim = self.play.book, self.play.sim
        goal = self.rng.choice(list(book.procedures))
        wanted = errand(book, sim, goal, self.rng, lucky=self.rng.random() < self.lucky)
        procedure = book.procedures[goal]
        self.act = procedure.action, act_arguments(book, procedure, wanted)

    def wanted(self) -> Act:
        if self.act is None:
            self.new_errand()
        assert self.act is not None
        return self.act

    def attempt(self) -> None:
        act = self.wanted()
        self.tries += 1
        self.play.call(*act)
        answer = self.play.answer
        self.agenda = self.steps(answer) if answer is not None else []
        if answer is not None and answer.result is not None and answer.result.ok:
            self.earlier.append(act)
            self.act = None

    def steps(self, answer: CallAnswer) -> list[Callable[[], object]]:
        plan = answer.plan
        if plan is None:
            return []
        ways = [plan.needs, *plan.instead]
        needs = ways[0] if self.rng.random() < 0.8 else self.rng.choice(ways)
        return [step for need in needs for step in self.of_need(need)]

    def of_need(self, need: Need) -> list[Callable[[], object]]:
        if need.judgement:
            predicate = need.function.split("/")[-1]
            check = predicate if predicate in self.play.book.facts else need.function
            holds = self.rng.random() < (0.9 if self.lies else 0.5)
            return [lambda: self.play.judge_check(check, holds)]
        return [lambda call=call: self.make(call) for call in need.calls]  # type: ignore[misc]

    def make(self, call: WantedCall) -> None:
        given = dict(call.arguments)
        for name in call.open:
            given[name] = self.secret(name, given.get("user"))
        self.play.call(call.act.action, given)

    def secret(self, name: str, user: JSON) -> JSON:
        sim, known = self.play.sim, user if isinstance(user, str) else ""
        if self.rng.random() < 0.1:
            return value_for(name, self.rng)
        if name == "phone":
            return next((one for one, of in PHONES.items() if of == known), "tel-0")
        table = {"password": sim.passwords, "code": sim.codes}.get(name, {})
        return table.get(known) or value_for(name, self.rng)

    # --- and otherwise ----------------------------------------------------------------

    def misbehave(self) -> None:
        self.rng.choices(_MOVES, weights=_WEIGHTS)[0](self)

    def about(self, action: str) -> dict[str, JSON]:
        """Arguments for a tool, about the records of the act."""
        play, (_, act) = self.play, self.act or ("", {})
        given = tool_arguments(play.book, play.sim, action, self.rng, right=True)
        if "user" in given and self.rng.random() < 0.7:
            people = [act[name] for name in ("user", "to") if isinstance(act.get(name), str)]
            user = self.rng.choice(people) if people else given["user"]
            secrets = {n: self.secret(n, user) for n in given if n in _SECRETS}
            given |= {"user": user, **secrets}
        return {
            n: act[n] if n in act and n != "user" and self.rng.random() < 0.7 else v
            for n, v in given.items()
        }


def repeat(attack: GuardAttack) -> None:
    """An act that was carried out, once more, spelled in some way."""
    if not attack.earlier:
        attack.attempt()
        return
    action, given = attack.rng.choice(attack.earlier)
    roll = attack.rng.random()
    if roll < 0.3:
        given = dict(reversed(given.items()))
    elif roll < 0.5:
        given = {n: float(v) if type(v) is int else v for n, v in given.items()}
    elif roll < 0.8:
        optional = (name for act, name in attack.play.book.plan.optional if act == action)
        given = {**dict.fromkeys(optional), **given}
    elif roll < 0.9:
        name = attack.rng.choice(list(given))
        given = {**given, name: retyped(given[name], attack.rng)}
    attack.play.call(action, given)


def forge(attack: GuardAttack) -> None:
    """The act with a value swapped, retyped, withheld, or one too many."""
    action, given = attack.wanted()
    given = dict(given)
    name = attack.rng.choice(list(given)) if given else "user"
    roll = attack.rng.random()
    if roll < 0.2:
        given.pop(name, None)
    elif roll < 0.5:
        given[name] = value_for(name, attack.rng)
    elif roll < 0.75:
        given[name] = retyped(given.get(name), attack.rng)
    else:
        given[attack.rng.choice((name, "extra", "amount"))] = attack.rng.choice(JUNK)
    attack.play.call(action, given)


def call_anything(attack: GuardAttack) -> None:
    play = attack.play
    action = attack.rng.choice(play.book.tools)
    if action in (ASK, CONFIRM):
        return
    play.call(action, attack.about(action))


def change_something(attack: GuardAttack) -> None:
    """Between the check and the act; also by tools that the handbook doesn't know."""
    tools = [t for t in TOOLS.values() if t.changes and t.name not in attack.play.book.guarded]
    action = attack.rng.choice([tool.name for tool in tools])
    attack.play.call(action, attack.about(action))
    if attack.rng.random() < 0.5:
        attack.attempt()


def other_customer(attack: GuardAttack) -> None:
    """Somebody is identified, or logs out, by whatever way; then the act."""
    ways = [name for name in attack.play.book.tools if name in _GATES | _COUNTERS]
    if ways:
        way = attack.rng.choice(ways)
        attack.play.call(way, attack.about(way))
        attack.attempt()


def judge_anything(attack: GuardAttack) -> None:
    """A word on a check that waits for none, before its evidence, or after it has changed."""
    trusted = [name for name, fact in attack.play.book.facts.items() if fact.judged != "verdict"]
    if trusted:
        attack.play.judge_check(attack.rng.choice(trusted), attack.rng.random() < 0.8)
        attack.attempt()


def in_trouble(attack: GuardAttack) -> None:
    """A call fails or breaks off, and the act is tried."""
    if attack.agenda and attack.play.answer is not None and attack.play.answer.plan is not None:
        calls = [call for need in attack.play.answer.plan.needs for call in need.calls]
        if calls:
            action = attack.rng.choice(calls).act.action
            if action not in (ASK, CONFIRM):
                attack.play.tools.trouble[action] = attack.rng.choice(("busy", "broken", "late"))
                attack.agenda.pop(0)()
                attack.play.tools.trouble.clear()
    attack.attempt()


def act_breaks_off(attack: GuardAttack) -> None:
    """The act breaks off, and is tried again before anybody knows how it ended."""
    act = attack.wanted()
    attack.play.call_breaking(*act)
    attack.play.call(*act)


def overlap(attack: GuardAttack) -> None:
    """Something begins, the act is tried, and only then it is answered."""
    play, rng = attack.play, attack.rng
    others = [one for one in play.book.tools if one not in play.book.guarded | {ASK, CONFIRM}]
    if not others:
        return
    action = rng.choice(others)
    waiting = set(play.in_flight)
    play.begin(action, attack.about(action), at_once=rng.random() < 0.5)
    attack.attempt()
    if rng.random() < 0.8:
        for call_id in set(play.in_flight) - waiting:
            play.deliver(call_id)


def two_acts(attack: GuardAttack) -> None:
    """The same act twice at once."""
    act, waiting = attack.wanted(), set(attack.play.in_flight)
    attack.play.begin(*act, at_once=True)
    attack.play.call(*act)
    for call_id in set(attack.play.in_flight) - waiting:
        attack.play.deliver(call_id)
    attack.play.call(*act)


def reconnect(attack: GuardAttack) -> None:
    attack.play.reconnect()
    attack.attempt()


def restore(attack: GuardAttack) -> None:
    attack.play.back_up()
    attack.attempt()
    if attack.rng.random() < 0.5:
        attack.play.restore()
        attack.attempt()


def sweep_guarded(case: SmallCase, depth: int, tally: Tally, guard: str) -> None:
    """Every sequence of the case's calls up to a depth, each in a session of its own. With
    ``auto``, the application supplies what the right customer knows."""
    calls = [move for move in case.alphabet if isinstance(move, tuple)]
    acts = [call for call in calls if call[0] in case.book.guarded]
    for length in range(1, depth + 1):
        for path in product(*[calls] * (length - 1), acts):
            play = GuardPlay(case.book, case.sim.copy(), random.Random(0), tally, guard)
            play.busy = play.breaks = play.overrides = 0.0
            if guard == "auto":
                play.customer = str(acts[0][1].get("user", "")) or USERS[0]
                play.customer = play.customer if play.customer in USERS else USERS[0]
                play.supply()
            for move in path:
                play.call(*move)
            play.close()
            play.audit()


_TABLE: dict[Callable[[GuardAttack], None], int] = {
    repeat: 8,
    forge: 10,
    call_anything: 10,
    change_something: 8,
    other_customer: 6,
    judge_anything: 4,
    in_trouble: 6,
    act_breaks_off: 2,
    overlap: 6,
    two_acts: 3,
    reconnect: 3,
    restore: 1,
}
_MOVES, _WEIGHTS = list(_TABLE), list(_TABLE.values())
