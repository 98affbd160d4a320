"""Sessions that a server keeps for its clients: who owns one, and whose turn it is.

A seat gives its session's lease back when it waits for people, who decide from
the command line; and when it was not used for a while, for whoever wants it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from sopilot.agent.loop import open_run, resume_run, run_programs
from sopilot.files.sign_in import who_asks
from sopilot.integrations.mcp.clients import LOCAL
from sopilot.integrations.mcp.confirmation import ElicitsAnswers
from sopilot.integrations.metrics import NoMetrics
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import LeaseLost, RunEnded, SopilotError, UnknownSession
from sopilot.records.people import TOKEN, Principal
from sopilot.records.store import SessionRecord, Settings, Store
from sopilot.runner.play import Player
from sopilot.session.lease import when_free
from sopilot.session.session import Session
from sopilot.tasks.task import World
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.view import View

OWNER = "served_to"
"""Where a session's record names its owner."""


LINGER_SECONDS = 20.0
"""How long an unused session is kept from others, where there is one server alone."""


PATIENCE_SECONDS = 10.0


_MOMENT_SECONDS = 0.25


_MOST_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Service:
    """What every session of a server shares. ``extra`` goes into the session's record and
    must be the same for a session that is taken up again."""

    briefing: Briefing
    view: View
    open_world: Callable[[], Awaitable[World]]
    simulated: bool = False
    extra: Mapping[str, JSON] = field(default_factory=dict)
    settings: Settings | None = None
    model: str = "served"
    played: bool = False
    """A task is played: there is a simulated user, and an oracle at the end."""

    def programs(self) -> ProgramSet:
        return run_programs(self.briefing, self.view, unguarded=self.simulated)


class Seat:
    """One live session."""

    def __init__(
        self, player: Player, owner: str, *, linger_seconds: float = LINGER_SECONDS
    ) -> None:
        self.player = player
        self._linger_seconds = linger_seconds
        self.owner = owner
        self.shown = ""
        """The slot that clients know of."""
        self.offered: list[str] = []
        """The tools that they know of."""
        self._users = 0
        self._used_at = 0.0
        self._released = False
        self._timer: asyncio.TimerHandle | None = None
        self._taking = asyncio.Lock()
        self._releasing: asyncio.Task[None] | None = None

    @property
    def session(self) -> Session:
        return self.player.session

    @property
    def idle(self) -> bool:
        return self._users == 0

    def idle_for(self, now: float) -> float:
        return now - self._used_at if self.idle else 0.0

    def using(self) -> _Using:
        """The player, with the session's lease. Several may use it at once."""
        return _Using(self)

    async def _begin_use(self) -> None:
        self._users += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            async with self._taking:
                if self._released:
                    await self._take_back()
                await self.session.take_decisions()
        except BaseException as problem:
            await self._end_use(problem)
            raise

    async def _end_use(self, problem: BaseException | None) -> None:
        if isinstance(problem, LeaseLost):
            self._released = True
        self._users -= 1
        self._used_at = asyncio.get_running_loop().time()
        if self._users == 0 and not self._released:
            await self._rest(0.0)

    async def begin(self, *, awaited: bool) -> None:
        """Counts as used from now on. The lease that it came with is kept for who waits for it,
        and given back a moment later where nobody comes."""
        self._used_at = asyncio.get_running_loop().time()
        await self._rest(_MOMENT_SECONDS if awaited else 0.0)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._release()
        await self.player.world.close()

    async def _rest(self, least_seconds: float) -> None:
        """Others may have it when it has not been used for so long; at once, where people have to
        decide something."""
        waits = self.session.held_calls or self.session.unknown_outcomes
        seconds = max(least_seconds, 0.0 if waits else self._linger_seconds)
        if seconds:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(seconds, self._release_soon)
        else:
            await self._release()

    def _release_soon(self) -> None:
        if self._users == 0:
            self._releasing = asyncio.get_running_loop().create_task(self._release())

    async def _release(self) -> None:
        async with self._taking:
            if self._users == 0 and not self._released:
                self._released = True
                # A store that fails now lets the lease run out by itself.
                with suppress(RunEnded):
                    await self.session.release()

    async def _take_back(self) -> None:
        others = await when_free(self.session.reacquire, patience_seconds=PATIENCE_SECONDS)
        self._released = False
        if others:
            await self.player.world.catch_up(self.session.id, self.session.own_events)
            await self.session.take_up()
            await self.player.driver.begin()


