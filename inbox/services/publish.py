"""Sending events."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from inbox.domain import events, exact_json
from inbox.errors import EventTooLarge, FieldError, IdempotencyConflict
from inbox.store.interface import EventStore


class Submission(NamedTuple):
    """An event as the producer sent it. `payload` is a parsed JSON object."""

    payload: dict[str, Any]
    event_type: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class PublishService:
    """`on_arrival` is called with the tenant ID and the inbox after events were stored."""

    store: EventStore
    now_ms: Callable[[], int]
    max_event_bytes: int
    retention_days: int
    on_arrival: Callable[[str, str], object]

    def send(self, tenant_id: str, submission: Submission) -> events.PutResult:
        """Stores one event. Raises IdempotencyConflict if its idempotency key belongs to a different event."""
        return self._put(tenant_id, [_new_event(tenant_id, submission)])[0]

    def send_batch(
        self, tenant_id: str, submissions: Iterable[Submission], batch_key: str | None
    ) -> list[events.PutResult]:
        """Stores all of the events or none. `batch_key` identifies events without an idempotency key of their own.

        Each submission is serialized before the next one is parsed: a parsed payload takes many times the memory of
        its text.
        """
        under_batch_key: dict[int, hashlib._Hash] = {}

        def new_event(submission: Submission, position: int) -> events.NewEvent:
            if batch_key is None or submission.idempotency_key is not None:
                return _new_event(tenant_id, submission)
            under_batch_key[position] = _fingerprint(submission)
            return _event(submission, events.batch_event_id(tenant_id, batch_key, position))

        try:
            new_events = [new_event(submission, position) for position, submission in enumerate(submissions)]
            # Includes the number of events, so that a longer or shorter batch under the same key is a conflict.
            size = b"%d" % len(new_events)
            for position, fingerprint in under_batch_key.items():
                fingerprint.update(size)
                new_events[position] = new_events[position]._replace(fingerprint=fingerprint.digest())
            too_large = [
                position for position, event in enumerate(new_events) if len(event.payload) > self.max_event_bytes
            ]
            if too_large:
                raise EventTooLarge(f"An event is larger than {self.max_event_bytes} bytes.", too_large)
            return self._put(tenant_id, new_events)
        except EventTooLarge as refused:
            refused.field_errors = tuple(
                FieldError(f"/{position}", f"Event {position} is too large.") for position in refused.positions
            )
            raise
        except IdempotencyConflict as conflict:
            conflict.field_errors = tuple(
                FieldError(
                    f"/{position}" if position in under_batch_key else f"/{position}/idempotency_key",
                    "The key was used for a different event.",
                )
                for position in conflict.positions
            )
            raise

    def _put(self, tenant_id: str, new_events: Sequence[events.NewEvent]) -> list[events.PutResult]:
        now_ms = self.now_ms()
        stored = self.store.put(tenant_id, new_events, now_ms, now_ms // 1000 + self.retention_days * 86_400)
        self.on_arrival(tenant_id, events.DEFAULT_INBOX)
        return stored


def _new_event(tenant_id: str, submission: Submission) -> events.NewEvent:
    if submission.idempotency_key is None:
        return _event(submission, events.random_event_id())
    event_id = events.keyed_event_id(tenant_id, submission.idempotency_key)
    return _event(submission, event_id, _fingerprint(submission).digest())


def _event(submission: Submission, event_id: str, fingerprint: bytes | None = None) -> events.NewEvent:
    return events.NewEvent(event_id, submission.event_type, exact_json.dump(submission.payload), fingerprint)


def _fingerprint(submission: Submission) -> "hashlib._Hash":
    """Returns a hash that is equal for equal events. A type contains no newline, so the parts cannot be confused."""
    payload = exact_json.dump_canonical(submission.payload)
    return hashlib.sha256(f"{submission.event_type or ''}\n".encode() + payload)
