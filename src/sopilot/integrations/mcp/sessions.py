"""The sessions that a server holds for its clients, by owner and conversation.

A live session releases its lease while it waits for people, who decide from the command line,
and when it hasn't been used for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from sopilot.agent.loop import run_programs
from sopilot.integrations.mcp.confirmation import AskThroughClient
from sopilot.integrations.mcp.options import LOCAL
from sopilot.integrations.metrics import NoMetrics
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import LeaseLost, RunEnded, UnknownSession
from sopilot.records.people import TOKEN, Principal
from sopilot.records.store import Settings, Store
from sopilot.runner.play import Player, open_player
from sopilot.runner.sign_in import who_asks
from sopilot.session.lease import when_free
from sopilot.session.session import Session
from sopilot.tasks.task import Simulation
from sopilot.values.json import JSON
from sopilot.views.briefing import Briefing
from sopilot.views.view import View

OWNER = "served_to"
"""Where a session's record names its owner."""
LINGER_SECONDS = 20.0
"""How long an unused session keeps its lease, if this is the only server."""
PATIENCE_SECONDS = 10.0
"""How long to wait for a session that another process holds."""
_MOMENT_SECONDS = 0.25
_MOST_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Service:
    """The common part of a server's sessions. ``extra`` goes into each session's record and must
    match for a session that is resumed."""

    briefing: Briefing
    view: View
    open_simulation: Callable[[], Awaitable[Simulation]]
    simulated: bool = False
    extra: Mapping[str, JSON] = field(default_factory=dict)
    settings: Settings | None = None
    model: str = "served"
    played: bool = False
    """A task is played: there is a simulated user, and a score at the end."""

    def programs(self) -> ProgramSet:
        return run_programs(self.briefing, self.view, unguarded=self.simulated)


class LiveSession:
    """One session with its lease. Several requests may use it at once."""

    def __init__(
        self, player: Player, owner: str, *, linger_seconds: float = LINGER_SECONDS
    ) -> None:
        self.player = player
        self.owner = owner
        self.shown = ""
        """The frame that clients know of."""
        self._linger_seconds = linger_seconds
        self._users = 0
        self._used_at = 0.0
        self._released = False
        self._timer: asyncio.TimerHandle | None = None
        self._leasing = asyncio.Lock()
        self._releasing: asyncio.Task[None] | None = None

    @property
    def session(self) -> Session:
        return self.player.session

    @property
    def is_idle(self) -> bool:
        return self._users == 0

    def idle_for(self, now: float) -> float:
        return now - self._used_at if self.is_idle else 0.0

    @asynccontextmanager
    async def using(self) -> AsyncIterator[Player]:
        """The player, with the session's lease."""
        self._users += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            async with self._leasing:
                if self._released:
                    await self._reacquire()
                await self.session.take_decisions()
            yield self.player
        except LeaseLost:
            self._released = True
            raise
        finally:
            self._users -= 1
            self._used_at = asyncio.get_running_loop().time()
            if self._users == 0 and not self._released:
                await self._rest(0.0)

    async def begin(self, *, awaited: bool) -> None:
        """Count as used from now on. With ``awaited``, keep the lease for a moment."""
        self._used_at = asyncio.get_running_loop().time()
        await self._rest(_MOMENT_SECONDS if awaited else 0.0)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._release()
        await self.player.simulation.close()

    async def _rest(self, least_seconds: float) -> None:
        """Release the lease after a while, or at once if people have to decide something."""
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
        async with self._leasing:
            if self._users == 0 and not self._released:
                self._released = True
                with suppress(RunEnded):  # if the store fails now, the lease expires
                    await self.session.release()

    async def _reacquire(self) -> None:
        changed = await when_free(self.session.reacquire, patience_seconds=PATIENCE_SECONDS)
        self._released = False
        if changed:
            await self.player.simulation.catch_up(self.session.id, self.session.own_events)
            await self.session.take_up()
            await self.player.driver.begin()


