"""The counts of events in an inbox."""

import uuid

import pytest

from inbox.domain.stats import MAX_TYPES, OTHER_TYPES, Counts, Span, UndeliveredSummary
from tests.contract.consumer import Consumer
from tests.contract.samples import (
    MINUTE,
    NOW,
    keyed_event,
    new_event,
    numbered,
    receipt,
    receipts,
    run_concurrently,
)
from tests.engines.harnesses import MAX_DELIVERIES

HOUR = Span.HOUR.ms
THIS_HOUR, TODAY = Span.HOUR.start_ms(NOW), Span.DAY.start_ms(NOW)
ORDER = "order.created"
TOMORROW_S = NOW // 1000 + 86_400


def test_received_events_are_counted_by_hour_day_and_type(acme: Consumer) -> None:
    acme.send(new_event(b"{}"), new_event(b'{"n":1}'), new_event(b"{}", "invoice"))
    acme.send(new_event(b"{}", None), at=NOW + HOUR)
    expected = {"invoice": Counts(received=1, bytes=2), ORDER: Counts(received=2, bytes=9)}

    hours = {(THIS_HOUR, event_type): counts for event_type, counts in expected.items()}
    assert acme.read_counts(Span.HOUR) == hours | {(THIS_HOUR + HOUR, None): Counts(received=1, bytes=2)}
    assert acme.read_counts(Span.HOUR, since=THIS_HOUR + 1) == {(THIS_HOUR + HOUR, None): Counts(received=1, bytes=2)}
    days = {(TODAY, event_type): counts for event_type, counts in expected.items()}
    assert acme.read_counts(Span.DAY) == days | {(TODAY, None): Counts(received=1, bytes=2)}


def test_claims_are_counted_when_they_happen(acme: Consumer) -> None:
    acme.send(*numbered(5), expires_at_s=TOMORROW_S)
    acme.consume(2)
    acme.lease(3, at=NOW + HOUR, until=NOW + HOUR + MINUTE)

    assert acme.read_counts(Span.HOUR) == {
        (THIS_HOUR, ORDER): Counts(received=5, delivered=2, bytes=35),
        (THIS_HOUR + HOUR, ORDER): Counts(leased=3),
    }


def test_acknowledge_counts_once_and_release_does_not_count(acme: Consumer) -> None:
    acme.send(*numbered(3), expires_at_s=TOMORROW_S)
    one, another, last = receipts(acme.lease().events)
    acme.extend([one], NOW + 2 * MINUTE)
    for _ in range(2):
        acme.acknowledge([one])
        acme.release([another])
    acme.extend([last], NOW + 2 * MINUTE)

    assert acme.totals() == Counts(received=3, leased=3, delivered=1, bytes=21)
    acme.lease()
    assert acme.totals().leased == 4


def test_repeated_event_is_not_counted_again(acme: Consumer) -> None:
    event = keyed_event(str(uuid.uuid4()))
    acme.put([event])
    acme.put([event])
    acme.put([event, new_event(b"{}")])

    assert acme.totals() == Counts(received=2, bytes=4)


def test_repeated_attempt_is_not_counted_again(acme: Consumer) -> None:
    acme.send(*numbered(2), expires_at_s=TOMORROW_S)
    for _ in range(3):
        acme.consume(attempt="a")

    assert acme.totals().delivered == 2


def test_dead_and_replayed_events_are_counted(acme: Consumer) -> None:
    events = acme.send(*numbered(2), expires_at_s=TOMORROW_S)
    for lease in range(MAX_DELIVERIES):
        acme.lease(at=NOW + lease * MINUTE, until=NOW + (lease + 1) * MINUTE)
    end_ms = NOW + MAX_DELIVERIES * MINUTE
    # One replay happens before the store has marked the event dead, and one after.
    acme.replay(events[0].event_id, end_ms)
    acme.consume(at=end_ms)
    acme.replay_all(at=end_ms)

    leased = 2 * MAX_DELIVERIES
    assert acme.totals() == Counts(received=2, leased=leased, dead=2, replayed=3, delivered=1, bytes=14)
    assert acme.undelivered(end_ms) == UndeliveredSummary(2, NOW)


