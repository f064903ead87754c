"""How answers are written. By hand and not by a schema: this is the hot path, and a test holds the two together."""

import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson
from flask import Response, request

from inbox.domain.events import DEFAULT_INBOX, Event, PutResult, Receipt
from inbox.domain.exact_json import splice
from inbox.domain.inboxes import Inbox
from inbox.domain.receipts import receipt_text
from inbox.domain.timestamps import format_timestamp

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# Below that, the CPU time is worth more than the bytes: most answers fit in one packet anyway.
_MIN_BYTES = 1024
# A page of 100 orders with 63 KB: level 1 makes it 18.8 KB in 0.7 ms of CPU, level 6 makes it 16.6 KB in 1.3 ms. A poll
# takes about 1 ms otherwise, so saving another 3% is not worth twice the time.
_ANSWER_LEVEL = 1
_FILE_LEVEL = 6
_CODINGS = ("gzip", "identity")
_TEXTS = ("text/", "application/json", "application/javascript", "image/svg+xml")
_GZIP = 31  # what zlib calls a window of 32 KiB with a gzip header and trailer


class _Finished(Response):
    """Goes out as it is: its headers need none of the looks that Werkzeug takes at them, and its body is all there."""

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        start_response(self.status, self.headers.to_wsgi_list())
        return () if environ["REQUEST_METHOD"] == "HEAD" else self.response  # type: ignore[return-value]


def json_answer(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
    return _Finished(body, status, headers, content_type="application/json")


def empty_answer() -> Response:
    answer = Response(status=204)
    # Flask would name one, for nothing.
    del answer.headers["Content-Type"]
    return answer


def stored_document(stored: PutResult) -> dict[str, Any]:
    """What a sender gets. A repeat gets the first answer again, whatever has become of the event since."""
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
        # The stored text as it is: parsing it again could only change it.
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
    # Always true of a named inbox, which cannot be turned off.
    return document | {"enabled": inbox.enabled} if inbox.name == DEFAULT_INBOX else document


def next_page(parameter: str, value: str | None) -> dict[str, str]:
    """The header for the same call with that parameter; none where there is no next page."""
    if value is None:
        return {}
    # A path and no more, as in Location: behind a proxy nobody here knows the host.
    query = urlencode(request.args.to_dict() | {parameter: value})
    return {"Link": f'<{request.path}?{query}>; rel="next"'}


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


# Files need no key, and the largest takes 60 ms to compress. There are about 60 of them.
@lru_cache(maxsize=128)
def _compress_file(content: bytes) -> bytes:
    return zlib.compress(content, _FILE_LEVEL, _GZIP)
