"""A session as it is used: store, ledger, people who approve, tools that break off."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from adversary.core_play import BUSY, Tally, connected, remember_word
from adversary.errands import value_for
from adversary.handbooks import Book
from adversary.simulator import Simulator
from adversary.tools import ASK, CHANGERS, CONFIRM, DENIALS, iso, perform, user_says
from adversary.values import JSON, is_number
from sopilot.machine.automation import Automation
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.state import Configuration
from sopilot.messages.errors import UserMistake
from sopilot.protocols import ToolResult, ToolSchema, UpstreamConnection
from sopilot.records.store import Settings
from sopilot.session.fence import fence_store
from sopilot.session.opening import open_session, resume_session
from sopilot.session.questions import UserAnswer
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import Actor, Operation, Return
from sopilot.views.step_answers import CallAnswer, CallStatus

T = TypeVar("T")
FEE = 9
"""What a tool charges if nobody names a fee."""
LATE = 0.12
"""How often a call that broke off is carried out, or is known not to be, between two moves."""


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        self.time += 0.001
        return self.time


class OpenCall:
    """A call that broke off. Of the moment in which it was sent it has the errand, what was said
    and the time; the records are those of the moment in which it is carried out."""

    def __init__(
        self, ok: bool | None, action: str, arguments: Mapping[str, JSON], play: SessionPlay
    ) -> None:
        self.ok, self.action, self.arguments = ok, action, arguments
        self.configuration = play.configuration
        self.words = {process: dict(said) for process, said in play.words.items()}
        self._sent = play.sim.copy()
        self.connection = play.sim.connection
        self.excused = play.is_excused(action, arguments)

    def sim(self, now: Simulator) -> Simulator:
        then = now.copy()
        names = ["consents", "said", "time"]
        if now.connection != self.connection:  # it was sent on that one, and is carried out there
            names += ["logged_in", "factors", "served", "ways"]
        for name in names:
            setattr(then, name, getattr(self._sent, name))
        return then


class SimulatorTools:
    """The simulator behind a session's tools, and its judgement on every guarded call it gets."""

    def __init__(self, play: SessionPlay) -> None:
        self.play = play
        self.delayed: tuple[str, bool] | None = None
        """The next call of this action waits for delivery; whether the simulator acts first."""
        self.waiting: list[asyncio.Event] = []
        self.open: dict[str, OpenCall] = {}
        """Calls that broke off: whether they were carried out, ``None`` while they may be."""
        self.trouble: dict[str, str] = {}
        """Action → what happens to its next call: ``busy``, ``broken`` or ``late``."""

    def schemas(self) -> Sequence[ToolSchema]:
        """The tools fill in a fee by themselves, which the simulator then charges (P12)."""
        fee: dict[str, JSON] = {"type": "number", "default": FEE}
        return [
            ToolSchema(action, "", {"type": "object", "properties": {"fee": fee}})
            for action, inputs in self.play.book.inputs.items()
            if "fee" in inputs
        ]

    async def connections(self, name: str) -> Sequence[UpstreamConnection]:
        about = connected(self.play.sim)
        return [UpstreamConnection(about["upstream"], about["connection"], about["actions"])]

    async def call_on(
        self, connection: str, name: str, arguments: Mapping[str, JSON], *, key: str
    ) -> ToolResult:
        if connection != str(self.play.sim.connection):
            return ToolResult(False, {"error": "not called"})
        return await self.call(name, arguments, key=key)

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        play = self.play
        connection = play.sim.connection
        trouble = self.trouble.pop(name, "")
        if "fee" in play.book.inputs.get(name, ()):
            arguments = {"fee": FEE, **arguments}
        if trouble == "late" or (play.breaks and play.rng.random() < play.breaks / 2):
            self.open[key.rpartition(":")[0]] = OpenCall(None, name, arguments, play)
            raise ConnectionError("broke off; it may be carried out later")
        if name in play.book.guarded:
            play.judge(name, arguments)
        elif play.session.own_events[-1].actor == Actor.MACHINE:
            play.own_call(name, arguments)
        answer = None
        if self.delayed is not None and self.delayed[0] == name:
            at_once = self.delayed[1] or name in play.book.guarded
            self.delayed = None
            answer = self._perform(name, arguments) if at_once else None
            delivered = asyncio.Event()
            self.waiting.append(delivered)
            play.reached.set()
            await delivered.wait()
        if trouble == "busy":
            return ToolResult(*BUSY)
        ok, value = answer or self._perform(name, arguments, connection)
        if trouble == "broken" or (play.breaks and play.rng.random() < play.breaks / 2):
            took_effect = ok and (ok, value) not in DENIALS
            self.open[key.rpartition(":")[0]] = OpenCall(took_effect, name, arguments, play)
            raise ConnectionError("broke off")
        return ToolResult(ok, value)

    def carry_out_late(self, call_id: str) -> bool:
        """Whether it was carried out in the end: some are, at any later moment. ``call_id``
        begins with the session's."""
        call, play = self.open.pop(call_id), self.play
        if call.ok is not None or play.rng.random() < 0.3:
            return bool(call.ok)
        if call.action in play.book.guarded:
            play.judge(call.action, call.arguments, call)
        ok, value = perform(play.sim, call.action, call.arguments, call.connection)
        play.performed(call.action, call.arguments, ok)
        return ok and (ok, value) not in DENIALS

    def _perform(
        self, name: str, arguments: Mapping[str, JSON], connection: int = 0
    ) -> tuple[bool, JSON]:
        if self.play.busy and self.play.rng.random() < self.play.busy:
            return BUSY
        ok, value = perform(self.play.sim, name, arguments, connection)
        self.play.performed(name, arguments, ok)
        return ok, value

    def time(self) -> str:
        return iso(self.play.sim.time)


