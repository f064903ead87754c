"""What a store promises about counting what becomes of events."""

import uuid

import pytest

from inbox.domain.stats import MAX_TYPES, OTHER_TYPES, Counts, Span, UndeliveredSummary
from tests.contract.consumer import Consumer
from tests.contract.samples import (
    MINUTE,
    NOW,
    at_the_same_time,
    keyed_event,
    new_event,
    numbered,
    receipt,
    receipts,
)
from tests.engines.harnesses import MAX_DELIVERIES

HOUR = Span.HOUR.ms
THIS_HOUR, TODAY = Span.HOUR.start_ms(NOW), Span.DAY.start_ms(NOW)
ORDER = "order.created"
TOMORROW = NOW // 1000 + 86_400


def test_what_comes_is_counted_by_hour_day_and_type(acme: Consumer) -> None:
    acme.send(new_event(b"{}"), new_event(b'{"n":1}'), new_event(b"{}", "invoice"))
    acme.send(new_event(b"{}", None), at=NOW + HOUR)
    expected = {"invoice": Counts(received=1, bytes=2), ORDER: Counts(received=2, bytes=9)}

    hours = {(THIS_HOUR, event_type): counts for event_type, counts in expected.items()}
    assert acme.counted(Span.HOUR) == hours | {(THIS_HOUR + HOUR, None): Counts(received=1, bytes=2)}
    assert acme.counted(Span.HOUR, since=THIS_HOUR + 1) == {(THIS_HOUR + HOUR, None): Counts(received=1, bytes=2)}
    days = {(TODAY, event_type): counts for event_type, counts in expected.items()}
    assert acme.counted(Span.DAY) == days | {(TODAY, None): Counts(received=1, bytes=2)}


def test_what_goes_out_is_counted_when_it_does(acme: Consumer) -> None:
    acme.send(*numbered(5), until_s=TOMORROW)
    acme.consume(2)
    acme.lease(3, at=NOW + HOUR, until=NOW + HOUR + MINUTE)

    assert acme.counted(Span.HOUR) == {
        (THIS_HOUR, ORDER): Counts(received=5, delivered=2, bytes=35),
        (THIS_HOUR + HOUR, ORDER): Counts(leased=3),
    }


def test_acknowledging_delivers_once_and_giving_back_does_not(acme: Consumer) -> None:
    acme.send(*numbered(3), until_s=TOMORROW)
    one, another, last = receipts(acme.lease().events)
    acme.extend([one], NOW + 2 * MINUTE)
    for _ in range(2):
        acme.acknowledge([one])
        acme.release([another])
    acme.extend([last], NOW + 2 * MINUTE)

    assert acme.totals() == Counts(received=3, leased=3, delivered=1, bytes=21)
    acme.lease()
    assert acme.totals().leased == 4


def test_an_event_that_is_there_already_is_not_received_again(acme: Consumer) -> None:
    event = keyed_event(str(uuid.uuid4()))
    acme.put([event])
    acme.put([event])
    acme.put([event, new_event(b"{}")])

    assert acme.totals() == Counts(received=2, bytes=4)


def test_a_poll_that_is_repeated_takes_nothing_twice(acme: Consumer) -> None:
    acme.send(*numbered(2), until_s=TOMORROW)
    for _ in range(3):
        acme.consume(attempt="a")

    assert acme.totals().delivered == 2


def test_who_has_lost_its_last_lease_is_dead_and_may_be_replayed(acme: Consumer) -> None:
    events = acme.send(*numbered(2), until_s=TOMORROW)
    for lease in range(MAX_DELIVERIES):
        acme.lease(at=NOW + lease * MINUTE, until=NOW + (lease + 1) * MINUTE)
    after = NOW + MAX_DELIVERIES * MINUTE
    # One before anybody has noticed, the other one afterwards.
    acme.replay(events[0].event_id, after)
    acme.consume(at=after)
    acme.replay_all(at=after)

    leased = 2 * MAX_DELIVERIES
    assert acme.totals() == Counts(received=2, leased=leased, dead=2, replayed=3, delivered=1, bytes=14)
    assert acme.undelivered(after) == UndeliveredSummary(2, NOW)