def test_event_made_dead_by_failed_releases_is_counted_once(acme: Consumer) -> None:
    acme.send(*numbered(2), expires_at_s=TOMORROW_S)
    for lease in range(MAX_DELIVERIES):
        first = receipts(acme.lease(1).events)
        for _ in range(2):
            acme.release(first, failed=True)
        assert acme.undelivered().count == (1 if lease == MAX_DELIVERIES - 1 else 2)

    assert acme.totals() == Counts(received=2, leased=MAX_DELIVERIES, dead=1, bytes=14)
    acme.replay_all()
    assert acme.totals() == Counts(received=2, leased=MAX_DELIVERIES, dead=1, replayed=1, bytes=14)
    assert acme.undelivered().count == 2


def test_each_inbox_has_its_own_counts(acme: Consumer) -> None:
    orders, other_tenant = acme.in_inbox("orders"), acme.in_tenant("other")
    orders.create_inbox("order.*")
    acme.send(new_event(), new_event(event_type="invoice"))
    acme.put([keyed_event(str(uuid.uuid4()), event_type="order.paid")])
    orders.consume()

    assert acme.totals() == Counts(received=3, bytes=16)
    assert orders.totals() == Counts(received=2, delivered=2, bytes=9)
    assert (acme.undelivered().count, orders.undelivered().count) == (3, 0)
    assert (other_tenant.totals(), other_tenant.undelivered()) == (Counts(), UndeliveredSummary(0, None))


def test_deleting_an_inbox_deletes_its_counts(acme: Consumer) -> None:
    # In DynamoDB's key order, counts of this inbox are between those of `default`.
    named = acme.in_inbox("2099-12-31t")
    named.create_inbox()
    acme.send(*numbered(2), expires_at_s=TOMORROW_S)
    assert named.totals().received == 2

    acme.harness.store.inboxes.close(acme.tenant_id, named.inbox)
    acme.harness.settle()
    acme.harness.store.inboxes.delete_copies(acme.tenant_id, named.inbox, 10)
    assert named.totals() == Counts()
    named.create_inbox()
    assert (named.undelivered().count, acme.totals().received) == (0, 2)


