"""Monthly bills, from measured units and prices."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from bench.cost import prices
from bench.cost.measurements import Units
from bench.cost.prices import HOURS_PER_MONTH, MILLION, Price

CONSUMED = ("sent alone", "consumed, 100 a poll")
ACKNOWLEDGED = ("sent alone", "leased, 100 a poll", "acknowledged")
CONSUMED_LARGE = ("sent alone, 10 KB", "consumed alone, 10 KB")
LOOKED_UP = ("a key looked up", "a tenant's shards looked up", "a tenant's inboxes looked up")
CONSUMED_UNLISTED = ("sent alone", "consumed, 100 a poll, not listed")
ACKNOWLEDGED_UNLISTED = ("sent alone", "leased, 100 a poll", "acknowledged, not listed")
ACKNOWLEDGED_LARGE = ("sent alone, 10 KB", "leased alone, 10 KB", "acknowledged, 10 KB")
WAITED = ("an hour of waiting polls that find nothing",)
POLLED = ("an empty poll", "a key looked up", "a tenant's shards looked up")

_GIGABYTE = 1024**3
# Bytes that DynamoDB adds to each item, in the table and in each index, when it bills storage.
_ITEM_OVERHEAD_BYTES = 100
_TABLE = "Events"
# CPU per event over HTTP, with one event per POST and 100 per poll: docs/explanation/scale.md says how it was measured.
SENDING_MS, POLLING_MS = 1.8, 0.5
PEAK_FACTOR = 3
TARGET_UTILIZATION = 0.6
_SECONDS_PER_MONTH = HOURS_PER_MONTH * 3600
_MIN_TASKS = 2


@dataclass(frozen=True)
class Bills:
    """Bills for small events. `measured` is the content of bench/units.json."""

    measured: Mapping[str, Any]

    def units_of(self, steps: tuple[str, ...]) -> Units:
        of_steps = [Units(**self.measured["steps"][step]) for step in steps]
        return Units(
            sum(each.writes for each in of_steps),
            sum(each.reads for each in of_steps),
            sum(each.status_index_writes for each in of_steps),
        )

    def price_requests(self, steps: tuple[str, ...], times: float) -> float:
        """Returns the price of making these steps `times` times."""
        units = self.units_of(steps)
        return times * (units.writes * prices.WRITES.dollars + units.reads * prices.READS.dollars) / MILLION

    @property
    def bytes_per_event(self) -> int:
        return sum(map(self._stored_bytes, self.measured["bytes"]))

    def price_storage(self, events: float) -> float:
        """Returns the price of storing one month's events, as with a retention of 30 days."""
        per_month = self.bytes_per_event * prices.STORAGE.dollars + self._stored_bytes(_TABLE) * prices.RECOVERY.dollars
        return events * per_month / _GIGABYTE

    def _stored_bytes(self, table_or_index: str) -> int:
        return int(self.measured["bytes"][table_or_index]) + _ITEM_OVERHEAD_BYTES

    def price_polls(self, interval_minutes: float) -> float:
        """Returns the price of a month's polls that find nothing, and are too rare to profit from caches."""
        return self.price_requests(POLLED, _SECONDS_PER_MONTH / 60 / interval_minutes)

    def price_long_polls(self) -> float:
        """Returns the price of a month's long polls that find nothing."""
        return self.price_requests(WAITED, HOURS_PER_MONTH)


def _needed_vcpus(events: float) -> float:
    """Returns the vCPUs for the peak of a month's events."""
    return PEAK_FACTOR * events / _SECONDS_PER_MONTH * (SENDING_MS + POLLING_MS) / 1000 / TARGET_UTILIZATION


def count_tasks(events: float) -> int:
    return max(_MIN_TASKS, ceil(_needed_vcpus(events)))


def price_containers(events: float) -> float:
    """Returns the price of a load balancer and two small tasks, or tasks of 1 vCPU and 2 GB if two are not enough."""
    vcpu, gigabytes = (0.25, 0.5) if _needed_vcpus(events) <= _MIN_TASKS * 0.25 else (1.0, 2.0)
    per_task = vcpu * prices.VCPU.dollars + gigabytes * prices.MEMORY.dollars
    return HOURS_PER_MONTH * (count_tasks(events) * per_task + prices.LOAD_BALANCER.dollars)


def price_sqs(price: Price, events: float, batch_size: int) -> float:
    """Returns the price of sending, receiving and deleting `events` in batches of `batch_size`."""
    return 3 * events / batch_size * price.dollars / MILLION


def price_eventbridge(events: float) -> float:
    return events * (prices.EVENTBRIDGE.dollars + prices.API_DESTINATION.dollars) / MILLION


def price_hookdeck(events: float, price: Price) -> float:
    if events <= prices.HOOKDECK_INCLUDED:
        return 0.0
    return prices.HOOKDECK.dollars + (events - prices.HOOKDECK_INCLUDED) / 100_000 * price.dollars


def price_svix(events: float) -> float:
    return max(0.0, events - prices.SVIX_INCLUDED) * prices.SVIX.dollars