def test_dead_by_failed_releases_is_counted_once(acme: Consumer) -> None:
    acme.send(*numbered(2), until_s=TOMORROW)
    for lease in range(MAX_DELIVERIES):
        first = receipts(acme.lease(1).events)
        for _ in range(2):
            acme.release(first, failed=True)
        assert acme.undelivered().count == (1 if lease == MAX_DELIVERIES - 1 else 2)

    assert acme.totals() == Counts(received=2, leased=MAX_DELIVERIES, dead=1, bytes=14)
    acme.replay_all()
    assert acme.totals() == Counts(received=2, leased=MAX_DELIVERIES, dead=1, replayed=1, bytes=14)
    assert acme.undelivered().count == 2


def test_each_inbox_counts_for_itself(acme: Consumer) -> None:
    orders, other_tenant = acme.at("orders"), acme.of("other")
    orders.make("order.*")
    acme.send(new_event(), new_event(event_type="invoice"))
    acme.put([keyed_event(str(uuid.uuid4()), event_type="order.paid")])
    orders.consume()

    assert acme.totals() == Counts(received=3, bytes=16)
    assert orders.totals() == Counts(received=2, delivered=2, bytes=9)
    assert (acme.undelivered().count, orders.undelivered().count) == (3, 0)
    assert (other_tenant.totals(), other_tenant.undelivered()) == (Counts(), UndeliveredSummary(0, None))


def test_an_inbox_that_is_removed_takes_its_counts_along(acme: Consumer) -> None:
    # Among the keys of the inbox `default` an inbox of this name stands between the days.
    named = acme.at("2099-12-31t")
    named.make()
    acme.send(*numbered(2), until_s=TOMORROW)
    assert named.totals().received == 2

    acme.harness.store.inboxes.close(acme.tenant_id, named.inbox)
    acme.harness.settle()
    acme.harness.store.inboxes.delete_copies(acme.tenant_id, named.inbox, 10)
    assert named.totals() == Counts()
    named.make()
    assert (named.undelivered().count, acme.totals().received) == (0, 2)


