"""Runs tests that are coroutines."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import ParamSpec

import uvloop

P = ParamSpec("P")


def in_event_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Returns a test that runs the coroutine in a new event loop of uvloop, which the service uses too."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def run_with_timeout() -> None:
            await asyncio.wait_for(test(*args, **kwargs), 20)

        # In another thread, because Playwright may have an event loop in this one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: uvloop.run(run_with_timeout())).result()

    return run


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)
