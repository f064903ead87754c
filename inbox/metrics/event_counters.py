"""Events counted by what the store answered: in, out, settled."""

from collections.abc import Callable
from typing import Any

from prometheus_client import Counter

from inbox.domain.events import Page, PutResult, ReplayResult

CountResult = Callable[[Any], None]


class EventCounts:
    def __init__(self, counter: Callable[..., Counter]) -> None:
        self._received = counter("inbox_events_received", "Events stored")
        self._repeated = counter("inbox_events_repeated", "Events that were there already, by their idempotency key")
        handed_out = counter("inbox_events_handed_out", "Events taken by polls", ["status"])
        self._delivered, self._leased = handed_out.labels("delivered"), handed_out.labels("leased")
        settled = counter("inbox_events_settled", "Leased events that were settled", ["action"])
        self._lost = counter("inbox_receipts_lost", "Receipts that held no more")
        self._replayed = counter("inbox_events_replayed", "Events that a replay made undelivered, or found so")
        self._of: dict[str, CountResult] = {
            "events.put": self._put,
            "events.claim": self._claimed,
            "events.acknowledge": self._settle(settled.labels("acknowledged")),
            "events.release": self._settle(settled.labels("released")),
            "events.extend": self._settle(settled.labels("extended")),
            "events.replay": lambda _event: self._replayed.inc(),
            "events.replay_all": self._replay_all,
        }

    def of(self, operation: str) -> CountResult | None:
        """What counts the results of an operation, where there is something to count."""
        return self._of.get(operation)

    def _put(self, stored: list[PutResult]) -> None:
        repeated = sum(each.replayed for each in stored)
        if repeated:
            self._repeated.inc(repeated)
        if repeated < len(stored):
            self._received.inc(len(stored) - repeated)

    def _claimed(self, page: Page) -> None:
        if not page.events:
            return
        leased = sum(event.lease is not None for event in page.events)
        if leased:
            self._leased.inc(leased)
        if leased < len(page.events):
            self._delivered.inc(len(page.events) - leased)

    def _settle(self, settled: Counter) -> CountResult:
        def count(held: list[bool]) -> None:
            settled.inc(sum(held))
            self._lost.inc(len(held) - sum(held))

        return count

    def _replay_all(self, replayed: ReplayResult) -> None:
        self._replayed.inc(replayed.count)
