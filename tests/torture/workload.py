"""Producers and consumers of several tenants at once, and a report on the events that they sent."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event

from tests.service import Service
from tests.torture.clients import PAUSE_SECONDS, TIMEOUT_SECONDS, Consumer, Link, Producer
from tests.torture.delivery_report import ConsumerLog, DeliveryReport, Outcome, ProducerLog, compare_logs

_LIMITS = (1, 7, 30, 100, 500)


@dataclass
class Workload:
    """Runs producers and consumers of several tenants against services that share a store."""

    services: Sequence[Service]
    keys: dict[str, str]
    producers: list[Producer] = field(default_factory=list)
    consumers: list[Consumer] = field(default_factory=list)
    response_seconds: list[float] = field(default_factory=list)
    _links: list[Link] = field(default_factory=list)

    def add_producers(self, count: int) -> None:
        """Adds producers, divided among the tenants. Half of them use idempotency keys and retry."""
        # A poll while a batch is being stored sees all of it or nothing on SQLite, 25 events at a time on DynamoDB. The
        # pace is for DynamoDB Local: with four times as many events, polls took 10 seconds.
        together, pace_seconds = (25, 1) if self.services[0].is_on_dynamodb else (1, 0)
        for producer in range(len(self.producers), len(self.producers) + count):
            tenant = self._choose_tenant(producer)
            keyed = producer // len(self.keys) % 2 == 1
            log = ProducerLog(tenant, producer)
            self.producers.append(Producer(self._connect(tenant), log, keyed, together, pace_seconds))

    def add_consumers(self, count: int, lease_seconds: int | None = None) -> None:
        """Adds consumers. Those of the last tenant repeat their polls, because none of its events may get lost."""
        # Without a pause, polls take all the time of DynamoDB Local and its calls time out.
        pause_seconds = 0.5 if self.services[0].is_on_dynamodb else 0
        for consumer in range(len(self.consumers), len(self.consumers) + count):
            tenant = self._choose_tenant(consumer)
            self.consumers.append(
                Consumer(
                    self._connect(tenant),
                    ConsumerLog(tenant),
                    _LIMITS[consumer % len(_LIMITS)],
                    lease_seconds,
                    repeatable=lease_seconds is None and tenant == [*self.keys][-1],
                    pause_seconds=pause_seconds,
                    may_lose_by_503=self.services[0].is_on_dynamodb,
                )
            )

    def take_response_seconds(self) -> list[float]:
        """Returns the response times since the last call."""
        taken, self.response_seconds = self.response_seconds, []
        return taken

    @property
    def requests(self) -> int:
        """Returns the number of requests that the producers made."""
        return sum(producer.requests for producer in self.producers)

    @property
    def lost_responses(self) -> int:
        return sum(link.lost_responses for link in self._links)

    @property
    def accepted(self) -> int:
        return sum(len(producer.log.accepted) for producer in self.producers)

    def work(self, during: Callable[[], object]) -> DeliveryReport:
        """Runs all clients until `during` returns, empties the inboxes, and returns the comparison of the logs."""
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
        links = {tenant: self._connect(tenant) for tenant in self.keys}

        def get_status(tenant: str, event_id: str) -> str | None:
            response = links[tenant].retry("GET", f"/events/{event_id}")
            return str(response.body["status"]) if response.status == 200 else None

        return compare_logs([each.log for each in self.producers], [each.log for each in self.consumers], get_status)

    def wait_for(self, count: int) -> None:
        """Waits until `count` more events are accepted."""
        enough, deadline = self.accepted + count, time.monotonic() + max(TIMEOUT_SECONDS, count / 20)
        while self.accepted < enough:
            assert time.monotonic() < deadline, f"only {self.accepted} events were accepted"
            time.sleep(PAUSE_SECONDS)

    def check_replay(self, report: DeliveryReport) -> None:
        """Replays the events that were claimed in lost responses, and checks that polls return exactly these."""
        unread = set(report.outcomes[Outcome.UNREAD])
        polled: list[str] = []
        for producer in self.producers:
            for event_id in unread & producer.log.accepted.keys():
                assert producer.link.retry("POST", f"/events/{event_id}/replay").status == 200
        for tenant in self.keys:
            while events := self._connect(tenant).retry("GET", "/inbox?limit=500").body:
                polled += [event["id"] for event in events]
        assert sorted(polled) == sorted(unread)

    def _choose_tenant(self, number: int) -> str:
        return [*self.keys][number % len(self.keys)]

    def _connect(self, tenant: str) -> Link:
        self._links.append(
            Link(self.services, self.keys[tenant], lambda seconds: self.response_seconds.append(seconds))
        )
        return self._links[-1]

    def close(self) -> None:
        for link in self._links:
            link.close()
