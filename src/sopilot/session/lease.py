"""The lease of a session, kept alive, given up and taken back."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Self, TypeVar

from sopilot.messages.errors import LeaseHeld, LeaseLost, RunEnded
from sopilot.protocols import Clock
from sopilot.records.store import Lease, Settings, Store

Answer = TypeVar("Answer")
_FIRST_PAUSE = 0.03
_LONGEST_PAUSE = 0.5


class Leased(ABC):
    """The part of a session that other processes see: it has one owner at a time."""

    id: str
    settings: Settings

    def __init__(self, store: Store, lease: Lease, clock: Clock) -> None:
        self._store = store
        self._lease: Lease | None = lease
        self._owner = lease.owner
        self._let_go = 0
        """The token that was given back last."""
        self.clock = clock
        self._lock = asyncio.Lock()
        self._stale = False
        """Only the store knows where the session stands."""

    @abstractmethod
    async def _read_again(self) -> None: ...

    @abstractmethod
    async def take_decisions(self) -> None: ...

    async def renew(self) -> None:
        async with self._lock:
            self._lease = await self._renewed(self._held_lease())

    def keep_alive(self) -> AbstractAsyncContextManager[None]:
        """Renews the lease in the background while something slow happens, and puts on record
        what people have decided meanwhile."""
        return _Beating(self)

    async def release(self) -> None:
        """Gives the session up. Anybody may take it; this object writes nothing more."""
        async with self._lock:
            lease, self._lease = self._lease, None
            if lease is not None:
                self._let_go = lease.token
                await self._store.release(lease)

    async def reacquire(self) -> bool:
        """Takes the session back after ``release``; whether others had it meanwhile, and it was
        read again."""
        async with self._lock:
            return await self._take_back()

    async def refresh(self) -> bool:
        """Makes sure that the session is this object's, as it stands in the store, be it after a
        release, a lost lease or a failed write; whether it was read again."""
        async with self._lock:
            if self._lease is not None:
                if self._lease.expires_at > self.clock.now() and not self._stale:
                    return False
                with suppress(LeaseLost):
                    self._lease = await self._renewed(self._lease)
                    if self._stale:
                        await self._read_again()
                        return True
                    return False
            return await self._take_back()

    @property
    def is_current(self) -> bool:
        """Whether nothing says that the store knows more than this object."""
        return self._lease is not None and not self._stale

    async def reload(self) -> None:
        """Read the session from the store again; verify and replay it."""
        async with self._lock:
            await self._read_again()

    async def _take_back(self) -> bool:
        self._lease = await self._store.acquire(
            self.id,
            owner=self._owner,
            now=self.clock.now(),
            lease_seconds=self.settings.lease_seconds,
        )
        # Every change of owner raises the token by one: nobody was here, and nothing is new.
        if self._lease.token == self._let_go + 2 and not self._stale:
            return False
        self._stale = True
        await self._read_again()
        return True

    async def _renewed(self, lease: Lease) -> Lease:
        return await self._store.renew(
            lease, now=self.clock.now(), lease_seconds=self.settings.lease_seconds
        )

    def _held_lease(self) -> Lease:
        if self._lease is not None:
            return self._lease
        raise RunEnded(f"session {self.id} was released; resume it to go on")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.release()
            return
        # The lease expires by itself; the first problem is the one to report.
        with suppress(RunEnded):
            await self.release()


async def when_free(attempt: Callable[[], Awaitable[Answer]], *, patience_seconds: float) -> Answer:
    """Tried until nobody else has the session. Who has it may let it go at any moment, or be gone
    and keep it until its lease runs out: so it is asked less and less often, and just after that.
    Raises ``LeaseHeld`` when patience is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_seconds
    pause = _FIRST_PAUSE
    while True:
        try:
            return await attempt()
        except LeaseHeld as held:
            left = deadline - loop.time()
            if left <= 0:
                raise
            runs_out = held.seconds_left + _FIRST_PAUSE
        # Many may wait for one that was killed: they do not come all at once.
        await asyncio.sleep(min(left, runs_out, pause) * random.uniform(0.8, 1.2))
        pause = min(2 * pause, _LONGEST_PAUSE)


class _Beating:
    """Written out by hand: every call comes by here, and most are over before the first beat.
    Then there is no task at all."""

    __slots__ = ("_beats", "_first", "_session")

    def __init__(self, session: Leased) -> None:
        self._session = session
        self._beats: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        pause = self._session.settings.lease_seconds / 3
        self._first = asyncio.get_running_loop().call_later(pause, self._begin)

    def _begin(self) -> None:
        self._beats = asyncio.create_task(_beat(self._session))

    async def __aexit__(self, *_: object) -> None:
        self._first.cancel()
        if self._beats is not None:
            self._beats.cancel()
            await asyncio.wait({self._beats})  # unlike `await`: an interrupt of ours is not lost
            problem = None if self._beats.cancelled() else self._beats.exception()
            if problem is not None and not isinstance(problem, RunEnded):
                raise problem


async def _beat(session: Leased) -> None:
    while True:
        try:
            await session.renew()
            await session.take_decisions()
        except LeaseLost:
            return  # shows at the next write, where it matters
        except RunEnded:
            pass  # a store that is gone for a moment: a lease that nobody took is ours
        await asyncio.sleep(session.settings.lease_seconds / 3)
