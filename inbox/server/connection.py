"""A client connection: reads requests, runs the app for one at a time, writes the responses."""

import asyncio
import time
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache
from io import BytesIO
from math import inf
from typing import NamedTuple, cast
from wsgiref.types import WSGIApplication, WSGIEnvironment

import structlog

from inbox.api.access_log import STARTED_AT, new_request_id
from inbox.api.problem_types import BAD_REQUEST, OVERLOADED, Problem
from inbox.api.problems import log_bug
from inbox.errors import Overloaded
from inbox.server import connections
from inbox.server.body_framing import BodyNeeded, BrokenBody, ChunkedBody, MissingBody, SizedBody
from inbox.server.connections import Connections, State, Transfer
from inbox.server.long_polls import LongPoll, LongPolls
from inbox.server.request_heads import Head, InvalidHead, parse_head
from inbox.server.thread_pool import DaemonThreads
from inbox.server.wsgi_calls import Response, call_app, problem_response
from inbox.services.arrivals import LONG_POLL, LONG_POLLS

_MAX_HEAD_BYTES = 64 * 1024
# The app may refuse larger bodies before they are read.
_SMALL_BODY_BYTES = 64 * 1024
_MAX_BUFFERED_BYTES = 64 * 1024
# Longer than a load balancer's 60 s, so that the balancer closes first.
_IDLE_SECONDS = 75.0
_LINGER_SECONDS = 2.0
# A client that half-closes sooner than this waits for its response. One that does so later has given up.
_HALF_CLOSE_SECONDS = 1.0
# Refused at once: a client that uses https:// would otherwise wait for the deadline.
_TLS_HANDSHAKE = b"\x16"
_END_OF_HEAD = b"\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_log = structlog.get_logger()


class ServerContext(NamedTuple):
    """Shared by all connections of a listener."""

    app: WSGIApplication
    base_environ: WSGIEnvironment
    threads: DaemonThreads
    connections: Connections


