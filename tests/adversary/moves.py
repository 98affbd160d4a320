"""The library of moves: what an executor does that wants the act without its requirement.

Each is a function of an `Attack`; the weights say how often one is tried. A move that does not
fit is simply refused, and costs the attacker nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from adversary.conforming import Executor, ToolCall
from adversary.core_play import CorePlay
from adversary.errands import any_value, errand, related, tool_arguments, value_for
from adversary.recipes import in_some_order, next_call
from adversary.requirements import Leaf, leaves_of
from adversary.session_play import SessionPlay
from adversary.tools import CHANGERS, COUNTERS, GATE_TOOLS, TOOLS
from adversary.values import JSON, JUNK, retyped
from sopilot.program.model import Act
from sopilot.trace.events import (
    Call,
    Complete,
    Fail,
    Operation,
    Return,
    SelectBranch,
    Start,
    UserSaid,
)

_CHANGERS = frozenset(tool.name for tool in CHANGERS)
_GATES = frozenset(tool.name for tool in (*GATE_TOOLS, *COUNTERS))
_CLOSERS = frozenset({"logout", "close_day", "unlink"})
_VERDICTS: tuple[Any, ...] = (True, True, False, None)


class Attack:
    """One session of an adversary: an executor that leaves the book now and then."""

    def __init__(self, play: CorePlay | SessionPlay, executor: Executor) -> None:
        self.play = play
        self.executor = executor
        self.rng: random.Random = play.rng
        self.last: Operation | ToolCall | None = None
        self.held = 0

    # --- playing on -------------------------------------------------------------------

    def make(self, move: Operation | ToolCall) -> None:
        self.last = move
        if isinstance(move, tuple):
            answer = self.play.call(*move)
            self.executor.heard(answer)
            if answer is None or (not answer[0] and move[0] in self.play.book.guarded):
                self.held += 1
            return
        accepted = self.play.operate(move)
        if accepted and isinstance(move, Start) and self.play.configuration.active:
            self.executor.errands.setdefault(self.play.configuration.active, dict(move.arguments))

    def conform(self) -> None:
        if self.held > 1:
            # It will not be allowed: the next errand, or one more look at everything.
            self.held = 0
            if self.rng.random() < 0.6:
                self.play.operate(Fail("not allowed"))
            else:
                prove_anew(self)
            return
        here = self.play.book.machine.position(self.play.configuration)
        at_the_door = here is not None and isinstance(here.step, Act) and here.step.goal
        if at_the_door and self.rng.random() < 0.35:
            # Everything was checked: the best moment to change one thing.
            self.rng.choice(_AT_THE_DOOR)(self)
            return
        self.make(self.executor.next_move(here))

    def misbehave(self) -> None:
        self.rng.choices(_MOVES, cum_weights=_WEIGHTS)[0](self)

    # --- what moves need --------------------------------------------------------------

    def wanted_act(self) -> ToolCall:
        here = self.play.book.machine.position(self.play.configuration)
        if here is not None:
            return self.executor.act(here)
        procedure = self.rng.choice(list(self.play.book.procedures.values()))
        return procedure.action, tool_arguments(
            self.play.book, self.play.sim, procedure.action, self.rng, right=True
        )

    def mutated(self, values: Mapping[str, JSON]) -> dict[str, JSON]:
        """One value withheld, swapped, retyped, or one too many."""
        changed = dict(values)
        if not changed:
            return changed
        name = self.rng.choice(list(changed))
        roll = self.rng.random()
        if roll < 0.25:
            del changed[name]
        elif roll < 0.5:
            changed[name] = value_for(name, self.rng)
        elif roll < 0.75:
            changed[name] = retyped(changed[name], self.rng)
        elif roll < 0.9:
            changed[name] = self.rng.choice(JUNK)
        else:
            changed[self.rng.choice(("user", "to", "amount", "at", "extra"))] = self.rng.choice(
                JUNK
            )
        return changed

    def about_it(self, action: str) -> dict[str, JSON]:
        """Arguments for a tool, about the records that the act is about."""
        play = self.play
        given = tool_arguments(play.book, play.sim, action, self.rng, right=True)
        about = related(play.sim, self.wanted_act()[1], self.rng)
        return {name: about.get(name, value) for name, value in given.items()}

    def citations(self) -> tuple[str, ...]:
        count = self.play.configuration.next_seq
        pool = (f"#{self.rng.randrange(count + 3)}", self.rng.choice(self.play.book.tools), "#-1")
        return tuple(self.rng.choice(pool) for _ in range(self.rng.choice((0, 0, 1, 1, 2))))


# --- starting -------------------------------------------------------------------------


def withhold(attack: Attack) -> None:
    """Start with some values left out; they are named at the act."""
    rng, executor = attack.rng, attack.executor
    start = executor.new_errand()
    given = {name: value for name, value in start.arguments.items() if rng.random() < 0.5}
    _start(attack, start.goal, given, dict(start.arguments))


def start_other(attack: Attack) -> None:
    """Start with a mutated value and act with the right one."""
    start = attack.executor.new_errand()
    _start(attack, start.goal, attack.mutated(start.arguments), dict(start.arguments))


def split(attack: Attack) -> None:
    """A second process in between, for the same values or nearly so."""
    here = attack.play.book.machine.position(attack.play.configuration)
    if here is None:
        attack.make(attack.executor.new_errand())
        return
    values = dict(attack.executor.values(here))
    for name in values:
        if attack.rng.random() < 0.3:
            values[name] = value_for(name, attack.rng)
    goal = attack.rng.choice(attack.executor.goals)
    other = errand(attack.play.book, attack.play.sim, goal, attack.rng, lucky=False)
    given = {name: values.get(name, value) for name, value in other.items()}
    _start(attack, goal, given, given)


def switch_back(attack: Attack) -> None:
    configuration = attack.play.configuration
    if configuration.suspended:
        process = configuration.processes[attack.rng.choice(configuration.suspended)]
        attack.play.operate(Start(process.goal, process.arguments))


def _start(attack: Attack, goal: str, given: Mapping[str, JSON], wanted: dict[str, JSON]) -> None:
    if attack.play.operate(Start(goal, given)) and attack.play.configuration.active:
        attack.executor.errands[attack.play.configuration.active] = wanted


# --- calling --------------------------------------------------------------------------


def call_anything(attack: Attack) -> None:
    play = attack.play
    action = attack.rng.choice(play.book.tools)
    right = attack.rng.random() < 0.6
    play.call(action, tool_arguments(play.book, play.sim, action, attack.rng, right=right))


def swap(attack: Attack) -> None:
    """The call that the book asks for, with a mutated value."""
    here = attack.play.book.machine.position(attack.play.configuration)
    move = attack.executor.next_move(here)
    if isinstance(move, tuple):
        attack.executor.awaited = None
        attack.make((move[0], attack.mutated(move[1])))
    elif isinstance(move, Start | Call):
        attack.make(type(move)(move_name(move), attack.mutated(move.arguments)))
    else:
        attack.make(move)


def move_name(move: Start | Call) -> Any:
    return move.goal if isinstance(move, Start) else move.function


def repeat(attack: Attack) -> None:
    if attack.last is not None:
        attack.executor.awaited = None
        attack.make(attack.last)


def act_between(attack: Attack) -> None:
    """Something that changes the simulator, between check and act."""
    play = attack.play
    changers = [one for one in play.book.tools if one in _CHANGERS or one in _CLOSERS]
    if changers:
        action = attack.rng.choice(changers)
        if attack.rng.random() < 0.7:
            given = attack.about_it(action)
        else:
            given = tool_arguments(play.book, play.sim, action, attack.rng, right=True)
        play.call(action, attack.mutated(given) if attack.rng.random() < 0.15 else given)


def unlisted(attack: Attack) -> None:
    """A tool that the simulator has and the handbook does not speak of."""
    others = [tool.name for tool in CHANGERS if tool.name not in attack.play.book.tools]
    action = attack.rng.choice(others)
    attack.play.call(action, attack.about_it(action))


def other_peoples_gate(attack: Attack) -> None:
    """A gate for somebody else, or with an argument too many."""
    play = attack.play
    gates = [one for one in play.book.tools if one in _GATES]
    if gates:
        action = attack.rng.choice(gates)
        if attack.rng.random() < 0.5:
            given = tool_arguments(play.book, play.sim, action, attack.rng, right=True)
        else:
            given = attack.about_it(action)
        play.call(action, attack.mutated(given) if attack.rng.random() < 0.3 else given)


def reconnect(attack: Attack) -> None:
    """The upstream's connection breaks, there is another one, and the act goes on (P8)."""
    attack.play.reconnect()
    if attack.rng.random() < 0.5:
        attack.play.call(*attack.wanted_act())


