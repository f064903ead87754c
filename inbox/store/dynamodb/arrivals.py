"""Finds inboxes with claimable events by querying the index: the longer an inbox is idle, the less often."""

import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from inbox.domain.events import InboxKey
from inbox.store.dynamodb.claimable_events import ClaimableEvents

_MIN_PAUSE_SECONDS = 0.2
_MAX_PAUSE_SECONDS = 2.0
_MAX_INBOXES_PER_CHECK = 64
# One query for each shard, in the pool of 16 threads that claims use too.
_PARALLEL_INBOXES = 4
# While DynamoDB times out, one inbox takes 10 seconds. A later check collects its result.
_MAX_SECONDS_PER_CHECK = 1.0


@dataclass(slots=True)
class _Schedule:
    next_query_at: float
    pause_seconds: float


class DynamoDBArrivalWatch:
    interval_seconds = 0.1

    def __init__(self, claimable: ClaimableEvents, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._claimable = claimable
        self._monotonic = monotonic
        # Not at once: no poll returns the event before the settle time, and the index lags behind the write.
        self._soon_seconds = max(_MIN_PAUSE_SECONDS, claimable.settle_ms / 1000)
        # Not the connection's pool: a task there would wait for queries that wait for a thread of the same pool.
        self._pool = ThreadPoolExecutor(_PARALLEL_INBOXES, "arrivals")
        self._schedules: dict[InboxKey, _Schedule] = {}
        self._running: dict[InboxKey, Future[bool]] = {}

    def check(self, waiting: frozenset[InboxKey], now_ms: int) -> set[InboxKey]:
        now = self._monotonic()
        first_query_at = now + _MIN_PAUSE_SECONDS
        self._schedules = {
            key: self._schedules.get(key) or _Schedule(first_query_at, _MIN_PAUSE_SECONDS) for key in waiting
        }
        idle = self._schedules.keys() - self._running.keys()
        due = sorted(
            (key for key in idle if self._schedules[key].next_query_at <= now),
            key=lambda key: self._schedules[key].next_query_at,
        )
        for key in due[: _MAX_INBOXES_PER_CHECK - len(self._running)]:
            self._running[key] = self._pool.submit(self._claimable.may_exist, *key, now_ms)
        wait(self._running.values(), _MAX_SECONDS_PER_CHECK)
        return self._collect_results()

    def check_soon(self, tenant_ids: Collection[str]) -> None:
        soon = self._monotonic() + self._soon_seconds
        for schedule in (each for (tenant_id, _), each in self._schedules.items() if tenant_id in tenant_ids):
            schedule.next_query_at, schedule.pause_seconds = min(schedule.next_query_at, soon), _MIN_PAUSE_SECONDS

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _collect_results(self) -> set[InboxKey]:
        """Returns the inboxes that have an event. Raises an error if all queries that have ended failed."""
        ended = {key: query for key, query in self._running.items() if query.done()}
        errors = [error for query in ended.values() if (error := query.exception()) is not None]
        found = set()
        for key, query in ended.items():
            del self._running[key]
            if key in self._schedules:
                schedule = self._schedules[key]
                schedule.pause_seconds = min(2 * schedule.pause_seconds, _MAX_PAUSE_SECONDS)
                if query.exception() is None and query.result():
                    found.add(key)
                    schedule.pause_seconds = _MIN_PAUSE_SECONDS
                schedule.next_query_at = self._monotonic() + schedule.pause_seconds
        if errors and len(errors) == len(ended):
            raise errors[0]
        return found
