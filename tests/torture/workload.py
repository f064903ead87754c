"""Everybody who sends and polls, and what became of what they sent."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event

from tests.service import Service
from tests.torture.clients import PATIENCE_SECONDS, PAUSE_SECONDS, Consumer, Line, Producer
from tests.torture.delivery_report import Account, ConsumerBook, ProducerBook, close

_LIMITS = (1, 7, 30, 100, 500)


@dataclass
class Crowd:
    """Who sends and polls, tenant by tenant, through any of the services."""

    services: Sequence[Service]
    keys: dict[str, str]
    producers: list[Producer] = field(default_factory=list)
    consumers: list[Consumer] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    _lines: list[Line] = field(default_factory=list)

    def add_producers(self, count: int) -> None:
        """Shared out between the tenants; half of them send again where no answer came."""
        # docs/reference/storage.md: a poll while a batch is being stored sees all of it or nothing, or 25 at a time.
        # DynamoDB Local must keep up: with four times as many events, polls took 10 seconds and stopping workers had to
        # abandon them.
        together, pace_seconds = (25, 1) if self.services[0].is_on_dynamodb else (1, 0)
        for producer in range(len(self.producers), len(self.producers) + count):
            tenant = self._tenant(producer)
            keyed = producer // len(self.keys) % 2 == 1
            book = ProducerBook(tenant, producer)
            self.producers.append(Producer(self._line(tenant), book, keyed, together, pace_seconds))

    def add_consumers(self, count: int, lease_seconds: int | None = None) -> None:
        """Likewise. All that consume for the last tenant repeat their polls, so none of its events has an excuse."""
        # So many that ask without a pause would be all that DynamoDB Local is busy with, until calls run out of time.
        pause_seconds = 0.5 if self.services[0].is_on_dynamodb else 0
        for consumer in range(len(self.consumers), len(self.consumers) + count):
            tenant = self._tenant(consumer)
            self.consumers.append(
                Consumer(
                    self._line(tenant),
                    ConsumerBook(tenant),
                    _LIMITS[consumer % len(_LIMITS)],
                    lease_seconds,
                    repeatable=lease_seconds is None and tenant == [*self.keys][-1],
                    pause_seconds=pause_seconds,
                    may_lose_by_503=self.services[0].is_on_dynamodb,
                )
            )

    def timings(self) -> list[float]:
        """What the answers took since the last time this was asked."""
        taken, self.seconds = self.seconds, []
        return taken

    @property
    def requests(self) -> int:
        """How many its producers have made."""
        return sum(producer.requests for producer in self.producers)

    @property
    def unanswered(self) -> int:
        return sum(line.unanswered for line in self._lines)

    @property
    def accepted(self) -> int:
        return sum(len(producer.book.accepted) for producer in self.producers)

    def work(self, during: Callable[[], object]) -> Account:
        """Everybody sends and polls until `during` has returned; then the inboxes are emptied and the books closed."""
        all_sent, stop = Event(), Event()
        with ThreadPoolExecutor(len(self.producers) + len(self.consumers)) as pool:
            polling = [pool.submit(each.run, lambda: not all_sent.is_set()) for each in self.consumers]
            sending = [pool.submit(each.run, lambda: not stop.is_set()) for each in self.producers]
            try:
                during()
            finally:
                stop.set()
                try:
                    for each in sending:
                        each.result()
                finally:
                    all_sent.set()
            for each in polling:
                each.result()
        lines = {tenant: self._line(tenant) for tenant in self.keys}

        def status_of(tenant: str, event_id: str) -> str | None:
            answer = lines[tenant].insist("GET", f"/events/{event_id}")
            return str(answer.body["status"]) if answer.status == 200 else None

        return close([each.book for each in self.producers], [each.book for each in self.consumers], status_of)

    def wait_for(self, events: int) -> None:
        """Until so many more have been accepted."""
        enough, deadline = self.accepted + events, time.monotonic() + max(PATIENCE_SECONDS, events / 20)
        while self.accepted < enough:
            assert time.monotonic() < deadline, f"only {self.accepted} events were accepted"
            time.sleep(PAUSE_SECONDS)

    def recover(self, event_ids: Sequence[str]) -> list[str]:
        """Replays events that were claimed in an answer nobody read, and polls them."""
        again: list[str] = []
        for tenant in self.keys:
            line = self._line(tenant)
            owned = {
                each for producer in self.producers if producer.book.tenant == tenant for each in producer.book.accepted
            }
            for event_id in owned.intersection(event_ids):
                assert line.insist("POST", f"/events/{event_id}/replay").status == 200
            while events := line.insist("GET", "/inbox?limit=500").body:
                again += [event["id"] for event in events]
        return again

    def _tenant(self, number: int) -> str:
        return [*self.keys][number % len(self.keys)]

    def _line(self, tenant: str) -> Line:
        self._lines.append(Line(self.services, self.keys[tenant], lambda seconds: self.seconds.append(seconds)))
        return self._lines[-1]

    def leave(self) -> None:
        for line in self._lines:
            line.close()