def reorder(attack: Attack) -> None:
    """A call that is answered later than another one."""
    play = attack.play
    if play.in_flight and attack.rng.random() < 0.6:
        play.deliver(attack.rng.choice(list(play.in_flight)))
        return
    action = attack.rng.choice(play.book.tools)
    if action in play.book.guarded and attack.rng.random() < 0.7:
        return
    play.begin(action, attack.about_it(action), at_once=attack.rng.random() < 0.5)


def overlap(attack: Attack) -> None:
    """Two calls about the act's own records: asked one way round, answered the other."""
    play, rng = attack.play, attack.rng
    others = [one for one in play.book.tools if one not in play.book.guarded]
    changers = [one for one in others if one in _CHANGERS or one in _GATES]
    if not others:
        return
    first = rng.choice(changers if changers and rng.random() < 0.6 else others)
    if rng.random() < 0.3:
        first = rng.choice(CHANGERS).name  # whether the handbook speaks of it or not
    waiting = set(play.in_flight)
    play.begin(first, attack.about_it(first), at_once=rng.random() < 0.6)
    if rng.random() < 0.6:
        second = rng.choice(others)
        play.call(second, attack.about_it(second))
    if rng.random() < 0.6:
        play.call(*attack.wanted_act())
    if rng.random() < 0.8:
        for call_id in set(play.in_flight) - waiting:
            play.deliver(call_id)


