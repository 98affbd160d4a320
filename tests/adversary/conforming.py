"""An executor that plays by the book, but for its words: it may say what opens the way."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Protocol

from adversary.errands import act_arguments, asked_about, computed_amount, errand
from adversary.facts import truth_of
from adversary.handbooks import Book
from adversary.recipes import Reading, Recipe, in_some_order, next_call
from adversary.simulator import Simulator
from adversary.tools import CONFIRM, PHONES
from adversary.values import JSON
from sopilot.handbook.requirements import Constant
from sopilot.machine.layout import Position
from sopilot.program.model import (
    Act,
    Ask,
    Branch,
    Check,
    CompleteStep,
    Do,
    FailStep,
    Kind,
    ReturnStep,
)
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

ToolCall = tuple[str, dict[str, JSON]]
Move = Operation | ToolCall


class Scene(Protocol):
    """What an executor sees: nothing of the guard."""

    book: Book
    sim: Simulator


class Executor:
    """``lies``: returns whatever side leads on, not what is so."""

    def __init__(self, scene: Scene, rng: random.Random, *, lies: bool, lucky: float) -> None:
        self.scene = scene
        self.rng = rng
        self.lies = lies
        self.lucky = lucky
        self.goals = tuple(scene.book.procedures)
        self.errands: dict[str, dict[str, JSON]] = {}
        """Process → what its user wants."""
        self.notes: dict[int, tuple[Recipe, dict[str, JSON]]] = {}
        """Frame → the recipe it follows, and the answers so far."""
        self.awaited: tuple[int, Reading] | None = None
        self.given_up: set[int] = set()
        self.asks = any(fact.question for fact in scene.book.facts.values())
        self.latest: Start | None = None

    # --- what is wanted ---------------------------------------------------------------

    def new_errand(self) -> Start:
        """Where the user was asked something, often the same once more: the answer is there."""
        if self.asks and self.latest is not None and self.rng.random() < 0.4:
            return self.latest
        self.latest = self._other_errand()
        return self.latest

    def _other_errand(self) -> Start:
        goal = self.rng.choice(self.goals)
        lucky = self.rng.random() < self.lucky
        wanted = errand(self.scene.book, self.scene.sim, goal, self.rng, lucky=lucky)
        if self.scene.book.procedures[goal].computed:
            wanted.pop("amount", None)
        return Start(goal, {name: value for name, value in wanted.items() if value is not None})

    def values(self, here: Position) -> Mapping[str, JSON]:
        """The values of the process: as started, and what only the user knew."""
        process = here.process
        known = self.errands.get(process.id)
        if known is None:
            made = errand(self.scene.book, self.scene.sim, process.goal, self.rng, lucky=False)
            known = self.errands[process.id] = {**made, **process.frames[0].locals}
        return known

    def act(self, here: Position) -> ToolCall:
        procedure = self.scene.book.procedures[here.process.goal]
        values = dict(self.values(here))
        if procedure.computed:
            own = here.process.known.get("amount")
            fresh = computed_amount(self.scene.sim, values.get("user"))
            values["amount"] = fresh if own is None else own
        return procedure.action, act_arguments(self.scene.book, procedure, values)

    # --- the next move ----------------------------------------------------------------

    def next_move(self, here: Position | None) -> Move:
        self.awaited = None
        if here is None:
            return self.new_errand()
        step = here.step
        if isinstance(step, Check):
            return Call(None, self._missing(here, step))
        if isinstance(step, Branch):
            return SelectBranch()
        if isinstance(step, Ask):
            return UserSaid("here you are")
        if isinstance(step, Act):
            return self._verify(here) if here.layout.soft else self.act(here)
        if isinstance(step, ReturnStep):
            if here.layout.function.kind is Kind.GROUP:
                return Return()
            return self.verdict(here)
        if isinstance(step, CompleteStep):
            return Complete("done")
        if isinstance(step, FailStep):
            return Fail("refused")
        assert isinstance(step, Do)
        return SelectBranch("next")

    def _missing(self, here: Position, step: Check) -> dict[str, JSON]:
        locals_ = here.frame.locals
        wanted = {
            parameter: self.values(here).get(term.name)
            for parameter, term in step.arguments
            if not isinstance(term, Constant) and term.name not in locals_
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def _verify(self, here: Position) -> Move:
        function = here.layout.function
        opened, values = here.frame.opened, dict(here.frame.locals)
        if opened in self.given_up:
            return self.verdict(here)
        sim = self.scene.sim
        if function.kind is Kind.GATE:
            self.given_up.add(opened)
            user = values.get("user")
            known = user if isinstance(user, str) else ""
            fact = self.scene.book.facts[function.predicate or ""]
            action = fact.opened_by.split("(")[0]
            secrets = {
                "password": sim.passwords.get(known, ""),
                "code": sim.codes.get(known, ""),
                "phone": next((one for one, user in PHONES.items() if user == known), ""),
            }
            inputs = self.scene.book.inputs[action]
            return action, {name: values.get(name, secrets.get(name)) for name in inputs}
        if function.predicate not in self.scene.book.facts:
            return self._made(here)
        fact = self.scene.book.facts[function.predicate or ""]
        if fact.question and self.lies and self.rng.random() < 0.5:
            # It says what the user said, and asks nobody.
            self.given_up.add(opened)
            return self.verdict(here)
        if opened not in self.notes:
            recipe = in_some_order(self.rng.choice(fact.recipes), self.rng)
            self.notes[opened] = (recipe, {})
        recipe, answers = self.notes[opened]
        for name in fact.asks:
            values.setdefault(name, self._asked(values))
        found = next_call(recipe, values, answers)
        if found is None:
            self.given_up.add(opened)
            return self.verdict(here)
        reading, given = found
        self.awaited = (opened, reading)
        inputs = self.scene.book.inputs[reading.action]
        return reading.action, dict(zip(inputs, given, strict=False))

    def _made(self, here: Position) -> Move:
        """What the procedure itself makes: its computed amount, its confirmation."""
        self.given_up.add(here.frame.opened)
        procedure = self.scene.book.procedures[here.process.goal]
        if here.layout.function.computes:
            return "read_account", {"user": here.frame.locals.get("user")}
        _, arguments = self.act(here)
        return CONFIRM, asked_about(self.scene.book, procedure, arguments)

    def _asked(self, values: Mapping[str, JSON]) -> JSON:
        """The voucher that the user would show: a good one if there is any."""
        mine = [
            name
            for name, voucher in self.scene.sim.vouchers.items()
            if voucher["owner"] == values.get("user") and voucher["worth"] >= 10
        ]
        return mine[0] if mine else "gift-1"

    def heard(self, answer: tuple[bool, JSON] | None) -> None:
        """The answer to the last move, if that was a call of a recipe."""
        if self.awaited is None:
            return
        opened, reading = self.awaited
        self.awaited = None
        if answer is None or not answer[0]:
            self.given_up.add(opened)
        else:
            reading.answered(self.notes[opened][1], answer[1])

    def verdict(self, here: Position) -> Return:
        frames = here.process.frames
        if here.layout.function.computes:
            amount = computed_amount(self.scene.sim, here.frame.locals.get("user"))
            return Return(True, arguments={"amount": amount})
        if self.lies and len(frames) > 1:
            caller = here.program.functions[frames[-2].function].steps[frames[-2].cursor]
            if isinstance(caller, Check):
                return Return(caller.wanted)
        fact = self.scene.book.facts.get(here.layout.function.predicate or "")
        if fact is None:
            return Return(False)
        values = tuple(here.frame.locals.get(name) for name, _ in fact.parameters)
        return said(truth_of(fact, self.scene.sim, values))


def said(truth: bool | None) -> Return:
    """The return that says so."""
    return Return(None, undecided=True) if truth is None else Return(truth)
