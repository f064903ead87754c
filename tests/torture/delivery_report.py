"""Compares what producers sent with what consumers received. Each event has exactly one outcome.

Every producer and consumer keeps a log of its own requests.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

_EXAMPLES = 5


class Outcome(StrEnum):
    DELIVERED_ONCE = "delivered once"
    DUPLICATED = "duplicated"
    LOST = "lost"
    FOREIGN = "foreign"
    OUT_OF_ORDER = "out of order"
    UNREAD = "claimed in a lost response"


WRONG = (Outcome.LOST, Outcome.DUPLICATED, Outcome.FOREIGN, Outcome.OUT_OF_ORDER)


class Origin(NamedTuple):
    """Identifies an event by its producer."""

    tenant: str
    producer: int
    number: int


@dataclass
class ProducerLog:
    tenant: str
    producer: int
    next_number: int = 0
    """All smaller numbers were sent, with any response or none."""
    accepted: dict[str, int] = field(default_factory=dict)
    """Event ID → number, for events that got a 2xx."""
    unavailable: int = 0
    """Responses with status 503."""


class Received(NamedTuple):
    event_id: str
    origin: Origin
    rank: int
    """Events of the same rank were sent together and may arrive in any order."""
    deliveries: int


@dataclass
class ConsumerLog:
    tenant: str
    received: list[Received] = field(default_factory=list)
    """Events in the order of the responses. Leased events only if their acknowledgement was confirmed."""
    lost_responses: int = 0
    """Polls without a response."""
    unavailable: int = 0
    """Polls that got a 503."""
    at_risk: int = 0
    """Maximum number of events in lost responses."""
    leases_lost: int = 0
    """Events whose lease had expired when they were acknowledged."""
    in_order: bool = True
    """False if order is not promised: after a failed claim another consumer may get the event later."""

    def is_own(self, event: dict[str, Any]) -> bool:
        return bool(event["payload"]["tenant"] == self.tenant)

    def add(self, events: Iterable[dict[str, Any]]) -> None:
        for event in events:
            payload = event["payload"]
            origin = Origin(payload["tenant"], payload["producer"], payload["number"])
            self.received.append(Received(event["id"], origin, payload["rank"], event["deliveries"]))


@dataclass
class DeliveryReport:
    """The events by outcome, and totals."""

    accepted: int = 0
    lost_responses: int = 0
    unavailable: int = 0
    leases_lost: int = 0
    redelivered: int = 0
    """Events received at a second or later delivery."""
    unconfirmed: int = 0
    """Events received although their producer got no response. They have an outcome as well."""
    outcomes: dict[Outcome, list[str]] = field(default_factory=lambda: {each: [] for each in Outcome})

    @property
    def wrong(self) -> dict[str, list[str]]:
        """Returns examples of lost, duplicated, foreign and out-of-order events; empty if there are none."""
        return {str(each): self.outcomes[each][:_EXAMPLES] for each in WRONG if self.outcomes[each]}

    @property
    def figures(self) -> dict[str, int]:
        return {
            "accepted": self.accepted,
            **{str(each): len(self.outcomes[each]) for each in Outcome},
            "unconfirmed": self.unconfirmed,
            "lost responses": self.lost_responses,
            "leases lost": self.leases_lost,
            "redelivered": self.redelivered,
            "503": self.unavailable,
        }


def compare_logs(
    producers: Iterable[ProducerLog],
    consumers: Iterable[ConsumerLog],
    get_status: Callable[[str, str], str | None],
) -> DeliveryReport:
    """Returns the report. `get_status` returns an event's status, by tenant and event ID, or None."""
    producers, consumers = list(producers), list(consumers)
    report = DeliveryReport(
        lost_responses=sum(log.lost_responses for log in consumers),
        unavailable=sum(log.unavailable for log in producers) + sum(log.unavailable for log in consumers),
        leases_lost=sum(log.leases_lost for log in consumers),
        redelivered=sum(received.deliveries > 1 for log in consumers for received in log.received),
    )
    next_numbers = {(log.tenant, log.producer): log.next_number for log in producers}
    accepted = {
        event_id: Origin(log.tenant, log.producer, number)
        for log in producers
        for event_id, number in log.accepted.items()
    }
    report.accepted = sum(len(log.accepted) for log in producers)

    deliveries_of: dict[str, list[tuple[ConsumerLog, Origin]]] = defaultdict(list)
    ids: dict[Origin, set[str]] = defaultdict(set)
    for log in consumers:
        for received in log.received:
            deliveries_of[received.event_id].append((log, received.origin))
            ids[received.origin].add(received.event_id)
    # A producer sends an event once, or under an idempotency key.
    stored_twice = {event_id for several in ids.values() if len(several) > 1 for event_id in several}
    # A producer that got no response went on without waiting, so order is promised for accepted events only.
    late = accepted.keys() & {event_id for log in consumers if log.in_order for event_id in _find_out_of_order(log)}

    for event_id, received_by in deliveries_of.items():
        report.unconfirmed += event_id not in accepted
        outcome = _find_outcome(event_id, received_by, accepted, next_numbers, late)
        is_copy = event_id in stored_twice and outcome is not Outcome.FOREIGN
        report.outcomes[Outcome.DUPLICATED if is_copy else outcome].append(event_id)
    at_risk: Counter[str] = Counter()
    for log in consumers:
        at_risk[log.tenant] += log.at_risk
    for event_id in accepted.keys() - deliveries_of.keys():
        tenant = accepted[event_id].tenant
        # Only a lost response explains a delivered event that no consumer received.
        claimed = at_risk[tenant] > 0 and get_status(tenant, event_id) == "delivered"
        at_risk[tenant] -= claimed
        report.outcomes[Outcome.UNREAD if claimed else Outcome.LOST].append(event_id)
    return report


def _find_outcome(
    event_id: str,
    received_by: list[tuple[ConsumerLog, Origin]],
    accepted: dict[str, Origin],
    next_numbers: dict[tuple[str, int], int],
    late: set[str],
) -> Outcome:
    for log, origin in received_by:
        never_sent = origin.number >= next_numbers.get((origin.tenant, origin.producer), 0)
        if never_sent or log.tenant != origin.tenant or accepted.get(event_id, origin) != origin:
            return Outcome.FOREIGN
    if len(received_by) > 1:
        return Outcome.DUPLICATED
    return Outcome.OUT_OF_ORDER if event_id in late else Outcome.DELIVERED_ONCE


def _find_out_of_order(log: ConsumerLog) -> Iterator[str]:
    """Yields events that a consumer received after a later event of the same producer.

    An event whose lease expired keeps its position, so later events may have been delivered before it.
    """
    newest: dict[tuple[str, int], int] = {}
    for event_id, origin, rank, deliveries in log.received:
        if deliveries > 1:
            continue
        producer = origin.tenant, origin.producer
        if rank < newest.get(producer, -1):
            yield event_id
        newest[producer] = max(rank, newest.get(producer, -1))