def test_what_could_be_taken_now_is_counted(acme: Consumer) -> None:
    assert acme.undelivered() == UndeliveredSummary(0, None)
    acme.send(new_event(), until_s=NOW // 1000 + 10)
    acme.send(*numbered(5), at=NOW + 1, until_s=TOMORROW)
    assert acme.undelivered() == UndeliveredSummary(6, NOW)
    # One of them has expired.
    then = NOW + 10_000
    assert acme.undelivered(then) == UndeliveredSummary(5, NOW + 1)

    acme.consume(1, at=then)
    waits, comes_back, stays = receipts(acme.lease(3, at=then).events)
    assert acme.undelivered(then).count == 1
    acme.release([waits], at=then, until=then + 1_000)
    acme.release([comes_back], at=then)
    acme.extend([stays], then + 10 * MINUTE, then)
    assert acme.undelivered(then).count == 2
    acme.erase(acme.peek(1, then).events[0].event_id)
    assert acme.undelivered(then).count == 1
    assert acme.undelivered(then + 1_000).count == 2
    assert acme.undelivered(then + 10 * MINUTE).count == 3


def test_an_event_in_the_place_of_one_that_has_expired_is_counted_once(acme: Consumer) -> None:
    event_id = str(uuid.uuid4())
    acme.put([keyed_event(event_id)], until_s=NOW // 1000 + 10)
    then = NOW + 10_000
    acme.put([keyed_event(event_id)], at=then)

    assert acme.undelivered(then) == UndeliveredSummary(1, then)
    assert acme.totals().received == 2


def test_what_is_purged_is_not_undelivered_any_more(acme: Consumer) -> None:
    acme.send(*numbered(3), until_s=NOW // 1000 + 10)
    acme.send(new_event(), until_s=TOMORROW)
    then = NOW + 10_000
    acme.harness.store.events.purge(then, 2)

    assert acme.undelivered(then).count == 1
    assert acme.recount(at=then) > 0
    assert acme.undelivered(then).count == 1


def test_only_what_could_be_had_is_missed_when_it_is_erased(acme: Consumer) -> None:
    acme.send(*numbered(6))
    delivered = acme.consume(1).events[0]
    leased, waits, back = acme.lease(3).events
    acme.release([receipt(waits)], until=NOW + MINUTE)
    acme.release([receipt(back)])
    assert acme.undelivered().count == 3
    for event, left in ((delivered, 3), (leased, 3), (waits, 3), (back, 2)):
        acme.erase(event.event_id)
        assert acme.undelivered().count == left
    assert acme.undelivered(NOW + MINUTE).count == 2


def test_many_types_are_counted_together_from_some_number_on(acme: Consumer) -> None:
    acme.send(*(new_event(b"{}", f"type-{number:02}") for number in range(MAX_TYPES)))
    assert set(acme.counted()) == {(TODAY, f"type-{number:02}") for number in range(MAX_TYPES)}
    acme.send(*(new_event(b"{}", f"more-{number}") for number in range(2)), new_event(b"{}", "type-00"))

    for span, start_ms in ((Span.HOUR, THIS_HOUR), (Span.DAY, TODAY)):
        counted = acme.counted(span)
        assert len(counted) == MAX_TYPES + 1
        assert counted[start_ms, OTHER_TYPES] == Counts(received=2, bytes=4)
        assert counted[start_ms, "type-00"] == Counts(received=2, bytes=4)


def test_counts_outlive_the_process_and_what_they_count(acme: Consumer) -> None:
    first, *_ = acme.send(*numbered(2), until_s=TOMORROW)
    acme.consume()
    acme.erase(first.event_id)
    acme.harness.reopen()

    assert acme.totals() == Counts(received=2, delivered=2, bytes=14)


def test_a_recount_finds_what_was_counted(acme: Consumer) -> None:
    acme.at("orders").make("order.*")
    acme.send(*numbered(6), new_event(b"{}", "invoice"), new_event(b"{}", None), until_s=TOMORROW)
    acme.consume(2)
    acme.acknowledge(receipts(acme.lease(2, at=NOW + HOUR, until=NOW + 2 * HOUR).events), at=NOW + HOUR)
    acme.lease(2)
    acme.at("orders").consume(4)
    before = [consumer.counted(span) for consumer in (acme, acme.at("orders")) for span in Span]

    assert acme.undelivered().count == 2
    assert acme.recount(at=NOW + HOUR) == 0
    assert [consumer.counted(span) for consumer in (acme, acme.at("orders")) for span in Span] == before
    assert acme.undelivered().count == 2


def test_a_recount_counts_what_is_there_and_keeps_what_events_do_not_tell(acme: Consumer) -> None:
    first, second, *_ = acme.send(*numbered(4), until_s=TOMORROW)
    acme.consume(2)
    acme.lease(1)
    acme.replay(second.event_id)
    acme.erase(first.event_id)
    assert acme.totals() == Counts(received=4, delivered=2, leased=1, replayed=1, bytes=28)

    # Received, delivered and bytes, each for the hour and for the day.
    assert acme.recount() == 6
    for span in Span:
        assert acme.totals(span) == Counts(received=3, delivered=0, leased=1, replayed=1, bytes=21)
    assert acme.undelivered().count == 2


def test_a_recount_leaves_alone_what_began_earlier(acme: Consumer) -> None:
    first, *_ = acme.send(*numbered(2), until_s=TOMORROW)
    acme.send(*numbered(3), at=NOW + HOUR, until_s=TOMORROW)
    acme.erase(first.event_id)

    acme.recount(since=THIS_HOUR + 1, at=NOW + HOUR)
    assert acme.counted(Span.HOUR) == {
        (THIS_HOUR, ORDER): Counts(received=2, bytes=14),
        (THIS_HOUR + HOUR, ORDER): Counts(received=3, bytes=21),
    }
    assert acme.totals(Span.DAY).received == 5


@pytest.mark.parametrize("harness", ["sqlite", "dynamodb-local"], indirect=True)
def test_nothing_is_missed_or_counted_twice_where_many_are_at_work(acme: Consumer) -> None:
    workers = [acme.in_another_process().in_a_hurry() for _ in range(4)]

    def work(number: int) -> int:
        worker, taken = workers[number], 0
        for _ in range(10):
            worker.send_some(5)
            taken += len(worker.consume(3).events)
            worker.acknowledge(receipts(worker.lease(2).events))
        return taken

    consumed = sum(at_the_same_time(len(workers), work))
    for worker in workers:
        worker.totals()
    totals = acme.totals()
    assert totals.received == 200
    assert totals.delivered == consumed + totals.leased
    assert acme.undelivered().count == 200 - totals.delivered
    assert acme.recount() == 0
