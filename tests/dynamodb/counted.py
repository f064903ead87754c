"""Events that are sent, and what has been counted of them."""

from inbox.domain.events import DEFAULT_INBOX, NewEvent
from inbox.domain.stats import Counts, Span
from inbox.store.dynamodb import DynamoDBStore
from tests.dynamodb.conftest import LATER, NOW, fresh

TODAY = Span.DAY.start_ms(NOW)


def send(store: DynamoDBStore, tenant: str, count: int = 1) -> list[NewEvent]:
    events = [fresh() for _ in range(count)]
    store.events.put(tenant, events, NOW, LATER)
    return events


def totals(store: DynamoDBStore, tenant: str, span: Span = Span.DAY) -> Counts:
    totals = Counts()
    for counted in store.counters.list_counts(tenant, DEFAULT_INBOX, span, 0):
        totals = totals.plus(counted.counts)
    return totals
