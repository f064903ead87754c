"""One client's connection: reads whole requests, has the app answer them one by one, and writes the answers."""

import asyncio
import time
from email.utils import formatdate
from enum import Enum, auto
from functools import lru_cache, partial
from io import BytesIO
from math import inf
from typing import cast

import structlog
from gunicorn.asgi.parser import ParseError

from inbox.api.problem_catalogue import BAD_REQUEST, OVERLOADED, Problem
from inbox.api.request_trail import new_request_id
from inbox.server import connections as limits
from inbox.server.app_threads import Answer, AppThreads, Outcome, problem_answer
from inbox.server.bodies import BodyNeeded, BrokenBody, ChunkedBody, MissingBody, SizedBody
from inbox.server.connections import Connections, Transfer
from inbox.server.long_polls import LongPoll, LongPolls
from inbox.server.request_heads import Environ, HeadReader, InvalidHead

_MAX_HEAD_BYTES = 64 * 1024
# Before the server reads larger bodies, the app is asked whether it refuses the request by its head. Chunks cost the
# event loop more to read.
_SMALL_BODY_BYTES = 64 * 1024
_SMALL_CHUNKED_BYTES = 2 * 1024
_MAX_PIPELINED_BYTES = 64 * 1024
# Longer than a load balancer's 60 s, so that the balancer closes first.
_IDLE_SECONDS = 75.0
_LINGER_SECONDS = 2.0
_END_OF_HEAD = b"\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_log = structlog.get_logger()


class _Phase(Enum):
    HEAD = auto()
    """Idle, or a part of the next head has arrived."""
    BODY = auto()
    APP = auto()
    """The app works on the request, or a long poll waits."""
    CLOSING = auto()


