"""Sending: events go in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from inbox import events, strict_json
from inbox.errors import EventTooLarge, Fault, IdempotencyConflict
from inbox.store.port import EventStore


@dataclass(frozen=True, slots=True)
class Submission:
    """An event as somebody sent it. `payload` is a parsed JSON object."""

    payload: dict[str, Any]
    event_type: str | None = None
    idempotency_key: str | None = None


class Ingest:
    def __init__(self, store: EventStore, now_ms: Callable[[], int], max_event_bytes: int) -> None:
        self._store = store
        self._now_ms = now_ms
        self._max_event_bytes = max_event_bytes

    def send(self, tenant_id: str, submission: Submission) -> events.Stored:
        """Stores one event. IdempotencyConflict where its key stands for another one."""
        return self._store.put(tenant_id, [_new_event(tenant_id, submission)], self._now_ms())[0]

    def send_batch(
        self, tenant_id: str, submissions: Sequence[Submission], batch_key: str | None
    ) -> list[events.Stored]:
        """Stores all of them or none. `batch_key` makes those repeatable that bring no key of their own."""
        new_events = [
            _new_event(tenant_id, submission, batch_key, position) for position, submission in enumerate(submissions)
        ]
        too_large = [
            Fault(f"/{position}", f"The event is larger than {self._max_event_bytes} bytes.")
            for position, event in enumerate(new_events)
            if len(event.payload) > self._max_event_bytes
        ]
        if too_large:
            raise EventTooLarge("An event of the batch is too large. Nothing was stored.", too_large)
        try:
            return self._store.put(tenant_id, new_events, self._now_ms())
        except IdempotencyConflict as conflict:
            conflict.faults = tuple(
                Fault(f"/{position}/idempotency_key", "It stands for another event.") for position in conflict.positions
            )
            raise


def _new_event(
    tenant_id: str, submission: Submission, batch_key: str | None = None, position: int = 0
) -> events.NewEvent:
    event_type = submission.event_type
    payload = strict_json.dump(submission.payload)
    if submission.idempotency_key is not None:
        event_id = events.keyed_event_id(tenant_id, submission.idempotency_key)
    elif batch_key is not None:
        event_id = events.batch_event_id(tenant_id, batch_key, position)
    else:
        return events.NewEvent(events.random_event_id(), event_type, payload)
    fingerprint = events.fingerprint(event_type, strict_json.dump_canonical(submission.payload))
    return events.NewEvent(event_id, event_type, payload, fingerprint)