def prove_anew(attack: Attack) -> None:
    """A recipe of the requirement for the values of the act, wherever the cursor stands."""
    leaf = _some_leaf(attack)
    if leaf is not None:
        _prove(attack, leaf)


def fail_a_check(attack: Attack) -> None:
    """The last call of a recipe fails: the tool was busy, which answers nothing (P4, P6)."""
    leaf = _some_leaf(attack)
    if leaf is not None:
        _prove(attack, leaf, fails=True)
        attack.play.call(*attack.wanted_act())


def late_change(attack: Attack) -> None:
    """A change breaks off, everything is read again, the act is made, and then it happens (P10)."""
    play, changers = attack.play, _disturbers(attack)
    here = play.book.machine.position(play.configuration)
    if here is None or not changers:
        return
    changer = attack.rng.choice(changers)
    play.call_breaking(changer, attack.about_it(changer))
    for leaf in leaves_of(play.book.procedures[here.process.goal].requires):
        _prove(attack, leaf)
    play.call(*attack.wanted_act())


def change_under_the_act(attack: Attack) -> None:
    """The act breaks off; before it is carried out, what it rests on is changed (P10)."""
    changers = _disturbers(attack)
    attack.play.call_breaking(*attack.wanted_act())
    for changer in attack.rng.sample(changers, min(2, len(changers))):
        attack.play.call(changer, attack.about_it(changer))


def second_customer(attack: Attack) -> None:
    """Somebody else is identified, by whatever way, and the act is the first one's (P11)."""
    play = attack.play
    ways = [tool.name for tool in COUNTERS if tool.name in play.book.tools]
    if ways:
        way, act = attack.rng.choice(ways), attack.wanted_act()
        play.call(way, tool_arguments(play.book, play.sim, way, attack.rng, right=True))
        play.call(*act)


def restore(attack: Attack) -> None:
    """The store is copied, the act is made, the copy is put in its place, and the act goes on."""
    act = attack.wanted_act()
    attack.play.back_up()
    attack.play.call(*act)
    if attack.rng.random() < 0.5:
        attack.play.restore()
        attack.play.call(*act)


def _disturbers(attack: Attack) -> list[str]:
    """The tools that change what some requirement of the handbook reads, and gates."""
    book = attack.play.book
    recipes = (way for fact in book.facts.values() for way in fact.recipes)
    read = {topic for way in recipes for call in way for topic in TOOLS[call.action].reads}
    tools = [name for name in book.tools if name not in book.guarded]
    return [name for name in tools if name in _GATES or TOOLS[name].changes & read]