class Connection(asyncio.Protocol):
    """The event loop calls the methods of asyncio.Protocol. They wake the coroutine `_serve`."""

    _transport: asyncio.Transport
    _task: asyncio.Task[None]

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._connections = context.connections
        self._buffer = b""
        self._waiter: asyncio.Future[None] | None = None
        self._received_eof = False
        self._is_gone = False
        self._is_writable = True
        self._closes_after_response = False
        self._poll: LongPoll | None = None
        self._queued_at = inf
        self.state = State.IDLE
        self.held_bytes = 0
        self.deadline = inf

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._client_address = transport.get_extra_info("peername")
        # With 0, `pause_writing` is called as soon as any part of a response is unsent.
        self._transport.set_write_buffer_limits(high=0)
        if not self._connections.is_stopping and self._connections.add(self):
            self._task = asyncio.get_running_loop().create_task(self._serve())
        else:
            self.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if len(self._buffer) > _MAX_BUFFERED_BYTES:
            self._transport.pause_reading()
            if self.state not in (State.IDLE, State.RECEIVING):
                try:
                    self._connections.update(self, self.state, self.held_bytes + len(data))
                except Overloaded:
                    self.abort()
        self.wake()

    def eof_received(self) -> bool:
        self._received_eof = True
        self._is_gone = time.monotonic() - self._queued_at > _HALF_CLOSE_SECONDS
        self._end_poll()
        self.wake()
        # Keeps the connection open for the response.
        return True

    def pause_writing(self) -> None:
        self._is_writable = False

    def resume_writing(self) -> None:
        self._is_writable = True
        self.wake()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._is_gone = True
        self._end_poll()
        self.wake()

    def _end_poll(self) -> None:
        if self._poll is not None:
            self._poll.client_is_gone = True
            self._poll.resume(runs_again=False)

    # Called by Connections

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def interrupt(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    def abort(self) -> None:
        # The event loop calls `connection_lost` later. Until then, a poll must not claim events.
        self._is_gone = True
        self._end_poll()
        self._transport.abort()

    async def _serve(self) -> None:
        try:
            while await self._serve_request():
                pass
        except (ConnectionResetError, TimeoutError, Overloaded):
            pass
        except Exception as error:
            log_bug(error)
        finally:
            self._connections.remove(self)
            self._transport.abort()

    async def _serve_request(self) -> bool:
        """Responds to the next request. Returns False if the connection is to be closed."""
        response = await self._next_response()
        if response is None:
            return False
        closes = self._closes_after_response or self._connections.is_stopping
        self._send(response, closes=closes)
        # Drop our reference, so that the response is freed as soon as it is sent.
        del response
        await self._drain()
        if closes:
            await self._linger()
        return not closes

    async def _next_response(self) -> Response | None:
        """Returns the response to the next request, or None if no request comes."""
        try:
            head = await self._read_head()
            return None if head is None else await self._respond(head)
        except InvalidHead as error:
            return self._refuse(str(error))
        except Overloaded:
            return self._refuse("too many bodies in memory", OVERLOADED, ("Retry-After", "1"))

    async def _receive(self, deadline: float) -> None:
        """Waits until the client sends something or closes the connection. Raises TimeoutError after the deadline."""
        self._check_connected()
        self._transport.resume_reading()
        await self._wait(deadline)

    async def _wait(self, deadline: float) -> None:
        """Waits until something happens on the connection. Raises TimeoutError after the deadline."""
        self.deadline = deadline
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
            self.deadline = inf
        self._check_connected()

    def _check_connected(self) -> None:
        if self._transport.is_closing():
            raise ConnectionResetError

    async def _read_head(self) -> Head | None:
        """Returns the next head, or None if the client closes an idle connection or the process stops."""
        self._connections.update(self, State.IDLE)
        searched, head_started = 0, False
        while (end := self._buffer.find(_END_OF_HEAD, max(0, searched - len(_END_OF_HEAD)))) == -1:
            # A blank line may come before a request (RFC 9112, section 2.2).
            if self._buffer in (b"", b"\r\n"):
                if self._received_eof or self._connections.is_stopping:
                    return None
                deadline = time.monotonic() + _IDLE_SECONDS
            elif (
                self._received_eof
                or self._buffer[:1] == _TLS_HANDSHAKE
                or len(self._buffer) > _MAX_HEAD_BYTES
                or b"\n\n" in self._buffer[max(0, searched - 1) :]
            ):
                raise InvalidHead("incomplete head")
            elif not head_started:
                head_started = True
                deadline = time.monotonic() + connections.HEAD_SECONDS
            if head_started:
                self._connections.update(self, State.RECEIVING, len(self._buffer))
            searched = len(self._buffer)
            await self._receive(deadline)
        end += len(_END_OF_HEAD)
        if end > _MAX_HEAD_BYTES:
            raise InvalidHead("head too large")
        head, self._buffer = self._buffer[:end], self._buffer[end:]
        return parse_head(head, self._context.base_environ, self._client_address)

    async def _respond(self, head: Head) -> Response:
        self._closes_after_response = not head.keeps_alive
        environ, max_bytes = head.environ, inf
        body = ChunkedBody() if head.is_chunked else SizedBody(head.body_bytes)
        self._buffer = body.feed(self._buffer)
        self._connections.update(self, State.RUNNING, body.file.tell() + len(self._buffer))
        may_be_large = head.is_chunked or head.body_bytes > _SMALL_BODY_BYTES
        if not body.is_complete and (may_be_large or head.expects_continue):
            try:
                response = await self._run_app(environ, MissingBody())
            except BodyNeeded as needed:
                max_bytes = needed.max_bytes
            else:
                # The client may still send the body, which would be parsed as the next request.
                self._closes_after_response = True
                return response
            del environ[STARTED_AT]
            if head.expects_continue and not (body.file.tell() or self._buffer):
                self._check_connected()
                self._transport.write(_CONTINUE)
        return await self._run_app(environ, await self._read_body(body, max_bytes))

    async def _read_body(self, body: SizedBody | ChunkedBody, max_bytes: float) -> BytesIO | BrokenBody:
        """Returns the body up to `max_bytes`, or a little more. Returns a BrokenBody if the body cannot be read."""
        transfer, has_enough = Transfer(), False
        with suppress(TimeoutError):
            while True:
                if self._buffer:
                    transfer.add(len(self._buffer))
                    self._buffer = body.feed(self._buffer)
                has_enough = body.is_complete or body.file.tell() >= max_bytes
                if has_enough or body.is_malformed or self._received_eof:
                    break
                self._connections.update(self, State.RECEIVING, body.file.tell())
                await self._receive(transfer.deadline)
        self._closes_after_response |= not body.is_complete
        self._connections.update(self, State.RUNNING, body.file.tell() + len(self._buffer) if has_enough else 0)
        if not has_enough:
            return BrokenBody()
        body.file.seek(0)
        return body.file

    async def _run_app(self, environ: WSGIEnvironment, body: BytesIO | MissingBody | BrokenBody) -> Response:
        environ["wsgi.input"] = body
        environ.setdefault(STARTED_AT, time.perf_counter())
        if len(self._buffer) <= _MAX_BUFFERED_BYTES and not self._received_eof:
            # Otherwise the transport would not report a disconnect.
            self._transport.resume_reading()
        response = await self._call_app(environ)
        poll: LongPoll | None = environ.get(LONG_POLL)
        if poll is None:
            return response
        long_polls: LongPolls = environ[LONG_POLLS]
        self._poll = poll
        poll.client_is_gone = self._received_eof or self._is_gone
        try:
            while poll.found_nothing:
                self._connections.update(self, State.WAITING, self.held_bytes)
                if not await long_polls.wait(poll):
                    break
                self._connections.update(self, State.RUNNING, self.held_bytes)
                response = await self._call_app(environ)
        finally:
            self._poll = None
            long_polls.end(poll)
        return response

    async def _call_app(self, environ: WSGIEnvironment) -> Response:
        def call() -> Response:
            # The client disconnected while its request was queued: a poll would consume events that no client receives.
            if self._is_gone:
                raise ConnectionResetError
            if self._poll is not None:
                # Still True from the last run, although the app may refuse the poll this time.
                self._poll.found_nothing = False
            return call_app(self._context.app, environ)

        self._queued_at = time.monotonic()
        try:
            return await self._context.threads.run(call)
        finally:
            self._queued_at = inf

    def _refuse(self, reason: str, problem: Problem = BAD_REQUEST, *headers: tuple[str, str]) -> Response:
        """Returns the response to a request that the app never receives."""
        self._closes_after_response = True
        request_id = new_request_id()
        _log.warning("request refused", reason=reason, status=problem.status, request_id=request_id)
        return problem_response(problem, request_id, *headers)

    def _send(self, response: Response, *, closes: bool) -> None:
        self._check_connected()
        connection = b"close" if closes else b"keep-alive"
        head = b"%bDate: %b\r\nConnection: %b\r\n\r\n" % (response.head, _http_date(int(time.time())), connection)
        self._transport.writelines((head, response.body))

    async def _drain(self) -> None:
        """Waits until everything is sent. Raises TimeoutError if the client reads too slowly."""
        if self._is_writable:
            return
        transfer, unsent_bytes = Transfer(), self._transport.get_write_buffer_size()
        # The transport keeps the whole response until the last byte is sent.
        self._connections.update(self, State.SENDING, unsent_bytes)
        while not self._is_writable:
            # Wakes up every second to see how much was sent.
            with suppress(TimeoutError):
                await self._wait(time.monotonic())
            left_bytes = self._transport.get_write_buffer_size()
            if left_bytes < unsent_bytes:
                transfer.add(unsent_bytes - left_bytes)
                unsent_bytes = left_bytes
            if transfer.deadline <= time.monotonic():
                raise TimeoutError

    async def _linger(self) -> None:
        """Half-closes and waits for the client: closing with unread data sends a RST, which may discard a response."""
        self._connections.update(self, State.IDLE)
        self._check_connected()
        self._transport.write_eof()
        deadline = time.monotonic() + _LINGER_SECONDS
        while not self._received_eof:
            self._buffer = b""
            await self._receive(deadline)


@lru_cache(maxsize=4)
def _http_date(seconds: int) -> bytes:
    return formatdate(seconds, usegmt=True).encode()
