"""Sending, polling, leasing and replaying events."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, NotRequired, TypedDict
from urllib.parse import quote

from inbox.client.http_calls import CallFailed, HTTPClient

_MAX_BATCH = 500

Timestamp = datetime | str | int
"""ISO 8601 text, or epoch milliseconds."""


class NewEvent(TypedDict):
    payload: Mapping[str, Any]
    event_type: NotRequired[str | None]
    idempotency_key: NotRequired[str]


class StoredEvent(TypedDict):
    id: str
    event_type: str | None
    timestamp: int
    created_at: str
    status: Literal["undelivered", "leased", "delivered", "dead"]
    deliveries: int


class Event(StoredEvent):
    payload: dict[str, Any]
    delivered_at: NotRequired[str]
    receipt: NotRequired[str]
    lease_expires_at: NotRequired[str]


class Replayed(TypedDict):
    replayed: int
    more: bool


class Lease:
    """Leased events: no other poll returns them until their leases expire.

    Iterate over the lease to settle its events one by one, one call each, or use `events` to handle them as one batch.
    `list(lease)` acknowledges all of them before any of them is handled.
    """

    def __init__(self, http: HTTPClient, events: list[Event]) -> None:
        self.events = events
        self.lost: list[Event] = []
        """Events whose lease expired before they were settled. Another poll may return them, too."""
        self._http = http
        self._held = {event["receipt"]: event for event in events}
        # The event that the loop handles. None without a loop.
        self._current: list[Event] | None = None

    def __iter__(self) -> Iterator[Event]:
        """Acknowledges each event when the loop asks for the next one, unless it was settled in the loop."""
        self._current = []
        for event in self.held:
            if event["receipt"] in self._held:
                self._current = [event]
                yield event
                # Before the call: if it fails, the event was handled all the same and must not count as failed.
                self._current = []
                self.acknowledge([event])

    @property
    def held(self) -> list[Event]:
        """Events that are neither acknowledged nor released nor lost."""
        return list(self._held.values())

    def acknowledge(self, events: Iterable[Event]) -> None:
        """Marks events as delivered."""
        self._settle("/inbox/ack", events)

    def release(self, events: Iterable[Event], *, delay_seconds: int = 0, failed: bool = False) -> None:
        """Returns events to the inbox. Polls return them again after `delay_seconds`.

        `failed` counts like an expired lease. After INBOX_MAX_DELIVERIES of these the event is dead.
        """
        self._settle("/inbox/release", events, delay_seconds=delay_seconds, failed=failed)

    def extend(self, lease_seconds: int) -> None:
        """Makes the leases of all held events expire `lease_seconds` from now."""
        if self._held:
            body = {"receipts": list(self._held), "lease_seconds": lease_seconds}
            self._mark_lost(self._http.ask("POST", "/inbox/extend", dict, body)["lost"])

    def _unfinished(self) -> list[Event]:
        """Returns the events that the block was handling when it ended."""
        return self.held if self._current is None else self._current

    def _try_release(self, events: list[Event], *, delay_seconds: int = 0, failed: bool = False) -> None:
        """Releases events, in a single try: if it fails, they return to the inbox when their leases expire."""
        with suppress(CallFailed):
            self._settle("/inbox/release", events, repeatable=False, delay_seconds=delay_seconds, failed=failed)
        for event in events:
            self._held.pop(event["receipt"], None)

    def _settle(self, path: str, events: Iterable[Event], *, repeatable: bool = True, **more: int) -> None:
        receipts = list(dict.fromkeys(event["receipt"] for event in events if event["receipt"] in self._held))
        if receipts:
            body = {"receipts": receipts, **more}
            self._mark_lost(self._http.ask("POST", path, dict, body, repeatable=repeatable)["lost"])
            for receipt in receipts:
                self._held.pop(receipt, None)

    def _mark_lost(self, receipts: list[str]) -> None:
        self.lost += [self._held.pop(receipt) for receipt in receipts]


class Client(HTTPClient):
    def send(
        self, payload: Mapping[str, Any], event_type: str | None = None, *, idempotency_key: str | None = None
    ) -> StoredEvent:
        """Returns the event after it was stored on disk. Repeated calls with one `idempotency_key` store one event."""
        envelope = {"payload": payload, "event_type": event_type, "idempotency_key": idempotency_key or _new_id()}
        stored: StoredEvent = self.ask("POST", "/events", dict, envelope)
        return stored

    def send_many(self, events: Iterable[NewEvent], *, idempotency_key: str | None = None) -> list[StoredEvent]:
        """Sends events in their order, up to 500 per request. Returns them as stored.

        The first request that fails raises CallFailed. The events of earlier requests are stored then
        (`CallFailed.stored_before`). With an `idempotency_key`, all events can be sent again.
        """
        # Each event's key contains its position, so that it does not depend on the split into requests.
        key = sha256((idempotency_key or _new_id()).encode(errors="surrogatepass")).hexdigest()
        keyed = [NewEvent(**{"idempotency_key": f"{key}/{position}", **event}) for position, event in enumerate(events)]
        stored: list[StoredEvent] = []
        for first in range(0, len(keyed), _MAX_BATCH):
            stored += self._send_batch(keyed[first : first + _MAX_BATCH], first)
        return stored

    def poll(self, inbox: str = "default", *, limit: int = 100, wait: int = 0) -> list[Event]:
        """Returns undelivered events, oldest first, and marks them as delivered.

        The service recognizes a retried poll for 5 minutes. If retries take longer, the events of a lost response are
        lost; `lease` has no such limit.
        """
        return self._claim(inbox, mode="consume", limit=limit, wait=wait)

    def peek(
        self, inbox: str = "default", *, limit: int = 100, order: Literal["oldest", "newest"] = "oldest"
    ) -> list[Event]:
        """Returns undelivered events and changes nothing."""
        parameters = {"mode": "peek", "limit": limit, "order": order}
        events: list[Event] = self.ask("GET", _inbox_path(inbox), list, parameters=parameters)
        return events

    @contextmanager
    def lease(
        self,
        inbox: str = "default",
        *,
        limit: int = 100,
        wait: int = 0,
        lease_seconds: int | None = None,
        delay_seconds: int = 0,
    ) -> Iterator[Lease]:
        """Leases undelivered events for a `with` block.

        If the block iterates over the lease, each event is acknowledged before the next one. The current one is
        acknowledged when the block ends, also by `return` or `break`, and counts as failed when the block raises: it
        returns to the inbox after `delay_seconds`, or is dead after the service's INBOX_MAX_DELIVERIES. Events that the
        loop did not reach are released.

        If the block uses `lease.events`, all events in `lease.held` are acknowledged or count as failed together.

        KeyboardInterrupt, SystemExit and other exceptions that are not an `Exception` release all events in
        `lease.held`, and none counts as failed.
        """
        parameters = {"limit": limit, "wait": wait, "lease_seconds": lease_seconds}
        lease = Lease(self, self._claim(inbox, mode="lease", **parameters))
        try:
            yield lease
        except Exception:
            lease._try_release(lease._unfinished(), delay_seconds=delay_seconds, failed=True)
            raise
        else:
            lease.acknowledge(lease._unfinished())
        finally:
            lease._try_release(lease.held)

    def replay(self, event_id: str, inbox: str = "default") -> Event:
        """Makes a delivered or dead event undelivered again.

        Returns the event. Not retried after a lost response: a poll may have returned the event again by then.
        """
        path = f"/events/{quote(event_id, safe='')}/replay"
        event: Event = self.ask("POST", path, dict, parameters={"inbox": inbox}, repeatable=False)
        return event

    def replay_matching(
        self,
        inbox: str = "default",
        *,
        since: Timestamp | None = None,
        until: Timestamp | None = None,
        event_type: str | None = None,
        status: Literal["delivered", "dead"] | None = None,
    ) -> Replayed:
        """Replays up to 1,000 events that match. If the result has `more`, call again."""
        filters = {"since": _format(since), "until": _format(until), "event_type": event_type, "status": status}
        selection = {"inbox": inbox} | {name: value for name, value in filters.items() if value is not None}
        replayed: Replayed = self.ask("POST", "/events/replay", dict, selection, repeatable=False)
        return replayed

    def _send_batch(self, events: list[NewEvent], first: int) -> list[StoredEvent]:
        try:
            stored: list[StoredEvent] = self.ask("POST", "/events/batch", list, events)
        except CallFailed as failure:
            if failure.status != 413 or len(events) == 1:
                failure.stored_before = first
                raise
            half = len(events) // 2
            stored = self._send_batch(events[:half], first) + self._send_batch(events[half:], first + half)
        return stored

    def _claim(self, inbox: str, **parameters: Any) -> list[Event]:
        attempt = {"Inbox-Attempt": _new_id()}
        events: list[Event] = self.ask("GET", _inbox_path(inbox), list, parameters=parameters, headers=attempt)
        return events


def _inbox_path(inbox: str) -> str:
    return f"/inbox/{quote(inbox, safe='')}"


def _format(timestamp: Timestamp | None) -> str | int | None:
    return timestamp.isoformat() if isinstance(timestamp, datetime) else timestamp


def _new_id() -> str:
    return uuid.uuid4().hex
