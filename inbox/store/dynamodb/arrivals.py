"""Notices which inboxes have got events to claim, by asking the index: the longer an inbox is empty, the less often."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from inbox.events import InboxKey
from inbox.store.dynamodb.availability import Availability

_SHORTEST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 2.0
_MOST_INBOXES_PER_LOOK = 64
# Two queries each, in the pool of 16 threads that claims use too.
_INBOXES_AT_ONCE = 4
# While DynamoDB times out, one inbox takes 10 seconds. A later look gets its answer.
_MOST_SECONDS_PER_LOOK = 1.0


@dataclass(slots=True)
class _Turn:
    """When an inbox is asked about, and how long the pause before is."""

    at: float
    pause_seconds: float


class DynamoDBArrivals:
    pause_seconds = 0.1

    def __init__(self, availability: Availability, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._availability = availability
        self._monotonic = monotonic
        # Not the connection's own pool: a question waits for queries there, which would have to wait for a thread.
        self._pool = ThreadPoolExecutor(_INBOXES_AT_ONCE, "arrivals")
        self._turns: dict[InboxKey, _Turn] = {}
        self._under_way: dict[InboxKey, Future[bool]] = {}

    def look(self, waiting: frozenset[InboxKey], now_ms: int) -> set[InboxKey]:
        now = self._monotonic()
        first_at = now + _SHORTEST_PAUSE_SECONDS
        self._turns = {key: self._turns.get(key) or _Turn(first_at, _SHORTEST_PAUSE_SECONDS) for key in waiting}
        due = [key for key, turn in self._turns.items() if turn.at <= now and key not in self._under_way]
        due.sort(key=lambda key: self._turns[key].at)
        for key in due[: _MOST_INBOXES_PER_LOOK - len(self._under_way)]:
            self._under_way[key] = self._pool.submit(self._availability.has_event, *key, now_ms)
        wait(self._under_way.values(), _MOST_SECONDS_PER_LOOK)
        return self._answers()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _answers(self) -> set[InboxKey]:
        """Returns the inboxes that have an event. Raises the fault if there are answers and all of them are faults."""
        answers = {key: answer for key, answer in self._under_way.items() if answer.done()}
        faults = {key: fault for key, answer in answers.items() if (fault := answer.exception()) is not None}
        found = {key for key in (answers.keys() - faults.keys()) & self._turns.keys() if answers[key].result()}
        for key in answers:
            del self._under_way[key]
            if key in self._turns:
                self._put_off(self._turns[key], is_idle=key not in found)
        if faults and len(faults) == len(answers):
            raise next(iter(faults.values()))
        return found

    def _put_off(self, turn: _Turn, *, is_idle: bool) -> None:
        longer_seconds = min(2 * turn.pause_seconds, _LONGEST_PAUSE_SECONDS)
        turn.pause_seconds = longer_seconds if is_idle else _SHORTEST_PAUSE_SECONDS
        turn.at = self._monotonic() + turn.pause_seconds
