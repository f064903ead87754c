"""gunicorn's worker for this service."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import structlog
import uvloop
from gunicorn.workers.base import Worker

from inbox.api.services import find_services
from inbox.server.app_threads import AppThreads
from inbox.server.connection import Connection
from inbox.server.connections import Connections
from inbox.server.long_polls import LongPolls
from inbox.server.request_heads import HeadReader, base_environ
from inbox.waiting import LONG_POLLS

_MAX_HELD_BYTES = 128 * 1024 * 1024
_MAX_UNSENT_BYTES = 128 * 1024
_HEARTBEAT_SECONDS = 1.0
_ACCEPT_PAUSE_SECONDS = 0.05
_STOP_CHECK_SECONDS = 0.05
# gunicorn kills a worker that takes longer than graceful_timeout, so the last flush needs some of it.
_FLUSH_SECONDS = 1.0
_log = structlog.get_logger()


class InboxWorker(Worker):  # type: ignore[misc]
    """Runs an event loop for connections and long polls, and threads for the app.

    Built on what gunicorn's base class offers to workers: `init_process`, `init_signals`, `run`, `notify`, `alive`,
    `sockets`, `wsgi`, `cfg`, `log`, `ppid` and `SIGNALS`. tests/e2e/test_command.py notices if one of them changes.
    """

    loop: asyncio.AbstractEventLoop

    def init_process(self) -> None:
        self.loop = uvloop.new_event_loop()
        self._stopping = asyncio.Event()
        super().init_process()

    def init_signals(self) -> None:
        for each in self.SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        # SIGINT and SIGQUIT stop gracefully too.
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            self.loop.add_signal_handler(each, self._begin_to_stop)
        self.loop.add_signal_handler(signal.SIGUSR1, self.log.reopen_files)
        signal.signal(signal.SIGWINCH, signal.SIG_IGN)

    def run(self) -> None:
        self.loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        services = find_services(self.wsgi)
        held_bytes = _MAX_HELD_BYTES if services is None else 2 * services.body_budget.limit_bytes
        connections = Connections(self.cfg.worker_connections, held_bytes)
        long_polls = None if services is None else LongPolls(self.loop, services.arrivals)
        threads = AppThreads(self.wsgi, self.loop, self.cfg.threads)
        acceptors = []
        for listener in self.sockets:
            heads = HeadReader(self.cfg, base_environ(listener.getsockname()) | {LONG_POLLS: long_polls})
            new_connection = partial(Connection, heads, threads, connections, long_polls)
            acceptors.append(_Acceptor(self.loop, listener, connections, new_connection))
        while self.alive and self.ppid == os.getppid():
            self.notify()
            connections.check_deadlines()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _HEARTBEAT_SECONDS)
        for acceptor in acceptors:
            acceptor.close()
        flush_counts = (lambda: None) if services is None else services.flush_counts
        # Flush now too: gunicorn may kill the worker before its requests finish.
        _start_thread(flush_counts)
        connections.stop()
        if long_polls is not None:
            long_polls.stop()
        await self._finish(connections)
        last_flush = _start_thread(flush_counts)
        last_flush.join(_FLUSH_SECONDS)

    async def _finish(self, connections: Connections) -> None:
        deadline = self.loop.time() + self.cfg.graceful_timeout - _FLUSH_SECONDS
        while len(connections) and self.loop.time() < deadline:
            connections.check_deadlines()
            await asyncio.sleep(_STOP_CHECK_SECONDS)
        connections.abort()

    def _begin_to_stop(self) -> None:
        self.alive = False
        self._stopping.set()


class _Acceptor:
    """Accepts one connection at a time, so that processes share a burst of them."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: Any,
        connections: Connections,
        new_connection: Callable[[], Connection],
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._connections = connections
        self._new_connection = new_connection
        self._starting: set[asyncio.Task[Any]] = set()
        self._resuming: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        self._resume()

    def close(self) -> None:
        if self._resuming is not None:
            self._resuming.cancel()
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()

    def _resume(self) -> None:
        self._resuming = None
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _pause(self) -> None:
        # The connection stays in the system's queue, which would call us again at once.
        self._loop.remove_reader(self._listener.fileno())
        self._resuming = self._loop.call_later(_ACCEPT_PAUSE_SECONDS, self._resume)

    def _accept(self) -> None:
        if not self._connections.make_room():
            self._pause()
            return
        try:
            client, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # Another process was faster, or the client has gone.
        except OSError as error:
            _log.warning("cannot accept connections", cause=error.strerror)
            self._connections.close_longest_idle()
            self._pause()
            return
        # The system reports progress of an unread answer in steps of half this size, and not of a third of its buffer.
        with suppress(OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MAX_UNSENT_BYTES)
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._new_connection, client))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)


def _start_thread(target: Callable[[], object]) -> threading.Thread:
    # A daemon: a store that does not answer must not keep the process.
    thread = threading.Thread(target=target, name="flush", daemon=True)
    thread.start()
    return thread
