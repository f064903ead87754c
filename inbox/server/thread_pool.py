"""Threads that run blocking functions for the event loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class DaemonThreads:
    """Unlike ThreadPoolExecutor, does not wait for its threads at exit: a store call may take long."""

    def __init__(self, name: str, count: int) -> None:
        self._loop = asyncio.get_running_loop()
        # Unbounded, but there is one call per connection, and connections are bounded.
        self._calls: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]]] = SimpleQueue()
        for number in range(count):
            Thread(target=self._work, name=f"{name} {number}", daemon=True).start()

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        self._calls.put((function, future))
        return future

    def _work(self) -> None:
        while True:
            function, future = self._calls.get()
            try:
                resolve = partial(future.set_result, function())
            except BaseException as error:
                resolve = partial(future.set_exception, error)
            # When the process stops, the loop may close before the last threads are done.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_resolve, future, resolve)
            # Otherwise the thread would keep the last response in memory until its next call.
            del function, future, resolve


def _resolve(future: asyncio.Future[Any], resolve: Callable[[], None]) -> None:
    if not future.cancelled():
        resolve()
