"""The lock of a session, used from several event loops at once."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

from sopilot.session.lock import Lock


def test_one_task_of_all_loops_has_it_at_a_time() -> None:
    lock, inside, most = Lock(), list[int](), list[int]()
    start = threading.Barrier(3)

    async def take(number: int) -> None:
        async with lock:
            inside.append(number)
            most.append(len(inside))
            await asyncio.sleep(0.0005)
            inside.remove(number)

    async def take_turns(loop: int) -> None:
        start.wait()
        await asyncio.gather(*(take(10 * loop + each) for each in range(10)))

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(asyncio.run, take_turns(loop)) for loop in range(3)]:
            done.result(timeout=30)
    assert most == [1] * 30


async def test_a_task_that_gives_up_takes_no_turn() -> None:
    """Also if its turn has come already."""
    lock = Lock()

    async def take() -> None:
        async with lock:
            pass

    for turn_has_come in (False, True):
        async with lock:
            first, second = asyncio.create_task(take()), asyncio.create_task(take())
            await asyncio.sleep(0)
            if not turn_has_come:
                first.cancel()
                await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait_for(second, 5)
        assert first.cancelled()


async def test_a_task_whose_loop_has_ended_takes_no_turn() -> None:
    """A thread's loop may end, or be closed, while its tasks still wait."""
    lock = Lock()

    async def take() -> None:
        async with lock:
            pass

    def leave(waiting: list[asyncio.Task[None]]) -> None:
        loop = asyncio.new_event_loop()

        async def begin() -> None:
            waiting.append(asyncio.create_task(take()))
            await asyncio.sleep(0.01)

        loop.run_until_complete(begin())
        waiting[0]._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.close()

    for kept in (True, False):
        waiting = list[asyncio.Task[None]]()
        async with lock:
            await asyncio.to_thread(leave, waiting)
            if not kept:
                waiting.clear()
                gc.collect()
        await asyncio.wait_for(take(), 5)