class Connection(asyncio.Protocol):
    _transport: asyncio.Transport
    _environ: Environ
    _body: SizedBody | ChunkedBody
    _receiving: Transfer
    _closes: bool
    _expects_continue: bool
    # How much of the body the app reads at most, once it has asked for it.
    _max_body_bytes: float

    def __init__(
        self, heads: HeadReader, threads: AppThreads, connections: Connections, long_polls: LongPolls | None
    ) -> None:
        self._heads = heads
        self._threads = threads
        self._connections = connections
        self._long_polls = long_polls
        self._phase = _Phase.HEAD
        self._buffer = b""
        self._has_ended = False
        self._is_writable = True
        self._poll: LongPoll | None = None
        self._sending: Transfer | None = None
        self._unsent_bytes = 0
        self.held_bytes = 0
        self.deadline = time.monotonic() + _IDLE_SECONDS

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._client_address = transport.get_extra_info("peername")
        self._connections.add(self)
        if self._connections.is_stopping:
            self.abort()

    def data_received(self, data: bytes) -> None:
        if self._phase is _Phase.BODY:
            self._read_body(data)
        elif self._phase is not _Phase.CLOSING:
            searched = len(self._buffer)
            self._buffer = self._buffer + data if self._buffer else data
            if self._phase is _Phase.HEAD and self._is_writable:
                self._read_head(searched)
            elif len(self._buffer) > _MAX_PIPELINED_BYTES:
                self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Returns True if there is still something to answer."""
        self._has_ended = True
        if self._poll is not None and self._long_polls is not None:
            self._poll.client_is_gone = True
            self._long_polls.end(self._poll)
        elif self._phase is _Phase.BODY:
            self._run_app(BrokenBody())
        elif self._phase is _Phase.HEAD and self._buffer and self._is_writable:
            self._refuse("incomplete head")
        return self._phase is _Phase.APP or not self._is_writable

    def pause_writing(self) -> None:
        """Called when a large part of an answer is unsent."""
        self._is_writable = False
        self._watch_sending()

    def resume_writing(self) -> None:
        self._is_writable = True
        self._sending = None
        self._connections.stop_holding(self)
        if self._phase is _Phase.HEAD:
            self._read_next()
        else:
            self._expire_in(inf if self._phase is _Phase.APP else _LINGER_SECONDS)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._phase = _Phase.CLOSING
        self._connections.remove(self)
        if self._poll is not None and self._long_polls is not None:
            self._long_polls.drop(self._poll)

    # Requests

    def _read_next(self) -> None:
        self._transport.resume_reading()
        self._read_head(0)

    def _read_head(self, searched: int) -> None:
        """Reads the head if all of it is in the buffer, of which `searched` bytes are known not to end one."""
        buffer = self._buffer
        end = buffer.find(_END_OF_HEAD, max(0, searched - len(_END_OF_HEAD)))
        if end == -1:
            self._wait_for_head(searched)
            return
        end += len(_END_OF_HEAD)
        head_bytes, rest = buffer[:end], buffer[end:]
        self._buffer = b""
        self._connections.mark_busy(self)
        try:
            head = self._heads.read(head_bytes, self._client_address)
        except InvalidHead as error:
            self._refuse(str(error))
            return
        self._environ = head.environ
        self._closes = not head.keeps_alive
        if not head.is_chunked and len(rest) >= head.body_bytes:
            self._buffer = rest[head.body_bytes :]
            self._run_app(BytesIO(rest[: head.body_bytes]))
            return
        self._expects_continue = head.expects_continue and not rest
        self._max_body_bytes = inf
        if head.is_chunked:
            self._body, reads_now = ChunkedBody(head_bytes, self._heads.limits), len(rest) <= _SMALL_CHUNKED_BYTES
        else:
            self._body, reads_now = SizedBody(head.body_bytes), head.body_bytes <= _SMALL_BODY_BYTES
        if reads_now:
            self._receive_body(rest)
        else:
            self._buffer = rest
        if not reads_now or (self._phase is _Phase.BODY and (head.is_chunked or self._expects_continue)):
            self._run_app(MissingBody())

    def _wait_for_head(self, searched: int) -> None:
        buffer = self._buffer
        self._connections.mark_idle(self)
        if not buffer:
            self._expire_in(_IDLE_SECONDS)
            if self._has_ended or self._connections.is_stopping:
                self._close()
        elif self._has_ended or len(buffer) > _MAX_HEAD_BYTES or b"\n\n" in buffer[max(0, searched - 1) :]:
            self._refuse("incomplete head")
        elif searched == 0:
            self._expire_in(limits.HEAD_SECONDS)

    def _receive_body(self, data: bytes) -> None:
        self._phase = _Phase.BODY
        self._receiving = Transfer()
        self._read_body(data)

    def _read_body(self, data: bytes) -> None:
        body = self._body
        try:
            is_complete = body.feed(data)
        except ParseError:
            self._run_app(BrokenBody())
            return
        received_bytes = body.file.tell()
        if is_complete or received_bytes >= self._max_body_bytes:
            # An app that reads one byte more than its limit need not wait for the others.
            self._closes = self._closes or not is_complete
            self._buffer = body.rest
            body.file.seek(0)
            self._run_app(body.file)
        elif self._has_ended:
            self._run_app(BrokenBody())
        else:
            self._receiving.add(len(data))
            self._expire_at(self._receiving.deadline)
            self._connections.hold(self, received_bytes, transferring=True)

    def _run_app(self, body: BytesIO | MissingBody | BrokenBody) -> None:
        if isinstance(body, BrokenBody):
            self._closes = True
        elif isinstance(body, BytesIO) and (size := body.getbuffer().nbytes):
            self._connections.hold(self, size, transferring=False)
        self._phase = _Phase.APP
        self._expire_at(inf)
        self._environ["wsgi.input"] = body
        self._threads.submit(self._environ, self._on_outcome)

    def _on_outcome(self, outcome: Outcome) -> None:
        if self._phase is _Phase.CLOSING:
            if self._long_polls is not None:
                self._long_polls.forget(self._environ)
        elif isinstance(outcome, BodyNeeded):
            self._max_body_bytes = outcome.max_bytes
            if self._expects_continue and not self._buffer:
                self._transport.write(_CONTINUE)
            rest, self._buffer = self._buffer, b""
            self._transport.resume_reading()
            self._receive_body(rest)
        elif self._long_polls is not None and (poll := self._long_polls.waiting_poll(self._environ)):
            self._poll = poll
            poll.client_is_gone = self._has_ended
            run_again = partial(self._threads.submit, self._environ, self._on_outcome)
            self._long_polls.park(poll, outcome, self._answer, run_again)
        else:
            if isinstance(self._environ["wsgi.input"], MissingBody):
                # The client may still send the body, which would be taken for the next request.
                self._closes = True
            self._answer(outcome)

    # Answers

    def _answer(self, answer: Answer) -> None:
        self._poll = None
        if self._phase is _Phase.CLOSING:
            return
        closes = self._closes or self._connections.is_stopping or (self._has_ended and not self._buffer)
        self._environ = {}
        self._write(answer, closes=closes)
        if not closes:
            self._phase = _Phase.HEAD
            if self._is_writable:
                self._read_next()

    def _refuse(self, reason: str, problem: Problem = BAD_REQUEST, *headers: tuple[str, str]) -> None:
        """Answers a request that the app does not see."""
        request_id = new_request_id()
        _log.warning("request refused", reason=reason, status=problem.status, request_id=request_id)
        self._write(problem_answer(problem, request_id, *headers), closes=True)

    def _write(self, answer: Answer, *, closes: bool) -> None:
        connection = b"close" if closes else b"keep-alive"
        head = b"%bDate: %b\r\nConnection: %b\r\n\r\n" % (answer.head, _http_date(int(time.time())), connection)
        if self.held_bytes:
            self._connections.stop_holding(self)
        self._transport.write(head + answer.body)
        if closes:
            self._close()

    def _close(self) -> None:
        """Closes once the client has done so. Closing with unread data sends a RST, which can discard the answer."""
        self._phase = _Phase.CLOSING
        self._buffer = b""
        self._connections.mark_idle(self)
        self._expire_in(_LINGER_SECONDS)
        if self._has_ended:
            self._transport.close()
        else:
            self._transport.resume_reading()
            self._transport.write_eof()

    # Called by Connections

    def _expire_in(self, seconds: float) -> None:
        self._expire_at(time.monotonic() + seconds)

    def _expire_at(self, deadline: float) -> None:
        # While a part of an answer is unsent, `time_out` is called every second to see how much.
        self.deadline = deadline if self._sending is None else 0.0

    def time_out(self) -> None:
        if self._sending is not None:
            self._check_sending(self._sending)
        elif self._phase is _Phase.BODY:
            self._run_app(BrokenBody())
        elif self._transport.get_write_buffer_size():
            self._watch_sending()
        else:
            self.abort()

    def _watch_sending(self) -> None:
        self._sending = Transfer()
        self._unsent_bytes = self._transport.get_write_buffer_size()
        self._expire_at(inf)
        self._connections.hold(self, self._unsent_bytes, transferring=True)

    def _check_sending(self, sending: Transfer) -> None:
        """Called every second while `_sending` is set."""
        unsent_bytes = self._transport.get_write_buffer_size()
        if unsent_bytes < self._unsent_bytes:
            sending.add(self._unsent_bytes - unsent_bytes)
            self._unsent_bytes = unsent_bytes
            self._connections.hold(self, unsent_bytes, transferring=True)
        if sending.deadline <= time.monotonic() or unsent_bytes == 0:
            self.abort()

    def give_up(self) -> None:
        if self._phase is _Phase.BODY:
            self._refuse("too many bodies in memory", OVERLOADED, ("Retry-After", "1"))
        else:
            self.abort()

    def close_idle(self) -> None:
        if self._phase is _Phase.HEAD and not self._buffer:
            self._transport.close()

    def abort(self) -> None:
        self._phase = _Phase.CLOSING
        self._transport.abort()


@lru_cache(maxsize=4)
def _http_date(seconds: int) -> bytes:
    return formatdate(seconds, usegmt=True).encode()
