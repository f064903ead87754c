"""Notices which inboxes have events to claim, by asking the index: the longer an inbox is empty, the less often."""

import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from inbox.domain.events import InboxKey
from inbox.store.dynamodb.claims import Availability

_SHORTEST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 2.0
_MAX_INBOXES_PER_LOOK = 64
# Two queries each, in the pool of 16 threads that claims use too.
_INBOXES_AT_ONCE = 4
# While DynamoDB times out, one inbox takes 10 seconds. A later look gets its answer.
_MAX_SECONDS_PER_LOOK = 1.0


@dataclass(slots=True)
class _Schedule:
    """When an inbox is asked about next, and the pause before that."""

    at: float
    pause_seconds: float


class DynamoDBArrivals:
    interval_seconds = 0.1

    def __init__(self, availability: Availability, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._availability = availability
        self._monotonic = monotonic
        # Not the connection's own pool: a question waits for queries there, which would have to wait for a thread.
        self._pool = ThreadPoolExecutor(_INBOXES_AT_ONCE, "arrivals")
        self._schedules: dict[InboxKey, _Schedule] = {}
        self._under_way: dict[InboxKey, Future[bool]] = {}

    def check(self, waiting: frozenset[InboxKey], now_ms: int) -> set[InboxKey]:
        now = self._monotonic()
        first_at = now + _SHORTEST_PAUSE_SECONDS
        self._schedules = {
            key: self._schedules.get(key) or _Schedule(first_at, _SHORTEST_PAUSE_SECONDS) for key in waiting
        }
        due = [key for key, schedule in self._schedules.items() if schedule.at <= now and key not in self._under_way]
        due.sort(key=lambda key: self._schedules[key].at)
        for key in due[: _MAX_INBOXES_PER_LOOK - len(self._under_way)]:
            self._under_way[key] = self._pool.submit(self._availability.has_event, *key, now_ms)
        wait(self._under_way.values(), _MAX_SECONDS_PER_LOOK)
        return self._answers()

    def check_soon(self, tenant_ids: Collection[str]) -> None:
        # Not at once: the index lags behind what was just written.
        at = self._monotonic() + _SHORTEST_PAUSE_SECONDS
        for schedule in (each for (tenant_id, _), each in self._schedules.items() if tenant_id in tenant_ids):
            schedule.at, schedule.pause_seconds = min(schedule.at, at), _SHORTEST_PAUSE_SECONDS

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answers(self) -> set[InboxKey]:
        """Returns the inboxes that have an event. Raises the fault if there are answers and all of them are faults."""
        answers = {key: answer for key, answer in self._under_way.items() if answer.done()}
        faults = {key: fault for key, answer in answers.items() if (fault := answer.exception()) is not None}
        found = {key for key in (answers.keys() - faults.keys()) & self._schedules.keys() if answers[key].result()}
        for key in answers:
            del self._under_way[key]
            if key in self._schedules:
                self._reschedule(self._schedules[key], is_idle=key not in found)
        if faults and len(faults) == len(answers):
            raise next(iter(faults.values()))
        return found

    def _reschedule(self, schedule: _Schedule, *, is_idle: bool) -> None:
        longer_seconds = min(2 * schedule.pause_seconds, _LONGEST_PAUSE_SECONDS)
        schedule.pause_seconds = longer_seconds if is_idle else _SHORTEST_PAUSE_SECONDS
        schedule.at = self._monotonic() + schedule.pause_seconds