class _Using:
    """Written out by hand: every call comes by here."""

    __slots__ = ("_seat",)

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    async def __aenter__(self) -> Player:
        await self._seat._begin_use()
        return self._seat.player

    async def __aexit__(self, kind: object, problem: BaseException | None, *_: object) -> None:
        await self._seat._end_use(problem)


class Hub:
    """``key`` is whatever tells a client's conversations apart: a connection, a process. At
    most ``most_seats`` are kept at once, each with connections to every upstream of its own,
    and ``most_of_one`` for one owner. Where several servers share a store, ``linger_seconds`` is 0:
    the next request may reach another one."""

    def __init__(
        self,
        store: Store,
        service: Service,
        *,
        most_seats: int = 200,
        most_of_one: int = 50,
        idle_seconds: float = 300.0,
        linger_seconds: float = LINGER_SECONDS,
        meter: NoMetrics | None = None,
    ) -> None:
        self.store = store
        self.service = service
        self._programs = service.programs()
        self._most = most_seats
        self._most_of_one = most_of_one
        self._idle_seconds = idle_seconds
        self._linger_seconds = linger_seconds
        self._meter = meter or NoMetrics()
        self._seats: dict[str, Seat] = {}
        self._by_key: dict[tuple[str, str], str] = {}
        self._served: set[tuple[str, str]] = set()
        """Whose a session is never changes."""
        self._opening: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        """As long as somebody opens or waits: a client may ask for any number of sessions."""

    def seated(self, owner: str, key: str) -> Seat | None:
        """The owner's session under this key, if it is here."""
        seat = self._seats.get(self._by_key.get((owner, key), ""))
        return seat if seat is not None and seat.owner == owner else None

    async def seat(self, owner: str, key: str, session_id: str | None = None) -> Seat:
        """The owner's session under this key, opened if there is none; or the one with this
        id. Somebody else's session is as unknown as one that does not exist."""
        wanted = session_id or self._by_key.get((owner, key))
        seat = self._seats.get(wanted or "")
        if seat is None:
            seat = await self._made(owner, key, session_id)
        if seat.owner != owner:
            raise UnknownSession(seat.session.id)
        return seat

    async def _made(self, owner: str, key: str, session_id: str | None) -> Seat:
        """Two requests that come at once must not make two."""
        lock = self._opening.setdefault((owner, session_id or key), asyncio.Lock())
        async with lock:
            wanted = session_id or self._by_key.get((owner, key))
            seat = self._seats.get(wanted or "")
            if seat is None and wanted is not None:
                seat = await self._resume(owner, wanted)
            if seat is None:
                seat = await self._open(owner)
                self._by_key[owner, key] = seat.session.id
        return seat

    async def connect(self, owner: str, session_id: str | None) -> str:
        """The session of a new client: the one that it asks for, or a new one."""
        if session_id is not None:
            return (await self.seat(owner, session_id, session_id)).session.id
        seat = await self._open(owner)
        return seat.session.id

    async def knows(self, owner: str, session_id: str) -> bool:
        if session_id in self._seats:
            return self._seats[session_id].owner == owner
        if (owner, session_id) in self._served:
            return True
        try:
            served = self._serves(await self.store.record(session_id), owner)
        except UnknownSession:
            return False
        if served:
            if len(self._served) >= _MOST_KNOWN:
                self._served.clear()
            self._served.add((owner, session_id))
        return served

    async def tidy(self) -> None:
        """Gives up what nobody uses, with its connections; it stays in the store."""
        now = asyncio.get_running_loop().time()
        for seat in self.seats:
            if seat.idle_for(now) > self._idle_seconds:
                await self._give_up(seat, forget=True)

    async def leave(self, owner: str, key: str) -> None:
        """The conversation is over: let go of what it held. Its session stays in the store."""
        session_id = self._by_key.pop((owner, key), key)
        seat = self._seats.get(session_id)
        if seat is not None and seat.idle and seat.owner == owner:
            del self._seats[session_id]
            await seat.close()

    async def close(self) -> None:
        seats, self._seats = self._seats, {}
        for seat in seats.values():
            await seat.close()

    async def _open(self, owner: str) -> Seat:
        service = self.service
        await self._make_room(owner)
        world = await service.open_world()
        try:
            session = await open_run(
                self.store,
                service.briefing,
                service.view,
                tools=world.tools,
                model=service.model,
                settings=service.settings,
                extra={OWNER: owner, **service.extra},
                programs=self._programs,
                requester=await self._requester(owner),
            )
        except SopilotError:
            await world.close()
            raise
        return await self._take_seat(session, world, owner)

    async def _resume(self, owner: str, session_id: str) -> Seat:
        if not await self.knows(owner, session_id):
            raise UnknownSession(session_id)
        service = self.service
        await self._make_room(owner)
        world = await service.open_world()
        try:
            session = await self._resumed(session_id, world, await self._requester(owner))
        except SopilotError:
            await world.close()
            raise
        self._meter.count("takeovers")
        return await self._take_seat(session, world, owner, awaited=True)

    async def _requester(self, owner: str) -> Principal | None:
        """The owner of the client's token; without tokens, who runs the server."""
        if owner == LOCAL:
            return await who_asks(self.store, None)
        return Principal(owner, TOKEN, "mcp")

    async def _resumed(self, session_id: str, world: World, requester: Principal | None) -> Session:
        """Another server may be at work in it, or was killed a moment ago."""

        async def caught_up(session: Session) -> None:
            await world.catch_up(session_id, session.own_events)

        async def resume() -> Session:
            return await resume_run(
                self.store, session_id, tools=world.tools, programs=self._programs,
                before=caught_up, requester=requester,
            )  # fmt: skip

        return await when_free(resume, patience_seconds=PATIENCE_SECONDS)

    async def _take_seat(
        self, session: Session, world: World, owner: str, *, awaited: bool = False
    ) -> Seat:
        """``awaited``: whoever asked for it is about to use it."""
        player = Player(session, self.service.briefing, self.service.view, world)
        await player.driver.begin()
        if session.asker is None:
            session.asker = ElicitsAnswers(session)
        seat = Seat(player, owner, linger_seconds=self._linger_seconds)
        await seat.begin(awaited=awaited)
        self._seats[session.id] = seat
        return seat

    def _serves(self, record: SessionRecord, owner: str) -> bool:
        extra = record.metadata.get("extra", {})
        wanted = {OWNER: owner, **self.service.extra}
        return all(extra.get(name) == value for name, value in wanted.items())

    @property
    def seats(self) -> tuple[Seat, ...]:
        return tuple(self._seats.values())

    async def _make_room(self, owner: str) -> None:
        """Sessions nobody uses give way, an owner's own first; they can be taken up again by
        their ids. Where all are in use, whoever comes last has to wait."""
        await self.tidy()
        now = asyncio.get_running_loop().time()
        own = [seat for seat in self.seats if seat.owner == owner]
        for seats, most in ((own, self._most_of_one), (list(self.seats), self._most)):
            seats.sort(key=lambda seat: -seat.idle_for(now))
            while len(seats) >= most:
                seat = seats.pop(0)
                if not seat.idle:
                    raise RunEnded(f"{most} sessions are at work already; come back later")
                await self._give_up(seat)

    async def _give_up(self, seat: Seat, *, forget: bool = False) -> None:
        session_id = seat.session.id
        if self._seats.pop(session_id, None) is None:
            return
        if forget:
            self._by_key = {key: one for key, one in self._by_key.items() if one != session_id}
        await seat.close()
