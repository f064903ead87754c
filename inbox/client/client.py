"""A client for programs that send and consume.

    with Client("http://127.0.0.1:8080", key) as inbox:
        inbox.send({"order": 1001}, "order.created")
        with inbox.lease(wait=20) as lease:
            for event in lease:
                handle(event["payload"])

The loop acknowledges each event as soon as it asks for the next one. If `handle` raises, that event counts as failed,
and is dead after the service's INBOX_MAX_DELIVERIES; the events after it come again at once.

What may pass (no connection, a lost answer, 429, 5xx) is tried again. A call that changes something carries an id, the
same through all of its tries, so that a repeat stores nothing twice and takes no further events.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, NotRequired, TypedDict
from urllib.parse import quote

from inbox.client.http_calls import Caller, CallFailed

__all__ = ["CallFailed", "Client", "Event", "Lease", "NewEvent", "Replayed", "StoredEvent"]

_BATCH = 500

Moment = datetime | str | int
"""A time: ISO 8601 as text, or epoch milliseconds."""


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
    """Events that no other consumer gets for a while.

    Iterate over the lease to settle its events one by one, one call each, or take `events` to handle them as one batch.
    `list(lease)` acknowledges all of them before any is handled.
    """

    def __init__(self, caller: Caller, events: list[Event]) -> None:
        self.events = events
        self.lost: list[Event] = []
        """Events whose lease was over before they were acknowledged or released: another consumer may have them too."""
        self._caller = caller
        self._held = {event["receipt"]: event for event in events}
        self._is_batch = True
        self._current: list[Event] = []

    def __iter__(self) -> Iterator[Event]:
        """Acknowledges each event when the loop asks for the next one, unless it was settled in the loop."""
        self._is_batch = False
        for event in self.held:
            if event["receipt"] in self._held:
                self._current = [event]
                yield event
                # Before the call: an event that was handled has not failed when it cannot be acknowledged.
                self._current = []
                self.acknowledge([event])

    @property
    def held(self) -> list[Event]:
        """Those that are neither acknowledged nor released nor lost."""
        return list(self._held.values())

    def acknowledge(self, events: Iterable[Event]) -> None:
        """These are done."""
        self._settle("/inbox/ack", events)

    def release(self, events: Iterable[Event], *, delay_seconds: int = 0, failed: bool = False) -> None:
        """Returns events to the inbox; polls get them after `delay_seconds`.

        `failed` counts as a lost lease. After INBOX_MAX_DELIVERIES of them the service makes the event dead.
        """
        self._settle("/inbox/release", events, delay_seconds=delay_seconds, failed=failed)

    def extend(self, lease_seconds: int) -> None:
        """All that are still held are needed for so many seconds from now on."""
        if self._held:
            body = {"receipts": list(self._held), "lease_seconds": lease_seconds}
            self._let_go(self._caller.ask("POST", "/inbox/extend", dict, body)["lost"])

    def _unfinished(self) -> list[Event]:
        """Returns the events that the block was handling when it ended."""
        return self.held if self._is_batch else self._current

    def _give_back(self, events: list[Event], *, delay_seconds: int = 0, failed: bool = False) -> None:
        """Tries once: what cannot be released comes again when its lease is over."""
        with suppress(CallFailed):
            self._settle("/inbox/release", events, repeatable=False, delay_seconds=delay_seconds, failed=failed)
        for event in events:
            self._held.pop(event["receipt"], None)

    def _settle(self, path: str, events: Iterable[Event], *, repeatable: bool = True, **more: int) -> None:
        receipts = list(dict.fromkeys(event["receipt"] for event in events if event["receipt"] in self._held))
        if receipts:
            body = {"receipts": receipts, **more}
            self._let_go(self._caller.ask("POST", path, dict, body, repeatable=repeatable)["lost"])
            for receipt in receipts:
                self._held.pop(receipt, None)

    def _let_go(self, lost: list[str]) -> None:
        self.lost += [self._held.pop(receipt) for receipt in lost]


class Client(Caller):
    def send(
        self, payload: Mapping[str, Any], event_type: str | None = None, *, idempotency_key: str | None = None
    ) -> StoredEvent:
        """Returns when the event is on disk. A key of the caller's own makes it the only one of its kind."""
        envelope = {"payload": payload, "event_type": event_type, "idempotency_key": idempotency_key or _new_id()}
        stored: StoredEvent = self.ask("POST", "/events", dict, envelope)
        return stored

    def send_many(self, events: Iterable[NewEvent], *, idempotency_key: str | None = None) -> list[StoredEvent]:
        """In this order, up to 500 to a call. Where a later call fails, what the ones before have sent is stored
        (`CallFailed.stored_before`): with a key of the caller's own, the whole can then be sent again."""
        # Each event's is made of that and its place, so that it does not matter how they are divided.
        key = sha256((idempotency_key or _new_id()).encode(errors="surrogatepass")).hexdigest()
        keyed = [NewEvent(**{"idempotency_key": f"{key}/{place}", **event}) for place, event in enumerate(events)]
        stored: list[StoredEvent] = []
        for first in range(0, len(keyed), _BATCH):
            stored += self._send_batch(keyed[first : first + _BATCH], first)
        return stored

    def poll(self, inbox: str = "default", *, limit: int = 100, wait: int = 0) -> list[Event]:
        """Undelivered events, the oldest first; from now on they are delivered.

        The service knows a repeated poll for 5 minutes. A client that retries for longer may lose the events of an
        answer that did not arrive; `lease` has no such limit."""
        return self._take(inbox, mode="consume", limit=limit, wait=wait)

    def peek(
        self, inbox: str = "default", *, limit: int = 100, order: Literal["oldest", "newest"] = "oldest"
    ) -> list[Event]:
        """Undelivered events; changes nothing."""
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
        comes again after `delay_seconds`, or is dead after the service's INBOX_MAX_DELIVERIES. Events that the loop did
        not reach are released.

        If the block takes `lease.events`, all events that it still holds are acknowledged or count as failed together.

        KeyboardInterrupt, SystemExit and other exceptions that are not an `Exception` release everything that is still
        held, and nothing counts as failed."""
        parameters = {"limit": limit, "wait": wait, "lease_seconds": lease_seconds}
        lease = Lease(self, self._take(inbox, mode="lease", **parameters))
        try:
            yield lease
        except Exception:
            lease._give_back(lease._unfinished(), delay_seconds=delay_seconds, failed=True)
            raise
        else:
            lease.acknowledge(lease._unfinished())
        finally:
            lease._give_back(lease.held)

    def replay(self, event_id: str, inbox: str = "default") -> Event:
        """Makes a delivered or dead event undelivered again. It is not repeated where the answer was lost: a consumer
        may have had the event again by then."""
        path = f"/events/{quote(event_id, safe='')}/replay"
        event: Event = self.ask("POST", path, dict, parameters={"inbox": inbox}, repeatable=False)
        return event

    def replay_matching(
        self,
        inbox: str = "default",
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        event_type: str | None = None,
        status: Literal["delivered", "dead"] | None = None,
    ) -> Replayed:
        """The same for all that match, up to 1,000 of them. As long as there are `more`, call again."""
        filters = {"since": _written(since), "until": _written(until), "event_type": event_type, "status": status}
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

    def _take(self, inbox: str, **parameters: Any) -> list[Event]:
        attempt = {"Inbox-Attempt": _new_id()}
        events: list[Event] = self.ask("GET", _inbox_path(inbox), list, parameters=parameters, headers=attempt)
        return events


def _inbox_path(inbox: str) -> str:
    return f"/inbox/{quote(inbox, safe='')}"


def _written(moment: Moment | None) -> str | int | None:
    return moment.isoformat() if isinstance(moment, datetime) else moment


def _new_id() -> str:
    return uuid.uuid4().hex
