"""Requests as they arrive: gathered without waiting, so that a thread begins with what is there."""

import time
from typing import Any

from gunicorn.http.body import Body, LengthReader
from gunicorn.http.errors import LimitRequestHeaders
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import SocketUnreader

from inbox.patience import BODY_SECONDS, HEAD_SECONDS, NotYet, PatientSocket
from inbox.strict_http import StrictRequest

# What is gathered of a request before a thread is given to it. Whoever sends more waits in that thread.
MOST_GATHERED_BYTES = 64 * 1024


class _AnnouncedBody(Body):  # type: ignore[misc]
    """The body of a request with `Expect: 100-continue`, which the client sends after the interim response.

    The response goes out with the first read, so a request that is refused by its head alone never gets it.
    """

    def __init__(self, reader: Any, sock: PatientSocket) -> None:
        super().__init__(reader)
        self._sock = sock
        self.is_awaited = True

    def _read_reader(self, size: int) -> bytes:
        if self.is_awaited:
            self.is_awaited = False
            self._sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        piece: bytes = super()._read_reader(size)
        return piece


class ArrivingRequest(StrictRequest):
    body: Any
    _closes: bool | None = None
    _expected_100_continue: bool

    def set_body_reader(self) -> None:
        super().set_body_reader()
        # gunicorn sends the interim response itself, before the app sees the head.
        if self._expected_100_continue:
            self._expected_100_continue = False
            if not _is_at_end(self.body.reader):
                self.body = _AnnouncedBody(self.body.reader, self.unreader.sock)

    @property
    def awaits_continue(self) -> bool:
        """Returns True while the client may hold its body back."""
        return getattr(self.body, "is_awaited", False)

    def should_close(self) -> bool:
        """Asked when an answer begins. What is left of the body would be taken for the next request."""
        if self._closes is None:
            self._closes = super().should_close() or not self._discard_rest()
        return self._closes

    def _discard_rest(self) -> bool:
        reader = self.body.reader
        # The client may send its body or give it up, so the connection cannot be reused.
        if self.body.failed or self.awaits_continue or getattr(reader, "length", 0) > MOST_GATHERED_BYTES:
            return False
        if _is_at_end(reader):
            return True
        sock: PatientSocket = self.unreader.sock
        sock.gather()
        try:
            self.body.read(MOST_GATHERED_BYTES)
        except Exception:  # whatever is wrong with it, it is not the next request
            return False
        finally:
            sock.wait()
        return _is_at_end(reader)


def _is_at_end(reader: Any) -> bool:
    return not (reader.length if isinstance(reader, LengthReader) else reader.parser)


class _Unreader(SocketUnreader):  # type: ignore[misc]
    """Remembers what a head has taken from the socket."""

    taken: bytes | None = None

    def chunk(self, size_hint: int | None = None) -> bytes:
        piece: bytes = super().chunk(size_hint)
        if self.taken is not None:
            self.taken += piece
        return piece


class ArrivingParser(RequestParser):  # type: ignore[misc]
    """`has_request` first, then `next`, which raises what gathering it has led to."""

    mesg_class = ArrivingRequest

    def __init__(self, cfg: Any, sock: PatientSocket, address: Any) -> None:
        super().__init__(cfg, sock, address)
        self.unreader = _Unreader(sock)
        # When the rest of a request has to be here of which a part has come.
        self.deadline: float | None = None
        self._arrived: ArrivingRequest | Exception | None = None
        self._gave_up = False

    @property
    def awaits_body(self) -> bool:
        return self._arrived is not None

    def has_request(self, moment_ms: int) -> bool:
        """Whether there is one, with all of a small body. Waits for a moment, but only once for each part."""
        sock: PatientSocket = self.unreader.sock
        try:
            if self._arrived is None:
                sock.gather(0 if self.deadline else moment_ms)
                if not self._take_head(sock):
                    return False
            sock.gather(0 if self.deadline else moment_ms)
            return self._gave_up or self._take_body(sock)
        finally:
            sock.wait()

    def finish_body(self, *_: Any, **__: Any) -> bool:
        # A connection is only kept where the request has made sure of it: see should_close.
        return True

    def give_up(self) -> None:
        """The body that is awaited counts as broken off."""
        self._gave_up = True
        self.unreader.sock.expect_no_more()

    def __next__(self) -> Any:
        arrived, self._arrived = self._arrived, None
        self.deadline, self._gave_up = None, False
        if isinstance(arrived, Exception):
            raise arrived
        return arrived

    def _take_head(self, sock: PatientSocket) -> bool:
        before = self.unreader.buf.getvalue()
        self.unreader.taken = b""
        sock.begin_request()
        try:
            self._arrived = super().__next__()
        except NotYet:
            self.req_count -= 1
            so_far = before + self.unreader.taken
            if len(so_far) > MOST_GATHERED_BYTES:
                self._arrived = LimitRequestHeaders("a large head that comes in pieces")
                return True
            if so_far:
                self.unreader.unread(so_far)
                self.deadline = self.deadline or time.monotonic() + HEAD_SECONDS
            return False
        except Exception as error:  # gunicorn's worker knows them all
            self._arrived = error
        self.unreader.taken = self.deadline = None
        return True

    def _take_body(self, sock: PatientSocket) -> bool:
        if not isinstance(self._arrived, ArrivingRequest) or self._arrived.awaits_continue:
            return True
        length = getattr(self._arrived.body.reader, "length", 0)
        if length > MOST_GATHERED_BYTES:
            return True
        gathered = self.unreader.buf
        try:
            while (missing := length - gathered.tell()) > 0 and (piece := sock.recv(missing)):
                gathered.write(piece)
        except NotYet:
            self.deadline = self.deadline or time.monotonic() + BODY_SECONDS
            return False
        except OSError:
            pass  # The app comes to the same end of it.
        self.deadline = None
        return True
