"""Thousands of items through a few workers: results in order of completion, with bounded memory.

Items are read from their iterable in a separate thread, slightly ahead of the workers (creating a follow-up may take
milliseconds, which must not block the event loop). Results wait in a short queue: a slow consumer slows the workers
down.
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
_BUFFERED = 256
"""Number of results kept for a slow consumer, after which the generator waits."""


class GivenUp(Exception):
    """Raised by work that had not begun when the stop was given: it has no result and is not an error."""


class StopSignal:
    """Stop signal: no further item is started, and active ones finish as usual. Thread-safe."""

    def __init__(self) -> None:
        self.given = False
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}

    def give(self) -> None:
        """Give the signal."""
        with self._lock:
            self.given = True
            waiting, self._waiting = self._waiting, {}
        for future, loop in waiting.items():
            with contextlib.suppress(RuntimeError):  # its loop has ended in the meantime
                loop.call_soon_threadsafe(_wake, future)

    async def within(self, seconds: float) -> bool:
        """Wait for the signal for at most this many seconds, and return True if it was given."""
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
    """Return a few items, read within a short time or until none is available, and whether the iterator has ended."""
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
    def __init__(
        self, items: Iterable[T | None], work: Callable[[T], Awaitable[R]], workers: int, stop: StopSignal
    ) -> None:
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
        except Exception as error:  # noqa: BLE001 - any error of the iterable is raised to the consumer at the end
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
            except Exception as error:  # noqa: BLE001 - raised to the consumer once the others have finished
                self.failure = self.failure or error
                continue
            await self.outbox.put(result)
        await self.outbox.put(_END)


async def stream(
    items: Iterable[T | None], work: Callable[[T], Awaitable[R]], *, workers: int, stop: StopSignal | None = None
) -> AsyncGenerator[R, None]:
    """Yield ``await work(item)`` for every item, in the order of completion.

    An item None means that no item is available yet and the iterable has waited briefly. Work that raises
    :class:`GivenUp` has no result.

    When work (or the iterable) raises, no further item is started, active ones are finished and yielded, and then the
    first exception is raised. When the consumer stops reading, active work is cancelled.
    """
    flow = _Stream(items, work, workers, stop or StopSignal())
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


def blocking(make: Callable[[], AsyncGenerator[R, None]]) -> Iterator[R]:
    """Yield the items of an asynchronous generator, with its event loop running in a thread.

    Args:
        make: Creates the generator, inside the loop's thread.
    """
    ready: queue.Queue[object] = queue.Queue(_BUFFERED)
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
        except BaseException as error:  # noqa: BLE001 - raised in the consumer's thread
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