def test_undelivered_counts_claimable_events(acme: Consumer) -> None:
    assert acme.undelivered() == UndeliveredSummary(0, None)
    acme.send(new_event(), expires_at_s=NOW // 1000 + 10)
    acme.send(*numbered(5), at=NOW + 1, expires_at_s=TOMORROW_S)
    assert acme.undelivered() == UndeliveredSummary(6, NOW)
    # One of the events has expired.
    then_ms = NOW + 10_000
    assert acme.undelivered(then_ms) == UndeliveredSummary(5, NOW + 1)

    acme.consume(1, at=then_ms)
    delayed, released, leased = receipts(acme.lease(3, at=then_ms).events)
    assert acme.undelivered(then_ms).count == 1
    acme.release([delayed], at=then_ms, until=then_ms + 1_000)
    acme.release([released], at=then_ms)
    acme.extend([leased], then_ms + 10 * MINUTE, then_ms)
    assert acme.undelivered(then_ms).count == 2
    acme.erase(acme.peek(1, then_ms).events[0].event_id)
    assert acme.undelivered(then_ms).count == 1
    assert acme.undelivered(then_ms + 1_000).count == 2
    assert acme.undelivered(then_ms + 10 * MINUTE).count == 3


def test_event_that_replaces_an_expired_one_is_counted(acme: Consumer) -> None:
    event_id = str(uuid.uuid4())
    acme.put([keyed_event(event_id)], expires_at_s=NOW // 1000 + 10)
    then_ms = NOW + 10_000
    acme.put([keyed_event(event_id)], at=then_ms)

    assert acme.undelivered(then_ms) == UndeliveredSummary(1, then_ms)
    assert acme.totals().received == 2


def test_purged_events_are_not_undelivered(acme: Consumer) -> None:
    acme.send(*numbered(3), expires_at_s=NOW // 1000 + 10)
    acme.send(new_event(), expires_at_s=TOMORROW_S)
    then_ms = NOW + 10_000
    acme.harness.store.events.purge(then_ms, 2)

    assert acme.undelivered(then_ms).count == 1
    assert acme.recount(at=then_ms) > 0
    assert acme.undelivered(then_ms).count == 1


def test_erasing_a_claimable_event_lowers_undelivered(acme: Consumer) -> None:
    acme.send(*numbered(6))
    delivered = acme.consume(1).events[0]
    leased, delayed, released = acme.lease(3).events
    acme.release([receipt(delayed)], until=NOW + MINUTE)
    acme.release([receipt(released)])
    assert acme.undelivered().count == 3
    for event, undelivered in ((delivered, 3), (leased, 3), (delayed, 3), (released, 2)):
        acme.erase(event.event_id)
        assert acme.undelivered().count == undelivered
    assert acme.undelivered(NOW + MINUTE).count == 2


def test_event_types_above_the_maximum_are_counted_together(acme: Consumer) -> None:
    acme.send(*(new_event(b"{}", f"type-{number:02}") for number in range(MAX_TYPES)))
    assert set(acme.read_counts()) == {(TODAY, f"type-{number:02}") for number in range(MAX_TYPES)}
    acme.send(*(new_event(b"{}", f"more-{number}") for number in range(2)), new_event(b"{}", "type-00"))

    for span, start_ms in ((Span.HOUR, THIS_HOUR), (Span.DAY, TODAY)):
        counted = acme.read_counts(span)
        assert len(counted) == MAX_TYPES + 1
        assert counted[start_ms, OTHER_TYPES] == Counts(received=2, bytes=4)
        assert counted[start_ms, "type-00"] == Counts(received=2, bytes=4)


def test_counts_survive_a_restart_and_erased_events(acme: Consumer) -> None:
    first, *_ = acme.send(*numbered(2), expires_at_s=TOMORROW_S)
    acme.consume()
    acme.erase(first.event_id)
    acme.harness.reopen()

    assert acme.totals() == Counts(received=2, delivered=2, bytes=14)


def test_recount_of_correct_counts_changes_nothing(acme: Consumer) -> None:
    acme.in_inbox("orders").create_inbox("order.*")
    acme.send(*numbered(6), new_event(b"{}", "invoice"), new_event(b"{}", None), expires_at_s=TOMORROW_S)
    acme.consume(2)
    acme.acknowledge(receipts(acme.lease(2, at=NOW + HOUR, until=NOW + 2 * HOUR).events), at=NOW + HOUR)
    acme.lease(2)
    acme.in_inbox("orders").consume(4)
    before = [consumer.read_counts(span) for consumer in (acme, acme.in_inbox("orders")) for span in Span]

    assert acme.undelivered().count == 2
    assert acme.recount(at=NOW + HOUR) == 0
    assert [consumer.read_counts(span) for consumer in (acme, acme.in_inbox("orders")) for span in Span] == before
    assert acme.undelivered().count == 2


def test_recount_uses_stored_events_and_keeps_other_counts(acme: Consumer) -> None:
    first, second, *_ = acme.send(*numbered(4), expires_at_s=TOMORROW_S)
    acme.consume(2)
    acme.lease(1)
    acme.replay(second.event_id)
    acme.erase(first.event_id)
    assert acme.totals() == Counts(received=4, delivered=2, leased=1, replayed=1, bytes=28)

    # The recount changes received, delivered and bytes, each for the hour and for the day.
    assert acme.recount() == 6
    for span in Span:
        assert acme.totals(span) == Counts(received=3, delivered=0, leased=1, replayed=1, bytes=21)
    assert acme.undelivered().count == 2


def test_recount_leaves_earlier_counts_alone(acme: Consumer) -> None:
    first, *_ = acme.send(*numbered(2), expires_at_s=TOMORROW_S)
    acme.send(*numbered(3), at=NOW + HOUR, expires_at_s=TOMORROW_S)
    acme.erase(first.event_id)

    acme.recount(since=THIS_HOUR + 1, at=NOW + HOUR)
    assert acme.read_counts(Span.HOUR) == {
        (THIS_HOUR, ORDER): Counts(received=2, bytes=14),
        (THIS_HOUR + HOUR, ORDER): Counts(received=3, bytes=21),
    }
    assert acme.totals(Span.DAY).received == 5


@pytest.mark.parametrize("harness", ["sqlite", "dynamodb-local"], indirect=True)
def test_concurrent_processes_count_everything_once(acme: Consumer) -> None:
    workers = [acme.in_another_process().without_settling() for _ in range(4)]

    def work(number: int) -> int:
        worker, consumed = workers[number], 0
        for _ in range(10):
            worker.send_some(5)
            consumed += len(worker.consume(3).events)
            worker.acknowledge(receipts(worker.lease(2).events))
        return consumed

    consumed = sum(run_concurrently(len(workers), work))
    for worker in workers:
        worker.totals()
    totals = acme.totals()
    assert totals.received == 200
    assert totals.delivered == consumed + totals.leased
    assert acme.undelivered().count == 200 - totals.delivered
    assert acme.recount() == 0
