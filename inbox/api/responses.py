"""How answers are written. By hand and not by a schema: this is the hot path, and a test holds the two together."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import orjson
from flask import Response

from inbox.domain.events import DEFAULT_INBOX, Event, PutResult, Receipt
from inbox.domain.exact_json import splice
from inbox.domain.inboxes import Inbox
from inbox.domain.receipts import receipt_text
from inbox.domain.timestamps import format_timestamp

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


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