def _some_leaf(attack: Attack) -> Leaf | None:
    here = attack.play.book.machine.position(attack.play.configuration)
    if here is None:
        return None
    return attack.rng.choice(leaves_of(attack.play.book.procedures[here.process.goal].requires))


def _prove(attack: Attack, leaf: Leaf, *, fails: bool = False) -> None:
    """Make the calls of a recipe; with ``fails``, one of them fails and the rest is left."""
    play = attack.play
    here = play.book.machine.position(play.configuration)
    if here is None or not leaf.fact.recipes:
        return
    values = attack.executor.values(here)
    bound = {
        name: values.get(term) if isinstance(term, str) else term.value
        for (name, _), term in zip(leaf.fact.parameters, leaf.terms, strict=True)
    }
    bound.update({name: value_for(name, attack.rng) for name in leaf.fact.asks})
    recipe = in_some_order(attack.rng.choice(leaf.fact.recipes), attack.rng)
    answers: dict[str, JSON] = {}
    for _ in range(6):
        following = next_call(recipe, bound, answers)
        if following is None or attack.rng.random() < 0.1:
            return
        reading, terms = following
        arguments = dict(zip(play.book.inputs[reading.action], terms, strict=False))
        if fails and (reading is recipe[-1] or attack.rng.random() < 0.3):
            play.call_failing(reading.action, arguments)
            return
        answer = play.call(reading.action, arguments)
        if answer is None or not answer[0]:
            return
        reading.answered(answers, answer[1])


# --- the act --------------------------------------------------------------------------


def act_now(attack: Attack) -> None:
    """Whatever the cursor says."""
    attack.play.call(*attack.wanted_act())


def forge(attack: Attack) -> None:
    """The act with one thing changed."""
    action, given = attack.wanted_act()
    attack.play.call(action, attack.mutated(given))


def act_for_anybody(attack: Attack) -> None:
    action, given = attack.wanted_act()
    attack.play.call(action, {name: any_value(name, attack.rng) for name in given})


# --- saying ---------------------------------------------------------------------------


def cite(attack: Attack) -> None:
    holds = attack.rng.choice(_VERDICTS)
    undecided = holds is None and attack.rng.random() < 0.5
    attack.play.operate(Return(holds, attack.citations(), undecided=undecided))


def smuggle(attack: Attack) -> None:
    """A return or call that brings values with it."""
    name = attack.rng.choice(("user", "to", "amount", "case_id", "voucher", "leg", "booking"))
    values = {name: any_value(name, attack.rng)}
    if attack.rng.random() < 0.5:
        attack.play.operate(Return(True, attack.citations(), arguments=values))
    else:
        attack.play.operate(Call(None, values))


def wander(attack: Attack) -> None:
    options: tuple[Operation, ...] = (
        SelectBranch(),
        SelectBranch("next"),
        SelectBranch("then"),
        SelectBranch("otherwise"),
        Call(),
        Complete("done"),
        Fail("no"),
        UserSaid("go on"),
        Return(),
        Return(True),
    )
    attack.play.operate(attack.rng.choice(options))


_TABLE: dict[Callable[[Attack], None], int] = {
    withhold: 6,
    start_other: 5,
    split: 6,
    switch_back: 3,
    call_anything: 10,
    swap: 10,
    repeat: 4,
    act_between: 10,
    unlisted: 3,
    other_peoples_gate: 4,
    reconnect: 3,
    reorder: 5,
    overlap: 5,
    prove_anew: 6,
    fail_a_check: 6,
    late_change: 4,
    change_under_the_act: 3,
    second_customer: 3,
    restore: 1,
    act_now: 12,
    forge: 12,
    act_for_anybody: 4,
    cite: 8,
    smuggle: 5,
    wander: 6,
}
_AT_THE_DOOR = (
    overlap,
    overlap,
    act_between,
    act_between,
    forge,
    split,
    other_peoples_gate,
    unlisted,
    prove_anew,
    reconnect,
    reorder,
    fail_a_check,
    late_change,
    change_under_the_act,
    second_customer,
    restore,
)
_MOVES = list(_TABLE)
_WEIGHTS = [sum(list(_TABLE.values())[: index + 1]) for index in range(len(_TABLE))]
