"""A client for programs that send and consume events. It uses nothing but the HTTP API.

    from inbox.client import Client

    with Client("http://127.0.0.1:8080", key) as inbox:
        inbox.send({"order": 1001}, "order.created")
        with inbox.lease(wait=20) as lease:
            for event in lease:
                handle(event["payload"])

The loop acknowledges each event when it asks for the next one. If `handle` raises, that event counts as failed, and is
dead after the service's INBOX_MAX_DELIVERIES failures; the events after it return to the inbox at once.

Calls that fail for a passing reason (no connection, a lost response, 429, 5xx) are retried. Sends and polls carry an ID
that stays the same in all retries, so that they neither store an event twice nor claim more events. Replays are only
retried after a 429.
"""

from inbox.client.client import Client, Event, Lease, NewEvent, Replayed, StoredEvent
from inbox.client.http_calls import CallFailed

__all__ = ["CallFailed", "Client", "Event", "Lease", "NewEvent", "Replayed", "StoredEvent"]
