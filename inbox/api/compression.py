"""gzip: answers compressed for clients that accept it, and compressed bodies unpacked within a limit."""

import zlib
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO

from flask import Response, request

from inbox.api.problem_types import BAD_REQUEST
from inbox.api.problems import Refusal
from inbox.errors import EventTooLarge

# Below that, the CPU time is worth more than the bytes: most answers fit in one packet anyway.
_MIN_BYTES = 1024
# A page of 100 orders with 63 KB: level 1 makes it 18.8 KB in 0.7 ms of CPU, level 6 makes it 16.6 KB in 1.3 ms. A poll
# takes about 1 ms otherwise, so saving another 3% is not worth twice the time.
_ANSWER_LEVEL = 1
_FILE_LEVEL = 6
_CODINGS = ("gzip", "identity")
_TEXTS = ("text/", "application/json", "application/javascript", "image/svg+xml")
_GZIP = 31  # what zlib calls a window of 32 KiB with a gzip header and trailer
_STEP_BYTES = 65_536


def compress_answer(response: Response) -> Response:
    """Compresses the answer to a GET or HEAD if it is large enough and the client accepts gzip."""
    # The cheapest conditions come first: this runs for every request.
    if response.status_code not in (200, 304) or (response.content_length or 0) <= _MIN_BYTES:
        return response
    # Answers to other methods may contain a new key, and the size of a compressed answer says something about its text.
    environ, headers = request.environ, response.headers
    if environ["REQUEST_METHOD"] not in ("GET", "HEAD") or not headers["Content-Type"].startswith(_TEXTS):
        return response
    headers["Vary"] = "Accept-Encoding"
    if "HTTP_ACCEPT_ENCODING" not in environ or request.accept_encodings.best_match(_CODINGS) != "gzip":
        return response
    etag, _ = response.get_etag()
    if etag is not None:
        # Two variants must not share a strong ETag. A weak one still matches If-None-Match.
        response.set_etag(etag, weak=True)
    if response.status_code == 304:
        return response
    # Byte ranges are served of the uncompressed variant.
    headers.pop("Accept-Ranges", None)
    headers["Content-Encoding"] = "gzip"
    response.direct_passthrough = False
    body = response.get_data()
    # Only files have an ETag.
    response.set_data(zlib.compress(body, _ANSWER_LEVEL, _GZIP) if etag is None else _compress_file(body))
    return response


def decompress(compressed: bytes, limit_bytes: int, reserve: Callable[[int], None]) -> bytes:
    """Returns what one gzip stream contains. `reserve` is told of each piece, and may raise.

    EventTooLarge as soon as there is one byte more than the limit.
    """
    stream, body = zlib.decompressobj(_GZIP), BytesIO()
    for start in range(0, len(compressed), _STEP_BYTES):
        rest = compressed[start : start + _STEP_BYTES]
        while rest and not stream.eof:
            try:
                piece = stream.decompress(rest, min(_STEP_BYTES, limit_bytes + 1 - body.tell()))
            except zlib.error:
                raise Refusal(BAD_REQUEST, "The Content-Encoding is gzip, but the body is not valid gzip.") from None
            reserve(len(piece))
            body.write(piece)
            if body.tell() > limit_bytes:
                raise EventTooLarge(f"The decompressed body is larger than {limit_bytes} bytes.")
            rest = stream.unconsumed_tail
        if stream.eof:
            # Not a second stream either: a body of a million empty ones would take seconds.
            if stream.unused_data or start + _STEP_BYTES < len(compressed):
                raise Refusal(BAD_REQUEST, "The body goes on after the end of its gzip stream. Send a single stream.")
            return body.getvalue()
    raise Refusal(BAD_REQUEST, "The gzip stream in the body is incomplete.")


# Files need no key, and the largest takes 60 ms to compress. There are about 60 of them.
@lru_cache(maxsize=128)
def _compress_file(content: bytes) -> bytes:
    return zlib.compress(content, _FILE_LEVEL, _GZIP)
