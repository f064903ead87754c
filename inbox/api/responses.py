"""Writes responses: JSON documents, paging links and compression.

Events are formatted by hand and not by a schema, because polls are the hot path. A test compares them with the schema.
"""

import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode
from wsgiref.types import StartResponse, WSGIEnvironment

import orjson
from flask import Response, request

from inbox.domain.events import DEFAULT_INBOX, Event, PutResult, Receipt
from inbox.domain.exact_json import splice
from inbox.domain.inboxes import Inbox
from inbox.domain.receipts import receipt_text
from inbox.domain.timestamps import format_timestamp

# Smaller responses mostly fit into one packet, so compressing them would only cost CPU time.
_MIN_BYTES = 1024
# A page of 100 orders with 63 KB: level 1 makes it 18.8 KB in 0.7 ms of CPU, level 6 makes it 16.6 KB in 1.3 ms. A poll
# takes about 1 ms otherwise, so saving another 3% is not worth twice the time.
_RESPONSE_LEVEL = 1
_FILE_LEVEL = 6
_CODINGS = ("gzip", "identity")
_TEXTS = ("text/", "application/json", "application/javascript", "image/svg+xml")
GZIP = 31  # what zlib calls a window of 32 KiB with a gzip header and trailer


class _JSONResponse(Response):
    """Skips Werkzeug's checks of headers and body, which are complete already."""

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response(self.status, self.headers.to_wsgi_list())
        return () if environ["REQUEST_METHOD"] == "HEAD" else self.response  # type: ignore[return-value]


def json_response(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
    return _JSONResponse(body, status, headers, content_type="application/json")


def empty_response() -> Response:
    response = Response(status=204)
    del response.headers["Content-Type"]
    return response


def stored_document(stored: PutResult) -> dict[str, Any]:
    """Returns the event as it was first stored, also for a repeated request. PutResult names one exception."""
    return {
        "id": stored.event_id,
        "event_type": stored.event_type,
        "timestamp": stored.timestamp_ms,
        "created_at": format_timestamp(stored.timestamp_ms),
        "status": stored.status,
        "deliveries": 0,
    }


def event_document(event: Event) -> dict[str, Any]:
    document = {
        "id": event.event_id,
        "event_type": event.event_type,
        "timestamp": event.timestamp_ms,
        "created_at": format_timestamp(event.timestamp_ms),
        "status": event.status,
        "deliveries": event.deliveries,
        # Inserts the stored text without parsing it, which could change numbers.
        "payload": splice(event.payload),
    }
    if event.delivered_at_ms is not None:
        document["delivered_at"] = format_timestamp(event.delivered_at_ms)
    if event.lease is not None:
        document["receipt"] = receipt_text(Receipt(event.inbox, event.event_id, event.lease.claim_id))
        document["lease_expires_at"] = format_timestamp(event.lease.expires_at_ms)
    return document


def inbox_document(inbox: Inbox) -> dict[str, Any]:
    document = {
        "name": inbox.name,
        "event_types": inbox.event_types,
        "created_at": format_timestamp(inbox.created_at_ms),
    }
    # Named inboxes cannot be disabled.
    return document | {"enabled": inbox.enabled} if inbox.name == DEFAULT_INBOX else document


def next_page(parameter: str, value: str | None) -> dict[str, str]:
    """Returns the header `Link` to the same request with that parameter, or no header if `value` is None."""
    if value is None:
        return {}
    # Only a path, as in Location: behind a proxy the service does not know its host.
    query = urlencode(request.args.to_dict() | {parameter: value})
    return {"Link": f'<{request.path}?{query}>; rel="next"'}


def compress_response(response: Response) -> Response:
    """Compresses the response to a GET or HEAD if it is large enough and the client accepts gzip."""
    # Cheapest conditions first: this runs for every request.
    if response.status_code not in (200, 304) or (response.content_length or 0) <= _MIN_BYTES:
        return response
    # Responses to other methods may contain a new key, and a compressed size reveals something about the text.
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
    # Byte ranges refer to the uncompressed variant.
    headers.pop("Accept-Ranges", None)
    headers["Content-Encoding"] = "gzip"
    response.direct_passthrough = False
    body = response.get_data()
    # Only files have an ETag.
    response.set_data(zlib.compress(body, _RESPONSE_LEVEL, GZIP) if etag is None else _compress_file(body))
    return response


# Files need no key, and the largest takes 60 ms to compress. There are about 60 of them.
@lru_cache(maxsize=128)
def _compress_file(content: bytes) -> bytes:
    return zlib.compress(content, _FILE_LEVEL, GZIP)
