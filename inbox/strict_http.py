"""Requests that everybody in front of this service reads in the same way; others are refused.

gunicorn's parser in C lets a line end without CR, continues a line on the next, and takes more than one blank for a
separator. Its parser in Python refuses these, and both take more transfer codings than the one that is needed.
"""

from typing import Any

from gunicorn.http.errors import (
    InvalidHeader,
    InvalidRequestLine,
    ObsoleteFolding,
    UnsupportedTransferCoding,
)
from gunicorn.http.message import Request

# Joined by a comma they would be another value than either.
_ONLY_ONCE = ("IDEMPOTENCY-KEY", "INBOX-ATTEMPT", "TRANSFER-ENCODING")


class StrictRequest(Request):  # type: ignore[misc]
    _read: bytearray

    def read_into(self, unreader: Any, buf: bytearray, stop: bool = False) -> None:
        super().read_into(unreader, buf, stop)
        self._read = buf

    def parse(self, unreader: Any) -> bytes:
        rest: bytes = super().parse(unreader)
        if self._use_fast:
            _check_lines(self._read[: len(self._read) - len(rest)])
        self._check_headers()
        return rest

    def _check_headers(self) -> None:
        names = [name for name, _ in self.headers]
        if "TRANSFER-ENCODING" in names and dict(self.headers)["TRANSFER-ENCODING"].lower() != "chunked":
            raise UnsupportedTransferCoding("chunked is all that is taken")
        for name in _ONLY_ONCE:
            if names.count(name) > 1:
                raise InvalidHeader(name)
        if "HOST" not in names and self.version >= (1, 1):
            raise InvalidHeader("HOST")


def _check_lines(head: bytearray) -> None:
    if head.count(b"\n") != head.count(b"\r\n"):
        raise InvalidHeader("bare LF as line terminator")
    if b"\r\n " in head or b"\r\n\t" in head:
        raise ObsoleteFolding("a header")
    # One empty line may come before it (RFC 9112, section 2.2).
    if head.removeprefix(b"\r\n").partition(b"\r\n")[0].count(b" ") != 2:
        raise InvalidRequestLine("more than one blank in a row")
