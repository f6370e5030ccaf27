"""Thousands of items through a few workers: results come as they are ready, and memory does not grow.

Items are drawn from their iterable in a thread of its own, a little ahead of the workers (making a follow-up may take
milliseconds, and the event loop must not stand still for it). Results wait in a short queue: a slow reader slows the
workers down.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Generic, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

_END = object()
_SLICE_SECONDS = 0.02
_MOST_DRAWN = 64
_POLL_SECONDS = 0.005


class GivenUp(Exception):
    """What a piece of work raises that had not begun when the stop was given: it has no result, and no fault."""


class Stop:
    """A sign that no further item shall be begun; what is under way ends as usual. Any thread may give it."""

    def __init__(self) -> None:
        self.given = False
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}

    def give(self) -> None:
        """Give the sign."""
        with self._lock:
            self.given = True
            waiting, self._waiting = self._waiting, {}
        for future, loop in waiting.items():
            with contextlib.suppress(RuntimeError):  # its loop has ended meanwhile
                loop.call_soon_threadsafe(_wake, future)

    async def within(self, seconds: float) -> bool:
        """Wait for the sign, so many seconds at most, and return whether it was given."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            if self.given:
                return True
            self._waiting[future] = loop
        timer = loop.call_later(seconds, _wake, future)
        try:
            await future
        finally:
            timer.cancel()
            with self._lock:
                self._waiting.pop(future, None)
        return self.given


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _draw(iterator: Iterator[T | None], most: int) -> tuple[list[T], bool]:
    """Return a few items, drawn within a short time or until none is there yet, and whether there are no more."""
    drawn: list[T] = []
    until = time.monotonic() + _SLICE_SECONDS
    while len(drawn) < most:
        try:
            item = next(iterator)
        except StopIteration:
            return drawn, True
        if item is None:
            break
        drawn.append(item)
        if time.monotonic() >= until:
            break
    return drawn, False


class _Stream(Generic[T, R]):
    def __init__(self, items: Iterable[T | None], work: Callable[[T], Awaitable[R]], workers: int, stop: Stop) -> None:
        self.items, self.work, self.workers, self.stop = items, work, workers, stop
        self.inbox: asyncio.Queue[object] = asyncio.Queue(workers)
        self.outbox: asyncio.Queue[object] = asyncio.Queue(2 * workers)
        self.failure: BaseException | None = None

    async def feed(self) -> None:
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, thread_name_prefix="medtest-requests")
        try:
            iterator = await loop.run_in_executor(thread, iter, self.items)

            def draw() -> tuple[list[T], bool]:
                return _draw(iterator, _MOST_DRAWN)

            ended = False
            while not (ended or self.stop.given or self.failure):
                drawn, ended = await loop.run_in_executor(thread, draw)
                for item in drawn:
                    await self.inbox.put(item)
        except Exception as error:  # noqa: BLE001 - whatever the iterable raises is raised to the reader, at the end
            self.failure = self.failure or error
        finally:
            thread.shutdown(wait=False)
        for _ in range(self.workers):
            await self.inbox.put(_END)

    async def serve(self) -> None:
        while (item := await self.inbox.get()) is not _END:
            if self.failure or self.stop.given:
                continue
            try:
                result = await self.work(cast(T, item))
            except GivenUp:
                continue
            except Exception as error:  # noqa: BLE001 - raised to the reader once the others have finished
                self.failure = self.failure or error
                continue
            await self.outbox.put(result)
        await self.outbox.put(_END)


async def stream(
    items: Iterable[T | None], work: Callable[[T], Awaitable[R]], *, workers: int, stop: Stop | None = None
) -> AsyncGenerator[R, None]:
    """Yield ``await work(item)`` for every item, in the order in which results are ready.

    An item None is no work: it says that nothing is there yet, and that the iterable has waited a little. A piece of
    work that raises :class:`GivenUp` has no result.
    When a piece of work (or the iterable) raises, no further item is begun, what is under way is finished and
    yielded, and then the first exception is raised. When the reader stops reading, what is under way is cancelled.
    """
    flow = _Stream(items, work, workers, stop or Stop())
    tasks = [asyncio.create_task(flow.feed()), *(asyncio.create_task(flow.serve()) for _ in range(workers))]
    open_workers = workers
    try:
        while open_workers:
            result = await flow.outbox.get()
            if result is _END:
                open_workers -= 1
            else:
                yield cast(R, result)
        if flow.failure is not None:
            raise flow.failure
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def blocking(make: Callable[[], AsyncGenerator[R, None]], *, ahead: int = 256) -> Iterator[R]:
    """Yield what an asynchronous generator yields, its event loop running in a thread.

    Args:
        make: Makes the generator, inside the loop's thread.
        ahead: Results kept for a slow reader; when they are that many the generator waits.
    """
    ready: queue.Queue[object] = queue.Queue(ahead)
    failure: list[BaseException] = []
    handle: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []
    begun = threading.Event()

    async def offer(value: object) -> None:
        while True:
            try:
                ready.put_nowait(value)
                return
            except queue.Full:
                await asyncio.sleep(_POLL_SECONDS)

    async def main() -> None:
        task = asyncio.current_task()
        if task is not None:
            handle.append((asyncio.get_running_loop(), task))
        begun.set()
        async with aclosing(make()) as results:
            async for result in results:
                await offer(result)

    def live() -> None:
        try:
            asyncio.run(main())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised in the reader's thread
            failure.append(error)
        finally:
            begun.set()

    thread = threading.Thread(target=live, name="medtest-api", daemon=True)
    thread.start()
    try:
        while True:
            try:
                yield cast(R, ready.get(timeout=0.2))
            except queue.Empty:
                if not thread.is_alive() and ready.empty():
                    break
        if failure:
            raise failure[0]
    finally:
        begun.wait()
        if thread.is_alive() and handle:
            loop, task = handle[0]
            with contextlib.suppress(RuntimeError):  # the loop has just ended by itself
                loop.call_soon_threadsafe(task.cancel)
        thread.join()
