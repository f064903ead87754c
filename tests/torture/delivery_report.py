"""Who sent what, who got what, and what became of each event in between.

Every producer and consumer keeps a book of its own; at the end the accountant lays them side by side, and each event is
in exactly one class.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

_EXAMPLES = 5


class Class(StrEnum):
    DELIVERED_ONCE = "delivered once"
    DUPLICATED = "duplicated"
    LOST = "lost"
    FOREIGN = "foreign"
    OUT_OF_ORDER = "out of order"
    UNREAD = "claimed in an answer never read"


WRONG = (Class.LOST, Class.DUPLICATED, Class.FOREIGN, Class.OUT_OF_ORDER)


class Origin(NamedTuple):
    """What an event says of itself in its payload."""

    tenant: str
    producer: int
    number: int
    rank: int
    """Events of one rank were sent together, and may come in any order between them."""


@dataclass
class ProducerBook:
    tenant: str
    producer: int
    tried: int = 0
    """The numbers below it were sent, whatever came back."""
    accepted: dict[str, int] = field(default_factory=dict)
    """The number behind each id that came with a 2xx."""
    unavailable: int = 0
    """Answers that said 503."""


class Received(NamedTuple):
    event_id: str
    origin: Origin
    deliveries: int = 1


Source = tuple[str, int, int]
"""Tenant, producer, and the number that it gave the event."""


@dataclass
class ConsumerBook:
    tenant: str
    received: list[Received] = field(default_factory=list)
    """In the order in which they were read; where events are leased, those whose acknowledgement was confirmed."""
    unanswered: int = 0
    """Polls whose answer never came."""
    unavailable: int = 0
    """Polls that were answered with 503."""
    at_risk: int = 0
    """So many events at most were in the answers that it may have lost."""
    leases_lost: int = 0
    """Events that somebody else had by the time that they were to be acknowledged."""
    in_order: bool = True
    """Whether it is promised that: where claims fail, one of several consumers may get later what another went for."""

    def is_own(self, event: dict[str, Any]) -> bool:
        return bool(event["payload"]["tenant"] == self.tenant)

    def enter(self, events: Iterable[dict[str, Any]]) -> None:
        for event in events:
            payload = event["payload"]
            origin = Origin(payload["tenant"], payload["producer"], payload["number"], payload["rank"])
            self.received.append(Received(event["id"], origin, event["deliveries"]))


@dataclass
class Account:
    """Which events are in each class."""

    accepted: int = 0
    answers_lost: int = 0
    unavailable: int = 0
    leases_lost: int = 0
    came_again: int = 0
    """Received, and not at the first try to hand them out."""
    unconfirmed: int = 0
    """Received, although their producer never got an answer. They are in their classes as well."""
    classes: dict[Class, list[str]] = field(default_factory=lambda: {each: [] for each in Class})

    @property
    def wrong(self) -> dict[str, list[str]]:
        """Some of those that should not be there; nothing, if all is well."""
        return {str(each): self.classes[each][:_EXAMPLES] for each in WRONG if self.classes[each]}

    def figures(self) -> dict[str, int]:
        return {
            "accepted": self.accepted,
            **{str(each): len(self.classes[each]) for each in Class},
            "unconfirmed": self.unconfirmed,
            "answers lost": self.answers_lost,
            "leases lost": self.leases_lost,
            "came again": self.came_again,
            "503": self.unavailable,
        }


def close(
    producers: Iterable[ProducerBook],
    consumers: Iterable[ConsumerBook],
    status_of: Callable[[str, str], str | None],
) -> Account:
    """`status_of` says, of a tenant's event that nobody received, what the service thinks of it now."""
    producers, consumers = list(producers), list(consumers)
    account = Account(
        answers_lost=sum(book.unanswered for book in consumers),
        unavailable=sum(book.unavailable for book in producers) + sum(book.unavailable for book in consumers),
        leases_lost=sum(book.leases_lost for book in consumers),
        came_again=sum(received.deliveries > 1 for book in consumers for received in book.received),
    )
    tried = {(book.tenant, book.producer): book.tried for book in producers}
    owners: dict[str, Source] = {
        event_id: (book.tenant, book.producer, number)
        for book in producers
        for event_id, number in book.accepted.items()
    }
    account.accepted = sum(len(book.accepted) for book in producers)

    readings: dict[str, list[tuple[ConsumerBook, Origin]]] = defaultdict(list)
    ids: dict[Origin, set[str]] = defaultdict(set)
    for book in consumers:
        for received in book.received:
            readings[received.event_id].append((book, received.origin))
            ids[received.origin].add(received.event_id)
    # Each is sent once, or under a key that stands for one event.
    stored_twice = {event_id for several in ids.values() if len(several) > 1 for event_id in several}
    # Whoever got no answer and went on has sent both at the same time: only accepted events have a place in the order.
    late = owners.keys() & {event_id for book in consumers if book.in_order for event_id in _out_of_order(book)}

    for event_id, read in readings.items():
        account.unconfirmed += event_id not in owners
        kind = _class_of_received(event_id, read, owners, tried, late)
        is_copy = event_id in stored_twice and kind is not Class.FOREIGN
        account.classes[Class.DUPLICATED if is_copy else kind].append(event_id)
    at_risk: Counter[str] = Counter()
    for book in consumers:
        at_risk[book.tenant] += book.at_risk
    for event_id in owners.keys() - readings.keys():
        tenant, _, _ = owners[event_id]
        # Without an answer that got lost nobody can have it: whatever the service thinks, it is gone.
        claimed = at_risk[tenant] > 0 and status_of(tenant, event_id) == "delivered"
        at_risk[tenant] -= claimed
        account.classes[Class.UNREAD if claimed else Class.LOST].append(event_id)
    return account


def _class_of_received(
    event_id: str,
    read: list[tuple[ConsumerBook, Origin]],
    owners: dict[str, Source],
    tried: dict[tuple[str, int], int],
    late: set[str],
) -> Class:
    for book, origin in read:
        never_sent = origin.number >= tried.get((origin.tenant, origin.producer), 0)
        source = origin.tenant, origin.producer, origin.number
        if never_sent or book.tenant != origin.tenant or owners.get(event_id, source) != source:
            return Class.FOREIGN
    if len(read) > 1:
        return Class.DUPLICATED
    return Class.OUT_OF_ORDER if event_id in late else Class.DELIVERED_ONCE


def _out_of_order(book: ConsumerBook) -> Iterator[str]:
    """Those that came to a consumer after a later one of the same producer.

    One that comes back from a lost lease stands at its old place again, and others have gone ahead of it meanwhile.
    """
    newest: dict[tuple[str, int], int] = {}
    for event_id, origin, deliveries in book.received:
        if deliveries > 1:
            continue
        source = (origin.tenant, origin.producer)
        if origin.rank < newest.get(source, -1):
            yield event_id
        newest[source] = max(origin.rank, newest.get(source, -1))