class SessionPlay:
    """The same moves as `CorePlay`, through ``Session``.

    A person approves what is proven and waits for approval, never what the guard doubts: who
    approves that, takes it on himself. ``outside``: records change that the session knows
    nothing of, between two moves (for handbooks with `recheck`).
    """

    def __init__(
        self,
        book: Book,
        sim: Simulator,
        rng: random.Random,
        tally: Tally,
        automation: Automation | None = None,
        *,
        outside: float = 0.0,
        guard: str = "",
    ) -> None:
        self.book = book
        self.sim = sim
        self.rng = rng
        self.tally = tally
        self.answer: CallAnswer | None = None
        """To the latest call."""
        self.busy = 0.03
        self.breaks = 0.03
        """How often a tool does its work and then breaks off."""
        self.resumes = 0.0
        self.outside = outside
        self.in_flight: dict[str, asyncio.Task[CallAnswer]] = {}
        self.reached = asyncio.Event()
        self.tools = SimulatorTools(self)
        self.words: dict[str, dict[tuple[str, str], bool | None]] = {}
        self.calls = 0
        self.asking: tuple[str, Mapping[str, JSON]] = ("", {})
        self.approved: list[tuple[str, Mapping[str, JSON]]] = []
        self.overrides = rng.choice((0.0, 0.0, 0.3))
        """How often a person approves what the guard doubts."""
        self.overridden = False
        self.excused: tuple[str, Mapping[str, JSON], JSON] | None = None
        """The call that a person approved without its proof, and the facts of that moment."""
        self.copy: MemoryStore | None = None
        self.fenced = False
        self.loop = asyncio.new_event_loop()
        self.store, self.clock = MemoryStore(), Clock()
        self.session = self._run(
            open_session(
                self.store,
                _program_set(book),
                tools=self.tools,
                clock=self.clock,
                settings=Settings(
                    automation=automation or Automation(),
                    by_reference=frozenset({"balance"} if rng.random() < 0.2 else ()),
                    guard=guard,
                ),
            )
        )

        self.session.asker = self._ask
        self.supply()

    def supply(self) -> None:
        """Give the session the values that the application supplies."""

    def performed(self, action: str, arguments: Mapping[str, JSON], ok: bool) -> None:
        """Take down what the simulator did."""

    def own_call(self, action: str, arguments: Mapping[str, JSON]) -> None:
        """Judge a call that the runtime makes by itself."""

    async def _ask(self, question: str, about: str, closed: bool) -> UserAnswer | None:
        """The user of the simulator, about exactly what was asked."""
        action, arguments = self.question()
        if action not in (ASK, CONFIRM):
            return None
        said = user_says(self.sim, action, arguments)
        await self.session.assistant_said(question)
        outcome = await self.session.user_said(said)
        return UserAnswer(said, outcome.events[0].seq)

    def question(self) -> tuple[str, Mapping[str, JSON]]:
        return self.asking

    @property
    def configuration(self) -> Configuration:
        return self.session.configuration

    def close(self) -> None:
        for task in self.in_flight.values():
            task.cancel()
        if self.in_flight:
            self._run(_ended(self.in_flight.values()))
        self.loop.close()

    def audit(self) -> None:
        session = self.session
        self.tally.audit(session.programs.programs, session.events, overridden=self.overridden)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    # --- moves ------------------------------------------------------------------------

    def operate(self, operation: Operation) -> bool:
        self._moved()
        before = self.configuration
        accepted = self._run(self.session.operate(operation)).accepted
        if accepted and isinstance(operation, Return):
            remember_word(self.book, before, operation, self.words)
        return accepted

    def call(self, action: str, arguments: Mapping[str, JSON]) -> tuple[bool, JSON] | None:
        self._moved()
        self.asking = (action, arguments)
        guarded = action in self.book.guarded
        self.tally.attempted += guarded
        self.calls += 1
        answer = self._run(self.session.call_tool(action, arguments, f"c{self.calls}"))
        waiting = answer.held
        if waiting is not None and not waiting.why and self.rng.random() < 0.8:
            answer = self._approved(answer)
        elif guarded and answer.status is CallStatus.HELD and self.rng.random() < self.overrides:
            answer = self._overridden(answer)
        if guarded and answer.status is CallStatus.HELD:
            self.tally.held += 1
        self.answer, result = answer, answer.result
        return (result.ok, result.value) if result is not None else None

    def call_failing(self, action: str, arguments: Mapping[str, JSON]) -> None:
        self._call_in_trouble(action, arguments, "busy")

    def call_breaking(self, action: str, arguments: Mapping[str, JSON]) -> None:
        self._call_in_trouble(action, arguments, self.rng.choice(("broken", "late")))

    def _call_in_trouble(self, action: str, arguments: Mapping[str, JSON], trouble: str) -> None:
        self.tools.trouble[action] = trouble
        self.call(action, arguments)
        self.tools.trouble.pop(action, None)

    def _overridden(self, answer: CallAnswer) -> CallAnswer:
        """A person approves what the guard doubts, for the facts of this moment (P14), and it is
        run then, or after something else."""
        held = self.session.ledger.held.get(answer.call_id)
        process = self.configuration.process
        if held is None or held.state != "waiting" or process is None:
            return answer
        facts = self.book.facts_of(self.sim, process.goal, held.arguments)
        if facts is None:
            return answer
        decided = self.session.decide("approve", held.call_id, by="dana", role=held.roles[0])
        self._run(decided)
        self.approved.append((held.action, dict(held.arguments)))
        self.excused = (held.action, dict(held.arguments), facts)
        self.overridden = True
        self._change_something(held.arguments)
        return self._run(self.session.run_held(held.call_id))

    def _change_something(self, about: Mapping[str, JSON]) -> None:
        changers = [tool.name for tool in CHANGERS if tool.name in self.book.tools]
        if changers and self.rng.random() < 0.5:
            action = self.rng.choice(changers)
            inputs = self.book.inputs[action]
            self.call(action, {n: about.get(n) or value_for(n, self.rng) for n in inputs})

    def _approved(self, answer: CallAnswer) -> CallAnswer:
        """Approved by a person, and run, now or after something else."""
        held = answer.held
        assert held is not None
        if held.state == "waiting":
            amended = None
            if self.rng.random() < 0.3:
                amended = {
                    name: value_for(name, self.rng) if self.rng.random() < 0.3 else value
                    for name, value in held.arguments.items()
                    if self.rng.random() < 0.9
                }
            decided = self.session.decide(
                "approve" if amended is None else "amend",
                held.call_id,
                by="dana",
                role=held.roles[0],
                arguments=amended,
            )
            try:
                self._run(decided)
            except UserMistake:
                return answer  # an amendment that is no such call
            agreed = held.arguments if amended is None else amended
            self.approved.append((held.action, dict(agreed)))
        self._change_something(held.arguments)
        return self._run(self.session.run_held(held.call_id))

    def begin(self, action: str, arguments: Mapping[str, JSON], *, at_once: bool) -> None:
        self._moved()
        self.asking = (action, arguments)
        self.tally.attempted += action in self.book.guarded
        self.calls += 1
        self.tools.delayed = (action, at_once)
        self.reached.clear()
        call = self.session.call_tool(action, arguments, f"c{self.calls}")
        task = self.loop.create_task(call)
        reached = self._run(self._until_reached(task))
        self.tools.delayed = None
        if reached:
            self.in_flight[f"c{self.calls}"] = task
        elif action in self.book.guarded and task.result().status is CallStatus.HELD:
            self.tally.held += 1

    async def _until_reached(self, task: asyncio.Task[CallAnswer]) -> bool:
        reached = asyncio.create_task(self.reached.wait())
        await asyncio.wait({task, reached}, return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        return not task.done()

    def deliver(self, call_id: str) -> None:
        self._moved()
        index = list(self.in_flight).index(call_id)
        self.tools.waiting.pop(index).set()
        self._run(_awaited(self.in_flight.pop(call_id)))

    def reconnect(self) -> None:
        """The session finds out with its next call."""
        self._moved()
        self.sim.reconnect()

    def back_up(self) -> None:
        if not self.in_flight and not self.fenced:
            self.copy = _copied(self.store)

    def restore(self) -> None:
        """The store is lost, and an old copy of it is put in its place, behind a fence. The copy
        knows nothing of what this session did since: not one guarded call may go on from it."""
        if self.in_flight or self.copy is None or self.fenced:
            return
        self._moved()
        self._run(self.session.release())
        self.store, self.fenced = self.copy, True
        self._run(fence_store(self.store, "restored", clock=self.clock))
        self._take_up(take_over=True)

    def _moved(self) -> None:
        self.tally.moves += 1
        self.sim.time += 1
        if self.resumes and not self.in_flight and self.rng.random() < self.resumes:
            self._resume()
        for key in tuple(self.tools.open):
            if self.rng.random() < LATE:
                # It happens whether or not the session still waits for it; if it does, the person
                # who finds out says what is so.
                ok, call_id = self.tools.carry_out_late(key), key.rpartition(":")[2]
                if call_id in self.session.unknown_outcomes:
                    self._run(self.session.resolve_outcome(call_id, ok=ok, by="dana"))
        if self.outside and self.rng.random() < self.outside:
            tool = self.rng.choice(CHANGERS)
            given = {name: value_for(name, self.rng) for name in tool.inputs}
            tool.run(self.sim, given)  # what others do is no deed of this session

    def _resume(self) -> None:
        """Given up and taken up again: what was proven must be read out of the trace."""
        self._run(self.session.release())
        self._take_up()

    def _take_up(self, *, take_over: bool = False) -> None:
        self.session = self._run(
            resume_session(
                self.store,
                self.session.id,
                tools=self.tools,
                clock=self.clock,
                take_over=take_over,
            )
        )
        self.session.asker = self._ask
        self.supply()

    # --- judging ----------------------------------------------------------------------

    def judge(
        self, action: str, arguments: Mapping[str, JSON], sent: OpenCall | None = None
    ) -> None:
        """Just before the simulator carries it out; ``sent`` is one that broke off before."""
        call = (action, arguments)
        if self.fenced and sent is None:
            self.tally.deny(self.book, self.configuration, call)
            return
        if self._needs_approval(action, arguments):
            if (action, dict(arguments)) in self.approved:
                self.approved.remove((action, dict(arguments)))
            else:
                self.tally.deny(self.book, self.configuration, call)
        at = self.configuration if sent is None else sent.configuration
        sim = self.sim if sent is None else sent.sim(self.sim)
        words = self.words if sent is None else sent.words
        excused = self.is_excused(action, arguments) if sent is None else sent.excused
        self.tally.carry_out(self.book, sim, at, call, words, excused=excused)

    def is_excused(self, action: str, arguments: Mapping[str, JSON]) -> bool:
        """Whether a person took this very call on themselves, and nothing has changed since."""
        process, excused = self.configuration.process, self.excused
        if excused is None or process is None or excused[:2] != (action, dict(arguments)):
            return False
        self.excused = None
        return bool(excused[2] == self.book.facts_of(self.sim, process.goal, arguments))

    def _needs_approval(self, action: str, arguments: Mapping[str, JSON]) -> bool:
        approval = self.book.plan.extra.get(action, {}).get("approval")
        if not isinstance(approval, dict):
            return approval is not None
        amount = arguments.get("amount")
        return not is_number(amount) or amount > 50


def _copied(store: MemoryStore) -> MemoryStore:
    """All of it but its lock, in one copy: its parts share the sessions."""
    other = MemoryStore()
    parts = {name: value for name, value in vars(store).items() if not hasattr(value, "acquire")}
    vars(other).update(copy.deepcopy(parts))
    return other


async def _awaited(task: asyncio.Task[CallAnswer]) -> CallAnswer:
    return await task


async def _ended(tasks: Any) -> None:
    await asyncio.wait(set(tasks))


_SETS: dict[int, tuple[Book, ProgramSet]] = {}


def _program_set(book: Book) -> ProgramSet:
    """Hashing the programs anew for every session would take longer than playing it."""
    found = _SETS.get(id(book))
    if found is None or found[0] is not book:
        _SETS.clear()
        found = _SETS[id(book)] = (book, ProgramSet(book.programs))
    return found[1]