class SessionPool:
    """Live sessions by owner and ``key``, which tells an owner's conversations apart.

    At most ``most`` are live at once, each with its own upstream connections, and
    ``most_of_one`` per owner. If several servers share a store, ``linger_seconds`` is 0: the
    next request may reach another server.
    """

    def __init__(
        self,
        store: Store,
        service: Service,
        *,
        most: int = 200,
        most_of_one: int = 50,
        idle_seconds: float = 300.0,
        linger_seconds: float = LINGER_SECONDS,
        meter: NoMetrics | None = None,
    ) -> None:
        self.store = store
        self.service = service
        self._programs = service.programs()
        self._most = most
        self._most_of_one = most_of_one
        self._idle_seconds = idle_seconds
        self._linger_seconds = linger_seconds
        self._meter = meter or NoMetrics()
        self._live: dict[str, LiveSession] = {}
        self._by_key: dict[tuple[str, str], str] = {}
        self._owned: set[tuple[str, str]] = set()
        """Pairs of owner and session, which never change."""
        self._opening: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @property
    def live(self) -> tuple[LiveSession, ...]:
        return tuple(self._live.values())

    async def get(self, owner: str, key: str, session_id: str | None = None) -> LiveSession:
        """The owner's session under this key, opened if there is none, or the one named.

        Another owner's session is as unknown as one that doesn't exist.
        """
        live = self._live.get(session_id or self._by_key.get((owner, key), ""))
        if live is None:
            live = await self._find_or_open(owner, key, session_id)
        if live.owner != owner:
            raise UnknownSession(live.session.id)
        return live

    async def _find_or_open(self, owner: str, key: str, session_id: str | None) -> LiveSession:
        # Two requests at once must not open two sessions.
        lock = self._opening.setdefault((owner, session_id or key), asyncio.Lock())
        async with lock:
            wanted = session_id or self._by_key.get((owner, key))
            live = self._live.get(wanted or "")
            if live is None and wanted is not None:
                live = await self._open(owner, wanted)
            if live is None:
                live = await self._open(owner)
                self._by_key[owner, key] = live.session.id
        return live

    async def connect(self, owner: str, session_id: str | None) -> str:
        """The session of a new client: the one that it names, or a new one."""
        if session_id is not None:
            return (await self.get(owner, session_id, session_id)).session.id
        return (await self._open(owner)).session.id

    async def owns(self, owner: str, session_id: str) -> bool:
        if session_id in self._live:
            return self._live[session_id].owner == owner
        if (owner, session_id) in self._owned:
            return True
        try:
            record = await self.store.record(session_id)
        except UnknownSession:
            return False
        extra = record.metadata.get("extra", {})
        wanted = {OWNER: owner, **self.service.extra}
        owned = all(extra.get(name) == value for name, value in wanted.items())
        if owned:
            if len(self._owned) >= _MOST_KNOWN:
                self._owned.clear()
            self._owned.add((owner, session_id))
        return owned

    async def tidy(self) -> None:
        """Drop unused sessions with their connections; they stay in the store."""
        now = asyncio.get_running_loop().time()
        for live in self.live:
            if live.idle_for(now) > self._idle_seconds:
                session_id = live.session.id
                self._by_key = {key: own for key, own in self._by_key.items() if own != session_id}
                await self._drop(live)

    async def leave(self, owner: str, key: str) -> None:
        """The conversation is over; its session stays in the store."""
        live = self._live.get(self._by_key.pop((owner, key), key))
        if live is not None and live.is_idle and live.owner == owner:
            await self._drop(live)

    async def close(self) -> None:
        for live in self.live:
            await self._drop(live)

    async def _open(self, owner: str, session_id: str | None = None) -> LiveSession:
        """A new session, or the owner's session of that id."""
        if session_id is not None and not await self.owns(owner, session_id):
            raise UnknownSession(session_id)
        service = self.service
        await self._make_room(owner)
        # Without clients' tokens, the person who runs the server asks.
        requester = (
            await who_asks(self.store, None) if owner == LOCAL else Principal(owner, TOKEN, "mcp")
        )
        player = await open_player(
            self.store,
            service.briefing,
            service.view,
            await service.open_simulation(),
            resume=session_id,
            patience_seconds=PATIENCE_SECONDS,
            model=service.model,
            settings=service.settings,
            extra={OWNER: owner, **service.extra},
            programs=self._programs,
            requester=requester,
        )
        session = player.session
        if session_id is not None:
            self._meter.count("takeovers")
        if session.asker is None:
            session.asker = AskThroughClient(session)
        live = LiveSession(player, owner, linger_seconds=self._linger_seconds)
        await live.begin(awaited=session_id is not None)
        self._live[session.id] = live
        return live

    async def _make_room(self, owner: str) -> None:
        """Drop idle sessions, the owner's own first. If all are in use, raise."""
        await self.tidy()
        now = asyncio.get_running_loop().time()
        own = [live for live in self.live if live.owner == owner]
        for sessions, most in ((own, self._most_of_one), (list(self.live), self._most)):
            sessions.sort(key=lambda live: -live.idle_for(now))
            while len(sessions) >= most:
                live = sessions.pop(0)
                if not live.is_idle:
                    raise RunEnded(f"session limit of {most} reached; retry later")
                await self._drop(live)

    async def _drop(self, live: LiveSession) -> None:
        if self._live.pop(live.session.id, None) is not None:
            await live.close()
