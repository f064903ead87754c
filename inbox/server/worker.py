"""gunicorn's worker for this service."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import structlog
import uvloop
from gunicorn.workers.base import Worker

from inbox.api.services import Services, services_of
from inbox.server.connection import Connection, ServerContext
from inbox.server.connections import Connections
from inbox.server.long_polls import LongPolls
from inbox.server.request_heads import base_environ
from inbox.server.thread_pool import DaemonThreads
from inbox.services.arrivals import LONG_POLLS

_MAX_UNSENT_BYTES = 128 * 1024
_HEARTBEAT_SECONDS = 1.0
# A pause after a few connections leaves the rest of a burst to the other processes. Without it, one process accepted
# all 32 connections of a client in half of the runs.
_MAX_ACCEPTED_AT_ONCE = 4
_SHARING_SECONDS = 0.001
_ACCEPT_PAUSE_SECONDS = 0.05
_STOP_CHECK_SECONDS = 0.05
# gunicorn kills a worker that takes longer than graceful_timeout, so the last flush must fit in it.
_FLUSH_SECONDS = 1.0
_log = structlog.get_logger()


class InboxWorker(Worker):  # type: ignore[misc]
    """Runs an event loop for connections and long polls, and threads for the app.

    Built on what gunicorn's base class offers to workers: `run`, `notify`, `alive`, `sockets`, `wsgi`, `cfg` and
    `ppid`. tests/e2e/test_command.py notices if one of them changes.
    """

    def run(self) -> None:
        uvloop.run(self._serve())

    async def _serve(self) -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        # gunicorn's handlers set `alive` until here. SIGINT and SIGQUIT stop gracefully too.
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            loop.add_signal_handler(signum, stopping.set)
        services = services_of(self.wsgi)
        connections = Connections(self.cfg.worker_connections, 2 * services.body_budget.limit_bytes)
        long_polls = LongPolls(services.arrivals, services.authenticator.still_allows)
        threads = DaemonThreads("app", self.cfg.threads)
        acceptors = []
        for listener in self.sockets:
            # Linux then reports write progress in steps of half this size instead of a third of its buffer. Accepted
            # sockets inherit the option.
            with suppress(OSError):
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MAX_UNSENT_BYTES)
            environ = base_environ(listener.getsockname()) | {LONG_POLLS: long_polls}
            context = ServerContext(self.wsgi, environ, threads, connections)
            acceptors.append(loop.create_task(_accept(listener.sock, partial(Connection, context))))
        while self.alive and not stopping.is_set() and self.ppid == os.getppid():
            self.notify()
            connections.check_deadlines()
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), _HEARTBEAT_SECONDS)
        for acceptor in acceptors:
            acceptor.cancel()
        await asyncio.gather(*acceptors, return_exceptions=True)
        for listener in self.sockets:
            listener.close()
        flush_threads, flush = DaemonThreads("flush", 2), partial(_flush_counts, services)
        # Flush now too: gunicorn may kill the worker before its requests finish.
        flush_threads.run(flush)
        connections.stop()
        long_polls.stop()
        deadline = loop.time() + self.cfg.graceful_timeout - _FLUSH_SECONDS
        while len(connections) and loop.time() < deadline:
            self.notify()
            connections.check_deadlines()
            await asyncio.sleep(_STOP_CHECK_SECONDS)
        connections.abort()
        with suppress(TimeoutError):
            await asyncio.wait_for(flush_threads.run(flush), _FLUSH_SECONDS)


async def _accept(listener: socket.socket, new_connection: Callable[[], Connection]) -> None:
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    while True:
        pause_seconds = _SHARING_SECONDS
        try:
            for _ in range(_MAX_ACCEPTED_AT_ONCE):
                client, _ = await loop.sock_accept(listener)
                # If it were cancelled, uvloop would close the connection, which may have begun to read a request.
                await asyncio.shield(loop.connect_accepted_socket(new_connection, client))
        except Exception as error:
            _log.warning("cannot accept connections", error=type(error).__name__)
            pause_seconds = _ACCEPT_PAUSE_SECONDS
        await asyncio.sleep(pause_seconds)


def _flush_counts(services: Services) -> None:
    try:
        services.flush_counts()
    except Exception as error:
        _log.warning("counts were not written", error=type(error).__name__)
